"""The process in which DuckDB answers queries; `sandbox` starts it.

DuckDB checks for an interrupt only between two steps of a query, and a function may take minutes
and gigabytes for one. So a query runs here, where it can be killed, may write no file, and gets no
more memory than it is given. The process answers one query after the other on its standard input,
each in an instance of its own, and ends with the process that asks.
"""

import json
import os
import resource
import select
import signal
import threading
from contextlib import suppress
from importlib import import_module
from secrets import token_hex
from typing import Any

from herdbook.adapters.sql_query import frames
from herdbook.adapters.sql_query.refusal import ONE_QUERY, TOO_MUCH_MEMORY, first_line, query_error
from herdbook.adapters.sql_query.result_values import encode_value, plain_value
from herdbook.domain.errors import InvalidValue, StoreDamaged, StoreFull

Message = dict[str, Any]

_ASKS, _ANSWERS = 0, 1
_SHARE = 0.7
"""The share of the memory that DuckDB may plan with; functions take more on top of that."""
_ZONED = "TIMESTAMP WITH TIME ZONE"
_DEEP = "has a value in its answer that is nested too deep; cast it to text"


def main() -> None:
    """Answer queries until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the parent, which ends this process
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(ImportError):  # a query reports that it is missing
        import_module("herdbook.adapters.sql_query.duckdb_syntax")
        import_module("herdbook.adapters.duckdb.instance")
    with suppress(frames.Closed):
        while True:
            _reply(_handle_request(json.loads(frames.receive(_ASKS))))


def _exit_with_parent() -> None:
    """End during a query too when the process that asked is gone."""
    poll = select.poll()
    poll.register(_ASKS, 0)  # nothing but a hang-up
    poll.poll()
    os._exit(0)


def _handle_request(request: Message) -> Message:
    if not request:  # whether this process still answers
        return {}
    _limit_memory(request["memory"])
    try:
        import duckdb  # noqa: PLC0415 - the reply says if it is missing
    except ImportError:
        return {"missing": "duckdb"}
    try:
        return _answer(request)
    except (duckdb.Error, InvalidValue, MemoryError, RecursionError) as error:
        return _failure(error, request["place"])


def _failure(error: Exception, place: str) -> Message:
    """The reply for an error: the query is at fault, or the file."""
    import duckdb  # noqa: PLC0415

    from herdbook.adapters.duckdb.errors import translate_error  # noqa: PLC0415

    match error:
        case InvalidValue(reason=reason):
            return {"refused": reason}
        case duckdb.OutOfMemoryException() | MemoryError():
            return {"refused": TOO_MUCH_MEMORY}
        case RecursionError():
            return {"refused": _DEEP}
        case (
            duckdb.ProgrammingError()
            | duckdb.DataError()
            | duckdb.NotSupportedError()
            | duckdb.IntegrityError()
            | duckdb.PermissionException()
        ):
            return {"refused": first_line(error)}
    found = translate_error(error, place)
    kind = {StoreDamaged: "damaged", StoreFull: "full"}.get(type(found), "unavailable")
    return {kind: getattr(found, "reason", str(found))}


def _limit_memory(size: int) -> None:
    # Not every system enforces this; then only the parent's time limit ends the query.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _answer(request: Message) -> Message:
    from herdbook.adapters.duckdb.instance import open_instance  # noqa: PLC0415
    from herdbook.adapters.sql_query.duckdb_syntax import find_tables, parse_query  # noqa: PLC0415

    settings = {"memory_limit": f"{int(request['memory'] * _SHARE) >> 20}MiB"}
    with open_instance(request["paths"], settings=settings) as connection:
        tree = parse_query(connection, request["sql"])
        named = find_tables(tree, request["tables"])
        if request["paths"]:
            _attach(connection, request)
        else:
            _receive_rows(connection, request["tables"], named)
        return _ask(connection, tree, request["sql"], request["limit"])


def _attach(connection: Any, request: Message) -> None:
    """Make the tables of a file visible through views that hide secrets.

    The file itself is attached under a random name for this one query, which the query cannot know.
    """
    within = f"herd_{token_hex(16)}"
    from herdbook.adapters.duckdb.instance import quote_text  # noqa: PLC0415

    path = quote_text(request["paths"][0])
    connection.execute(f"ATTACH {path} AS {within} (TYPE duckdb, READ_ONLY)")
    for name, table in request["tables"].items():
        connection.execute(
            f'CREATE VIEW "{name}" AS SELECT {table["visible"]} FROM {within}.main."{name}"'
        )


def _receive_rows(connection: Any, tables: Message, named: set[str]) -> None:
    """Create the tables, and fill those that the query names with the rows that are then sent."""
    from herdbook.adapters.duckdb.parsed_statements import execute  # noqa: PLC0415

    for table in tables.values():
        execute(connection, table["create"])
    _reply({"rows": sorted(named)})
    while header := json.loads(frames.receive(_ASKS)):
        columns = frames.receive(_ASKS).decode()
        connection.execute(tables[header["table"]]["insert"], [columns])


def _ask(connection: Any, tree: Message, sql: str, limit: int) -> Message:
    import duckdb  # noqa: PLC0415

    (statement,) = connection.extract_statements(sql)
    if statement.type is not duckdb.StatementType.SELECT:
        raise query_error(ONE_QUERY)
    if statement.named_parameters:
        raise query_error("has parameters, to which nobody gives values")
    asked = connection.execute(statement)
    columns = [(str(name), str(type_name)) for name, type_name, *_ in asked.description]
    zoned = {type_name for _, type_name in columns if _ZONED in type_name}
    if zoned - {_ZONED}:
        raise query_error("has a time with a zone in a list or a struct; cast it to TIMESTAMP")
    if zoned:
        asked = connection.execute(_cast_zones_to_utc(connection, tree, columns))
    fetched = asked.fetchmany(limit + 1)
    documents = [type_name == "JSON" for _, type_name in columns]
    rows = [
        [
            encode_value(plain_value(each, document=document))
            for each, document in zip(row, documents, strict=True)
        ]
        for row in fetched[:limit]
    ]
    return {"columns": [name for name, _ in columns], "rows": rows, "cut": len(fetched) > limit}


def _cast_zones_to_utc(connection: Any, tree: Message, columns: list[tuple[str, str]]) -> str:
    """The same query with its times in UTC and without a zone.

    Fetching times with a zone would need another package.
    """
    written = connection.execute(
        "SELECT json_deserialize_sql(?::JSON)", [json.dumps(tree)]
    ).fetchall()
    names = [f"c{at}" for at in range(len(columns))]
    chosen = [
        f"CAST({name} AS TIMESTAMP)" if type_name == _ZONED else name
        for name, (_, type_name) in zip(names, columns, strict=True)
    ]
    return f"SELECT {', '.join(chosen)} FROM ({written[0][0]}) AS answer({', '.join(names)})"


def _reply(message: Message) -> None:
    try:
        written = json.dumps(message).encode()
    except (MemoryError, RecursionError) as error:
        reason = _DEEP if isinstance(error, RecursionError) else TOO_MUCH_MEMORY
        written = json.dumps({"refused": reason}).encode()
    if len(written) > frames.LARGEST:
        reason = f"has an answer of more than {frames.LARGEST >> 20} MiB; ask for less"
        written = json.dumps({"refused": reason}).encode()
    frames.send(_ANSWERS, written)


if __name__ == "__main__":
    main()
