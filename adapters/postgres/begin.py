"""How a transaction begins: with everything it relies on, on one way to the server and back.

Behind a pooler the session is somebody else's a moment later, and a role, a database or a server
may set what it likes. So each transaction says itself what it needs, and for its own time only:

- names are looked up in `pg_catalog` and nowhere else, so that nobody's function, operator or type
  is taken for the server's; tables are always called by schema and name;
- a lock is waited for as long as our patience;
- it is read at one moment, or written with each statement seeing what was committed before it.
"""

from datetime import UTC, datetime, timedelta
from enum import Enum
from secrets import token_hex
from typing import Any

import psycopg
from psycopg import sql

from herdbook.adapters.postgres.bounded_connection import BoundedConnection

PREPARED_AFTER = 5
"""How often a statement is sent before it is prepared."""
LONGEST = 2**31 - 1
"""The longest limit that the server takes."""
PINNED = "pg_catalog, pg_temp"
"""Where names are looked up. What is temporary comes last: unnamed it would come first."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Mode(Enum):
    """What a transaction is for."""

    READ = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
    WRITE = "ISOLATION LEVEL READ COMMITTED READ WRITE"


def begin_script(mode: Mode, patience: float) -> str:
    """The statements that begin a transaction, as one message."""
    return (
        f"BEGIN {mode.value}; SET LOCAL search_path TO {PINNED}; "
        f"SET LOCAL lock_timeout TO {milliseconds(patience)}"
    )


def begin_statements(mode: Mode, patience: float) -> tuple[str, str]:
    """The same one by one, for a pipeline, which takes no message of several statements."""
    settings = (
        f"SELECT pg_catalog.set_config('search_path', '{PINNED}', true), "
        f"pg_catalog.set_config('lock_timeout', '{milliseconds(patience)}', true)"
    )
    return f"BEGIN {mode.value}", settings


def milliseconds(seconds: float) -> int:
    """A limit as the server takes it; 0 would mean that there is none."""
    return min(max(1, int(seconds * 1_000)), LONGEST)


def epoch_microseconds(moment: str) -> str:
    """A time of the server as a number, which no time zone and no style of dates changes."""
    return f"(EXTRACT(epoch FROM {moment}) * 1000000)::bigint"


def from_epoch_microseconds(number: int) -> datetime:
    """The time that such a number stands for."""
    return _EPOCH + timedelta(microseconds=number)


def begin(
    connection: BoundedConnection,
    mode: Mode,
    patience: float,
    question: str = "",
    argument: str | None = None,
) -> list[tuple[Any, ...]]:
    """Begin a transaction; the answer to a question in which `$1` is the argument, if there is one.

    The first time, the server is asked who serves us. It is the process that it named when we
    connected, or a pooler is between us, which gives each client a key of its own: cancelling would
    not work otherwise. Only without one are statements prepared.
    """
    parts = [begin_script(mode, patience)]
    if not connection.is_direct:
        parts.append("SELECT pg_catalog.pg_backend_pid()")
    prepares = False
    if question and argument is not None:
        value = _literal(connection, argument)
        if not connection.is_direct:
            question = question.replace("$1", value)
        else:
            name = connection.sql_statements.get(question)
            if name is None:
                prepares = True
                name = f"herdbook_{token_hex(8)}"
                parts.append(f"PREPARE {name}(text) AS {question}")
                connection.sql_statements[question] = name
            question = f"EXECUTE {name}({value})"
    if question:
        parts.append(question)
    try:
        results = connection.run_script("; ".join(parts).encode())
    except psycopg.Error:
        if prepares:
            # Whether the statement is there now is not known.
            connection.close()
        raise
    answers = [each for each in results if each.nfields]
    if not connection.is_direct:
        _note_server(connection, *connection.rows_of(answers[0])[0])
    return connection.rows_of(answers[-1]) if question else []


def _literal(connection: BoundedConnection, text: str) -> str:
    if "'" in text or "\\" in text:
        return sql.Literal(text).as_string(connection)
    return f"'{text}'"


def is_direct(connection: BoundedConnection) -> bool:
    """Whether the process that serves us is the one that let us in."""
    return connection.server_pid == connection.info.backend_pid


def _note_server(connection: BoundedConnection, pid: int) -> None:
    connection.server_pid = pid
    if connection.is_direct is None:
        connection.is_direct = is_direct(connection)
        connection.prepare_threshold = PREPARED_AFTER if connection.is_direct else None
