"""Starts the broker of a DuckDB file in a thread of this process."""

import fcntl
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from herdbook.adapters.duckdb.broker import address
from herdbook.adapters.duckdb.broker.open_file import find_identity
from herdbook.adapters.duckdb.broker.server import BrokerServer
from herdbook.adapters.duckdb.store import DuckDBStore
from herdbook.adapters.system.os_errors import translate_os_errors
from herdbook.domain.errors import StoreUnavailable
from herdbook.ports.engine.store import Store

_LOG = logging.getLogger(__name__)

_BACKLOG = 1_024
_END_SECONDS = 30.0

_SERVERS: set[BrokerServer] = set()
_HOOKED: list[bool] = []


class RunningBroker:
    """A broker that runs in a thread."""

    def __init__(self, thread: threading.Thread, file: Path) -> None:
        self._thread = thread
        self._file = file
        self._identity = find_identity(file)

    def is_running(self) -> bool:
        """Whether it still serves the file at its path, which it does unless something goes wrong.

        It is of no use any more if the file was removed or replaced: end it then.
        """
        return self._thread.is_alive() and find_identity(self._file) == self._identity

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        self._thread.join(timeout)


@contextmanager
def start_broker(store: Store) -> Iterator[RunningBroker]:
    """Serve the file of a DuckDB store to other processes, and to this one, within the block.

    Raises StoreUnavailable if the store is in no DuckDB file, if the file has a broker already, or
    if there can be no socket.
    """
    if not isinstance(store, DuckDBStore):
        raise StoreUnavailable(store.url, "a broker serves DuckDB files, and this is none")
    place = str(store.file_path)
    with translate_os_errors(place), _own_address(store) as at:
        listening = _listen(at)
        server = BrokerServer(store, listening)
        _SERVERS.add(server)
        if not _HOOKED:
            _HOOKED.append(True)
            os.register_at_fork(after_in_child=_forget_inherited)
        thread = threading.Thread(target=server.run, name="herdbook-broker", daemon=True)
        thread.start()
        try:
            yield RunningBroker(thread, store.file_path)
        finally:
            _unlink(at)
            server.stop()
            thread.join(_END_SECONDS)
            _SERVERS.discard(server)


@contextmanager
def _own_address(store: DuckDBStore) -> Iterator[str]:
    """The address of the file's broker, which no other process has meanwhile."""
    at = address.broker_address(store.file_path.stat())
    address.make_user_folder()
    _remove_abandoned()
    descriptor, is_free = _try_lock(f"{at}.lock")
    try:
        if not is_free:
            pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            who = f"process {pid}" if pid.isdecimal() else "another process"
            reason = f"{who} is its broker already. Nothing was changed"
            raise StoreUnavailable(str(store.file_path), reason)
        os.pwrite(descriptor, str(os.getpid()).ljust(20).encode(), 0)
        try:
            yield at
        finally:
            _unlink(at)
            _unlink(f"{at}.lock")
    finally:
        os.close(descriptor)


def _try_lock(path: str) -> tuple[int, bool]:
    """Open a lock file, and lock it if nobody else has; it stays locked until it is closed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                return descriptor, True
        except BlockingIOError:
            return descriptor, False
        except FileNotFoundError:  # its last owner has just removed it
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove_abandoned() -> None:
    """Remove the sockets of brokers that were killed."""
    folder = address.user_folder()
    for name in os.listdir(folder):  # noqa: PTH208 - addresses, not paths of ours
        if not name.startswith("broker-") or not name.endswith(".lock"):
            continue
        descriptor, is_free = _try_lock(f"{folder}/{name}")
        try:
            if is_free:
                _unlink(f"{folder}/{name.removesuffix('.lock')}")
                _unlink(f"{folder}/{name}")
        finally:
            os.close(descriptor)


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - as above


def _listen(at: str) -> socket.socket:
    """A listening socket at an address; it appears there when it listens."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    new = f"{at}.new"
    try:
        _unlink(new)
        listening.bind(new)
        os.chmod(new, 0o600)  # noqa: PTH101 - as above
        listening.listen(_BACKLOG)
        os.rename(new, at)  # noqa: PTH104 - as above
    except BaseException:
        listening.close()
        raise
    return listening


def _forget_inherited() -> None:
    for server in list(_SERVERS):
        server.forget_inherited()
    _SERVERS.clear()
