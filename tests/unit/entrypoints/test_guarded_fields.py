"""No wire offers a field that only use cases write, and each says which command writes it."""

import pytest

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.cli.parser import find_operation, parse
from herdbook.entrypoints.operations.model import Operation, parameters_of
from herdbook.entrypoints.operations.parameters import field_option
from herdbook.entrypoints.operations.registry import OPERATIONS
from herdbook.entrypoints.rpc.errors import RpcError
from herdbook.entrypoints.rpc.methods import Method
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.services.guarded_fields import GUARDED_FIELDS, guards_of
from tests.cases import for_each

NAMES = {operation.name for operation in OPERATIONS}
CASES = [
    (operation, field)
    for operation in OPERATIONS
    if operation.entity and operation.words[-1] in ("add", "set")
    for field, guard in guards_of(operation.entity, adding=operation.words[-1] == "add").items()
    if not guard.by_hand
]


def test_every_guard_names_fields_and_operations_that_there_are() -> None:
    """So what a refusal advises can be typed."""
    for kind, guards in GUARDED_FIELDS.items():
        for field, guard in guards.items():
            assert field in DICTIONARY.kinds[kind].columns
            assert guard.operations
            assert set(guard.operations) <= NAMES, (kind, field)


@for_each(("operation", "field"), CASES, ids=lambda each: getattr(each, "name", each))
def test_a_guarded_field_is_refused_with_the_command_to_use(
    operation: Operation, field: str
) -> None:
    """On the command line and over JSON-RPC, by the name of the option and of the field."""
    guard = GUARDED_FIELDS[operation.entity][field]
    assert field not in {each.field for each in parameters_of(operation)}
    option = field_option(DICTIONARY.kinds[operation.entity], field)
    given = [each.name for each in parameters_of(operation) if each.required]
    needed = ["x" for each in given] if operation.words[-1] == "set" else _required(operation)
    for word in ([f"--{option.replace('_', '-')}", "x"], [f"--{option.replace('_', '-')}=x"]):
        with pytest.raises(InvalidValue) as refusal:
            parse(operation, [*needed, *word])
        assert refusal.value.reason == guard.reason
    for name in {field, option}:
        with pytest.raises(RpcError) as error:
            Method(operation).arguments({name: "x"})
        assert guard.reason in str(error.value.data)


def _required(operation: Operation) -> list[str]:
    words: list[str] = []
    for each in parameters_of(operation):
        if each.required and each.positional:
            words.append("x")
        elif each.required:
            words += [f"--{each.name.replace('_', '-')}", each.choices[0] if each.choices else "x"]
    return words


def test_a_word_that_no_command_knows_is_still_refused_as_unknown() -> None:
    """As a value that does not fit, which is exit code 2."""
    operation, rest = find_operation(["proposal", "set", "x", "--colour", "red"])
    assert operation is not None
    with pytest.raises(InvalidValue, match="unrecognized arguments: --colour red"):
        parse(operation, rest)
