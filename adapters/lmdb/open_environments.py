"""The environments that this process has open, one per folder, and how they cross a fork.

LMDB refuses to open a folder twice in a process, also for reading.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from herdbook.adapters.lmdb.environment import LmdbEnvironment
from herdbook.adapters.lmdb.files import make_folder
from herdbook.adapters.system.os_errors import translate_os_error
from herdbook.domain.errors import StoreBusy, StoreUnavailable

_environments: dict[tuple[int, int], LmdbEnvironment] = {}
_guard = threading.Lock()


def acquire_environment(
    folder: Path, *, size_limit: int, patience: float, create: bool, verify: bool = False
) -> LmdbEnvironment:
    """The environment of a folder, shared by all stores that this process has open on it.

    If another store is there now than the one that is open, the open one is closed as soon as no
    transaction is in it, and the new one is opened. Raises StoreBusy if that takes too long.
    """
    real = Path(os.path.realpath(folder))
    with _guard:
        if create:
            make_folder(real)
        identity = _identity(real)
        shared = _environments.get(identity)
        if shared is not None and shared.is_replaced():
            if not shared.retire():
                raise StoreBusy(str(real), patience, "a thread of this process")
            shared = None
        if shared is None:
            shared = _environments[identity] = LmdbEnvironment(real, size_limit, patience)
        shared.users += 1
    try:
        shared.open(create=create, verify=verify)
    except BaseException:
        release_environment(shared)
        raise
    return shared


@contextmanager
def open_environment(folder: Path) -> Iterator[LmdbEnvironment | None]:
    """The environment of a folder, if this process has it open.

    It is not closed while the block runs.
    """
    real = Path(os.path.realpath(folder))
    with _guard:
        yield _environments.get(_identity(real))


def release_environment(environment: LmdbEnvironment) -> None:
    """Give an environment back; the last release closes it."""
    with _guard:
        environment.users -= 1
        if environment.users == 0:
            environment.close()
            for identity in [k for k, each in _environments.items() if each is environment]:
                del _environments[identity]


def _identity(folder: Path) -> tuple[int, int]:
    try:
        status = folder.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreUnavailable(str(folder), "there is no store here") from error
    except OSError as error:
        raise translate_os_error(error, str(folder)) from error
    return status.st_dev, status.st_ino


def _before_fork() -> None:
    _guard.acquire()
    for environment in _environments.values():
        environment.before_fork()


def _after_fork_in_parent() -> None:
    for environment in _environments.values():
        environment.after_fork_in_parent()
    _guard.release()


def _after_fork_in_child() -> None:
    for environment in _environments.values():
        environment.after_fork_in_child()
    _guard.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
