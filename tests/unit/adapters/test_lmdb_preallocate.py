"""Preallocating a data file: the space is there when needed, and nothing that is kept is lost."""

from pathlib import Path

import pytest

from herdbook.adapters.lmdb.environment import LEAST, MOST, SCARCE, Preallocator

KEPT = bytes(range(256)) * 256
NO_LIMIT = 1 << 40


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data"
    file.write_bytes(KEPT)
    return file


def test_a_file_grows_by_zeros_behind_its_end(data: Path) -> None:
    """What was in it stays, and there is room for the next commits."""
    room = Preallocator(data, NO_LIMIT)
    room.extend(len(KEPT))
    assert data.read_bytes() == KEPT + bytes(LEAST)
    room.extend(len(KEPT) + LEAST - SCARCE)
    assert data.stat().st_size == len(KEPT) + LEAST
    room.extend(len(KEPT) + LEAST - SCARCE + 1)
    assert data.read_bytes() == KEPT + bytes(2 * LEAST)


def test_a_large_file_grows_in_larger_steps_up_to_a_bound(data: Path) -> None:
    """A sixteenth of it at a time, but not without end."""
    Preallocator(data, NO_LIMIT).extend(LEAST * 32)
    assert data.stat().st_size == len(KEPT) + LEAST * 2
    Preallocator(data, NO_LIMIT).extend(MOST * 100)
    assert data.stat().st_size == len(KEPT) + LEAST * 2 + MOST


def test_room_that_another_process_made_is_used(data: Path) -> None:
    """The file is looked at before it is made larger."""
    one, other = Preallocator(data, NO_LIMIT), Preallocator(data, NO_LIMIT)
    one.extend(len(KEPT))
    other.extend(len(KEPT))
    assert data.stat().st_size == len(KEPT) + LEAST


def test_a_file_does_not_grow_beyond_its_limit(data: Path) -> None:
    """The last step is as large as may be, and then there is none."""
    room = Preallocator(data, len(KEPT) + 100)
    room.extend(len(KEPT))
    room.extend(len(KEPT))
    assert data.read_bytes() == KEPT + bytes(100)


def test_a_file_that_cannot_grow_is_left_as_it_is(tmp_path: Path) -> None:
    """Whether there is room at all is for the commit to find out."""
    before = tmp_path.stat()
    Preallocator(tmp_path, NO_LIMIT).extend(0)
    assert tmp_path.stat() == before
