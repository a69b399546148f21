"""The engines, by the URLs of their stores.

This module and the specs are read at the start of nearly every command: they import no engine, no
driver and nothing of the dictionary.
"""

from functools import lru_cache
from importlib import import_module

from herdbook.adapters.stores.engine_spec import EngineSpec, Medium
from herdbook.domain.location.settings import EngineSchemes

ENGINES = (
    "herdbook.adapters.memory.spec",
    "herdbook.adapters.lmdb.spec",
    "herdbook.adapters.duckdb.spec",
    "herdbook.adapters.postgres.spec",
)
"""The modules that hold the specs. An engine is added by its line here, its folder, and its driver
in pyproject.toml."""


def specs() -> tuple[EngineSpec, ...]:
    """The specs of all engines, in the order in which messages list them."""
    return _specs(ENGINES)


def find_spec(url: str) -> EngineSpec | None:
    """The engine of a store's URL; None where no engine's URLs begin so."""
    scheme, separator, _ = url.partition("://")
    return _by_scheme(ENGINES).get(scheme) if separator else None


def spec_of_scheme(scheme: str) -> EngineSpec:
    """The engine whose URLs begin with a scheme. Raises KeyError for one of no engine."""
    return _by_scheme(ENGINES)[scheme]


def is_in_files(url: str) -> bool:
    """Whether a URL is that of a store in files of this machine."""
    spec = find_spec(url)
    return spec is not None and spec.is_in_files


def is_on_server(url: str) -> bool:
    """Whether a URL is that of a store on a server."""
    spec = find_spec(url)
    return spec is not None and spec.medium is Medium.SERVER


def is_in_memory(url: str) -> bool:
    """Whether a URL is that of a store in memory, which ends with its process."""
    spec = find_spec(url)
    return spec is not None and spec.medium is Medium.MEMORY


def engine_schemes() -> EngineSchemes:
    """The schemes that settings may name."""
    return _engine_schemes(ENGINES)


@lru_cache(maxsize=4)
def _specs(modules: tuple[str, ...]) -> tuple[EngineSpec, ...]:
    return tuple(import_module(module).SPEC for module in modules)


@lru_cache(maxsize=4)
def _by_scheme(modules: tuple[str, ...]) -> dict[str, EngineSpec]:
    return {scheme: spec for spec in _specs(modules) for scheme in spec.schemes}


@lru_cache(maxsize=4)
def _engine_schemes(modules: tuple[str, ...]) -> EngineSchemes:
    found = _specs(modules)
    return EngineSchemes(
        files=tuple(spec.schemes[0] for spec in found if spec.is_in_files),
        servers=tuple(s for spec in found if spec.medium is Medium.SERVER for s in spec.schemes),
        memory=tuple(s for spec in found if spec.medium is Medium.MEMORY for s in spec.schemes),
    )
