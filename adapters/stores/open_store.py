"""Open a store by its URL."""

import math
from typing import Any

from herdbook.adapters.stores.engine_spec import EngineSpec, Medium, load
from herdbook.adapters.stores.registry import find_spec, specs
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.system.clock import system_clock
from herdbook.adapters.system.ids import random_id
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.location import areas
from herdbook.domain.location.areas import Area
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import Dictionary
from herdbook.ports.engine.store import Store
from herdbook.ports.world.system import Clock, Ids

PATIENCE = 30.0


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
    """Open the store at a URL; make one if there is none and `create` is set.

    `lmdb:///folder`, `duckdb:///file`, `postgresql://…` (with `?schema=name` for another schema
    than `herdbook`) or `memory://`. `area` and `size_limit` say how large an LMDB store may grow;
    `patience` is how many seconds to wait for a store that others hold. `verify` has the pages of
    an LMDB store verified before it is read, as is right for one that came from elsewhere; the
    other engines check what they read by themselves.

    Raises InvalidValue for a URL of no engine and for a patience that is no number of seconds, and
    StoreUnavailable where the engine's driver cannot be imported or the store cannot be opened.
    """
    spec = find_spec(url)
    if spec is None:
        begins = url.partition(":")[0]
        there_are = ", ".join(f"{scheme}://" for each in specs() for scheme in each.schemes)
        raise InvalidValue("url", f"{begins!r} begins no store's URL; these do: {there_are}")
    if type(patience) not in (int, float) or not 0 < patience < math.inf:
        raise InvalidValue("patience", f"must be a number of seconds above 0, is {patience!r}")
    options = {
        "clock": clock,
        "create": create,
        "size_limit": areas.size_limit(area, size_limit),
        "verify": verify,
    }
    address = _address(spec, url)
    try:
        store_class = load(spec.store)
    except ImportError as error:
        if (error.name or "").startswith("herdbook"):
            raise
        scheme = url.partition("://")[0]
        raise StoreUnavailable(f"{scheme}://", spec.missing_driver(error)) from error
    store: Store = store_class(
        *address,
        dictionary=dictionary,
        ids=ids,
        patience=patience,
        **{name: options[name] for name in spec.options},
    )
    return store


def _address(spec: EngineSpec, url: str) -> tuple[Any, ...]:
    if spec.is_in_files:
        return (path_of(url),)
    return () if spec.medium is Medium.MEMORY else (url,)
