"""The laws of the ledger and of the standing that is folded from it."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Experience, Grade
from herdbook.domain.record.model import EventKind, ScoreEvent, Standing
from herdbook.domain.record.standing import (
    EntryContext,
    apply,
    bug_entry,
    collapse,
    command_entry,
    commit_entry,
    communication_entry,
    first_standing,
    fold,
    grade_entry,
    is_late,
    reinstatement_entry,
    standing_id,
    tool_entry,
)

AGENT = "brave-otter"
START = datetime(2026, 1, 1, tzinfo=UTC)
# Skill points are cheap here, so that histories of a few entries see promotions.
RULES = Experience(per_skill_point=7)

occasions = st.builds(
    EntryContext,
    agent=st.just(AGENT),
    id=st.uuids().map(lambda uuid: f"evt_{uuid.hex}"),
    at=st.integers(0, 5).map(lambda minutes: START + timedelta(minutes=minutes)),
    session_id=st.none() | st.sampled_from(["one", "two"]),
    project=st.none() | st.sampled_from(["herd", "book"]),
    provider=st.sampled_from(["claude", "codex"]),
    model=st.none() | st.sampled_from(["large", "small"]),
    mode=st.none() | st.sampled_from(AgentMode),
)
counts = st.integers(1, 20)
grades = st.sampled_from(Grade)
tools = st.builds(tool_entry, occasions, counts)
commands = st.builds(command_entry, occasions, counts)
commits = st.builds(commit_entry, occasions, counts)
bugs = st.builds(bug_entry, occasions, st.integers(1, 3))
reinstatements = st.builds(reinstatement_entry, occasions, st.integers(1, 3))
entries = (
    tools
    | commands
    | commits
    | bugs
    | reinstatements
    | st.builds(grade_entry, occasions, grades, grades)
    | st.builds(communication_entry, occasions, grades)
)


def ledgers(events: st.SearchStrategy[ScoreEvent]) -> st.SearchStrategy[list[ScoreEvent]]:
    """Make lists of entries whose ids differ, as they do in a store."""
    return st.lists(events, max_size=12, unique_by=lambda event: event.id)


standings = ledgers(entries).map(lambda events: fold(AGENT, events, RULES))


def on(minute: int, event_id: str = "evt_1", session_id: str | None = None) -> EntryContext:
    """Make an occasion of the agent at a minute."""
    at = START + timedelta(minutes=minute)
    return EntryContext(agent=AGENT, at=at, id=event_id, session_id=session_id)


def place(event: ScoreEvent) -> tuple[datetime, str]:
    """Tell where in the order of the ledger an entry stands."""
    return event.at, event.id


@given(st.text(min_size=1), st.text(min_size=1))
def test_every_name_has_its_own_standing(one: str, other: str) -> None:
    """Two names share the id of a standing exactly when they are the same."""
    assert (standing_id(one) == standing_id(other)) is (one == other)


def test_a_name_in_a_strange_encoding_has_an_id() -> None:
    """A name that no agent can have is looked for in vain, and not with an error."""
    assert standing_id("\udcff") != standing_id("?")


def test_the_id_of_a_standing_is_pinned() -> None:
    """The id is twenty digits of the name's SHA-256, in this and every later version."""
    assert standing_id("brave-otter") == "std_1bc0df2e20db3d718415"


def test_everybody_starts_alike() -> None:
    """Nobody knows anything of a new agent: one skill point, sixty for communication."""
    first = first_standing(AGENT)
    assert (first.skill_points, first.experience_points, first.communication_score) == (1, 0, 60)
    assert (first.commits, first.bugs, first.active, first.last_event_at) == (0, 0, True, None)


@given(ledgers(entries).flatmap(lambda each: st.tuples(st.just(each), st.permutations(each))))
def test_the_order_of_reading_does_not_matter(
    orders: tuple[list[ScoreEvent], list[ScoreEvent]],
) -> None:
    """The fold orders its entries itself."""
    one, other = orders
    assert fold(AGENT, one, RULES) == fold(AGENT, other, RULES)


@given(ledgers(entries))
def test_folding_is_applying_one_after_another(events: list[ScoreEvent]) -> None:
    """A standing that is carried on entry by entry is the fold of all of them."""
    standing = first_standing(AGENT)
    for event in sorted(events, key=place):
        standing = apply(standing, event, RULES)
    assert standing == fold(AGENT, events, RULES)


