"""Stores of older and newer programs: upgraded in place by whoever comes first, or left alone."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from attrs import evolve

from herdbook.adapters import open_store
from herdbook.domain.errors import AlreadyExists, StoreTooNew
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    LOG_CHUNKS,
    OPENINGS,
    PAGES,
    PROJECTS,
    REVIEW_COMMENTS,
    TASKS,
)
from herdbook.ports.engine.kinds import ORDERED, Kind
from herdbook.ports.engine.query import Query, find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract import older, raw
from tests.contract.conftest import SHARED
from tests.contract.older import HERE, NEW, OLD, RECORD
from tests.contract.rows import make
from tests.contract.space import everything_in, work_in

pytestmark = pytest.mark.parametrize("engine", SHARED, indirect=True)

Fresh = Callable[..., Store]
NewUrl = Callable[[str], str]

LONG = 60
PROCESSES = 6


@pytest.fixture
def url(engine: str, new_url: NewUrl) -> str:
    return new_url(engine)


@pytest.fixture
def old_rows(url: str) -> dict[str, list[Any]]:
    """What an older program left in the store at `url`."""
    with open_store(url, dictionary=OLD) as store:
        return older.write(store)


def _kept(store: Store) -> dict[str, list[Any]]:
    """The rows of both spaces but for the books."""
    found = {**everything_in(store, HERE), **everything_in(store, RECORD)}
    return {name: rows for name, rows in found.items() if name not in {"journal", "heads"}}


def test_old_rows_are_there_with_defaults(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """Everything an older program wrote is read by the newer one, in today's form."""
    found = _kept(fresh(url, dictionary=NEW))
    del found[OPENINGS.name]
    assert found == older.as_new(old_rows)


