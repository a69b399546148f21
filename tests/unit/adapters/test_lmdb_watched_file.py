"""Whether an open file is still the one at its path, with the system's help and without."""

from pathlib import Path

import pytest

from herdbook.adapters.lmdb import data_file_guard
from herdbook.adapters.lmdb.data_file_guard import WatchedFile


@pytest.fixture(params=["by its path", "by its number"])
def file(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> WatchedFile:
    """A file in a folder, which is watched; where the system tells no paths, by its number."""
    if request.param == "by its number":
        monkeypatch.setattr(data_file_guard, "_LINKS", Path("/nowhere"))
    path = tmp_path / "folder" / "data.mdb"
    path.parent.mkdir()
    path.write_text("kept")
    watched = WatchedFile(path)
    assert watched.watch()
    return watched


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "data.mdb"


def test_a_file_that_is_written_to_stays_in_place(file: WatchedFile, path: Path) -> None:
    """However it changes, and whatever comes and goes beside it."""
    path.write_text("changed")
    path.chmod(0o600)
    (path.parent / "another").write_text("")
    assert file.is_in_place()
    assert file.watch()


def test_a_removed_file_is_noticed(file: WatchedFile, path: Path) -> None:
    """Also when one like it comes to its place."""
    path.unlink()
    assert not file.is_in_place()
    path.write_text("kept")
    assert not file.is_in_place()
    assert not file.watch()


def test_a_replaced_file_is_noticed(file: WatchedFile, path: Path) -> None:
    """In one step, as a backup is put in place."""
    fresh = path.with_name("fresh")
    fresh.write_text("kept")
    fresh.replace(path)
    assert not file.is_in_place()


def test_a_moved_folder_is_noticed(file: WatchedFile, path: Path) -> None:
    """And when it is back, all is as it was."""
    away = path.parent.rename(path.parent.with_name("away"))
    assert not file.is_in_place()
    path.parent.mkdir()
    path.write_text("another")
    assert not file.is_in_place()
    path.unlink()
    path.parent.rmdir()
    away.rename(path.parent)
    assert file.is_in_place()


def test_a_file_that_was_watched_is_remembered(file: WatchedFile, path: Path) -> None:
    """Who watches it again does not take another one for it."""
    file.close()
    assert file.watch()
    file.close()
    keep = path.rename(path.with_name("keep"))
    path.write_text("another")
    assert not file.watch()
    keep.replace(path)
    assert file.watch()
    file.close()