@given(ledgers(entries))
def test_late_entries_are_refolded(events: list[ScoreEvent]) -> None:
    """Entries that arrive in any order lead to the fold, if late ones are folded anew."""
    standing = first_standing(AGENT)
    arrived: list[ScoreEvent] = []
    for event in events:
        arrived.append(event)
        if is_late(standing, event):
            standing = fold(AGENT, arrived, RULES)
        else:
            standing = apply(standing, event, RULES)
    assert standing == fold(AGENT, events, RULES)


@given(ledgers(entries), entries)
def test_late_is_what_sorts_before_the_last(events: list[ScoreEvent], event: ScoreEvent) -> None:
    """An entry is late exactly when some entry that counts already belongs after it."""
    standing = fold(AGENT, events, RULES)
    assert is_late(standing, event) is any(place(event) < place(each) for each in events)


@given(ledgers(entries).filter(bool))
def test_an_entry_that_counts_already_is_late(events: list[ScoreEvent]) -> None:
    """No entry of the fold may be applied to it once more."""
    standing = fold(AGENT, events, RULES)
    assert all(is_late(standing, event) for event in events)


@given(ledgers(entries), st.data())
def test_merging_two_records_is_the_union_of_their_ledgers(
    events: list[ScoreEvent], data: st.DataObject
) -> None:
    """Two copies that each know a part, and share some of it, add up to the whole exactly."""
    sides = [data.draw(st.sampled_from(["here", "there", "both"])) for _ in events]
    here = {each.id: each for each, side in zip(events, sides, strict=True) if side != "there"}
    there = {each.id: each for each, side in zip(events, sides, strict=True) if side != "here"}
    whole = fold(AGENT, events, RULES)
    assert fold(AGENT, (here | there).values(), RULES) == whole
    assert fold(AGENT, (there | here | there).values(), RULES) == whole


def test_two_sessions_of_fifty_make_a_hundred() -> None:
    """Two sessions that count at once lose nothing of each other."""
    one = [tool_entry(on(minute, f"evt_a{minute}", "one")) for minute in range(50)]
    two = [tool_entry(on(minute, f"evt_b{minute}", "two")) for minute in range(50)]
    assert fold(AGENT, one + two).experience_points == 100
    assert fold(AGENT, collapse(one) + collapse(two)).experience_points == 100


@given(st.lists(counts, max_size=8), st.lists(counts, max_size=8))
def test_sessions_add_up(one: list[int], two: list[int]) -> None:
    """What two sessions count is the sum of what each of them counts."""
    first = [tool_entry(on(n, f"evt_a{n}", "one"), count) for n, count in enumerate(one)]
    second = [command_entry(on(n, f"evt_b{n}", "two"), count) for n, count in enumerate(two)]
    assert fold(AGENT, first + second).experience_points == sum(one) + 2 * sum(two)


@given(ledgers(entries))
def test_an_agent_is_active_exactly_while_it_has_skill(events: list[ScoreEvent]) -> None:
    """Halted means no skill points left, whatever else has happened."""
    standing = fold(AGENT, events, RULES)
    assert standing.active is (standing.skill_points > 0)


@given(standings, bugs)
def test_a_bug_costs_a_skill_point(standing: Standing, event: ScoreEvent) -> None:
    """Each bug takes one skill point, is counted, and changes no other number."""
    after = apply(standing, event, RULES)
    assert after.skill_points == standing.skill_points - event.count
    assert after.bugs == standing.bugs + event.count
    assert after.experience_points == standing.experience_points
    assert after.communication_score == standing.communication_score


def test_the_first_bug_halts_a_beginner() -> None:
    """An agent with one skill point is halted by its first bug."""
    assert not fold(AGENT, [bug_entry(on(0))]).active


@given(standings, st.lists(tools | commands | commits, max_size=5))
def test_nothing_but_a_person_lifts_a_halt(standing: Standing, events: list[ScoreEvent]) -> None:
    """A halted agent stays halted however much it succeeds."""
    standing = apply(standing, bug_entry(on(9), max(1, standing.skill_points)), RULES)
    for event in events:
        standing = apply(standing, event, RULES)
    assert not standing.active


@given(standings, reinstatements)
def test_a_reinstated_agent_is_active(standing: Standing, event: ScoreEvent) -> None:
    """A person gives the points that count from zero up, whatever was owed before."""
    after = apply(standing, event, RULES)
    assert after.active
    assert after.skill_points == max(standing.skill_points, 0) + event.points


