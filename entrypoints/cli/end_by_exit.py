"""Lets a signal that ends a process end it as an exit does, after closing what is open."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_BY_SIGNAL = 128
"""Added to the number of a signal: the exit code of a program that it ended."""


@contextmanager
def end_by_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exit, unless somebody has other plans with them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ending = (signal.SIGTERM, signal.SIGHUP)
    numbers = [each for each in ending if signal.getsignal(each) is signal.SIG_DFL]
    for each in numbers:
        signal.signal(each, lambda number, _: sys.exit(_BY_SIGNAL + number))
    try:
        yield
    finally:
        for each in numbers:
            signal.signal(each, signal.SIG_DFL)
