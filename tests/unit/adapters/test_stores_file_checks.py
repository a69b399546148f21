"""Only a regular file with one name, of this account, is opened as part of a store."""

import os
import socket
from pathlib import Path

import pytest

from herdbook.adapters.stores.file_checks import require_own, require_regular
from herdbook.adapters.user_state import known_stores
from herdbook.domain.errors import StoreUnavailable, StoreUntrusted

PLACE = "/somewhere/store"
ELSEWHERE = 4_000_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file as a store has them."""
    path = tmp_path / "data.mdb"
    path.write_text("kept")
    return path


def test_a_regular_file_is_let_through(file: Path) -> None:
    """Its status comes back, so that nobody has to ask again."""
    status = require_regular(file, PLACE)
    assert status is not None
    assert os.path.samestat(status, file.stat())


def test_a_missing_file_is_no_error(tmp_path: Path) -> None:
    """Nothing there is told as None; what that means is the engine's to say."""
    assert require_regular(tmp_path / "data.mdb", PLACE) is None


def link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("somebody's")
    path.symlink_to(target)


def hard_link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("somebody's")
    path.hardlink_to(target)


def listening_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (link, "is a symbolic link"),
        (lambda path: path.symlink_to(path.with_name("nowhere")), "is a symbolic link"),
        (lambda path: path.symlink_to("/dev/zero"), "is a symbolic link"),
        (Path.mkdir, "is a folder"),
        (os.mkfifo, "is a named pipe"),
        (listening_socket, "is a socket"),
        (hard_link, "has a second name"),
    ],
    ids=["link", "dangling link", "link to a device", "folder", "pipe", "socket", "hard link"],
)
def test_anything_else_is_refused_by_name(make: object, kind: str, tmp_path: Path) -> None:
    """The error names the store and the file, and says that nothing was opened."""
    assert callable(make)
    path = tmp_path / "d.mdb"  # a short name: a socket's path has a limit
    make(path)
    with pytest.raises(StoreUnavailable) as refusal:
        require_regular(path, PLACE)
    assert str(refusal.value).startswith(f"{PLACE} cannot be used: d.mdb {kind}")
    assert str(refusal.value).endswith("Nothing was opened")


def test_a_device_is_refused() -> None:
    """A device at the very place is no file either."""
    with pytest.raises(StoreUnavailable, match="null is a device"):
        require_regular(Path("/dev/null"), PLACE)


def test_a_path_that_cannot_be_looked_at_is_refused(file: Path) -> None:
    """A file in the place of a folder is told in the system's words."""
    with pytest.raises(StoreUnavailable, match="lock: Not a directory"):
        require_regular(file / "lock", PLACE)


def with_owner(file: Path, uid: int) -> os.stat_result:
    """The status of a file as if that account owned it."""
    status = list(file.stat())
    status[4] = uid
    return os.stat_result(status)


def test_an_own_file_is_let_through(file: Path) -> None:
    """Whatever account runs this has made the file."""
    require_own(file.stat(), file, PLACE)


def test_the_file_of_another_account_is_refused(file: Path) -> None:
    """The error names both accounts, and how a person may allow it."""
    with pytest.raises(StoreUntrusted) as refusal:
        require_own(with_owner(file, ELSEWHERE), file, PLACE)
    assert str(refusal.value) == (
        f"{PLACE} was not opened: data.mdb belongs to the account {ELSEWHERE} and not to "
        f"{os.geteuid()}. A person who knows where it comes from may allow it with "
        f"`herdbook trust {PLACE}`"
    )


def test_the_files_of_a_trusted_store_may_belong_to_anybody(
    file: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trust names the store by its folder, and holds for every file of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    status = with_owner(file, ELSEWHERE)
    identity = known_stores.identity_at(file.parent)
    assert identity is not None
    known_stores.add_trusted(identity, f"lmdb://{file.parent}")
    require_own(status, file, str(file.parent))
    known_stores.remove_trusted(identity)
    with pytest.raises(StoreUntrusted):
        require_own(status, file, str(file.parent))


@pytest.mark.parametrize(
    ("euid", "caller", "refused"),
    [
        (0, str(ELSEWHERE), False),
        (0, str(ELSEWHERE - 1), True),
        (0, "", True),
        (0, "-1", True),
        (0, "x", True),
        (0, "\u0664\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0660", True),
        (1_000, str(ELSEWHERE), True),
    ],
)
def test_root_under_sudo_acts_for_the_one_who_called_it(
    euid: int, caller: str, refused: bool, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root takes the word of SUDO_UID: anybody can set a variable."""
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    monkeypatch.setenv("SUDO_UID", caller)
    status = with_owner(file, ELSEWHERE)
    if refused:
        with pytest.raises(StoreUnavailable):
            require_own(status, file, PLACE)
    else:
        require_own(status, file, PLACE)
