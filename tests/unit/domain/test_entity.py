"""The laws of all entities: frozen, checked, equal by value, and silent about secrets."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from attrs import fields, has
from attrs.exceptions import FrozenInstanceError
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain import conversation, journal
from herdbook.domain.agents import model as agents_model
from herdbook.domain.clock import Stamp
from herdbook.domain.entity import (
    NEVER,
    VersionedEntity,
    WorkEntity,
    default_instance,
    entity,
    evolve,
    fields_of,
)
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan import model as plan_model
from herdbook.domain.plan import readiness
from herdbook.domain.record import model as record_model
from herdbook.domain.record.model import Account
from herdbook.domain.secret import Secret
from herdbook.domain.values import Name, Rule, rule_of
from tests.cases import for_each

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODULES = (agents_model, journal, plan_model, readiness, record_model, conversation)
ENTITIES = [
    each
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, type) and has(each) and each.__module__ == module.__name__
]
EVERY_FIELD = [(cls, each.name) for cls in ENTITIES for each in fields(cls)]
SAMPLES: dict[str, tuple[object, object]] = {
    "id": ("abc_1", "abc_2"),
    "name": ("a name", "another name"),
    "text": ("a text", "another text"),
    "integer": (1, 2),
    "flag": (False, True),
    "moment": (NOW, NOW + timedelta(microseconds=1)),
    "document": ({"a": [1]}, {"a": [2]}),
    "secret": (Secret("one"), Secret("two")),
    "stamp": (Stamp(NOW, 0, "node"), Stamp(NOW, 1, "node")),
}

every_entity = for_each("cls", ENTITIES, ids=lambda cls: cls.__name__)
every_field = for_each(
    ("cls", "field"), EVERY_FIELD, ids=[f"{cls.__name__}.{name}" for cls, name in EVERY_FIELD]
)
# Letters that no repr of an account has of its own.
secrets = st.text("§¶µþðæ", min_size=1)


def samples_of(rule: Rule) -> tuple[object, object]:
    """Give two different values that a rule allows, where it allows two."""
    if rule.type_name.endswith("choice"):
        choices = list(rule.python_type)  # type: ignore[call-overload] # an enum
        return choices[0], choices[-1]
    if rule.python_type is list:
        return ["a"], ["b"]
    return SAMPLES[rule.type_name]


def rules_of(cls: type[Any]) -> dict[str, Rule]:
    """Give the rule of every field."""
    return {each.name: rule_of(each.type)[0] for each in fields(cls)}


def a(cls: type[Any]) -> Any:
    """Make a row with every field filled."""
    return cls(**{name: samples_of(rule)[0] for name, rule in rules_of(cls).items()})


def test_all_entities_are_looked_at() -> None:
    """The laws below see the entities of the model, not an empty list."""
    names = {cls.__name__ for cls in ENTITIES}
    assert {"Task", "Agent", "Message", "Standing", "Opening", "JournalEntry"} <= names
    assert len(ENTITIES) >= 30


@every_field
def test_no_field_can_be_changed(cls: type[Any], field: str) -> None:
    """A row stays as it was made: it can neither be given a value nor lose one."""
    row = a(cls)
    with pytest.raises(FrozenInstanceError):
        setattr(row, field, getattr(row, field))
    with pytest.raises(FrozenInstanceError):
        delattr(row, field)


@every_entity
def test_rows_are_equal_by_value(cls: type[Any]) -> None:
    """Two rows with the same values are equal, and so are their copies near and far."""
    row = a(cls)
    assert row == a(cls)
    assert row == copy.deepcopy(row)
    assert row == pickle.loads(pickle.dumps(row))  # noqa: S301 - what we have just written


@every_field
def test_every_field_counts(cls: type[Any], field: str) -> None:
    """Two rows that differ in any one field are not equal, whatever their ids say."""
    one, other = samples_of(rules_of(cls)[field])
    changed = evolve(a(cls), **{field: other})
    assert (changed == a(cls)) is (one == other)
    assert getattr(changed, field) == other


@every_field
def test_a_changed_row_is_checked_again(cls: type[Any], field: str) -> None:
    """What may not be in a new row may not come into an old one, and the error names the field."""
    with pytest.raises(InvalidValue, match=f"^{field}: "):
        evolve(a(cls), **{field: object()})


@every_entity
def test_fields_are_given_by_name(cls: type[Any]) -> None:
    """Fields may be added in any place, because nobody counts them."""
    with pytest.raises(TypeError):
        cls(*(samples_of(rule)[0] for rule in rules_of(cls).values()))


def test_fields_come_in_the_order_of_their_declaration() -> None:
    """What all rows have comes first, then what the class itself declares."""
    inherited = ("id", "created_at", "updated_at", "version", "worktree_id")
    own = ("task_id", "depends_on_task_id")
    assert tuple(each.name for each in fields_of(plan_model.TaskDependency)) == (*inherited, *own)


def test_a_row_of_defaults_is_the_row_made_without_values() -> None:
    """Though nothing was checked, because nothing was given."""
    assert default_instance(WorkEntity) == WorkEntity()
    assert default_instance(journal.Actor) == journal.Actor()


def test_attrs_knows_a_class_before_its_first_row() -> None:
    """Whoever asks attrs about an entity gets the answer of an attrs class."""
    script = """
