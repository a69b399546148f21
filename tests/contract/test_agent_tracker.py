"""Taking over an agent-tracker's database: what comes, what stays, and where agents stand then."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.grading import Grade
from herdbook.domain.record.events import SessionSetup
from herdbook.domain.record.model import Commit, EventKind, Standing
from herdbook.domain.record.standing import EntryContext, commit_entry, tool_entry
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.world.agent_tracker import (
    TrackedKind,
    TrackerContents,
    TrackerReadFailure,
    TrackerRecord,
)
from herdbook.services.agent_tracker.import_records import import_tracker
from herdbook.services.record import grading
from herdbook.services.stores.merge_spaces import MergeReport
from tests.cases import for_each
from tests.contract.trackers import (
    activity,
    agent,
    commit,
    communication,
    fixture,
    minute,
    retrospective,
    tracked,
)
from tests.contract.turns import Begin

IN_MEMORY = pytest.mark.parametrize("engine", ["memory"], indirect=True)


@pytest.fixture
def space(space: str) -> str:
    """The record is kept in spaces of its own."""
    return f"record/{space.partition('/')[2]}"


def _import(
    begin: Begin, *records: TrackerRecord, untold: tuple[TrackerReadFailure, ...] = ()
) -> MergeReport:
    return _take_over(begin, TrackerContents(records, untold))


def _take_over(begin: Begin, tracker: TrackerContents) -> MergeReport:
    with begin() as uow:
        report = import_tracker(uow, tracker)
        uow.commit()
    with begin(write=False) as uow:
        assert find_differences(uow) == []
    return report


def _standing(begin: Begin, name: str = "otter") -> Standing:
    with begin(write=False) as uow:
        return uow.standings.of_agent(name)


def _numbers(standing: Standing) -> tuple[int, int, int, int, int]:
    return (
        standing.skill_points,
        standing.experience_points,
        standing.communication_score,
        standing.commits,
        standing.bugs,
    )


def test_a_database_of_the_plugin_comes_whole(begin: Begin) -> None:
    """Its agents stand where the plugin held them, with its commits, judgements and activities."""
    report = _take_over(begin, fixture("tracker.lmdb"))
    assert [(each.entity, each.key.partition(":")[0]) for each in report.failed] == [
        ("agent", "agt-3"),
        ("communication", "agt-2"),
    ]
    assert _numbers(_standing(begin, "brisk-otter")) == (2, 321, 75, 210, 1)
    assert _numbers(_standing(begin, "grey-heron")) == (-1, 12, 3, 0, 2)
    assert not _standing(begin, "grey-heron").active
    with begin(write=False) as uow:
        assert len(uow.commits.of_agent("brisk-otter")) == 200
        (judged,) = uow.retrospectives.of_agent("brisk-otter")
        first, second = uow.activities.of_agent("brisk-otter")
        setups = {(each.provider, each.model) for each in uow.ledger.by_time()}
    assert (judged.project, judged.agent_grade, judged.user_grade, judged.user_note) == (
        "/src/our/shop",
        Grade.GOOD,
        Grade.EXCELLENCE,
        "clear words",
    )
    assert (first.task, first.outcome, second.task) == ("tidy", "done", "€∞" * 600)
    assert setups == {("opencode", "anthropic/claude-sonnet-4")}


def test_importing_again_adds_nothing(begin: Begin) -> None:
    """Whatever came the first time is kept the second time, and all agents stand as before."""
    tracker = fixture("tracker.lmdb")
    first = _take_over(begin, tracker)
    before = [_standing(begin, name) for name in ("brisk-otter", "grey-heron")]
    again = _take_over(begin, tracker)
    assert (again.added, again.kept) == (0, first.added + first.kept)
    assert again.failed == first.failed
    assert [_standing(begin, name) for name in ("brisk-otter", "grey-heron")] == before


def test_a_commit_that_a_party_graded_here_counts_once(begin: Begin) -> None:
    """Its retrospective comes, without a second grade of that party, however often."""
    told = retrospective(1)
    crew = {"otter": SessionSetup()}
    with begin() as uow:
        grading.grade(uow, "otter", "shop", told.fields["commit"], user_grade=Grade.BAD, crew=crew)
        uow.commit()
    for _ in range(2):
        _import(begin, agent(communication_score=67), commit(1), told)
        assert _standing(begin).communication_score == 59
    with begin(write=False) as uow:
        assert len(uow.retrospectives.of_agent("otter")) == 1


def test_both_layouts_of_one_database_count_once(begin: Begin) -> None:
    """A commit that the first layout tells of is the same that the present one tells of."""
    _take_over(begin, fixture("tracker.lmdb"))
    report = _take_over(begin, fixture("first.lmdb"))
    with begin(write=False) as uow:
        assert len(uow.commits.of_agent("brisk-otter")) == 200
    assert (report.added, report.failed) == (1, ())


def test_later_commits_grades_bugs_and_activities_come_with_a_later_import(begin: Begin) -> None:
    """Totals are taken over once; what is told one by one comes when it is told."""
    _import(begin, agent(experience_points=100, total_commits=1), commit(1))
    report = _import(
        begin,
        agent(skill_points=0, experience_points=900, total_commits=2, total_bugs=1),
        commit(1),
        commit(2),
        communication(3, 2),
        activity(4),
    )
    assert report.failed == ()
    assert _numbers(_standing(begin)) == (0, 105, 62, 2, 1)


def test_what_the_record_knows_by_itself_counts_once(begin: Begin) -> None:
    """A commit that a hook has told of keeps its row and its one entry."""
    own = Commit(
        agent="otter",
        project="shop",
        commit_hash=f"{1:040x}",
        task="own words",
        experience_gained=5,
        at=minute(1),
    )
    with begin() as uow:
        uow.commits.add(own)
        uow.ledger.add(commit_entry(EntryContext("otter", minute(1))))
        uow.commit()
    report = _import(begin, agent(experience_points=5, total_commits=1), commit(1))
    with begin(write=False) as uow:
        (kept,) = uow.commits.of_agent("otter")
        assert len(uow.ledger.of_agent("otter")) == 1
    assert (kept.task, report.added, report.failed) == ("own words", 0, ())


def test_what_happened_since_adds_up(begin: Begin) -> None:
    """Entries of the record's own stay, and the totals come to them."""
    with begin() as uow:
        uow.ledger.add(tool_entry(EntryContext("otter", minute(99)), 7))
        uow.commit()
    _import(begin, agent(skill_points=2, experience_points=100, communication_score=70))
    assert _numbers(_standing(begin)) == (2, 107, 70, 0, 0)


