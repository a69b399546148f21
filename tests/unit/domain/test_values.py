"""The laws of what a field may hold: what breaks them is refused and the field is named."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from herdbook.domain.agents.model import Agent, Worktree
from herdbook.domain.entity import VersionedEntity
from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Grade
from herdbook.domain.plan.model import (
    Initiative,
    PhaseDependency,
    Priority,
    Proposal,
    ReviewComment,
    Task,
    TaskCategory,
    TaskStatus,
)
from herdbook.domain.record.model import Account, Retrospective, ScoreEvent
from herdbook.domain.secret import Secret
from herdbook.domain.values import DEEPEST_DOCUMENT, LONGEST_TEXT
from tests.cases import for_each

NOW = datetime(2026, 1, 1, tzinfo=UTC)

unicode = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
halves = st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF)
fields_of_text = st.sampled_from(["id", "name", "description", "phase_id", "summary"])
json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | unicode,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(unicode, inner, max_size=3),
    max_leaves=10,
)


def refused(cls: type[Any], field: str, value: object, **others: object) -> str:
    """Make a row with a bad field; answer with the reason it was refused for."""
    with pytest.raises(InvalidValue) as caught:
        cls(**{field: value, **others})
    assert caught.value.field == field
    assert str(caught.value) == f"{field}: {caught.value.reason}"
    return caught.value.reason


def a_task(field: str, value: object) -> Task:
    """Make a task with one field of it given."""
    given_fields: dict[str, Any] = {"name": "a task", field: value}
    return Task(**given_fields)


def nested(levels: int, innermost: object) -> object:
    """Put something into so many lists, each within the other."""
    for _ in range(levels):
        innermost = [innermost]
    return innermost


@given(fields_of_text, unicode, unicode)
def test_nul_is_refused(field: str, before: str, after: str) -> None:
    """No text of any kind may contain NUL."""
    others = {} if field == "name" else {"name": "a task"}
    assert "NUL" in refused(Task, field, f"{before}\0{after}", **others)


@given(fields_of_text, unicode, halves, unicode)
def test_half_a_surrogate_pair_is_refused(field: str, before: str, half: str, after: str) -> None:
    """No text of any kind may contain what no encoding can write."""
    others = {} if field == "name" else {"name": "a task"}
    reason = refused(Task, field, f"{before}{half}{after}", **others)
    assert f"position {len(before)}" in reason


@given(fields_of_text, unicode.filter(bool))
def test_any_other_unicode_is_kept(field: str, text: str) -> None:
    """What is allowed is kept to the letter."""
    text = text[:16]
    assert getattr(a_task(field, text), field) == text


@given(fields_of_text, st.sampled_from([b"bytes", 1, True, 1.5, [], object()]))
def test_what_is_no_text_is_refused(field: str, value: object) -> None:
    """Nothing is made into text behind one's back."""
    others = {} if field == "name" else {"name": "a task"}
    assert "must be text" in refused(Task, field, value, **others)


@for_each("text", ["a" * 65, "é" * 33, "€" * 22, "😀" * 17])
def test_ids_have_at_most_64_bytes(text: str) -> None:
    """An id of 65 bytes is refused however few characters it has, and one byte less is not."""
    assert "64 bytes" in refused(Task, "id", text, name="a task")
    assert "64 bytes" in refused(Task, "phase_id", text, name="a task")
    assert a_task("id", text[:-1]).id == text[:-1]


def test_a_row_may_wait_for_its_id_but_names_no_empty_one() -> None:
    """Only the row's own id may be empty, until the unit of work gives it one."""
    assert VersionedEntity().id == ""
    assert "empty" in refused(Task, "phase_id", "", name="a task")
    assert "empty" in refused(PhaseDependency, "depends_on_phase_id", "", phase_id="phs_1")


@for_each("length", [0, 501, 10_000])
@for_each("letter", ["a", "😀"])
def test_names_have_1_to_500_characters(length: int, letter: str) -> None:
    """An empty name and one of 501 characters are refused, whatever the characters are."""
    assert f"has {length}" in refused(Initiative, "name", letter * length)


@given(st.integers(1, 500), st.sampled_from("a€😀"))
@example(1, "a")
@example(500, "😀")
def test_names_within_bounds_are_kept(length: int, letter: str) -> None:
    """Names of 1 to 500 characters are allowed, whatever the characters are."""
    assert Initiative(name=letter * length).name == letter * length


