"""The table as methods: parameters are data, checked by their kind, and errors have codes."""

import inspect
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from herdbook.domain.errors import HerdbookError, InvalidValue, NotFound
from herdbook.domain.secret import Secret
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.error_table import ERRORS
from herdbook.entrypoints.operations.model import json_name
from herdbook.entrypoints.operations.registry import OPERATIONS
from herdbook.entrypoints.operations.status.handlers import status
from herdbook.entrypoints.rpc.errors import to_exception, to_rpc_error
from herdbook.entrypoints.rpc.messages import INVALID_PARAMS, RpcError, encode, error_response
from herdbook.entrypoints.rpc.methods import ENDLESS, describe_unknown, methods
from herdbook.entrypoints.rpc.openrpc import document
from herdbook.ports.engine.store import TryAgain
from tests.cases import for_each


def refused(method: str, params: Any) -> dict[str, str]:
    """The fields that a method refuses, with their reasons."""
    with pytest.raises(RpcError) as caught:
        methods()[method].arguments(params)
    assert caught.value.code == INVALID_PARAMS
    assert caught.value.data["type"] == "InvalidValue"
    return {each["field"]: each["reason"] for each in caught.value.data["fields"]}


def test_every_operation_that_is_not_local_is_a_method() -> None:
    """By its own name; one that only follows is left to `journal.subscribe`."""
    assert set(methods()) == {each.name for each in OPERATIONS if not each.local} - ENDLESS
    for name in ("task.claim", "agent.waiting", "journal.since"):
        assert name in methods()
    for name in ("sql", "shell", "copy", "merge", "trust", "import.plan", "worktree.add", "rpc"):
        assert name not in methods()
        assert describe_unknown(name) == f"{name} is for the command line alone"
    assert "journal.subscribe" in describe_unknown("journal.follow")
    assert describe_unknown("ready").endswith("did you mean task.ready?")
    assert describe_unknown("task.lst").endswith("did you mean task.list?")


def test_no_method_takes_a_path_or_goes_on_for_ever() -> None:
    """A client hands over data, and gets one answer."""
    for method in methods().values():
        for parameter in method.parameters:
            assert parameter.kind != "path"
            assert parameter.name not in ("follow", "watch")
        if "follow" in {each.name for each in method.operation.parameters}:
            needed = {json_name(each): "x" for each in method.parameters if each.required}
            reasons = refused(method.name, {**needed, "follow": True})
            assert "journal.subscribe" in reasons["follow"]


def test_every_parameter_has_one_name() -> None:
    """And those that are needed come first."""
    for method in methods().values():
        names = [json_name(each) for each in method.parameters]
        assert len(set(names)) == len(names)
        needed = [each.required for each in method.parameters]
        assert needed == sorted(needed, reverse=True)


def test_parameters_are_taken_by_name_and_by_place() -> None:
    """A field also by its own name, and what is left out or null is the default."""
    add = methods()["task.add"]
    by_name = add.arguments({"name": "x", "phase": "p", "priority": None})
    assert by_name == add.arguments(["x", "p"]) == add.arguments({"name": "x", "phase_id": "p"})
    assert by_name == {
        "after": None,
        "entity": "tasks",
        "values": {"name": "x", "phase_id": "p"},
    }
    listed = methods()["task.list"].arguments(None)
    assert (listed["limit"], listed["after"], listed["values"]) == (100, None, {})


def test_what_does_not_fit_is_told_field_by_field() -> None:
    """All of it at once, with what was probably meant."""
    reasons = refused("task.add", {"nme": "x", "priority": "urgent", "order": "1", "name": 7})
    assert reasons == {
        "nme": "is no parameter of task.add; did you mean name?",
        "priority": "must be one of low, medium, high",
        "order": "must be a whole number",
        "name": "must be a text",
    }
    assert refused("task.add", {}) == {"name": "is needed"}
    assert "which is given too" in str(
        refused("task.add", {"name": "x", "phase": 1, "phase_id": 1})
    )
    assert "takes 2 parameters, not 3" in str(refused("task.show", ["a", 1, "b"]))
    assert "it takes id" in str(refused("task.show", {"id": "x", "zzzzz": 1}))


@for_each(
    ("method", "params", "field"),
    [
        ("task.list", {"limit": 0}, "limit"),
        ("task.list", {"limit": True}, "limit"),
        ("task.list", {"limit": 1.0}, "limit"),
        ("task.list", {"limit": 2**63}, "limit"),
        ("task.show", {"id": "a\0b"}, "id"),
        ("task.rm", {"ids": []}, "ids"),
        ("task.rm", {"ids": "tsk_1"}, "ids"),
        ("task.rm", {"ids": ["tsk_1", 2]}, "ids"),
        ("task.claim", {"ttl": "soon"}, "ttl"),
        ("task.claim", {"ttl": -1}, "ttl"),
        ("task.claim", {"ttl": 1e300}, "ttl"),
        ("account.exhaust", {"account": "x", "until": "tomorrow"}, "until"),
        ("account.exhaust", {"account": "x", "until": "2026-05-01T12:00"}, "until"),
        ("review.threads", {"phase": "x", "resolved": "yes"}, "resolved"),
        ("board", {"watch": True}, "watch"),
        ("advise", {"for": "/src/app"}, "for"),
        ("advise", {"for": "."}, "for"),
    ],
)
def test_a_value_of_another_kind_is_refused(method: str, params: Any, field: str) -> None:
    """With the field's name."""
    assert list(refused(method, params)) == [field]


