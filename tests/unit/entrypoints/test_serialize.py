"""Answers as JSON: commands and wires give the same bytes, each in its own way."""

import json
from datetime import UTC, datetime, timedelta
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import pytest
from attrs import frozen

from herdbook.domain.clock import Stamp
from herdbook.domain.plan.model import Task
from herdbook.domain.secret import Secret
from herdbook.entrypoints.operations.serialize import to_data
from herdbook.entrypoints.operations.wire_converter import structure, unstructure
from herdbook.ports.engine.codec import choices_by_value, construct_unchecked
from herdbook.ports.engine.dictionary import DICTIONARY, JOURNAL
from herdbook.ports.engine.kinds import Column, Kind

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOON.replace(microsecond=1)
SOME: dict[str, tuple[Any, ...]] = {
    "integer": (0, -(2**63)),
    "flag": (True, False),
    "moment": (NOON, LATER),
    "document": ({"a": [1, None, {"b": "ü\u2028"}]}, [], "text"),
    "secret": (Secret("s3cret"),),
    "bytes": (b"\xff\x00", b""),
    "stamp": (Stamp.parse("2026-05-01T12:00:00.000000Z_00000003_here"),),
}


def values(column: Column) -> tuple[Any, ...]:
    """Some values that a column may hold; None where it may hold nothing."""
    some = tuple(choices_by_value(column).values()) or SOME.get(column.type_name, ("ü", ""))
    if column.rule.python_type is list:
        some = (["ü", "b"], [])
    return (*some, None) if column.optional else some


def rows(kind: Kind[Any]) -> list[Any]:
    """Rows in which every value of every column comes up."""
    columns = {name: values(each) for name, each in kind.columns.items()}
    most = max(map(len, columns.values()))
    return [
        construct_unchecked(kind, {name: some[at % len(some)] for name, some in columns.items()})
        for at in range(most)
    ]


def as_bytes(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode()


@pytest.mark.parametrize("kind", list(DICTIONARY), ids=lambda kind: kind.name)
def test_commands_and_wires_agree_on_every_kind_of_rows(kind: Kind[Any]) -> None:
    """Every field by its name, in the order of declaration, and no secret.

    A journal entry has its time as `at`, and its clock stamp beside that.
    """
    for row in rows(kind):
        data = to_data(row)
        assert as_bytes(data) == as_bytes(unstructure(row))
        assert list(data) == [*kind.columns, *(["stamp"] if kind is JOURNAL else [])]
        assert "s3cret" not in str(data)


class Size(IntEnum):
    SMALL = 1


class Colour(Enum):
    RED = "red"


class Pair(NamedTuple):
    first: Any
    second: datetime | None
    tasks: tuple[Task, ...] = ()


@frozen
class Report:
    at: datetime
    pairs: tuple[Pair, ...] = ()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        {"ok": False, 1: [Size.SMALL]},
        NOON,
        [NOON, LATER, timedelta(minutes=5)],
        {"secret": Secret("s3cret"), "colour": Colour.RED},
        Pair(Colour.RED, NOON),
        Pair({"inner": Pair(1, None)}, LATER),
        [(1, "a"), frozenset({1}), {2}],
        Report(NOON, (Pair(1, LATER),)),
    ],
    ids=repr,
)
def test_commands_and_wires_agree_on_other_answers(answer: Any) -> None:
    """Named tuples are objects, choices their values, and what is hidden stays hidden."""
    assert as_bytes(to_data(answer)) == as_bytes(unstructure(answer))


def test_rows_inside_of_answers_are_rows() -> None:
    """Times of a row have all their digits, those beside it only as many as they need."""
    task = Task(id="tsk_1", name="parse", created_at=NOON)
    for serialize in (to_data, unstructure):
        data = serialize(Pair(task, NOON, (task,)))
        assert data["tasks"] == [data["first"]]
        assert data["first"]["created_at"] == "2026-05-01T12:00:00.000000+00:00"
        assert data["second"] == "2026-05-01T12:00:00+00:00"


def test_what_is_json_already_stays_as_it_is() -> None:
    """So a handler may also give data."""
    data = {"spaces": [{"a": 1, "b": None}], "ok": True}
    assert to_data(data) == data == unstructure(data)


def test_a_row_comes_back_as_it_was() -> None:
    """From the JSON of a wire to the client's own class."""
    task = Task(id="tsk_1", name="parse", created_at=NOON, updated_at=LATER)
    assert structure(json.loads(as_bytes(unstructure([task]))), list[Task]) == [task]


def test_a_journal_entry_has_a_time_and_a_stamp_and_comes_back() -> None:
    """`at` is ISO 8601, of the machine's clock; `stamp` is what orders entries."""
    for entry in rows(JOURNAL):
        data = unstructure(entry)
        assert datetime.fromisoformat(data["at"]) == (entry.recorded_at or NOON)
        assert Stamp.parse(data["stamp"]) == entry.at
        assert structure(data, JOURNAL.entity) == entry
