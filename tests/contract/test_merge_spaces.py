"""Merging adds what the target lacks, touches nothing there, and says what could not come."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import LogChunk
from herdbook.domain.entity import evolve
from herdbook.domain.errors import (
    AlreadyExists,
    CycleRefused,
    InvalidValue,
    SpaceRefused,
    StoreUnavailable,
    UnknownReference,
)
from herdbook.domain.journal import Actor, Op
from herdbook.domain.plan.model import (
    Initiative,
    Page,
    Phase,
    PhaseDependency,
    Task,
    TaskDependency,
    TaskStatus,
)
from herdbook.domain.record.model import EventKind, ScoreEvent
from herdbook.ports.engine.derived_ids import derive_id
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    INITIATIVES,
    JOURNAL,
    OPENINGS,
    PAGES,
    PHASE_DEPENDENCIES,
    PHASES,
    PROPOSALS,
    STANDINGS,
    TASK_DEPENDENCIES,
    TASKS,
    WORKTREES,
)
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.merge_spaces import MergeReport, merge
from herdbook.services.stores.store_check import check
from tests.cases import for_each
from tests.contract.inhabited import content, inhabit, record_of, work_on
from tests.contract.rows import ENTITIES, make
from tests.contract.space import everything_in, work_in
from tests.contract.wrapped import LosesAnswers, WrappedStore

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def source() -> Iterator[Store]:
    """A store to merge from."""
    with open_store("memory://") as opened:
        yield opened


def put(store: Store, space: str, *rows: Any) -> None:
    """Have rows in a space, in the order given."""
    with work_in(store, space) as uow:
        for row in rows:
            kind = next(each for each in store.dictionary if each.entity is type(row))
            uow.add(kind, [row])
        uow.commit()


def entities(store: Store, space: str) -> dict[str, dict[str, Any]]:
    """What people keep in a space, by kind and key."""
    names = {kind.name for kind in ENTITIES}
    return {
        name: {row.id: row for row in rows}
        for name, rows in content(store, space).items()
        if name in names
    }


def failures(report: MergeReport) -> dict[tuple[str, str], str]:
    """What could not come, and why."""
    return {(each.entity, each.key): each.reason for each in report.failed}


def _edge(waiting: str, awaited: str) -> str:
    """The id of a dependency of two tasks or two phases."""
    kind = TASK_DEPENDENCIES if waiting.startswith("tsk_") else PHASE_DEPENDENCIES
    return derive_id(kind, dict(zip(kind.identity, (waiting, awaited), strict=True)))


def test_an_empty_target_gets_every_row_as_it_is(source: Store, store: Store, space: str) -> None:
    """With its id, its times and its version; and merging again adds nothing at all."""
    record = record_of(space)
    for each in (space, record):
        inhabit(source, each)
    report = merge(source, store)
    wanted = [entities(source, each) for each in (space, record)]
    assert [entities(store, each) for each in (space, record)] == wanted
    rows = sum(len(each) for found in wanted for each in found.values())
    assert (report.added, report.kept, report.failed) == (rows, 0, ())
    before = [everything_in(store, each) for each in (space, record)]
    assert merge(source, store) == MergeReport(0, rows, ())
    assert [everything_in(store, each) for each in (space, record)] == before
    assert check(store, [space, record]) == []


def test_what_came_is_in_the_journal_of_the_target(source: Store, store: Store, space: str) -> None:
    """One entry for each row, under the target's clock and whoever merged."""
    inhabit(source, space)
    report = merge(source, store, actor=Actor(person="ada"))
    journal = content(store, space)[JOURNAL.name]
    logs = len(entities(store, space)["log_chunks"])
    assert len(journal) == report.added - logs
    assert {(entry.op, entry.person, entry.at.node) for entry in journal} == {
        (Op.ADD, "ada", store.node)
    }


def test_the_source_is_only_read(source: Store, store: Store, space: str) -> None:
    """Nothing in it is another afterwards."""
    inhabit(source, space)
    inhabit(store, space)
    before = everything_in(source, space)
    merge(source, store)
    assert everything_in(source, space) == before


def test_what_the_target_has_is_kept_whatever_the_source_says(
    source: Store, store: Store, space: str
) -> None:
    """A key that both have is counted, and its row is not touched."""
    for each, name in ((source, "theirs"), (store, "ours")):
        put(each, space, Task(id="tsk_both", name=name), Task(id=f"tsk_{name}", name=name))
    before = entities(store, space)["tasks"]
    assert merge(source, store) == MergeReport(1, 1, ())
    after = entities(store, space)["tasks"]
    assert {key: after[key] for key in before} == before
    assert after["tsk_theirs"].name == "theirs"


