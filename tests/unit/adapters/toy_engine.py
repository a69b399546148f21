"""An engine of the tests' own, in one module: everything that adding one takes."""

from pathlib import Path
from typing import Any

from herdbook.adapters.memory.store import MemoryStore
from herdbook.adapters.stores.engine_spec import EngineSpec, Medium
from herdbook.adapters.stores.urls import path_of
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.location.resolve import NO_STORE, StoreProbe, file_url

SPEC = EngineSpec(
    schemes=("toy",),
    medium=Medium.FILE,
    store="tests.unit.adapters.toy_engine:ToyStore",
    options=("clock", "create"),
    probe="tests.unit.adapters.toy_engine:probe",
)
_ROWS: dict[Path, dict[str, Any]] = {}


class ToyStore(MemoryStore):
    """Rows in memory, and a file that says that they are there."""

    def __init__(self, path: Path, *, create: bool, **options: Any) -> None:
        super().__init__(**options)
        if not path.exists() and not create:
            raise StoreUnavailable(str(path), "there is no toy")
        path.touch()
        self.url = file_url("toy", str(path))
        self._spaces = _ROWS.setdefault(path, self._spaces)


def probe(url: str, _: float) -> StoreProbe:
    """See the file."""
    path = path_of(url)
    return StoreProbe(exists=True, bytes=path.stat().st_size) if path.exists() else NO_STORE