@given(st.integers(-5, 0))
def test_nobody_is_reinstated_with_nothing(points: int) -> None:
    """A reinstatement gives at least one skill point, as an entry made here or elsewhere."""
    with pytest.raises(InvalidValue, match="^points: "):
        reinstatement_entry(on(0), points)
    with pytest.raises(InvalidValue, match="^points: "):
        apply(first_standing(AGENT), evolve(reinstatement_entry(on(0)), points=points))


@given(standings, grades, grades)
def test_grading_moves_score_and_experience(
    standing: Standing, agent_grade: Grade, user_grade: Grade
) -> None:
    """Both parties' grades move the score, which never falls below zero, and earn experience."""
    after = apply(standing, grade_entry(on(9), agent_grade, user_grade))
    score = standing.communication_score + agent_grade + user_grade
    assert after.communication_score == max(0, score)
    assert after.experience_points == standing.experience_points + 1
    assert (after.commits, after.bugs) == (standing.commits, standing.bugs)


def test_a_grade_can_be_the_last_bit_of_experience() -> None:
    """The experience of a grade promotes like any other."""
    events = [tool_entry(on(0, "evt_1"), 9_999), grade_entry(on(1, "evt_2"), Grade.BAD, Grade.BAD)]
    standing = fold(AGENT, events)
    assert (standing.skill_points, standing.experience_points) == (2, 0)


@given(standings, grades)
def test_one_party_alone_moves_the_score_only(standing: Standing, grade: Grade) -> None:
    """A grade by one party is no experience."""
    after = apply(standing, communication_entry(on(9), grade), RULES)
    assert after.communication_score == max(0, standing.communication_score + grade)
    assert after.experience_points == standing.experience_points
    assert after.skill_points == standing.skill_points


def test_the_score_recovers_from_zero_not_from_below() -> None:
    """What a score did not lose because it was zero is not owed later."""
    bad = [communication_entry(on(n, f"evt_{n:03}"), Grade.BAD) for n in range(70)]
    good = communication_entry(on(70, "evt_good"), Grade.GOOD)
    assert fold(AGENT, [*bad, good]).communication_score == 2