def test_two_separate_lives_become_one(source: Store, store: Store, space: str) -> None:
    """Of two stores that share nothing the target has both, and can be worked on."""
    for each in (source, store):
        with work_in(each, space) as uow:
            make(uow, WORKTREES)
            make(uow, TASKS, full=True)
            uow.commit()
    ours, theirs = entities(store, space), entities(source, space)
    merge(source, store)
    both = entities(store, space)
    for name, rows in both.items():
        assert rows == {**ours.get(name, {}), **theirs.get(name, {})}
    with work_in(store, space) as uow:
        make(uow, AGENTS, id="agt_worker")
        uow.commit()
    work_on(store, space)
    assert check(store, [space]) == []


def test_a_task_and_its_agent_come_together(source: Store, store: Store, space: str) -> None:
    """Each names the other, and the task is held for as long as its claim says."""
    put(source, space, Agent(id="agt_a", name="a"), Task(id="tsk_t", name="t"))
    with work_in(source, space) as uow:
        claim = claims.claim(uow, "agt_a", halts=NO_HALTS)
        uow.agents.save(evolve(uow.agents.get("agt_a"), task_id="tsk_t"))
        uow.commit()
    assert claim is not None
    merge(source, store)
    assert entities(store, space) == entities(source, space)
    with work_in(store, space) as uow:
        (opening,) = uow.select(find(OPENINGS))
        assert opening.lease_until == claim.opening.lease_until
        assert uow.tasks.ready(9) == []


def test_a_taken_name_fails_its_row_and_what_needs_it(
    source: Store, store: Store, space: str
) -> None:
    """What may do without it comes without it, and all the others come."""
    with work_in(source, space) as uow:
        make(uow, AGENTS, id="agt_theirs", name="otter")
        make(uow, PROPOSALS, id="pro_p", agent_id="agt_theirs")
        uow.tasks.add(Task(id="tsk_t", name="t", assignee_id="agt_theirs"))
        uow.commit()
    put(store, space, Agent(id="agt_ours", name="otter"))
    report = merge(source, store)
    assert failures(report) == {
        ("agent", "agt_theirs"): "agent 'agt_ours' has its name",
        ("proposal", "pro_p"): "its agent 'agt_theirs' is not there",
    }
    assert (report.added, report.kept) == (2, 0)
    found = entities(store, space)
    assert found["tasks"]["tsk_t"].assignee_id is None
    assert found["agents"].keys() == {"agt_ours"}
    assert len(found["initiatives"]) == 1
    assert merge(source, store) == MergeReport(0, 2, report.failed)
    assert check(store, [space]) == []


def test_what_hangs_on_a_failed_row_fails_all_the_way_down(
    source: Store, store: Store, space: str
) -> None:
    """A second root page stays out with its whole tree."""
    for each, root in ((store, "ours"), (source, "theirs")):
        put(
            each,
            space,
            Initiative(id="ini_i", name="i"),
            Page(id=f"pag_{root}", initiative_id="ini_i", title=root),
        )
    for number in range(3):
        above = "pag_theirs" if number == 0 else f"pag_{number - 1}"
        put(
            source,
            space,
            Page(id=f"pag_{number}", initiative_id="ini_i", parent_page_id=above, title="x"),
        )
    report = merge(source, store)
    assert [each.key for each in report.failed] == ["pag_theirs", "pag_0", "pag_1", "pag_2"]
    assert (report.added, report.kept) == (0, 1)
    assert entities(store, space)[PAGES.name].keys() == {"pag_ours"}


def test_pages_that_are_below_one_another_stay_behind(
    source: Store, store: Store, space: str
) -> None:
    """An older program let them be so; what hangs on them stays too, and the rest comes."""
    root = Page(id="pag_root", initiative_id="ini_i", title="root")
    put(source, space, Initiative(id="ini_i", name="i"), root)
    parents = {"pag_a": "pag_b", "pag_b": "pag_a", "pag_leaf": "pag_a"}
    with unit_of_work(source, space) as uow:
        stamped = uow.pages.get("pag_root")
        circle = [evolve(stamped, id=key, parent_page_id=up) for key, up in parents.items()]
        uow.session.insert(PAGES, circle)
        uow.commit()
    report = merge(source, store)
    assert {each.key: "be below" in each.reason for each in report.failed} == {
        "pag_a": True,
        "pag_b": True,
        "pag_leaf": False,
    }
    assert entities(store, space)[PAGES.name].keys() == {"pag_root"}