import sys
from herdbook.domain.plan import model as plan
assert "attr" not in sys.modules
import attrs
assert attrs.has(plan.Task)
assert [each.name for each in attrs.fields(plan.PhaseDependency)][-1] == "depends_on_phase_id"
assert attrs.asdict(plan.Task(name="x"))["name"] == "x"
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_many_threads_may_make_the_first_row() -> None:
    """None of them meets a class that is half done."""
    for _ in range(20):

        @entity
        class Fresh(WorkEntity):
            name: Name
            count: int = 3

        with ThreadPoolExecutor(8) as threads:
            rows = list(threads.map(lambda number: Fresh(name=str(number)), range(8)))
        assert [row.name for row in rows] == [str(number) for number in range(8)]
        assert {row.count for row in rows} == {3}


def test_a_new_row_has_been_nowhere() -> None:
    """Until a store has seen it, a row has no id, no time, no version and no worktree."""
    row = WorkEntity()
    assert (row.id, row.created_at, row.updated_at, row.version) == ("", NEVER, NEVER, 0)
    assert row.worktree_id is None
    assert row != VersionedEntity()


@given(secrets)
def test_a_secret_is_never_printed(text: str) -> None:
    """No way to write a secret, or a row that holds one, gives it away."""
    secret = Secret(text)
    account = Account(email="a@b.c", config=secret, credentials=secret)
    for each in (secret, account, [secret], {"key": secret}, (account,)):
        for written in (repr(each), str(each), f"{each}", f"{each!r}", "%s %r" % (each, each)):  # noqa: UP031
            assert "***" in written
            assert not set(written) & set(text)


@given(secrets, st.sampled_from([">20", "s", "d", "!r"]))
def test_no_format_gives_a_secret_away(text: str, spec: str) -> None:
    """A format that a secret does not know may fail, but tells nothing."""
    try:
        written = format(Secret(text), spec)
    except (TypeError, ValueError) as error:
        written = str(error)
    assert not set(written) & set(text)


@given(secrets)
def test_an_error_about_a_secret_does_not_tell_it(text: str) -> None:
    """A secret in the wrong place is refused without being shown."""
    with pytest.raises(InvalidValue) as caught:
        Account(email=Secret(text))  # type: ignore[arg-type] # the wrong place
    with pytest.raises(InvalidValue) as caught_too:
        plan_model.Task(name="a task", status=Secret(text))  # type: ignore[arg-type]
    assert not set(f"{caught.value}{caught_too.value}") & set(text)


@given(secrets, secrets)
def test_secrets_are_equal_by_value(one: str, other: str) -> None:
    """Whether a secret has changed can be told without looking at it."""
    assert (Secret(one) == Secret(other)) is (one == other)
    assert Secret(one).reveal() == one
