"""The spaces of an LMDB store are found by name, and none is taken for a new one by mistake."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from herdbook.adapters.lmdb.spaces import META, SPACES, add_space, read_spaces
from herdbook.domain.errors import StoreDamaged

NAMES = ["work/one", "work/two", "record/somebody", "checkpoints/ünï"]
Databases = tuple[Any, dict[str, Any]]


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[Databases]:
    """Two databases with four spaces in them, in a transaction."""
    with lmdb.open(str(tmp_path / "e"), max_dbs=2) as environment:
        handles = {name: environment.open_db(name.encode()) for name in (META, SPACES)}
        with environment.begin(write=True) as txn:
            for name in NAMES:
                add_space(txn, handles, name)
            yield txn, handles


def test_spaces_are_numbered_in_the_order_they_came(databases: Databases) -> None:
    """One, two, three, in four bytes."""
    expected = {name: number.to_bytes(4, "big") for number, name in enumerate(NAMES, 1)}
    assert read_spaces(*databases, "here") == expected


def test_spaces_of_a_program_that_kept_no_copies_are_read(databases: Databases) -> None:
    """All of them, or those that it added."""
    txn, handles = databases
    txn.put(b"work/more", (5).to_bytes(4, "big"), db=handles[SPACES])
    assert len(read_spaces(txn, handles, "here")) == 5
    for number in range(1, 5):
        txn.delete(b"space " + number.to_bytes(4, "big"), db=handles[META])
    assert len(read_spaces(txn, handles, "here")) == 5


def rename(txn: Any, spaces: Any, _: Any) -> None:
    txn.put(b"work/onf", txn.pop(b"work/one", db=spaces), db=spaces)


def misspell(txn: Any, spaces: Any, _: Any) -> None:
    txn.put(b"wprk/one", txn.pop(b"work/one", db=spaces), db=spaces)


def garble(txn: Any, spaces: Any, _: Any) -> None:
    txn.put(b"work/\xff", txn.pop(b"work/one", db=spaces), db=spaces)


def renumber(txn: Any, spaces: Any, _: Any) -> None:
    txn.put(b"work/one", (9).to_bytes(4, "big"), db=spaces)


def double(txn: Any, spaces: Any, _: Any) -> None:
    txn.put(b"work/one", (2).to_bytes(4, "big"), db=spaces)


def swap(txn: Any, spaces: Any, _: Any) -> None:
    txn.put(b"work/one", (2).to_bytes(4, "big"), db=spaces)
    txn.put(b"work/two", (1).to_bytes(4, "big"), db=spaces)


def shorten(txn: Any, spaces: Any, _: Any) -> None:
    txn.put(b"work/one", b"\0", db=spaces)


def lose(txn: Any, spaces: Any, _: Any) -> None:
    txn.delete(b"checkpoints/\xc3\xbcn\xc3\xaf", db=spaces)


def spoil_copy(txn: Any, _: Any, meta: Any) -> None:
    txn.put(b"space \0\0\0\1", b"....work/one", db=meta)


@pytest.mark.parametrize(
    "harm", [rename, misspell, garble, renumber, double, swap, shorten, lose, spoil_copy]
)
def test_a_damaged_name_or_number_is_refused(harm: Any, databases: Databases) -> None:
    """The space would look as if nobody had ever written in it."""
    txn, handles = databases
    harm(txn, handles[SPACES], handles[META])
    with pytest.raises(StoreDamaged, match="here is not a whole Herdbook store"):
        read_spaces(txn, handles, "here")
