"""What people judge of agents' work, on every store."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdbook.adapters.hosts import parse_event
from herdbook.domain.agents.model import AgentMode
from herdbook.domain.errors import AlreadyExists, InvalidValue, NotFound
from herdbook.domain.grading import Grade
from herdbook.domain.journal import NOBODY, Actor
from herdbook.domain.record.events import SessionSetup
from herdbook.domain.record.model import Commit, EventKind, ScoreEvent
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.record import grading, record_ingest
from herdbook.services.record.grading import GradeResult
from herdbook.services.stores import merge_spaces

COMMIT = ("otter", "app", "c0ffee")
CREW = {"otter": SessionSetup("codex", "deep"), "heron": SessionSetup()}
AGENT, USER = "agent_grade", "user_grade"


@pytest.fixture
def record(space: str) -> str:
    return space.replace("work", "record", 1)


def judge(store: Store, record: str, *words: str, **grades: Grade | str) -> GradeResult:
    """Grade a commit, by both parties unless told otherwise."""
    given = grades or {"agent_grade": Grade.GOOD, "user_grade": Grade.EXCELLENCE}
    return run(store, record, grading.grade, *(words or COMMIT), crew=CREW, **given)


def score(store: Store, record: str, agent: str = "otter") -> int:
    """The communication score of an agent."""
    return read(store, record, lambda uow: uow.standings.of_agent(agent).communication_score)


def test_both_parties_make_a_retrospective(store: Store, record: str) -> None:
    """It tells the score before and after, and a point of experience comes with it."""
    graded = judge(store, record)
    retro, now = graded.retrospective, graded.standing
    assert retro is not None
    assert (retro.score_before, retro.score_after) == (60, 67)
    assert (now.communication_score, now.experience_points) == (67, 1)
    assert read(store, record, grading.retrospectives) == [retro]
    assert read(store, record, find_differences) == []


def test_a_commit_is_judged_once(store: Store, record: str) -> None:
    """By the same agent in the same project; a refused judgement writes nothing."""
    judge(store, record)
    with pytest.raises(AlreadyExists):
        judge(store, record)
    with pytest.raises(AlreadyExists):
        judge(store, record, user_grade=Grade.BAD)
    assert read(store, record, lambda uow: len(uow.ledger.page())) == len((AGENT, USER))
    judge(store, record, "heron", "app", "c0ffee")
    judge(store, record, "otter", "other", "c0ffee")


@pytest.mark.parametrize("party", ["agent_grade", "user_grade"])
def test_one_party_alone_moves_the_score_and_nothing_else(
    store: Store, record: str, party: str
) -> None:
    """A ledger entry without a retrospective."""
    graded = judge(store, record, **{party: Grade.BAD})
    assert graded.retrospective is None
    assert graded.entry.kind is EventKind.COMMUNICATION
    assert (graded.standing.communication_score, graded.standing.experience_points) == (59, 0)
    assert read(store, record, grading.retrospectives) == []


@pytest.mark.parametrize("order", [(AGENT, USER), (USER, AGENT)])
def test_the_second_party_completes_the_retrospective(
    store: Store, record: str, order: tuple[str, str]
) -> None:
    """With both notes, the score before both, the task that was said, and a point of experience."""
    notes = {AGENT: "mine", USER: "yours"}
    grades = {AGENT: Grade.GOOD, USER: Grade.EXCELLENCE}
    first, second = order

    def give(party: str, **more: str) -> GradeResult:
        note = {party.replace("grade", "note"): notes[party]}
        return judge(store, record, **{party: grades[party]}, **note, **more)

    give(first, task="fix it")
    judge(store, record, "otter", "app", "0ther", user_grade=Grade.EXCELLENCE)
    graded = give(second, subject="fix")
    retro = graded.retrospective
    assert retro is not None
    assert (retro.agent_note, retro.user_note, retro.task) == ("mine", "yours", "fix it")
    assert (retro.agent_grade, retro.user_grade) == (Grade.GOOD, Grade.EXCELLENCE)
    assert (retro.score_before, retro.score_after) == (60, 67)
    assert (graded.standing.communication_score, graded.standing.experience_points) == (72, 1)
    assert read(store, record, grading.retrospectives) == [retro]
    assert read(store, record, find_differences) == []


@pytest.mark.parametrize("party", [AGENT, USER])
def test_a_party_grades_a_commit_once(store: Store, record: str, party: str) -> None:
    """Alone or with the other party: what it said first stands, and nothing is written."""
    judge(store, record, **{party: Grade.GOOD})
    for again in ({party: Grade.GOOD}, {AGENT: Grade.BAD, USER: Grade.BAD}):
        with pytest.raises(AlreadyExists, match="grade of otter's commit 'c0ffee' already exists"):
            judge(store, record, **again)
    assert score(store, record) == 62
    assert len(read(store, record, grading.activities)) == 1


_rounds = itertools.count()


@given(
    calls=st.lists(
        st.dictionaries(st.sampled_from([AGENT, USER]), st.sampled_from(Grade), min_size=1),
        max_size=6,
    ),
    low=st.booleans(),
)
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_commit_moves_the_score_by_no_more_than_two_grades(
    store: Store, record: str, calls: list[dict[str, Grade]], *, low: bool
) -> None:
    """In whatever order and however often the parties grade it, also where the score is lowest."""
    agent = f"otter {next(_rounds)}"
    before = 0 if low else 60

    def begin(uow: UnitOfWork) -> None:
        fall = ScoreEvent(agent=agent, kind=EventKind.COMMUNICATION, points=before - 60, at=uow.now)
        uow.ledger.add(fall)

    run(store, record, begin)
    accepted: dict[str, Grade] = {}
    for call in calls:
        if accepted.keys() & call.keys():
            with pytest.raises(AlreadyExists):
                run(store, record, grading.grade, agent, "app", "c0ffee", **call)
        else:
            run(store, record, grading.grade, agent, "app", "c0ffee", **call)
            accepted |= call
    effect = score(store, record, agent) - before
    assert effect == max(0, before + sum(accepted.values())) - before
    assert -2 <= effect <= 10
    retros = read(store, record, grading.retrospectives, agent)
    assert [(each.agent_grade, each.user_grade) for each in retros] == (
        [(accepted[AGENT], accepted[USER])] if len(accepted) > 1 else []
    )
    assert read(store, record, find_differences) == []


def test_grades_of_one_commit_in_two_records_count_once_each(
    store: Store, fresh: Callable[..., Store], record: str
) -> None:
    """Merging them adds the party that is missing, and no second grade of the other."""
    other = fresh()
    judge(store, record)
    judge(other, record, user_grade=Grade.EXCELLENCE)
    run(store, record, grading.grade, "heron", "app", "1", user_grade=Grade.GOOD, crew=CREW)
    run(other, record, grading.grade, "heron", "app", "1", agent_grade=Grade.GOOD, crew=CREW)
    merge_spaces.merge(other, store)
    assert (score(store, record), score(store, record, "heron")) == (67, 64)


def test_a_judgement_needs_a_grade(store: Store, record: str) -> None:
    """Words alone are none."""
    with pytest.raises(InvalidValue, match="nobody has given one"):
        judge(store, record, task="fix it")


def test_a_judgement_keeps_the_setup_and_the_task_the_record_knows(
    store: Store, record: str
) -> None:
    """Who judges need not repeat them."""
    told = parse_event(
        id="1",
        at=1_700_000_000_000_000,
        event="codex:post-commit",
        env={"HERDBOOK_AGENT": "otter"},
        raw={"model": "deep"},
    )._replace(project="app", commit_hash="c0ffee", subject="fix it")
    run(store, record, record_ingest.flush, [told])
    later = parse_event(
        id="2",
        at=1_700_000_100_000_000,
        event="opencode:tool.execute.after",
        env={"HERDBOOK_AGENT": "otter"},
        raw={"model": "fast"},
    )
    run(store, record, record_ingest.flush, [later])
    graded = judge(store, record)
    assert graded.retrospective is not None
    assert graded.retrospective.task == "fix it"
    assert (graded.entry.provider, graded.entry.model) == ("codex", "deep")
    assert (graded.standing.provider, graded.standing.model) == ("opencode", "fast")


def test_a_judgement_of_work_nobody_told_of_takes_what_is_known_of_the_agent(
    store: Store, record: str
) -> None:
    """What it last ran as, else what it is registered as, else that it is unknown."""
    crew = {"vole": SessionSetup("opencode", "x", AgentMode.PLAN), "shrew": SessionSetup()}

    def setups(agent: str) -> list[tuple[str, str | None, str | None]]:
        run(store, record, grading.grade, agent, "app", "1", user_grade=Grade.GOOD, crew=crew)
        run(store, record, grading.report_bug, agent, crew=crew)
        run(store, record, grading.reinstate, agent)
        rows = read(store, record, lambda uow: uow.ledger.of_agent(agent))
        return list(dict.fromkeys((each.provider, each.model, each.mode) for each in rows))

    assert setups("vole") == [("opencode", "x", AgentMode.PLAN)]
    assert setups("shrew") == [("unknown", None, None)]
    told = parse_event(
        id="3",
        at=1_700_000_000_000_000,
        event="codex:PostToolUse",
        env={"HERDBOOK_AGENT": "mole"},
        raw={"model": "deep"},
    )
    run(store, record, record_ingest.flush, [told])
    assert setups("mole") == [("codex", "deep", None)]


def test_a_bug_is_written_at_once_and_the_last_skill_point_halts(store: Store, record: str) -> None:
    """Its note is kept among what the agent did."""
    now = run(store, record, grading.report_bug, "otter", "lost a row", project="app", crew=CREW)
    assert (now.skill_points, now.bugs, now.active) == (0, 1, False)
    (activity,) = read(store, record, grading.activities, "otter")
    assert (activity.task, activity.outcome, activity.project) == ("bug", "lost a row", "app")


def test_a_person_reinstates_a_halted_agent_and_no_other(store: Store, record: str) -> None:
    """One that is not halted is left as it is."""
    with pytest.raises(InvalidValue, match="is not halted"):
        run(store, record, grading.reinstate, "otter", crew=CREW)
    run(store, record, grading.report_bug, "otter", crew=CREW)
    now = run(store, record, grading.reinstate, "otter", 2)
    assert (now.skill_points, now.active, now.bugs) == (2, True, 1)


BY_AGENT = Actor(person="ann", agent="otter")


def test_the_users_grade_and_the_end_of_a_halt_are_no_agents_to_give(
    store: Store, record: str
) -> None:
    """Neither to itself nor to another; its own grade it gives, and a person gives all."""
    run(store, record, grading.report_bug, "otter", crew=CREW, actor=BY_AGENT)
    run(store, record, grading.report_bug, "heron", crew=CREW)
    refused: list[tuple[Callable[..., Any], tuple[str, ...], dict[str, Grade]]] = [
        (grading.reinstate, ("otter",), {}),
        (grading.reinstate, ("heron",), {}),
        (grading.grade, COMMIT, {USER: Grade.EXCELLENCE}),
        (grading.grade, COMMIT, {AGENT: Grade.GOOD, USER: Grade.EXCELLENCE}),
        (grading.grade, ("heron", "app", "1"), {USER: Grade.BAD}),
        (grading.grade, ("heron", "app", "1"), {AGENT: Grade.BAD}),
    ]
    for use_case, words, grades in refused:
        with pytest.raises(
            InvalidValue, match="'otter' acts here. Nothing was written; ask the person"
        ):
            run(store, record, use_case, *words, crew=CREW, actor=BY_AGENT, **grades)
    assert read(store, record, lambda uow: len(uow.ledger.page())) == len(("otter", "heron"))
    run(store, record, grading.grade, *COMMIT, agent_grade=Grade.GOOD, crew=CREW, actor=BY_AGENT)
    assert judge(store, record, user_grade=Grade.GOOD).retrospective is not None
    assert run(store, record, grading.reinstate, "otter", actor=Actor(person="ann")).active


def test_a_name_that_nobody_has_is_refused_with_the_nearest(store: Store, record: str) -> None:
    """Nothing is made by a typing error; buffered events make a name known as well."""
    run(store, record, grading.report_bug, "otter", crew=CREW)
    run(store, record, grading.add_activity, "beaver", "dam")
    attempts: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        (grading.report_bug, ("oter",), {}),
        (grading.reinstate, ("oter",), {}),
        (grading.grade, ("oter", "app", "1"), {USER: Grade.GOOD}),
        (grading.standings, ((), "oter"), {}),
    ]
    for use_case, words, grades in attempts:
        with pytest.raises(NotFound, match="there is no agent 'oter'; did you mean otter"):
            run(store, record, use_case, *words, **grades)
    with pytest.raises(NotFound, match="did you mean heron"):
        run(store, record, grading.report_bug, "herom", crew=CREW)
    assert read(store, record, lambda uow: len(uow.ledger.page())) == 1
    seen = parse_event(
        id="4", at=1_700_000_000_000_000, event="PostToolUse", env={"HERDBOOK_AGENT": "newt"}
    )
    (standing,) = read(store, record, grading.standings, [seen], "newt")
    assert standing.experience_points == 1
    assert [each.agent for each in read(store, record, grading.standings, (), "beaver")] == [
        "beaver"
    ]


def made(uow: UnitOfWork, agent: str, commit_hash: str, project: str = "app") -> None:
    """Let an agent make a commit."""
    uow.commits.add(
        Commit(
            agent=agent,
            project=project,
            commit_hash=commit_hash,
            task=f"task {commit_hash}",
            experience_gained=5,
            at=uow.now,
        )
    )


def test_commits_wait_for_the_grade_of_who_asks(store: Store, record: str) -> None:
    """Newest first, of this project; graded by the other party, they say how."""
    for agent, commit_hash in (("otter", "c1"), ("heron", "c2"), ("otter", "c3"), ("otter", "c4")):
        run(store, record, made, agent, commit_hash)
    run(store, record, made, "otter", "c5", "other")
    judge(store, record, "otter", "app", "c1")
    judge(store, record, "otter", "app", "c3", agent_grade=Grade.GOOD)
    judge(store, record, "otter", "app", "c4", user_grade=Grade.BAD)

    def waiting(actor: Actor = NOBODY, **given: Any) -> list[Any]:
        use_case = grading.ungraded_commits
        found = run(store, record, use_case, "app", crew=CREW, actor=actor, **given)
        return [(each.commit_hash, each.agent_grade, each.missing) for each in found]

    assert waiting() == [("c3", Grade.GOOD, "user"), ("c2", None, "user")]
    assert waiting(limit=1) == [("c3", Grade.GOOD, "user")]
    assert waiting(agent="heron") == [("c2", None, "user")]
    assert waiting(BY_AGENT) == [("c4", None, "agent")]
    with pytest.raises(NotFound, match="did you mean otter"):
        waiting(agent="oter")
    judge(store, record, "otter", "app", "c3", user_grade=Grade.GOOD)
    judge(store, record, "heron", "app", "c2", user_grade=Grade.GOOD)
    assert waiting() == []


def test_a_standing_is_explained_by_its_retrospectives(store: Store, record: str) -> None:
    """How near it is to a skill point and to a halt, and the mean grade with its interval."""
    judge(store, record)
    judge(store, record, "heron", "app", "c1", agent_grade=Grade.BAD, user_grade=Grade.BAD)
    run(store, record, grading.report_bug, "heron")

    def question(uow: UnitOfWork, agent: str | None = None) -> list[Any]:
        return grading.standing_reasons(uow, grading.standings(uow, (), agent), agent)

    heron, otter = read(store, record, question)
    assert (otter.experience_missing, otter.bugs_until_halt, otter.graded) == (9_999, 1, 1)
    assert (heron.experience_missing, heron.bugs_until_halt, heron.graded) == (None, 0, 1)
    assert (otter.mean_grade.estimate, heron.mean_grade.estimate) == (3.5, -1)
    assert read(store, record, question, "otter") == [otter]


def test_activities_come_latest_first_a_page_at_a_time(store: Store, record: str) -> None:
    """Of one agent or of all."""
    for number in range(5):
        agent = "otter" if number % 2 else "heron"
        run(store, record, grading.add_activity, agent, f"task {number}", outcome="done")
    page = read(store, record, grading.activities, limit=3)
    rest = read(store, record, grading.activities, limit=3, after=page[-1].id)
    assert [each.task for each in [*page, *rest]] == [f"task {each}" for each in range(4, -1, -1)]
    own = read(store, record, grading.activities, "otter")
    assert [each.task for each in own] == ["task 3", "task 1"]
