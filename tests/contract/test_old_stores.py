"""Stores that older versions wrote are opened, upgraded and written to by this one."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.stores.probe import probe
from herdbook.domain.clock import Stamp
from herdbook.domain.journal import Cause, Op
from herdbook.domain.plan.model import Task
from herdbook.domain.plan.readiness import OpeningState
from herdbook.domain.secret import Secret
from herdbook.ports.engine.derived_ids import derive_id
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    DICTIONARY,
    JOURNAL,
    PROJECTS,
    ROWS_VERSION,
    TASKS,
    VERSION,
)
from herdbook.ports.engine.store import Store
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.store_check import check
from tests.contract import raw
from tests.contract.conftest import SHARED
from tests.contract.pasts import check_past, snapshot
from tests.contract.rows import make
from tests.contract.space import everything_in, work_in

VERSIONS = (1, 2, 3, 4)
FIXTURES = Path(__file__).parent / "old_stores"
WORK, RECORD = "work/old", "record/old"
PAIRS = {
    WORK: ("phase_dependencies", "task_dependencies", "initiative_projects"),
    RECORD: ("commits", "retrospectives"),
}
NewUrl = Callable[[str], str]
Rows = dict[str, list[dict[str, Any]]]

pytestmark = [
    pytest.mark.parametrize("engine", SHARED, indirect=True),
    pytest.mark.parametrize("version", VERSIONS),
]


def _unpack(name: str) -> bytes:
    return gzip.decompress((FIXTURES / name).read_bytes())


@pytest.fixture
def url(engine: str, version: int, new_url: NewUrl) -> str:
    """A copy of the store that this version wrote with this engine."""
    made = new_url(engine)
    content = _unpack(f"v{version}.{engine}.gz")
    match engine:
        case "lmdb":
            folder = raw.path_of(made)
            folder.mkdir(mode=0o700)
            file = folder / "data.mdb"
        case "duckdb":
            file = raw.path_of(made)
        case _:
            schema = made.rpartition("schema=")[2]
            with raw.postgres(made) as server:
                server.execute(content.decode().replace("herdbook_old", schema))
            return made
    file.write_bytes(content)
    file.chmod(0o600)
    return made


@pytest.fixture
def old(engine: str, version: int) -> dict[str, Any]:
    """What the old version said that the store holds."""
    found: dict[str, Any] = json.loads(_unpack(f"v{version}.{engine}.rows.gz"))
    assert found["version"] == version
    return found


def _plain(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case Secret():
            return value.reveal()
        case Stamp():
            return str(value)
    return value


def _rows(store: Store, space: str) -> Rows:
    return {
        name: [
            {field: _plain(value) for field, value in vars(row).items() if value is not None}
            for row in rows
        ]
        for name, rows in everything_in(store, space).items()
    }


def _lost(old: Rows, new: Rows, *, without: tuple[str, ...] = ()) -> list[Any]:
    """The old rows of which no new one has all values, by kind."""
    return [
        (name, row)
        for name, rows in old.items()
        if name not in without
        for row in rows
        if not any(_has_all(each, row) for each in new.get(name, []))
    ]


def _has_all(row: dict[str, Any], values: dict[str, Any]) -> bool:
    return all(row.get(name) == value for name, value in values.items())


def _without_id(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


def test_everything_an_old_version_wrote_is_there(url: str, old: dict[str, Any]) -> None:
    """Every row, secret, journal entry and queue row has the values that it had."""
    with open_store(url) as store:
        assert (store.uuid, store.schema_version) == (old["uuid"], VERSION)
        assert store.spaces() == sorted(old["spaces"])
        for space, rows in old["spaces"].items():
            assert _lost(rows, _rows(store, space), without=("heads",)) == []
            assert check(store, [space]) == []


def test_the_first_write_rewrites_what_has_a_new_form(url: str, old: dict[str, Any]) -> None:
    """Pairs get the ids that follow from their values, once, and the journal says so."""
    with open_store(url) as store:
        for space, kinds in PAIRS.items():
            before = _rows(store, space)
            for _ in range(2):
                with work_in(store, space):
                    pass
            after = _rows(store, space)
            assert _lost(before, after, without=(*kinds, "heads")) == []
            for name in kinds:
                kind = DICTIONARY.kinds[name]
                assert before[name]
                wanted = {derive_id(kind, row): _without_id(row) for row in before[name]}
                assert {row["id"]: _without_id(row) for row in after[name]} == wanted
            (head,) = after["heads"]
            assert head["rows_version"] == ROWS_VERSION
            fresh = after["journal"][len(before["journal"]) :]
            rewritten = sum(len(before[name]) for name in kinds)
            assert [entry["cause"] for entry in fresh] == [Cause.UPGRADE.value] * 2 * rewritten
            assert sorted({entry["entity"] for entry in fresh}) == sorted(kinds)
            assert check(store, [space]) == []
    assert old["spaces"].keys() == PAIRS.keys()


def test_a_task_held_before_the_upgrade_is_held_after_it(url: str, old: dict[str, Any]) -> None:
    """The lease of a claim that an old version gave goes on, and its holder can complete it."""
    (claimed,) = (row for row in old["spaces"][WORK]["tasks"] if row["status"] == "in_progress")
    with open_store(url) as store, work_in(store, WORK) as uow:
        opening = uow.openings.get(claimed["id"])
        assert opening.state is OpeningState.HELD
        task = uow.tasks.get(claimed["id"])
        assert (task.fence, task.claim_stamp) == (claimed["fence"], None)
        (added,) = uow.add(TASKS, [Task(name="new")])
        uow.commit()
    with open_store(url) as store:
        last = everything_in(store, WORK)[JOURNAL.name][-1]
        assert (last.key, last.op, last.schema_version) == (added.id, Op.ADD, VERSION)


def test_an_old_store_can_be_copied_as_it_is(url: str, old: dict[str, Any]) -> None:
    """A copy into another engine has the same digest, and is rewritten by its own first write."""
    with open_store(url) as store, open_store("memory://") as target:
        copy(store, target)
        for space in old["spaces"]:
            assert everything_in(target, space).keys() >= everything_in(store, space).keys()
            with work_in(target, space):
                pass
            assert check(target, [space]) == []


def test_looking_at_an_old_store_upgrades_nothing(url: str, engine: str, version: int) -> None:
    """Its version can be asked for, also where nobody knows yet whether its pages are whole."""
    file = {"lmdb": "data.mdb", "duckdb": ""}.get(engine)
    before = None if file is None else (raw.path_of(url) / file).read_bytes()
    for _ in range(2):
        assert probe(url, verify=True).schema_version == version
    if file is not None:
        assert (raw.path_of(url) / file).read_bytes() == before


@pytest.mark.parametrize("space", [WORK, RECORD])
def test_what_an_old_version_left_can_be_read_after_it_was_rewritten(url: str, space: str) -> None:
    """Rows have the ids that they had then; of those written once the journal has only the key."""
    with open_store(url) as store:
        seq, then = snapshot(store, space)
        with work_in(store, space) as uow:
            rewritten = uow.journal.last()
            make(uow, PROJECTS if space == WORK else ACCOUNTS)
            uow.commit()
        assert rewritten > seq
        check_past(store, space, seq, then)
