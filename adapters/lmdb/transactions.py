"""LMDB transactions as context managers: admitted in order, rolled back unless committed.

Classes and not generators: they are entered thousands of times, and that is twice as fast.

A child that was forked inside a block leaves it without any effect: the transaction, its slot among
the readers and the lock are its parent's.
"""

import os
import threading
from contextlib import AbstractContextManager
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any

import lmdb

from herdbook.adapters.lmdb.errors import translate_error
from herdbook.domain.errors import StoreBusy, StoreDamaged

if TYPE_CHECKING:
    from herdbook.adapters.lmdb.environment import LmdbEnvironment


class ReadTransaction(AbstractContextManager[Any]):
    """Reads the last committed state; waits for nobody."""

    def __init__(self, environment: "LmdbEnvironment") -> None:
        self._environment = environment
        self._pid = os.getpid()
        self._txn: Any = None

    def __enter__(self) -> Any:
        self._begin(None)
        return self._txn

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if os.getpid() == self._pid:
            try:
                # After a commit this does nothing.
                self._txn.abort()
            finally:
                self._txn = None
                self._environment.leave()
        if isinstance(error, lmdb.Error):
            raise translate_error(error, self._environment.place) from error

    def _begin(self, write_until: float | None) -> None:
        self._environment.enter(write_until)
        try:
            self._txn = self._environment.begin(write=write_until is not None)
        except BaseException:
            self._environment.leave()
            raise


class WriteTransaction(ReadTransaction):
    """The one transaction that writes, among all processes.

    Waits in turn for up to `patience` seconds: first for other threads, which hold `writer`, then
    for other processes. Raises StoreBusy after that.
    """

    def __init__(
        self, environment: "LmdbEnvironment", writer: threading.Lock, patience: float
    ) -> None:
        super().__init__(environment)
        self._writer = writer
        self._patience = patience
        self._hold: Any = None

    def __enter__(self) -> Any:
        environment, until = self._environment, monotonic() + self._patience
        if not self._writer.acquire(timeout=self._patience):
            raise StoreBusy(environment.place, self._patience, "a thread of this process")
        try:
            self._hold = environment.guard.take(until - monotonic())
            self._begin(until)
        except BaseException as error:
            self._release(error)
            raise
        return self._txn

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        except BaseException as translated:
            error = translated
            raise
        finally:
            self._release(error)

    def _release(self, error: BaseException | None) -> None:
        if os.getpid() != self._pid:
            return
        try:
            if self._hold is not None:
                clean = not isinstance(error, StoreDamaged)
                self._environment.guard.release_hold(self._hold, clean=clean)
        finally:
            self._writer.release()
