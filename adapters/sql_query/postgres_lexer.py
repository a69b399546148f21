"""Tokens of a query in Postgres' SQL, as its lexer reads them: no comments, no quoted text."""

import re
from collections.abc import Iterator

from herdbook.adapters.sql_query.refusal import query_error

# Functions that run other statements, reach files, other servers, settings, locks or other
# sessions, or read below the tables. The server decides what the role may do; this closes the
# plain ways.
_FORBIDDEN = re.compile(
    r"""(?x) dblink.* | lo_.* | lo(read|write)|lowrite | .*_to_xml(schema|_and_xmlschema)?
    | ts_stat|ts_rewrite | pg_read_.* | pg_ls_.* | pg_stat_file | pg_file_.* | pg_current_logfile
    | pg_(terminate|cancel)_backend | pg_reload_conf | pg_rotate_logfile.* | pg_promote
    | pg_(create|drop|copy|logical|replication|sync|advance)_.* | pg_(try_)?advisory_.*
    | pg_switch_wal | pg_backup_.* | pg_export_snapshot | pg_notify | pg_import_.*
    | pg_log_backend_memory_contexts | pg_stat_reset.* | pg_wal_.* | pg_walfile_.* | pg_get_wal.*
    | set_config | current_setting | setval | nextval | txid_current | pg_current_xact_id
    | get_raw_page | heap_page_items.* | pg_visibility.* | pgstat.* | postgres_fdw_.* """
)
# Most functions called pg_… read other sessions, settings or files; these are harmless.
_CALLED = {
    *("pg_typeof", "pg_size_pretty", "pg_size_bytes", "pg_column_size", "pg_sleep"),
    *("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size"),
    *("pg_table_is_visible", "pg_get_expr", "pg_get_indexdef", "pg_get_constraintdef"),
    *("pg_input_is_valid", "pg_client_encoding", "pg_encoding_to_char", "pg_char_to_encoding"),
}
_OWN_SCHEMA = "pg_catalog"
_WORD = re.compile(
    r"""(?xs)
    (?P<comment> --[^\r\n]* | /\* )
    | (?P<dollar> \$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$ )
    | (?P<escape> [uU]&["'] )
    | [eE]'(?:[^'\\]|''|\\.)*'
    | [nNbBxX]?'(?:[^']|'')*'
    | "(?P<quoted>(?:[^"]|"")*)"
    | (?P<name> [A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]* )
    | (?P<end> [;.(] )
    | \s+
    | \d[\w.]* | .
    """
)


def single_statement(sql: str) -> str:
    """The query without what follows its end.

    Raises InvalidValue for a second statement, and for what a query may not call.
    """
    end = None
    last: list[str] = []
    for word, start in _tokens(sql):
        if word == ";":
            end = start if end is None else end
            continue
        if end is not None:
            raise query_error("has more than one statement")
        if word == "(":
            _refuse_call(last)
        elif _FORBIDDEN.fullmatch(word.lower()):
            raise query_error(f"may not use {word}")
        last = [*last[-2:], word]
    return sql[:end]


def _refuse_call(words: list[str]) -> None:
    """Refuse the call of a function whose name these tokens end with, unless it is harmless."""
    match words:
        case [schema, ".", name] if schema.lower() != _OWN_SCHEMA:
            raise query_error(f"may not use the function {name} of the schema {schema}")
        case [*_, name] if name.lower().startswith("pg_") and name.lower() not in _CALLED:
            raise query_error(f"may not use {name}")


def _tokens(sql: str) -> Iterator[tuple[str, int]]:
    """Names, points, opening brackets, ends of statements and, as an empty text, all else."""
    at = 0
    while found := _WORD.match(sql, at):
        start, at = at, found.end()
        if found["comment"]:
            at = _end_of_comment(sql, at) if found["comment"] == "/*" else at
        elif found["dollar"]:
            closed = sql.find(found["dollar"], at)
            at = len(sql) if closed < 0 else closed + len(found["dollar"])
            yield "", start
        elif found["escape"]:
            raise query_error("may not write names or text as U&")
        elif not found[0].isspace():
            name = found["name"] or found["end"] or (found["quoted"] or "").replace('""', '"')
            yield name, start


def _end_of_comment(sql: str, at: int) -> int:
    """The end of a comment whose beginning was read; comments nest."""
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(sql, at):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(sql)