def test_values_become_what_the_code_takes() -> None:
    """Texts that stand for times are read, and `-` is a text like any other."""
    claim = methods()["task.claim"]
    assert claim.arguments({})["ttl"] == timedelta(minutes=30)
    assert claim.arguments({"ttl": "90s"})["ttl"] == timedelta(seconds=90)
    assert claim.arguments({"ttl": 1.5})["ttl"] == timedelta(seconds=1.5)
    until = methods()["account.exhaust"].arguments(["x", "2026-05-01T12:00Z"])["arguments"]["until"]
    assert until == datetime(2026, 5, 1, 12, tzinfo=UTC)
    added = methods()["account.add"].arguments({"email": "-", "credentials": "-"})["values"]
    assert added["email"] == "-"
    assert added["credentials"] == Secret("-")
    asked = methods()["agent.wait"].arguments({"questions": [{"a": None}]})
    assert asked["arguments"]["questions"] == [{"a": None}]
    assert methods()["advise"].arguments({"for": "Rust"})["goal"] == "Rust"


@pytest.mark.parametrize("named", ["nothing", "\ud800", "a\ud800/b", "loop", "x" * 5_000])
def test_a_worktree_that_nobody_can_mean_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Also one that no path can say, as any other name that leads nowhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "loop").symlink_to("loop")
    app = AppContext.at(tmp_path, {"USER": "somebody"})
    with pytest.raises(NotFound) as caught:
        methods()["status"](app, {"worktree": named})
    assert (caught.value.entity, caught.value.key) == ("worktree", named)
    with pytest.raises(NotFound):
        status(app, worktree=f"{named}\0", all=False)
    encode(error_response(1, to_rpc_error(caught.value)))


@for_each("kind", ERRORS, ids=lambda each: each.__name__)
def test_every_error_comes_through_as_it_was(kind: type[HerdbookError]) -> None:
    """With its type, its sentence and all it speaks of."""
    values: dict[str, Any] = {"int": 3, "float": 1.5, "str": "x", "tuple[str, ...]": ("a", "b")}
    values |= {
        "int | None": 4,
        "str | None": "y",
        "datetime.datetime | None": datetime(2026, 5, 1, tzinfo=UTC),
    }
    wanted = inspect.signature(kind).parameters.values()
    error = kind(*(values[inspect.formatannotation(each.annotation)] for each in wanted))
    sent = json.loads(encode(error_response(1, to_rpc_error(error))))["error"]
    assert sent["code"] == ERRORS[kind].code
    assert (sent["message"], sent["data"]["type"]) == (str(error), kind.__name__)
    back = to_exception(RpcError.from_data(sent))
    assert type(back) is kind
    assert vars(back) == vars(error)


def test_a_kind_of_an_error_is_told_as_what_it_is_a_kind_of() -> None:
    """Clients know the errors that are written down, and what is no error of ours stays itself."""
    lost = to_rpc_error(TryAgain("here", "the connection was lost"))
    assert (lost.code, lost.data["type"]) == (5004, "StoreUnavailable")
    for strange in (RpcError(7, "no"), RpcError(3001, "no", {"type": "NotFound"})):
        assert to_exception(strange) is strange
    both = to_exception(
        RpcError(INVALID_PARAMS, "…", {"type": "InvalidValue", "field": "a", "reason": "b"})
    )
    assert repr(both) == repr(InvalidValue("a", "b"))


def test_the_document_describes_every_method_once() -> None:
    """With schemas that are JSON Schema, and nothing it points to is missing."""
    found = document()
    names = [each["name"] for each in found["methods"]]
    assert len(set(names)) == len(names)
    assert set(methods()) < set(names)
    schemas = [each["result"]["schema"] for each in found["methods"]]
    schemas += [each["schema"] for method in found["methods"] for each in method["params"]]
    schemas += found["components"]["schemas"].values()
    for schema in schemas:
        Draft7Validator.check_schema(schema)
    text = json.dumps(found)
    for part in ("schemas", "errors"):
        pointed = {each.split('"')[0] for each in text.split(f"#/components/{part}/")[1:]}
        assert pointed <= set(found["components"][part])


def test_every_answer_says_what_is_in_it() -> None:
    """None is an object of anything; `rpc.discover` answers what OpenRPC describes."""
    anything = {"type": "object", "additionalProperties": True}
    vague = [
        each["name"]
        for each in document()["methods"]
        if anything in (each["result"]["schema"], each["result"]["schema"].get("items"))
        or each["result"]["schema"] == {}
    ]
    assert vague == ["rpc.discover"]
