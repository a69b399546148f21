"""Marks long work: calls that take long because they do much, not because they wait for others.

A store's patience limits waiting. For an engine on a server the difference cannot be seen from
here: a server that is busy and one that has died are both silent. So ordinary calls end when the
server has been silent for longer than the patience, and work that is known to be long says so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_IS_LONG: ContextVar[bool] = ContextVar("herdbook_long_work", default=False)


@contextmanager
def long_work() -> Iterator[None]:
    """Let calls in the block, in this thread, take as long as their engine works on them.

    It also decorates a function. Waiting for others still ends with the store's patience.
    """
    before = _IS_LONG.set(True)
    try:
        yield
    finally:
        _IS_LONG.reset(before)


def is_long_work() -> bool:
    """Whether the current code runs inside such a block."""
    return _IS_LONG.get()