@for_each("letter", ["a", "é", "😀"])
def test_texts_of_10_mb_pass(letter: str) -> None:
    """Long texts are kept whole."""
    text = letter * (10 * 1024 * 1024 // len(letter.encode()))
    assert a_task("description", text).description == text


@for_each("letter", ["a", "é", "😀"])
def test_texts_end_at_16_mb(letter: str) -> None:
    """A text of 16 MB is allowed and one of a byte more is refused, whatever the characters are."""
    longest = letter * (LONGEST_TEXT // len(letter.encode()))
    assert LONGEST_TEXT == len(longest.encode()) == 16 * 1024 * 1024
    assert a_task("description", longest).description == longest
    reason = refused(Task, "description", longest + "a", name="a task")
    assert reason == "may have at most 16777216 bytes"


@given(st.datetimes())
def test_a_time_without_a_zone_is_refused(naive: datetime) -> None:
    """Nobody can say when a naive time was."""
    assert "time zone" in refused(Task, "created_at", naive, name="a task")


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),  # noqa: DTZ001
    st.integers(-(24 * 60) + 1, 24 * 60 - 1).map(lambda each: timezone(timedelta(minutes=each))),
)
def test_times_are_brought_to_utc(naive: datetime, zone: tzinfo) -> None:
    """A moment stays the same to the microsecond, and is told in UTC."""
    moment = naive.replace(tzinfo=zone)
    kept = a_task("created_at", moment).created_at
    assert kept == moment
    assert kept.tzinfo is UTC
    assert kept.microsecond == moment.microsecond


@pytest.mark.parametrize(
    "moment",
    [
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ],
    ids=["after the end", "before the beginning"],
)
def test_a_time_that_utc_cannot_tell_is_refused(moment: datetime) -> None:
    """What lies outside the calendar once it is in UTC is refused like any bad value."""
    assert "years 1 to 9999" in refused(Task, "created_at", moment, name="a task")


@given(st.sampled_from(["2026-01-01", 0, 1.5, True, NOW.date()]))
def test_what_is_no_time_is_refused(value: object) -> None:
    """Neither a text nor a number nor a day is a moment."""
    assert "date and time" in refused(Worktree, "last_seen_at", value, path="/a")


@given(
    st.sampled_from([("status", TaskStatus), ("category", TaskCategory), ("priority", Priority)]),
    unicode | st.integers(),
)
def test_a_value_that_is_no_choice_is_refused(
    choice: tuple[str, type[StrEnum]], value: object
) -> None:
    """What no enum knows is refused, with the list of what it knows."""
    field, known = choice
    assume(value not in list(known))
    reason = refused(Task, field, value, name="a task")
    assert reason == f"{value!r} is not one of {', '.join(known)}"


@given(st.sampled_from([True, False, 2.0, 1 + 0j, None, [], {}, "good", "2", b"2"]))
def test_nothing_but_its_number_is_a_grade(value: object) -> None:
    """A value that merely equals a grade is none: neither True nor 2.0."""
    reason = refused(
        Retrospective,
        "user_grade",
        value,
        agent="a",
        project="p",
        commit_hash="c",
        task="t",
        agent_grade=1,
        score_before=1,
        score_after=1,
        at=NOW,
    )
    assert reason == f"{value!r} is not one of -1, 1, 2, 5"


@given(st.sampled_from(Grade))
def test_a_choice_is_known_by_its_value(grade: Grade) -> None:
    """An enum field takes the value and holds the member."""
    row = Retrospective(
        agent="a",
        project="p",
        commit_hash="c",
        task="t",
        agent_grade=grade,
        user_grade=grade.value,  # type: ignore[arg-type] # as it comes from a wire
        score_before=1,
        score_after=1,
        at=NOW,
    )
    assert row.agent_grade is row.user_grade is grade


@given(st.booleans())
def test_a_flag_is_no_number(flag: bool) -> None:
    """True and False are not counted with."""
    assert "whole number" in refused(Task, "order", flag, name="a task")


@given(st.sampled_from([0, 1, "true", None, 1.0]))
def test_a_number_is_no_flag(value: object) -> None:
    """Only True and False are flags."""
    assert "true or false" in refused(Initiative, "quality_review", value, name="a goal")


@given(st.integers(min_value=2**63) | st.integers(max_value=-(2**63) - 1))
@example(2**63)
@example(-(2**63) - 1)
def test_integers_fit_into_64_bits(number: int) -> None:
    """What no store can hold is refused."""
    assert "64 bits" in refused(Task, "order", number, name="a task")
    assert "64 bits" in refused(Agent, "result", {"deep": [number]}, name="a")


