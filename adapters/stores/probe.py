"""What is to be seen at a store's URL, without creating, upgrading or loading anything."""

from importlib import import_module

from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.resolve import NO_STORE, StoreProbe

PATIENCE = 3.0
_LOOKS = {
    "lmdb": "herdbook.adapters.lmdb.probe",
    "duckdb": "herdbook.adapters.duckdb.probe",
    "postgresql": "herdbook.adapters.postgres.probe",
    "postgres": "herdbook.adapters.postgres.probe",
}


def look(url: str, patience: float = PATIENCE) -> StoreProbe:
    """See whether a store is there, how large it is and by which schema it is laid out.

    What stands in the way is told in `problem`, not raised.
    """
    module = _LOOKS.get(url.partition("://")[0])
    if module is None:
        return NO_STORE
    try:
        sight: StoreProbe = import_module(module).look(url, patience)
    except HerdbookError as error:
        return StoreProbe(exists=None, problem=str(error))
    except ImportError as error:
        return StoreProbe(exists=None, problem=f"its driver is not installed ({error})")
    return sight


def is_missing(url: str, patience: float = PATIENCE) -> bool:
    """Whether there is no store at a URL, without waiting for others where that can be avoided.

    False where it cannot be told: opening it then says what stands in the way.
    """
    module = _LOOKS.get(url.partition("://")[0])
    try:
        answer = getattr(import_module(module), "is_missing", None) if module else None
        if answer is not None:
            return bool(answer(url))
    except (HerdbookError, ImportError, OSError):
        return False
    return look(url, patience).exists is False