def test_a_record_that_makes_no_sense_holds_up_no_other(begin: Begin) -> None:
    """Each is told with its kind, its key and its reason."""
    broken = [
        commit(1, experience_gained=-5),
        commit(2, timestamp="soon"),
        commit(3, agent_id=None),
        commit(4, project_path="x" * 501),
        retrospective(5, user_grade=3),
        retrospective(6, score_before=-1),
        communication(7, None),
        TrackerRecord(TrackedKind.ACTIVITY, "otter", {}),
        agent("agt-2", name="heron", skill_points=1.5),
        agent("agt-3", name="vole", total_bugs=10**9),
        agent("agt-4", name=7),
        agent("agt-5", name="stoat", model="x" * 501, total_bugs=1),
        commit(8, "agt-5"),
    ]
    unread = TrackerReadFailure(TrackedKind.COMMIT, "x", "it is cut off")
    report = _import(begin, agent(total_commits=1), commit(9), *broken, untold=(unread,))
    assert {(each.entity, each.key) for each in report.failed} == {
        ("commit", "x"),
        *((str(each.kind), each.key) for each in broken),
    }
    assert len(report.failed) == len(broken) + 1
    assert _standing(begin).commits == 1


@IN_MEMORY
def test_two_agents_of_one_name_stay_two(begin: Begin) -> None:
    """Both go by their ids then; one whose name is another's id does too."""
    _import(
        begin,
        agent("agt-1", experience_points=1),
        agent("agt-2", experience_points=2),
        agent("agt-3", name="agt-1", experience_points=3),
    )
    names = ("agt-1", "agt-2", "agt-3", "otter")
    found = [_standing(begin, name).experience_points for name in names]
    assert found == [1, 2, 3, 0]


@IN_MEMORY
def test_grades_that_a_judgement_tells_of_count_once(begin: Begin) -> None:
    """The plugin writes them down twice; what is added is the judgement and its one entry."""
    report = _import(begin, commit(1), retrospective(1), communication(1, 2), communication(1, 5))
    assert (report.added, report.kept) == (4, 2)
    assert _standing(begin, "agt-1").communication_score == 67


