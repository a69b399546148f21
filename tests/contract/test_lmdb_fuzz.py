"""A damaged LMDB file ends no process, and is never read as if it were whole.

LMDB trusts its pages and keeps no checksums. Bytes are flipped in the pages that are in use, and
what comes of it is an answer as before, or an error that says that the store is damaged.
"""

import random
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from typing import Any

import lmdb
import pytest
from attrs import frozen

from herdbook.adapters import open_store
from herdbook.domain.errors import StoreDamaged
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import JOURNAL, TASKS
from herdbook.ports.engine.paging import select_all
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract.children import Died, apart
from tests.contract.fuzzed import SPACES, Damage, Flip, Outcome, contents, try_flips

PAGE = 4_096
HEADER, BRANCH = 16, 1
"""The length of a page's header, and the flag of a page that leads to others."""
IN_A_CHILD = 25
WORKERS = 2


@frozen
class Whole:
    """A store as it was: its data file, how much of it is in use, and what it holds."""

    data: bytes
    kept: int
    expected: dict[str, Any]


def fill(uow: UnitOfWork) -> None:
    """Add rows that lie in pages of all kinds: short ones, long ones, and such as were removed."""
    chance = random.Random(1)
    texts = [chance.randbytes(length).hex() for length in (20, 40, 700, 1_500, 3_000, 20, 60)]
    tasks = uow.tasks.add_all([Task(name=text[:9], description=text) for text in texts])
    uow.tasks.add_dependency(tasks[1].id, tasks[0].id)
    uow.tasks.remove(tasks[4].id)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A small store of two spaces that has been written to several times."""
    folder = tmp_path_factory.mktemp("whole") / "store"
    with open_store(f"lmdb://{folder}") as store:
        for space in (*SPACES, SPACES[0]):
            run(store, space, fill)
        expected = contents(store)
    with lmdb.open(str(folder), readonly=True, lock=False) as environment:
        kept = (environment.info()["last_pgno"] + 1) * PAGE
    return Whole((folder / "data.mdb").read_bytes(), kept, expected)


def damages_to(whole: Whole, chance: random.Random, number: int) -> list[Damage]:
    """Bytes to flip, in pages that are in use: mostly one, sometimes a few in the same page."""
    pages = [at for at in range(0, whole.kept, PAGE) if any(whole.data[at : at + PAGE])]
    return [
        tuple(flip_in(whole, page, chance) for _ in range(chance.choice((1, 1, 1, 2, 6))))
        for page in chance.choices(pages, k=number)
    ]


def flip_in(whole: Whole, page: int, chance: random.Random) -> Flip:
    """A byte to flip in a page: mostly where something stands in it."""
    places = range(page, page + PAGE)
    # The first bytes of a page say what it is and where to find what is in it.
    match chance.randrange(4):
        case 0:
            at = page + chance.randrange(40)
        case 1:
            at = chance.choice(places)
        case _:
            at = chance.choice([place for place in places if whole.data[place]])
    return at, chance.choice((1 << chance.randrange(8), chance.randrange(1, 256)))


def outcomes_of(
    whole: Whole, damages: list[Damage], new_url: Callable[[str], str], folder: Path
) -> list[Outcome]:
    """What comes of each damage, tried in processes of their own."""

    def try_some(number: int) -> list[Outcome]:
        url = new_url("lmdb")
        open_store(url).close()
        some = damages[number : number + IN_A_CHILD]
        notes = folder / str(number)
        try:
            done: list[Outcome] = apart(
                try_flips, url, whole.data, whole.expected, some, str(notes)
            )
        except Died as death:
            raise AssertionError(f"{notes.read_text().strip()}: {death}") from death
        except Exception as error:
            error.add_note(f"after {notes.read_text().strip()}")
            raise
        return done

    with ThreadPoolExecutor(WORKERS) as pool:
        done = pool.map(try_some, range(0, len(damages), IN_A_CHILD))
        return [outcome for some in done for outcome in some]


def assert_harmless(outcomes: list[Outcome]) -> None:
    """Whoever reads gets what was there or an error, or `check` says what is wrong."""
    # LMDB keeps no checksums of keys. A row that is found by a wrong key, or not found, is not
    # noticed by whoever reads something else; it is by who looks through everything.
    unnoticed = [each for each in outcomes if each.reads_the_same is False and not each.has_flaws]
    assert unnoticed == []
    refused = Counter(each.reads_the_same for each in outcomes)[None]
    assert refused > len(outcomes) / 20
    assert any(each.reads_the_same and each.wrote for each in outcomes)


def test_a_flipped_byte_ends_no_process_and_is_noticed(
    whole: Whole, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    """Two hundred files, each checked, read and written to."""
    damages = damages_to(whole, random.Random(20), 200)
    assert_harmless(outcomes_of(whole, damages, new_url, tmp_path))


def separators(data: bytes, kept: int) -> Iterator[tuple[int, bytes]]:
    """Where the keys in branch pages stand in the file, and the keys.

    A branch page says which page holds the keys from such a key on.
    """
    for at in range(2 * PAGE, kept, PAGE):
        number, _, flags, lower, _ = struct.unpack_from("<QHHHH", data, at)
        if flags == BRANCH and number * PAGE == at:
            for place in range(HEADER + 2, lower, 2):  # the first page begins with no key
                (node,) = struct.unpack_from("<H", data, at + place)
                (size,) = struct.unpack_from("<H", data, at + node + 6)
                yield at + node + 8, data[at + node + 8 : at + node + 8 + size]


def test_keys_that_lead_to_a_wrong_page_end_no_process_and_are_noticed(
    whole: Whole, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    """Going on behind the last key that was read leads back to keys that were read already."""
    damages: list[Damage] = [
        ((at + byte, bits),)
        for at, key in separators(whole.data, whole.kept)
        for byte, bits in ((4, 0x80), (len(key) - 1, 0x40))
        if byte < len(key)
    ]
    assert len(damages) > IN_A_CHILD
    outcomes = outcomes_of(whole, damages, new_url, tmp_path)
    unnoticed = [each for each in outcomes if each.reads_the_same is False and not each.has_flaws]
    assert unnoticed == []


def test_reading_page_by_page_ends_where_keys_lead_to_a_wrong_page(tmp_path: Path) -> None:
    """No row comes again and again, neither forwards nor backwards."""
    folder = tmp_path / "store"
    url = f"lmdb://{folder}"
    with open_store(url) as store:
        run(store, SPACES[0], lambda uow: uow.tasks.add_all([Task(name=str(n)) for n in range(60)]))
    with lmdb.open(str(folder), readonly=True, lock=False) as environment:
        kept = (environment.info()["last_pgno"] + 1) * PAGE
    data = (folder / "data.mdb").read_bytes()
    endless, refused = [], 0
    for at, key in separators(data, kept):
        bad = bytearray(data)
        bad[at + len(key) - 1] ^= 0x7F
        time.sleep(0.012)
        (folder / "data.mdb").write_bytes(bad)
        # Where separators are out of order among themselves, it is not even opened.
        with suppress(StoreDamaged), open_store(url, create=False) as store:
            for kind, descending in product((JOURNAL, TASKS), (False, True)):
                query = find(kind, limit=3, descending=descending)
                try:
                    with store.transaction(SPACES[0], write=False) as session:
                        if len(list(islice(select_all(session, query), 300))) == 300:
                            endless.append((kind.name, key, descending))
                except StoreDamaged:
                    refused += 1
    assert endless == []
    assert refused


@pytest.mark.soak
def test_thousands_of_flipped_bytes_end_no_process_and_are_noticed(
    whole: Whole, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    """Five thousand files, other ones in every run."""
    seed = random.SystemRandom().randrange(2**32)
    damages = damages_to(whole, random.Random(seed), 5_000)
    try:
        assert_harmless(outcomes_of(whole, damages, new_url, tmp_path))
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
