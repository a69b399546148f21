"""Room ahead in a data file: it is there when it is needed, and takes nothing from what is kept."""

from pathlib import Path

import pytest

from herdbook.adapters.lmdb.preallocate import LEAST, MOST, SCARCE, Room

KEPT = bytes(range(256)) * 256
NO_LIMIT = 1 << 40


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data"
    file.write_bytes(KEPT)
    return file


def test_a_file_grows_by_zeros_behind_its_end(data: Path) -> None:
    """What was in it stays, and there is room for the next commits."""
    room = Room(data, NO_LIMIT)
    room.make(len(KEPT))
    assert data.read_bytes() == KEPT + bytes(LEAST)
    room.make(len(KEPT) + LEAST - SCARCE)
    assert data.stat().st_size == len(KEPT) + LEAST
    room.make(len(KEPT) + LEAST - SCARCE + 1)
    assert data.read_bytes() == KEPT + bytes(2 * LEAST)


def test_a_large_file_grows_in_larger_steps_up_to_a_bound(data: Path) -> None:
    """A sixteenth of it at a time, but not without end."""
    Room(data, NO_LIMIT).make(LEAST * 32)
    assert data.stat().st_size == len(KEPT) + LEAST * 2
    Room(data, NO_LIMIT).make(MOST * 100)
    assert data.stat().st_size == len(KEPT) + LEAST * 2 + MOST


def test_room_that_another_process_made_is_used(data: Path) -> None:
    """The file is looked at before it is made larger."""
    one, other = Room(data, NO_LIMIT), Room(data, NO_LIMIT)
    one.make(len(KEPT))
    other.make(len(KEPT))
    assert data.stat().st_size == len(KEPT) + LEAST


def test_a_file_does_not_grow_beyond_its_limit(data: Path) -> None:
    """The last step is as large as may be, and then there is none."""
    room = Room(data, len(KEPT) + 100)
    room.make(len(KEPT))
    room.make(len(KEPT))
    assert data.read_bytes() == KEPT + bytes(100)


def test_a_file_that_cannot_grow_is_left_as_it_is(tmp_path: Path) -> None:
    """Whether there is room at all is for the commit to find out."""
    before = tmp_path.stat()
    Room(tmp_path, NO_LIMIT).make(0)
    assert tmp_path.stat() == before