@IN_MEMORY
def test_a_project_goes_by_what_the_record_knows_it_as(begin: Begin) -> None:
    """Two paths of one repository are one project, and its commit is one; a lost path harms none.

    The tracker's path stays where nothing else is known.
    """
    records = (
        agent(experience_points=10, total_commits=2),
        commit(1),
        commit(1, project_path="shop-worktree"),
        commit(2, project_path="gone"),
        retrospective(1),
    )
    known = {"shop": "repository", "shop-worktree": "repository"}
    with begin() as uow:
        report = import_tracker(uow, TrackerContents(records), known)
        projects = [each.project for each in uow.commits.by_time()]
        assert [each.project for each in uow.retrospectives.by_time()] == ["repository"]
        again = import_tracker(uow, TrackerContents(records))
        uow.commit()
    assert projects == ["repository", "gone"]
    assert (report.failed, again.failed) == ((), ())
    assert _standing(begin).commits == 2


@IN_MEMORY
def test_a_judgement_of_an_unknown_commit_has_an_unknown_project(begin: Begin) -> None:
    """The plugin's judgements do not tell where a commit was made."""
    _import(begin, retrospective(1))
    with begin(write=False) as uow:
        assert [each.project for each in uow.retrospectives.by_time()] == ["unknown"]


@IN_MEMORY
@for_each(
    ("totals", "expected"),
    [
        ({"experience_points": 3}, (1, 10, 60, 2, 0)),
        ({"skill_points": 2, "experience_points": 3}, (2, 3, 60, 2, 0)),
        ({"experience_points": 10_000}, (1, 9_999, 60, 2, 0)),
        ({"skill_points": -2}, (-2, 10, 60, 2, 3)),
        ({"total_commits": 1}, (1, 10, 60, 2, 0)),
        ({"communication_score": -5}, (1, 10, 0, 2, 0)),
        ({"skill_points": None, "total_bugs": None, "experience_points": 12.0}, (1, 12, 60, 2, 0)),
    ],
    ids=["less", "anew", "most", "halted", "fewer", "below", "missing"],
)
def test_totals_that_no_ledger_can_have_come_as_near_as_can_be(
    begin: Begin, totals: dict[str, Any], expected: tuple[int, ...]
) -> None:
    """Two commits are worth 10 points by themselves, and a halted agent stays halted."""
    _import(begin, agent(**totals), commit(1), commit(2))
    assert _numbers(_standing(begin)) == expected


@IN_MEMORY
def test_any_totals_that_a_plugin_can_reach_are_where_the_agent_stands(
    begin: Begin, space: str
) -> None:
    """Skill points, experience, score, commits and bugs all come out as they were told."""
    number = 0

    @given(
        bugs=st.integers(0, 9),
        promotions=st.integers(0, 9),
        extra=st.integers(0, 9_000),
        score=st.integers(0, 500),
        commits=st.integers(0, 5),
        more=st.integers(0, 5),
        grades=st.lists(st.sampled_from([-1, 1, 2, 5]), max_size=30),
    )
    def holds(
        *,
        bugs: int,
        promotions: int,
        extra: int,
        score: int,
        commits: int,
        more: int,
        grades: list[int],
    ) -> None:
        nonlocal number
        number += 1
        skill = 1 + promotions - bugs
        experience = extra if promotions else 5 * commits + extra
        totals = agent(
            skill_points=skill,
            experience_points=experience,
            communication_score=score,
            total_commits=commits + more,
            total_bugs=bugs,
        )
        records = [
            totals,
            *(commit(each) for each in range(commits)),
            *(communication(100 + at, grade) for at, grade in enumerate(grades)),
        ]
        with begin(space=f"{space}-{number}") as uow:
            import_tracker(uow, TrackerContents(tuple(records)))
            found = uow.standings.of_agent("otter")
        assert _numbers(found) == (skill, experience, score, commits + more, bugs)

    holds()


def test_two_records_that_imported_the_same_hold_the_same_rows(begin: Begin, space: str) -> None:
    """Their union counts nothing twice, because ids follow from what rows tell of."""
    found = []
    for name in ("one", "other"):
        with begin(space=f"{space}-{name}") as uow:
            import_tracker(uow, tracked(19))
            found.append([uow.ledger.by_time(), uow.commits.by_time(), uow.activities.by_time()])
            uow.commit()
    assert found[0] == found[1]
    assert all(found[0])
    assert {each.kind for each in found[0][0]} >= {EventKind.COMMIT, EventKind.GRADE}