def test_an_edge_that_would_close_a_cycle_fails_alone(
    source: Store, store: Store, space: str
) -> None:
    """The tasks wait as the target says, and every other edge comes."""
    for each, first, second in ((store, "a", "b"), (source, "b", "a")):
        put(
            each,
            space,
            *[Task(id=f"tsk_{name}", name=name) for name in "abc"],
            TaskDependency(
                id=f"tsd_{first}", task_id=f"tsk_{first}", depends_on_task_id=f"tsk_{second}"
            ),
        )
    edges = [
        TaskDependency(id=f"tsd_{n}", task_id="tsk_c", depends_on_task_id=f"tsk_{n}") for n in "xy"
    ]
    put(source, space, *[Task(id=f"tsk_{n}", name=n) for n in "xy"], *edges)
    report = merge(source, store)
    assert failures(report).keys() == {("task dependency", _edge("tsk_b", "tsk_a"))}
    assert "tsk_a -> tsk_b -> tsk_a" in report.failed[0].reason
    assert (report.added, report.kept) == (4, 3)
    assert entities(store, space)[TASK_DEPENDENCIES.name].keys() == {
        _edge("tsk_a", "tsk_b"),
        _edge("tsk_c", "tsk_x"),
        _edge("tsk_c", "tsk_y"),
    }
    assert merge(source, store) == MergeReport(0, 7, report.failed)
    assert check(store, [space]) == []


def test_a_cycle_through_a_phase_that_comes_is_found(
    source: Store, store: Store, space: str
) -> None:
    """New phases are part of the way round."""
    for each in (store, source):
        put(each, space, Initiative(id="ini_i", name="i"))
        put(each, space, *[Phase(id=f"pha_{n}", initiative_id="ini_i", name=n) for n in "ab"])
    put(store, space, PhaseDependency(id="phd_1", phase_id="pha_b", depends_on_phase_id="pha_a"))
    put(
        source,
        space,
        Phase(id="pha_n", initiative_id="ini_i", name="n"),
        PhaseDependency(id="phd_2", phase_id="pha_a", depends_on_phase_id="pha_n"),
        PhaseDependency(id="phd_3", phase_id="pha_n", depends_on_phase_id="pha_b"),
    )
    report = merge(source, store)
    coming = {_edge("pha_a", "pha_n"), _edge("pha_n", "pha_b")}
    ((kind, failed),) = failures(report)
    assert (kind, failed in coming) == ("phase dependency", True)
    assert entities(store, space)[PHASE_DEPENDENCIES.name].keys() == {
        _edge("pha_b", "pha_a"),
        *coming - {failed},
    }
    assert entities(store, space)[PHASES.name].keys() == {"pha_a", "pha_b", "pha_n"}


def test_a_task_that_would_close_a_cycle_fails_with_its_children(
    source: Store, store: Store, space: str
) -> None:
    """Its parent waits for it, and in the target it would wait for its parent's phase."""
    for each in (store, source):
        put(each, space, Initiative(id="ini_i", name="i"))
        put(each, space, *[Phase(id=f"pha_{n}", initiative_id="ini_i", name=n) for n in "ab"])
        put(each, space, Task(id="tsk_p", name="p", phase_id="pha_a"))
    put(store, space, PhaseDependency(id="phd_1", phase_id="pha_b", depends_on_phase_id="pha_a"))
    put(
        source,
        space,
        Task(id="tsk_1", name="1", phase_id="pha_b", parent_task_id="tsk_p"),
        Task(id="tsk_0", name="0", parent_task_id="tsk_1"),
        Task(id="tsk_2", name="2", parent_task_id="tsk_p"),
        TaskDependency(id="tsd_1", task_id="tsk_2", depends_on_task_id="tsk_0"),
    )
    report = merge(source, store)
    assert failures(report).keys() == {
        ("task", "tsk_1"),
        ("task", "tsk_0"),
        ("task dependency", _edge("tsk_2", "tsk_0")),
    }
    assert entities(store, space)[TASKS.name].keys() == {"tsk_p", "tsk_2"}
    assert check(store, [space]) == []


def test_a_child_that_would_close_a_cycle_leaves_its_parent_in(
    source: Store, store: Store, space: str
) -> None:
    """As few rows fail as can, whatever their keys."""
    for each in (store, source):
        put(each, space, Initiative(id="ini_i", name="i"))
        put(each, space, *[Phase(id=f"pha_{n}", initiative_id="ini_i", name=n) for n in "ab"])
        put(each, space, Task(id="tsk_p", name="p", phase_id="pha_a"))
    put(store, space, PhaseDependency(id="phd_1", phase_id="pha_b", depends_on_phase_id="pha_a"))
    put(
        source,
        space,
        Task(id="tsk_9", name="9", parent_task_id="tsk_p"),
        Task(id="tsk_0", name="0", parent_task_id="tsk_9", phase_id="pha_b"),
    )
    assert failures(merge(source, store)).keys() == {("task", "tsk_0")}
    assert entities(store, space)[TASKS.name].keys() == {"tsk_p", "tsk_9"}


