"""The descriptor that every engine gives of itself."""

from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

ConfigValue = str | bool | int | float | list[str]

COPY_QUERY = "herdbook.adapters.sql_query.duckdb_copy:query_copy"
"""Answers SQL over a store that has none of its own: its rows are copied into a DuckDB."""

NO_SETTINGS: Mapping[str, ConfigValue] = MappingProxyType({})


class Medium(StrEnum):
    """Where an engine keeps its rows."""

    MEMORY = "memory"
    FOLDER = "folder"
    FILE = "file"
    SERVER = "server"


class EngineSpec(NamedTuple):
    """What the rest of Herdbook has to know about an engine.

    Each engine has one, as `SPEC` in the module `spec` of its folder, and a line in
    `herdbook.adapters.stores.registry` that names that module. Reading a spec imports neither the
    engine nor its driver, because every command does so at its start: functions and classes are
    given as `module:name`, and `load` imports them when they are first used.
    """

    schemes: tuple[str, ...]
    """How its URLs begin. The first is also the name and the file suffix of an engine in files."""
    medium: Medium
    store: str
    """The class of its store. It takes a path (in files), a URL (on a server) or nothing (in
    memory), then `dictionary`, `ids` and `patience` by name."""
    options: tuple[str, ...] = ()
    """Which further options of `open_store` its store takes: clock, create, size_limit, verify."""
    data_file: str = ""
    """The file in its folder that is there exactly when a store is; a file engine's is the path."""
    probe: str = ""
    """`probe(url, patience)`, which gives a StoreProbe; without it there never is a store. It takes
    `verify` too if its store does."""
    is_missing: str = ""
    """`is_missing(url)`, which opens nothing; without it the probe answers."""
    query: str = COPY_QUERY
    """`query(store, url, sql, *, deadline, limit)`, which gives an Answer."""
    queries_in_sandbox: bool = True
    """Whether `query` uses the process of `sql_query.sandbox`, which is then started early."""
    native_shell: str = ""
    """`shell(url, *, write, patience)`, a context manager that gives the Program to run or None."""
    native_shell_needs: str = ""
    """What is missing where the shell gives None, as the end of a sentence."""
    broker: str = ""
    """`start_broker(store)`, a context manager within which this process serves the store's file to
    others; empty where processes share a store well by themselves."""
    readers_block_writers: bool = False
    """Whether writers wait while a read transaction is open."""
    driver: str = ""
    """The Python package that the engine imports."""
    extra: str = ""
    """The extra of Herdbook that brings the driver; empty where Herdbook itself does."""
    shown_url_options: frozenset[str] = frozenset()
    """The options in a server's URL that may be shown; others may be secret."""
    safe_configuration: Mapping[str, ConfigValue] = NO_SETTINGS
    """The settings under which every instance of the engine runs."""

    @property
    def is_in_files(self) -> bool:
        """Whether its stores are files of this machine, in a folder of their own or not."""
        return self.medium in (Medium.FOLDER, Medium.FILE)

    def missing_driver(self, error: ImportError) -> str:
        """Say why the driver cannot be imported: it or a library that it needs is missing."""
        if isinstance(error, ModuleNotFoundError) and error.name == self.driver:
            if self.extra:
                from herdbook.adapters.system.extras import describe_missing  # noqa: PLC0415

                return describe_missing(self.driver, self.extra)
            install = f"`pip install {self.driver}`"
            return f"the package {self.driver} is not installed; {install} brings it"
        reason = str(error).partition("\n")[0]
        return f"the package {self.driver} cannot be loaded: {reason}"


def load(reference: str) -> Any:
    """Import what a spec names as `module:name`. Raises ImportError."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
