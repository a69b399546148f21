"""The engines' own prompts: which program, with what, and under which lock."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import field, frozen

from herdbook.adapters.stores.registry import PATIENCE
from herdbook.adapters.stores.urls import path_of
from herdbook.domain.errors import StoreUnavailable

OLDEST_DUCKDB = 2
"""Older ones cannot read the files of this one."""


@frozen
class Program:
    """A command to run with the terminal handed over; its environment may hold a password."""

    command: tuple[str, ...]
    environment: dict[str, str] = field(factory=dict, repr=False)
    inherits: tuple[int, ...] = ()


@contextmanager
def engine_prompt(url: str, *, write: bool, patience: float = PATIENCE) -> Iterator[Program | None]:
    """The program that is a store's own SQL prompt, to be run inside the block; None without one.

    It shows all that its engine shows, secrets too. Without `write` it opens the store to read.
    """
    match url.partition("://")[0]:
        case "duckdb":
            with _duckdb(url, write=write, patience=patience) as program:
                yield program
        case "postgresql" | "postgres":
            yield _psql(url, write=write)
        case _:
            yield None


@contextmanager
def _duckdb(url: str, *, write: bool, patience: float) -> Iterator[Program | None]:
    """DuckDB's program, while this process holds the lock of the file and has it closed itself."""
    found = shutil.which("duckdb")
    if found is None or not _reads_our_files(found):
        yield None
        return
    from herdbook.adapters.duckdb import file_checks  # noqa: PLC0415 - needs the driver
    from herdbook.adapters.duckdb.file_access import SharedFile  # noqa: PLC0415

    file = SharedFile(path_of(url), patience=patience)
    try:
        with file.lent(write=write) as lock:
            file_checks.require_database(file.real_path)
            mode = () if write else ("-readonly",)
            yield Program((found, *mode, str(file.real_path)), inherits=(lock,))
    finally:
        file.close()


def _reads_our_files(duckdb: str) -> bool:
    command = [duckdb, "--version"]
    try:
        told = subprocess.run(  # noqa: S603 - found on PATH under the name people call it by
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return False  # it is there and cannot be run, which is as good as not there
    version = re.match(r"v?(\d+)\.", told.stdout)
    return version is not None and int(version[1]) >= OLDEST_DUCKDB


def _psql(url: str, *, write: bool) -> Program | None:
    """Postgres' program; where to connect is in its environment, not where `ps` shows it."""
    found = shutil.which("psql")
    if found is None:
        return None
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - it takes 100 ms
    from psycopg.pq import Conninfo  # noqa: PLC0415

    from herdbook.adapters.postgres.address import read_address  # noqa: PLC0415

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
            rest.append(f"{name}={_in_conninfo(given[name])}")
    return Program((found, *([" ".join(rest)] if rest else [])), environment)


def _in_conninfo(value: object) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", str(value)) + "'"