def test_two_ledgers_become_their_union(source: Store, store: Store, space: str) -> None:
    """Every entry counts once, and the standings are the fold of them all in order."""
    record = record_of(space)
    shared = ScoreEvent(id="sco_1", agent="otter", kind=EventKind.COMMIT, points=5, at=START)
    late, early = (evolve(shared, id=f"sco_{n}", at=START.replace(hour=n)) for n in (15, 9))
    put(store, record, shared, late)
    put(source, record, shared, early, evolve(shared, id="sco_h", agent="heron"))
    assert merge(source, store) == MergeReport(2, 1, ())
    with work_in(store, record, write=False) as uow:
        standings = {each.agent: each for each in uow.select(find(STANDINGS))}
    assert {name: each.commits for name, each in standings.items()} == {"otter": 3, "heron": 1}
    assert standings["otter"].last_event_id == "sco_15"
    assert check(store, [record]) == []


def test_secrets_come_as_they_are(source: Store, store: Store, space: str) -> None:
    """The target has them, its journal masks them, the report knows nothing of them."""
    record = record_of(space)
    with work_in(source, record) as uow:
        account = make(uow, ACCOUNTS, full=True)
        uow.commit()
    report = merge(source, store)
    assert entities(store, record)["accounts"][account.id].config.reveal() == (
        account.config.reveal()
    )
    assert "s3cr3t" not in repr((report, content(store, record)[JOURNAL.name]))


def test_what_was_done_in_an_unfinished_copy_can_be_merged(
    source: Store, store: Store, space: str
) -> None:
    """From it, where nothing is lost; not into it, where the copy that goes on would not know."""

    def stop(_space: str, _done: int, _total: int) -> None:
        raise InterruptedError

    inhabit(source, space)
    with pytest.raises(InterruptedError):
        copy(source, store, [space], batch=5, progress=stop)
    put(
        store,
        space,
        LogChunk(id="log_x", agent_id="x", agent_name="x", session_number=1, content="x"),
    )
    before = everything_in(store, space)
    with pytest.raises(SpaceRefused, match="unfinished copy"):
        merge(source, store, [space])
    assert everything_in(store, space) == before
    assert merge(store, source, [space]).added == 1
    assert "log_x" in entities(source, space)["log_chunks"]


def test_a_store_is_not_merged_with_itself(store: Store) -> None:
    """There is nothing it could lack."""
    with pytest.raises(InvalidValue, match="target"):
        merge(store, store)


def test_a_lost_answer_is_told_and_merging_again_is_safe(
    source: Store, store: Store, space: str
) -> None:
    """Nobody is told a wrong number."""
    inhabit(source, space)
    target: Any = WrappedStore(store, LosesAnswers)
    with pytest.raises(StoreUnavailable, match="merge again"):
        merge(source, target)
    assert merge(source, store).added == 0
    assert entities(store, space) == entities(source, space)


@for_each(
    ("rows", "refusal"),
    [
        ({TASKS: [Task(id="tsk_kept", name="x")]}, AlreadyExists),
        ({TASKS: [Task(id="tsk_n", name="x", assignee_id="agt_nobody")]}, UnknownReference),
        ({AGENTS: [Agent(id="agt_n", name="taken")]}, AlreadyExists),
        ({TASKS: [Task(id="tsk_n", name="x")] * 2}, AlreadyExists),
        (
            {
                TASKS: [Task(id="tsk_n", name="x")],
                TASK_DEPENDENCIES: [
                    TaskDependency(id="a", task_id="tsk_n", depends_on_task_id="tsk_kept"),
                    TaskDependency(id="b", task_id="tsk_kept", depends_on_task_id="tsk_n"),
                ],
            },
            CycleRefused,
        ),
        ({OPENINGS: []}, InvalidValue),
        ({ACCOUNTS: []}, InvalidValue),
    ],
    ids=["a key", "a reference", "a unique", "a double", "a cycle", "derived", "another area"],
)
def test_adopting_refuses_what_adding_does(
    store: Store, space: str, rows: Any, refusal: type[Exception]
) -> None:
    """All or none: what else was to come stays out too, and the transaction goes on."""
    put(store, space, Task(id="tsk_kept", name="x"), Agent(name="taken"))
    with work_in(store, space) as uow:
        with pytest.raises(refusal):
            uow.insert_verbatim({INITIATIVES: [Initiative(id="ini_x", name="x")], **rows})
        uow.insert_verbatim({TASKS: [Task(id="tsk_done", name="x", status=TaskStatus.COMPLETED)]})
        uow.commit()
    found = entities(store, space)
    assert INITIATIVES.name not in found
    assert found["tasks"].keys() == {"tsk_kept", "tsk_done"}
