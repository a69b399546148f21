"""Probe a store's URL without creating, upgrading or loading anything there."""

from herdbook.adapters.stores.engine_spec import load
from herdbook.adapters.stores.registry import find_spec
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.resolve import NO_STORE, StoreProbe

PATIENCE = 3.0


def probe(url: str, patience: float = PATIENCE, *, verify: bool = False) -> StoreProbe:
    """Say whether a store is at a URL, how large it is and which version its schema has.

    The version is None where pages would have to be verified first, unless `verify` asks for that.
    What prevents an answer is given in `problem` and not raised.
    """
    spec = find_spec(url)
    if spec is None or not spec.probe:
        return NO_STORE
    try:
        options = {"verify": verify} if "verify" in spec.options else {}
        sight: StoreProbe = load(spec.probe)(url, patience, **options)
    except HerdbookError as error:
        return StoreProbe(exists=None, problem=str(error))
    except ImportError as error:
        return StoreProbe(exists=None, problem=f"its driver is not installed ({error})")
    return sight


def is_missing(url: str, patience: float = PATIENCE) -> bool:
    """Whether there is no store at a URL, without waiting for others where that can be avoided.

    False if that is unknown: opening the store then says why.
    """
    spec = find_spec(url)
    try:
        if spec is not None and spec.is_missing:
            return bool(load(spec.is_missing)(url))
    except (HerdbookError, ImportError, OSError):
        return False
    return probe(url, patience).exists is False
