"""Ids that follow from what a row says, for the kinds whose rows are pairs.

Two replicas that add the same dependency, or record the same commit, add the same row: there is
nothing to merge.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, TypeVar

from herdbook.ports.engine.codec import construct_unchecked
from herdbook.ports.engine.kinds import Kind

E = TypeVar("E")

_ID_BYTES = 10
"""As long as the random part of other ids."""


def derive_id(kind: Kind[Any], values: Mapping[str, Any]) -> str:
    """The id of a row with these values, of a kind that has an `identity`."""
    # No value holds a NUL, so the joined text is one pair's only.
    text = "\0".join([kind.name, *(str(values[name]) for name in kind.identity)])
    return f"{kind.prefix}_{blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()}"


def with_derived_id(kind: Kind[E], row: E) -> E:
    """The row under the id that follows from its values; as it is, if its kind has no identity."""
    if not kind.identity:
        return row
    wanted = derive_id(kind, vars(row))
    if kind.key_of(row) == wanted:
        return row
    return construct_unchecked(kind, {**vars(row), kind.key: wanted})