@given(counts, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_successes_are_worth_what_the_settings_say(
    count: int, tool: int, command: int, commit: int
) -> None:
    """An entry is worth its count times the setting of its kind, when it is made."""
    rules = Experience(tool=tool, command=command, commit=commit)
    assert tool_entry(on(0), count, rules).points == count * tool
    assert command_entry(on(0), count, rules).points == count * command
    assert commit_entry(on(0), count, rules).points == count * commit


def test_successes_are_worth_one_two_and_five() -> None:
    """Without settings a tool is worth 1, a command 2 and a commit 5."""
    events = [tool_entry(on(0)), command_entry(on(1)), commit_entry(on(2))]
    standing = fold(AGENT, events)
    assert [event.points for event in events] == [1, 2, 5]
    assert (standing.experience_points, standing.commits) == (8, 1)


@given(ledgers(entries))
def test_commits_and_bugs_are_counted(events: list[ScoreEvent]) -> None:
    """No commit and no bug is lost or counted twice."""
    standing = fold(AGENT, events, RULES)
    assert standing.commits == sum(e.count for e in events if e.kind is EventKind.COMMIT)
    assert standing.bugs == sum(e.count for e in events if e.kind is EventKind.BUG)


@given(ledgers(entries).filter(bool))
def test_the_setup_is_that_of_what_the_agent_did_last(events: list[ScoreEvent]) -> None:
    """What it was given tells of earlier work, and counts only before it has done anything."""
    ordered = sorted(events, key=place)
    standing = fold(AGENT, events, RULES)
    doing = (EventKind.TOOL, EventKind.COMMAND, EventKind.COMMIT)
    telling = ordered[:1] + [each for each in ordered[1:] if each.kind in doing]
    of_provider = [
        each
        for number, each in enumerate(telling)
        if all(later.provider == each.provider for later in telling[number:])
    ]
    assert standing.provider == telling[-1].provider
    assert standing.model == next((e.model for e in reversed(of_provider) if e.model), None)
    assert standing.mode == next((e.mode for e in reversed(of_provider) if e.mode), None)
    assert (standing.last_event_at, standing.last_event_id) == place(ordered[-1])


def test_an_entry_that_knows_no_provider_changes_none() -> None:
    """Nobody told what it ran as: what was known before stands."""
    first = tool_entry(on(1, "evt_1")._replace(provider="codex", model="deep"))
    second = tool_entry(on(2, "evt_2"))
    assert fold(AGENT, [second], RULES).provider == "unknown"
    standing = fold(AGENT, [first, second], RULES)
    assert (standing.provider, standing.model) == ("codex", "deep")


@given(tools | commands | commits, st.integers(2, 9))
def test_an_entry_of_unequal_parts_is_refused(event: ScoreEvent, count: int) -> None:
    """Points that cannot be shared out evenly among the count are refused."""
    uneven = evolve(event, count=count, points=count * 3 + 1)
    with pytest.raises(InvalidValue, match="^points: "):
        apply(first_standing(AGENT), uneven)


@given(tools | commands | commits)
def test_success_that_costs_experience_is_refused(event: ScoreEvent) -> None:
    """A success is never worth less than nothing."""
    with pytest.raises(InvalidValue, match="^points: "):
        apply(first_standing(AGENT), evolve(event, points=-event.count))


@given(entries)
def test_nobody_stands_for_somebody_else(event: ScoreEvent) -> None:
    """An entry of another agent is refused."""
    with pytest.raises(InvalidValue, match="^agent: "):
        apply(first_standing("calm-heron"), event)


@given(entries)
def test_an_entry_without_an_id_is_refused(event: ScoreEvent) -> None:
    """An entry that has no place in the order cannot count."""
    with pytest.raises(InvalidValue, match="id: may not be empty"):
        apply(first_standing(AGENT), evolve(event, id=""))


@given(ledgers(entries))
def test_collapsing_is_exact(events: list[ScoreEvent]) -> None:
    """Collapsed entries fold to exactly the standing of the single ones, whatever is between."""
    assert fold(AGENT, collapse(events), RULES) == fold(AGENT, events, RULES)


@given(ledgers(entries), st.sets(st.integers(0, 20)))
def test_collapsing_is_exact_among_entries_that_are_there(
    events: list[ScoreEvent], known: set[int]
) -> None:
    """What the ledger has already stands between the new ones."""
    there = [event for number, event in enumerate(events) if number in known]
    fresh = [event for number, event in enumerate(events) if number not in known]
    collapsed = collapse(fresh, there)
    assert fold(AGENT, [*collapsed, *there], RULES) == fold(AGENT, events, RULES)


@given(ledgers(entries))
def test_collapsing_keeps_all_counts_and_points(events: list[ScoreEvent]) -> None:
    """No count and no point of any kind is lost, whatever stands between."""
    collapsed = collapse(events)
    for kind in EventKind:
        before = [event for event in events if event.kind is kind]
        after = [event for event in collapsed if event.kind is kind]
        assert sum(event.count for event in before) == sum(event.count for event in after)
        assert sum(event.points for event in before) == sum(event.points for event in after)


@given(ledgers(entries))
def test_only_tools_and_commands_are_collapsed(events: list[ScoreEvent]) -> None:
    """Every other entry stays as it is, and of the collapsed ones the last gives id and time."""
    collapsed = collapse(events)
    kept = {event.id: event for event in events}
    for event in collapsed:
        origin = kept[event.id]
        assert evolve(event, count=1, points=0) == evolve(origin, count=1, points=0)
        if event.kind not in (EventKind.TOOL, EventKind.COMMAND):
            assert event == origin
    assert collapsed == sorted(collapsed, key=place)


@given(ledgers(tools | commands))
def test_no_two_neighbours_are_left_that_are_equal(events: list[ScoreEvent]) -> None:
    """Entries that follow one another differ in session, kind, project or setup."""

    def alike(event: ScoreEvent) -> tuple[object, ...]:
        return event.session_id, event.kind, event.project, event.provider, event.model, event.mode

    collapsed = collapse(events)
    assert all(alike(one) != alike(other) for one, other in pairwise(collapsed))
    assert {alike(event) for event in collapsed} == {alike(event) for event in events}


@given(ledgers(entries))
def test_collapsing_twice_is_collapsing_once(events: list[ScoreEvent]) -> None:
    """What is collapsed stays as it is."""
    assert collapse(collapse(events)) == collapse(events)


@given(st.integers(1, 9), st.integers(1, 9))
def test_entries_of_unequal_worth_are_not_collapsed(one: int, other: int) -> None:
    """Entries made under different settings keep their own worth each."""
    events = [
        tool_entry(on(0, "evt_1"), 2, Experience(tool=one)),
        tool_entry(on(1, "evt_2"), 3, Experience(tool=other)),
    ]
    assert len(collapse(events)) == (1 if one == other else 2)
    assert fold(AGENT, collapse(events)) == fold(AGENT, events)
