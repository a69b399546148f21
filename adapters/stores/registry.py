"""Stores by URL."""

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.system.clock import system_clock
from herdbook.adapters.system.ids import random_id
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.location import areas
from herdbook.domain.location.areas import Area
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import Dictionary
from herdbook.ports.engine.store import Store
from herdbook.ports.world.clock import Clock
from herdbook.ports.world.ids import Ids

PATIENCE = 30.0


class _Options(NamedTuple):
    """What the caller may choose that not every engine asks for."""

    size_limit: int
    create: bool
    clock: Clock
    verify: bool


class _Engine(NamedTuple):
    """Where an engine's store is, and what to install when its driver is missing."""

    module: str
    name: str
    arguments: Callable[[str, _Options], dict[str, Any]]
    driver: str
    extra: str


def _for_memory(_: str, options: _Options) -> dict[str, Any]:
    return {"clock": options.clock}


def _for_lmdb(url: str, options: _Options) -> dict[str, Any]:
    return {
        "folder": path_of(url),
        "clock": options.clock,
        "size_limit": options.size_limit,
        "create": options.create,
        "verify": options.verify,
    }


def _for_duckdb(url: str, options: _Options) -> dict[str, Any]:
    return {"path": path_of(url), "clock": options.clock, "create": options.create}


def _for_postgres(url: str, options: _Options) -> dict[str, Any]:
    return {"url": url, "create": options.create}


_POSTGRES = _Engine(
    "herdbook.adapters.postgres.store", "PostgresStore", _for_postgres, "psycopg", "postgres"
)
ENGINES = {
    "memory": _Engine("herdbook.adapters.memory", "MemoryStore", _for_memory, "", ""),
    "lmdb": _Engine("herdbook.adapters.lmdb.store", "LmdbStore", _for_lmdb, "lmdb", ""),
    "duckdb": _Engine(
        "herdbook.adapters.duckdb.store", "DuckDBStore", _for_duckdb, "duckdb", "duckdb"
    ),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
}


def _lack(engine: _Engine, error: ImportError) -> str:
    """What an engine's driver lacks: it is not there, or a library that it needs is not."""
    driver = engine.driver
    if isinstance(error, ModuleNotFoundError) and error.name == driver:
        package = f"'herdbook[{engine.extra}]'" if engine.extra else driver
        return f"the package {driver} is not installed; `pip install {package}` brings it"
    reason = str(error).partition("\n")[0]
    return f"the package {driver} cannot be loaded: {reason}"


def open_store(
    url: str,
    *,
    area: Area | None = None,
    size_limit: int | None = None,
    patience: float = PATIENCE,
    create: bool = True,
    verify: bool = False,
    dictionary: Dictionary = DICTIONARY,
    clock: Clock = system_clock,
    ids: Ids = random_id,
) -> Store:
    """Open the store at a URL, made if there is none and `create` is set.

    `lmdb:///folder`, `duckdb:///file`, `postgresql://…` (with `?schema=name` for another schema
    than `herdbook`) or `memory://`. `area` and `size_limit` say how large an LMDB store may grow;
    `patience` is how many seconds to wait for a store that others hold. `verify` has the pages of
    an LMDB store verified before it is read, as is right for one that came from elsewhere; the
    other engines check what they read by themselves.
    """
    scheme, separator, _ = url.partition("://")
    engine = ENGINES.get(scheme) if separator else None
    if engine is None:
        begins, there_are = url.partition(":")[0], ", ".join(f"{name}://" for name in ENGINES)
        raise InvalidValue("url", f"{begins!r} begins no store's URL; these do: {there_are}")
    if type(patience) not in (int, float) or not 0 < patience < math.inf:
        raise InvalidValue("patience", f"must be a number of seconds above 0, is {patience!r}")
    options = _Options(areas.size_limit(area, size_limit), create, clock, verify)
    arguments = engine.arguments(url, options)
    try:
        module = import_module(engine.module)
    except ImportError as error:
        if (error.name or "").startswith("herdbook"):
            raise
        raise StoreUnavailable(f"{scheme}://", _lack(engine, error)) from error
    store: Store = getattr(module, engine.name)(
        dictionary=dictionary, ids=ids, patience=patience, **arguments
    )
    return store