@given(st.integers(-(2**63), 2**63 - 1))
@example(2**63 - 1)
@example(-(2**63))
def test_integers_of_64_bits_are_kept(number: int) -> None:
    """Every whole number of 64 bits is allowed."""
    assert a_task("order", number).order == number


@given(st.integers(max_value=-1))
def test_counts_are_not_negative(number: int) -> None:
    """What is counted begins at zero, and lines and ledger entries at one."""
    refused(Task, "retry_count", number, name="a task")
    refused(ScoreEvent, "count", number + 1, agent="a", kind="tool", points=1, at=NOW)
    refused(
        ReviewComment,
        "line_number",
        number + 1,
        phase_id="phs_1",
        file_path="a.py",
        line_type="added",
        body="why?",
    )


@given(json)
def test_documents_are_kept(document: object) -> None:
    """Whatever JSON can say is kept as it is."""
    assert Agent(name="a", result=document).result == document


def test_documents_are_copied() -> None:
    """What its maker does to a document later does not reach the row."""
    document = {"list": [1]}
    agent = Agent(name="a", result=document)
    document["list"].append(2)
    assert agent.result == {"list": [1]}


@given(st.sampled_from([float("nan"), float("inf"), float("-inf")]), st.integers(0, 5))
def test_documents_hold_no_number_that_json_lacks(number: float, levels: int) -> None:
    """NaN and infinity are refused, however deep they lie."""
    assert "may not contain" in refused(Agent, "result", nested(levels, number), name="a")


@given(st.sampled_from(["\0", "a\ud800"]), st.integers(0, 5))
def test_texts_in_documents_are_texts(text: str, levels: int) -> None:
    """What no text may contain no text or key in a document may."""
    refused(Agent, "result", nested(levels, text), name="a")
    refused(Agent, "result", nested(levels, {text: 1}), name="a")


@given(st.sampled_from([b"bytes", {1, 2}, object(), NOW, {1: "a"}, {None: 1}]))
def test_what_is_no_json_is_refused(value: object) -> None:
    """Nothing is made into JSON behind one's back, keys least of all."""
    refused(Agent, "result", value, name="a")


@for_each("innermost", [1, "text", None, [], {}], ids=repr)
def test_documents_of_101_levels_are_refused(innermost: object) -> None:
    """A document is at most a hundred levels deep, whatever lies at its bottom."""
    own = isinstance(innermost, list | dict)
    deepest = nested(DEEPEST_DOCUMENT - own, innermost)
    assert DEEPEST_DOCUMENT == 100
    assert Agent(name="a", result=deepest).result == deepest
    assert "100 levels" in refused(Agent, "result", [deepest], name="a")
    assert "100 levels" in refused(Agent, "result", {"key": deepest}, name="a")


def test_a_document_within_itself_is_refused() -> None:
    """A document without a bottom does not hang anybody."""
    endless: list[object] = []
    endless.extend([endless, endless])
    assert "100 levels" in refused(Agent, "result", endless, name="a")


@given(json.filter(lambda document: document is not None and not isinstance(document, dict)))
def test_a_mapping_is_an_object(document: object) -> None:
    """Where an object is asked for, other JSON is refused."""
    reason = refused(
        Proposal,
        "metadata",
        document,
        agent_id="agt_1",
        initiative_id="ini_1",
        target_type="task",
        title="t",
        summary="s",
        content="c",
    )
    assert "JSON object" in reason


@given(st.sampled_from(["a\0b", "a\ud800"]), st.sampled_from([str, Secret]))
def test_secrets_are_texts_and_stay_secret(text: str, kind: type) -> None:
    """A bad secret is refused like a bad text, and the reason does not tell it."""
    reason = refused(Account, "credentials", kind(text), email="a@b.c")
    assert "a" + text[1] not in reason


@given(unicode)
def test_plain_text_becomes_a_secret(text: str) -> None:
    """A secret field holds a secret, whether it was given as one or not."""
    account = Account(email="a@b.c", config=text, credentials=Secret(text))  # type: ignore[arg-type]
    assert account.config == account.credentials == Secret(text)


@for_each("field", ["name", "status", "order", "created_at", "id"])
def test_what_must_be_there_is_not_none(field: str) -> None:
    """None is allowed only where the field says so."""
    refused(Task, field, None, **({} if field == "name" else {"name": "a task"}))
