"""`psql` as the SQL shell of a store."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from herdbook.adapters.postgres.address import read_address
from herdbook.adapters.sql_query.native_shell import Program
from herdbook.domain.errors import StoreUnavailable


@contextmanager
def open_shell(url: str, *, write: bool, patience: float) -> Iterator[Program | None]:  # noqa: ARG001 - psql waits by itself
    """Give `psql`, connected to the store's schema; None where it is not installed.

    Raises StoreUnavailable for an option that psql takes only on its command line.
    """
    found = shutil.which("psql")
    yield None if found is None else _program(found, url, write=write)


def _program(found: str, url: str, *, write: bool) -> Program:
    """The program; where to connect is in its environment, not where `ps` shows it."""
    address = read_address(url)
    given: dict[str, Any] = conninfo_to_dict(address.driver)
    settings = [str(given.pop("options", "")), f'-c search_path="{address.schema}"']
    if not write:
        settings.append("-c default_transaction_read_only=on")
    environment = {"PGOPTIONS": " ".join(filter(None, settings))}
    rest = []
    for option in Conninfo.get_defaults():
        name = option.keyword.decode()
        if name not in given:
            continue
        if option.envvar:
            environment[option.envvar.decode()] = str(given[name])
        elif option.dispchar:
            raise StoreUnavailable(address.seen, f"psql takes {name} only where others can see it")
        else:
            rest.append(f"{name}={_quote_conninfo(given[name])}")
    return Program((found, *([" ".join(rest)] if rest else [])), environment)


def _quote_conninfo(value: object) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", str(value)) + "'"
