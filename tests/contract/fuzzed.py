"""What a process does with a store in which one byte was flipped; for `test_lmdb_fuzz.py`."""

import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.adapters import open_store
from herdbook.domain.errors import StoreDamaged, StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.stores import store_check
from tests.contract.space import everything_in

SPACES = ("work/one", "work/other")
MEMORY = 1 << 30
"""How much memory a process may take for a store of some hundred kilobytes."""
Flip = tuple[int, int]
"""Where a byte is changed, and in which bits."""
Damage = tuple[Flip, ...]
"""The flips in one file."""


class Outcome(NamedTuple):
    """What came of it; `reads_the_same` is None where reading was refused."""

    damage: Damage
    reads_the_same: bool | None
    has_flaws: bool
    wrote: bool


def contents(store: Store) -> dict[str, Any]:
    """All rows in all spaces."""
    return {space: everything_in(store, space) for space in SPACES}


def _refused(attempt: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether something was refused as damaged; anything else that is raised is a defect."""
    try:
        return False, attempt()
    except (StoreDamaged, StoreUnavailable):
        return True, None


def try_flips(
    url: str, whole: bytes, expected: dict[str, Any], damages: Sequence[Damage], notes: str
) -> list[Outcome]:
    """Check, read and write a store damaged in each of these ways, which is noted before."""
    # What is damaged must not cost the machine's memory either; the mapped file does not count.
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    data = Path(url.removeprefix("lmdb://")) / "data.mdb"
    log = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    def check() -> bool:
        with open_store(url, create=False, verify=True) as store:
            return bool(store_check.check(store))

    def look() -> bool:
        with open_store(url, create=False) as store:
            store.spaces()
            return contents(store) == expected

    def write() -> bool:
        with open_store(url, create=False) as store:
            task = run(store, SPACES[0], lambda uow: uow.tasks.add(Task(name="new")))
            return read(store, SPACES[0], lambda uow: uow.tasks.get(task.id)).name == "new"

    def put(bad: bytes) -> None:
        # The times of files go in steps: one that is written in the step in which Herdbook wrote
        # in it last would look as Herdbook left it.
        time.sleep(0.012)
        data.write_bytes(bad)

    outcomes = []
    for number, damage in enumerate(damages):
        os.pwrite(log, repr(damage).ljust(400).encode(), 0)
        bad = bytearray(whole)
        for at, bits in damage:
            bad[at] ^= bits
        put(bad)
        # Who comes first finds a changed file, the others one that was found whole; each in turn.
        order = [check, look, write] if number % 2 else [look, check, write]
        told = {attempt: _refused(attempt) for attempt in order}
        (damaged, flaws), (unread, same), (unwritten, wrote) = (
            told[check],
            told[look],
            told[write],
        )
        if number % 3 == 0:
            put(bad)
            unwritten, wrote = _refused(write)
        outcomes.append(
            Outcome(
                damage,
                None if unread else same,
                damaged or flaws,
                not unwritten and wrote,
            )
        )
    return outcomes
