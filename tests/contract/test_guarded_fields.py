"""What only use cases write is refused by `add` and `set` of any row, on every store."""

from typing import Any

import pytest

from herdbook.domain.errors import InvalidValue
from herdbook.ports.engine.dictionary import DICTIONARY, TASKS
from herdbook.services import crud
from herdbook.services.guarded_fields import GUARDED_FIELDS
from herdbook.services.journal import undo
from herdbook.services.plan import errands, projects, proposals
from tests.cases import for_each
from tests.contract.claims import do
from tests.contract.proposed import add_plan, propose
from tests.contract.rows import STAMPED, build, make, space_for, value_for
from tests.contract.turns import Begin

GUARDED = [(kind, field) for kind, guards in GUARDED_FIELDS.items() for field in guards]
each_field = for_each(("name", "field"), GUARDED, ids=lambda each: each)


def _other_value(uow: Any, name: str, field: str, row: Any) -> Any:
    """A value that a row does not have and that nobody may choose by hand."""
    kind = DICTIONARY.kinds[name]
    target = next((each.target for each in kind.references if each.field == field), None)
    if target is not None:
        return make(uow, DICTIONARY.kinds[target]).id
    by_hand = GUARDED_FIELDS[name][field].by_hand
    values = (value_for(kind.columns[field], number) for number in range(6))
    return next(each for each in values if each != vars(row)[field] and each not in by_hand)


@each_field
def test_a_guarded_field_is_not_set(begin: Begin, space: str, name: str, field: str) -> None:
    """The refusal names the command to use, and the row is as it was."""
    kind = DICTIONARY.kinds[name]
    with begin(space=space_for(kind, space)) as uow:
        row = make(uow, kind)
        value = _other_value(uow, name, field, row)
        with pytest.raises(InvalidValue, match=f"^{field}: .*`herdbook ") as refusal:
            crud.change(uow, kind, kind.key_of(row), {field: value})
        command = GUARDED_FIELDS[name][field].operations[0].replace(".", " ")
        assert f"`herdbook {command}`" in str(refusal.value)
        assert uow.get(kind, [kind.key_of(row)]) == [row]
        same = {field: vars(row)[field]}
        assert crud.change(uow, kind, kind.key_of(row), same) == row


@each_field
def test_a_new_row_has_what_use_cases_begin_with(
    begin: Begin, space: str, name: str, field: str
) -> None:
    """Unless it is given once and for all when the row is added."""
    kind = DICTIONARY.kinds[name]
    guard = GUARDED_FIELDS[name][field]
    with begin(space=space_for(kind, space)) as uow:
        row = build(uow, kind)
        value = _other_value(uow, name, field, row)
        values = {n: v for n, v in vars(row).items() if n not in STAMPED and v is not None}
        if guard.when_added:
            assert vars(crud.add(uow, kind, {**values, field: value}))[field] == value
        else:
            with pytest.raises(InvalidValue, match=f"^{field}: "):
                crud.add(uow, kind, {**values, field: value})


def test_a_task_is_moved_by_hand_as_far_as_a_person_may(begin: Begin) -> None:
    """Only a claim makes it held."""
    with begin() as uow:
        task = make(uow, TASKS)
        for status in ("blocked", "completed", "pending"):
            assert crud.change(uow, TASKS, task.id, {"status": status}).status == status
        with pytest.raises(InvalidValue, match="`herdbook task claim`"):
            crud.change(uow, TASKS, task.id, {"status": "in_progress"})


def test_what_a_use_case_wrote_can_be_taken_back(begin: Begin) -> None:
    """A reverted change set leaves its proposals pending again."""
    plan = add_plan(begin)
    key = propose(begin, plan, "task")
    change_set = do(begin, proposals.accept, key)
    do(begin, undo.revert, change_set.id)
    with begin(write=False) as uow:
        assert uow.proposals.get(key).status == "pending"


def test_an_errand_that_is_over_stays_so_whichever_way_it_is_asked(begin: Begin) -> None:
    """`move` and `set` keep one rule."""
    with begin() as uow:
        project = make(uow, DICTIONARY.kinds["projects"])
        errand = errands.start(uow, project.id, "fix", "typo", errand_id="my-1")
        assert errand.id == "my-1"
        errands.change_status(uow, "my-1", "merged")
        with pytest.raises(InvalidValue, match="stays so"):
            errands.change_status(uow, "my-1", "active")
        with pytest.raises(InvalidValue, match="`herdbook errand move`"):
            crud.change(uow, DICTIONARY.kinds["errands"], "my-1", {"status": "active"})


def test_a_fetch_is_noted_and_never_goes_back(begin: Begin) -> None:
    """A fetch that is told late changes nothing."""
    with begin() as uow:
        project = make(uow, DICTIONARY.kinds["projects"])
        assert projects.mark_fetched(uow, project.id).last_fetched_at == uow.now
        earlier = uow.now.replace(year=2020)
        assert projects.mark_fetched(uow, project.id, at=earlier).last_fetched_at == uow.now