def test_an_upgrade_raises_the_version_and_nothing_else(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """The store keeps its name, its journal and the place of its heads."""
    with open_store(url, dictionary=OLD) as store:
        uuid, version = store.uuid, store.schema_version
        before = [everything_in(store, space) for space in (HERE, RECORD)]
    store = fresh(url, dictionary=NEW)
    after = [everything_in(store, space) for space in (HERE, RECORD)]
    assert (version, store.schema_version, store.uuid) == (1, 2, uuid)
    assert [each["journal"] for each in after] == [each["journal"] for each in before]
    assert [each["heads"] for each in after] == [
        [evolve(head, schema_version=2, oldest_writer=2) for head in each["heads"]]
        for each in before
    ]
    assert store.spaces() == [RECORD, HERE]
    assert old_rows


def _questions(kind: Kind[Any], rows: list[Any]) -> Iterator[Query[Any]]:
    """All rows, and for every lookup those that agree with each row in its first fields."""
    yield find(kind)
    for lookup in kind.all_lookups:
        for length in range(1, len(lookup) + 1):
            rest = lookup[length:]
            if any(kind.columns[name].type_name not in ORDERED for name in rest):
                continue
            for row in rows:
                where = {name: getattr(row, name) for name in lookup[:length]}
                yield find(kind, where, by=rest or None)


def test_an_upgraded_store_answers_as_one_written_today(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """Old lookups and new ones give the same answers over the same rows."""
    upgraded, direct = fresh(url, dictionary=NEW), fresh(dictionary=NEW)
    rows = older.as_new(old_rows)
    for space in (HERE, RECORD):
        here = [NEW.kinds[n] for n in rows if space.startswith(str(NEW.kinds[n].area))]
        with direct.transaction(space, write=True) as session:
            for kind in here:
                session.insert(kind, rows[kind.name])
            session.commit()
        with upgraded.transaction(space, write=False) as session:
            answers = [
                (session.select(query), session.count(query))
                for kind in here
                for query in _questions(kind, rows[kind.name])
            ]
        with direct.transaction(space, write=False) as session:
            assert answers == [
                (session.select(query), session.count(query))
                for kind in here
                for query in _questions(kind, rows[kind.name])
            ]


def test_new_lookups_answer_over_old_rows(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """A question nobody could ask when the rows were written finds them."""
    agents = older.as_new(old_rows)[AGENTS.name]
    chunks = older.as_new(old_rows)[LOG_CHUNKS.name]
    with work_in(fresh(url, dictionary=NEW), write=False) as uow:
        found = uow.agents.by_session("s-1")
        assert found == [agent for agent in agents if agent.session_id == "s-1"]
        assert len(found) == 2
        assert uow.log_chunks.of_agent("agt_1") == sorted(
            chunks, key=lambda chunk: (chunk.session_number, chunk.id)
        )


def test_old_rows_are_saved_and_removed_like_any_other(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """The new fields of an old row can be changed, found by and forgotten."""
    store = fresh(url, dictionary=NEW)
    first, second = older.as_new(old_rows)[ACCOUNTS.name]
    with work_in(store, RECORD) as uow:
        saved = uow.accounts.save(evolve(first, sort_order=7, provider="other", config="hidden"))
        uow.accounts.remove(second.id)
        uow.commit()
    with work_in(store, RECORD, write=False) as uow:
        assert uow.select(find(ACCOUNTS)) == [saved]
        assert uow.accounts.of_provider("other") == [saved]
        assert uow.accounts.of_provider("claude") == []


def test_uniques_hold_over_old_rows_and_those_given_up_do_not(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """A url, unique since today, is refused twice; an e-mail, unique until yesterday, is not."""
    store = fresh(url, dictionary=NEW)
    with work_in(store) as uow:
        with pytest.raises(AlreadyExists) as refusal:
            make(uow, PROJECTS, url="https://a")
        holder = next(row for row in old_rows["projects"] if row.url == "https://a")
        assert (refusal.value.key, refusal.value.fields) == (holder.id, ("url",))
    with work_in(store, RECORD) as uow:
        make(uow, ACCOUNTS, email="a@x")
        uow.commit()
    with work_in(store, RECORD, write=False) as uow:
        emails = sorted(account.email for account in uow.select(find(ACCOUNTS)))
    assert emails == ["a@x", "a@x", "b@x"]


def test_new_entities_can_be_used(url: str, old_rows: dict[str, list[Any]], fresh: Fresh) -> None:
    """Kinds the older program did not know are kept, looked up and unique as if always there."""
    store = fresh(url, dictionary=NEW)
    (initiative,) = old_rows["initiatives"]
    with work_in(store) as uow:
        page = make(uow, PAGES, initiative_id=initiative.id)
        comment = make(uow, REVIEW_COMMENTS)
        uow.commit()
    with work_in(store) as uow:
        assert uow.pages.root(initiative.id) == page
        assert uow.review_comments.of_phase(comment.phase_id) == [comment]
        with pytest.raises(AlreadyExists):
            make(uow, PAGES, initiative_id=initiative.id)
        assert [entry.schema_version for entry in uow.journal.of_row(PAGES, page.id)] == [2]


def _add_late_project(uow: UnitOfWork) -> Any:
    return uow.add(older.OLD_PROJECTS, [older.Project(name="late", url="late")])[0]


def test_an_old_program_that_still_runs_cannot_write_any_more(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """Its next write is refused in old and in new spaces; what it held is there."""
    running = fresh(url, dictionary=OLD)
    upgraded = fresh(url, dictionary=NEW)
    before = [everything_in(upgraded, space) for space in (HERE, RECORD)]
    for space in (HERE, "work/new"):
        with pytest.raises(StoreTooNew) as refusal:
            run(running, space, _add_late_project)
        assert (refusal.value.schema_version, refusal.value.known) == (2, 1)
    assert [everything_in(upgraded, space) for space in (HERE, RECORD)] == before
    assert upgraded.spaces() == [RECORD, HERE]
    with work_in(running, write=False) as uow:
        assert uow.select(find(older.OLD_AGENTS)) == old_rows["agents"]


def test_an_upgrade_waits_for_those_who_write(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """What an older program has begun it can end, and the upgrade finds it done."""
    running = fresh(url, dictionary=OLD)
    with ThreadPoolExecutor(1) as other:
        with work_in(running) as uow:
            uow.add(TASKS, [TASKS.entity(name="begun")])
            upgrading = other.submit(open_store, url, dictionary=NEW)
            with pytest.raises(TimeoutError):
                upgrading.result(0.3)
            late = _add_late_project(uow)
            uow.commit()
        with upgrading.result(LONG) as upgraded, work_in(upgraded, write=False) as uow:
            found = {project.id: project for project in uow.select(find(PROJECTS))}
    rows = older.as_new({"projects": [*old_rows["projects"], late]})["projects"]
    assert found == {row.id: row for row in rows}


def _lying_there(engine: str, url: str) -> Any:
    """Everything at a URL, seen without an adapter."""
    if engine == "postgres":
        return raw.rows(engine, url)
    place = raw.path_of(url)
    return (place / "data.mdb" if engine == "lmdb" else place).read_bytes()


def test_a_newer_store_is_refused_and_untouched(engine: str, url: str) -> None:
    """An older program says what it found and leaves every byte as it was."""
    with open_store(url, dictionary=NEW) as store, work_in(store) as uow:
        make(uow, TASKS)
        make(uow, PAGES)
        uow.commit()
    before = _lying_there(engine, url)
    for _ in range(2):
        with pytest.raises(StoreTooNew) as refusal:
            open_store(url, dictionary=OLD)
        assert (refusal.value.schema_version, refusal.value.known) == (2, 1)
        assert "use the newer program" in str(refusal.value)
    assert _lying_there(engine, url) == before


CHILD = """
import json, sys
from herdbook.adapters import open_store
from herdbook.ports.engine.dictionary import DICTIONARY, PROJECTS
from herdbook.ports.engine.kinds import Dictionary
from herdbook.ports.unit_of_work.run import read, run

class Counted(Dictionary):
    walks = 0

    def __iter__(self):
        self.walks += 1  # only who lays a store out goes through all kinds
        return super().__iter__()

url, number = sys.argv[1:]
module = {"l": "lmdb", "d": "duckdb", "p": "psycopg"}[url[0]]
__import__(module)
print("ready", flush=True)
sys.stdin.readline()
dictionary = Counted(2, DICTIONARY)
with open_store(url, dictionary=dictionary) as store:
    upgraded = dictionary.walks > 0
    new = PROJECTS.entity(name=f"of process {number}", url=number)
    added = run(store, "work/here", lambda uow: uow.projects.add(new))
    seen = read(store, "work/here", lambda uow: uow.agents.by_session("s-1"))
    agents = [row.id for row in seen]
    print(json.dumps([store.uuid, store.schema_version, agents, added.id, upgraded]))
"""


def test_processes_that_open_an_old_store_at_once_all_go_on(
    url: str, old_rows: dict[str, list[Any]], fresh: Fresh
) -> None:
    """One of them upgrades it, the others wait for that, and each then does its work."""
    with open_store(url, dictionary=OLD) as store:
        uuid = store.uuid
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, url, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        answers = [child.communicate(timeout=LONG) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert [errors for _, errors in answers] == [""] * PROCESSES
    results = [json.loads(line) for line, _ in answers]
    agents = [row.id for row in old_rows["agents"] if row.session_id == "s-1"]
    assert [each[:3] for each in results] == [[uuid, 2, agents]] * PROCESSES
    assert [each[4] for each in results].count(True) == 1
    upgraded = fresh(url, dictionary=NEW)
    found = everything_in(upgraded, HERE)
    added = {project.id for project in found["projects"]} - {row.id for row in old_rows["projects"]}
    assert added == {each[3] for each in results}
    assert [entry.seq for entry in found["journal"]] == list(range(1, len(found["journal"]) + 1))
    assert [(head.schema_version, head.seq) for head in found["heads"]] == [
        (2, len(found["journal"]))
    ]
