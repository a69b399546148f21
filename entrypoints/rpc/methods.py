"""The operations as JSON-RPC methods.

Parameters are data. To follow something endlessly, to open a path and to read standard input are
for the command line only; such a parameter is refused here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import count, islice
from typing import Any

from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.model import (
    Operation,
    Parameter,
    code_of,
    json_name,
    parameters_of,
)
from herdbook.entrypoints.operations.parameter_converter import RPC, arguments_of, convert_all
from herdbook.entrypoints.operations.registry import OPERATIONS
from herdbook.entrypoints.operations.serialize import to_data
from herdbook.entrypoints.rpc.errors import invalid_params

ENDLESS = frozenset({"journal.follow"})
"""Operations that never end on their own."""
FOLLOWING = frozenset({"follow", "watch"})
"""The flags that make an operation endless."""
SUBSCRIBE_INSTEAD = "is not available over JSON-RPC; journal.subscribe sends changes as they happen"
ACTING = Parameter(
    "agent", "who acts: the name or id of an agent; default: the agent or person of the server"
)
"""A parameter of every method that has no other of that name."""
MOST_ANSWERS = 1_000
"""The most answers in one response of an operation that yields them one by one."""


def _refuse_folder(goal: Any) -> list[tuple[str, str]]:
    """The problem with a goal that is no language: only a person may name a folder."""
    from herdbook.domain.record.languages import LANGUAGES, find_language  # noqa: PLC0415
    from herdbook.entrypoints.operations.advice.rows import EVERYTHING  # noqa: PLC0415

    if not isinstance(goal, str) or goal == EVERYTHING or find_language(goal) is not None:
        return []
    known = ", ".join(LANGUAGES)
    return [("for", f"{goal!r} is no language of {known}, and no folder is taken from here")]


class Method:
    """An operation as a client calls it; by the agent that the call names, if it `acts`."""

    def __init__(self, operation: Operation, *, acts: bool = False) -> None:
        self.operation = operation
        self.name = operation.name
        self._acts = acts

    @cached_property
    def _own(self) -> tuple[Parameter, ...]:
        """The parameters of the operation itself."""
        return parameters_of(self.operation)

    @cached_property
    def _all(self) -> tuple[Parameter, ...]:
        if not self._acts or any(json_name(each) == ACTING.name for each in self._own):
            return self._own
        return (*self._own, ACTING)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters by position: required ones first, lists last."""
        taken = [each for each in self._all if each.name not in FOLLOWING]
        return tuple(
            sorted(taken, key=lambda each: (not each.required, each.many and not each.positional))
        )

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        """The parameters by option name, and by the name of the field or argument."""
        names = {json_name(each): each for each in self._all}
        for each in self._all:
            names.setdefault(each.field or each.name, each)
            names.setdefault(each.name, each)
        return names

    @cached_property
    def _can_wait(self) -> bool:
        return any(each.name == "wait" for each in self._all)

    @cached_property
    def _code(self) -> Callable[..., Any]:
        code: Callable[..., Any] = code_of(self.operation.code)
        return code

    def waits(self, params: Any) -> bool:
        """Whether a call with these parameters may wait."""
        if not self._can_wait:
            return False
        return isinstance(params, list) or bool(params and params.get("wait"))

    def arguments(self, params: Any) -> dict[str, Any]:
        """What the handler is called with; RpcError lists every parameter that does not fit."""
        return arguments_of(self.operation, self._own, self._values(params))

    def _values(self, params: Any) -> dict[str, Any]:
        """The value of each parameter by its name; RpcError lists those that do not fit."""
        problems: list[tuple[str, str]] = []
        given = self._by_table_name(params, problems)
        values, unfit = convert_all(self._all, given, RPC)
        problems += [(each.field, each.reason) for each in unfit]
        for parameter in self._all:
            if parameter.name in FOLLOWING and values[parameter.name] is True:
                problems.append((json_name(parameter), SUBSCRIBE_INSTEAD))
        if goal := self.name == "advise" and values["goal"]:
            problems += _refuse_folder(goal)
        if problems:
            raise invalid_params(problems)
        return values

    def __call__(self, app: AppContext, params: Any) -> Any:
        """Call the handler; returns the answer as it goes into JSON."""
        values = self._values(params)
        arguments = arguments_of(self.operation, self._own, values)
        if ACTING in self._all and values[ACTING.name] is not None:
            app.act_as(values[ACTING.name])
        answer = self._code(app, **arguments)
        if isinstance(answer, Iterator):
            answer = list(islice(answer, arguments.get("limit") or MOST_ANSWERS))
        return _to_json(answer)

    def _by_table_name(self, params: Any, problems: list[tuple[str, str]]) -> dict[str, Any]:
        """The values by the names of the table, from values by name or by position."""
        if params is None:
            return {}
        if isinstance(params, list):
            names = [each.name for each in self.parameters if each is not ACTING]
            if len(params) > len(names):
                many = f"takes {len(names)} parameters, not {len(params)}"
                problems.append((self.name, many))
            return dict(zip(names, params, strict=False))
        given: dict[str, Any] = {}
        for name, value in params.items():
            parameter = self._by_name.get(name)
            if parameter is None:
                problems.append((name, self._describe_unknown(name)))
            elif parameter.name in given:
                problems.append(
                    (name, f"is the same as {json_name(parameter)}, which is given too")
                )
            else:
                given[parameter.name] = value
        return given

    def _describe_unknown(self, name: str) -> str:
        from herdbook.entrypoints.operations.parameters import reason_refused  # noqa: PLC0415

        hint = suggest(name, self._by_name) or _list_names(
            [json_name(each) for each in self.parameters]
        )
        known = f"is no parameter of {self.name}{hint}"
        return reason_refused(self.operation, name) or known


_answers = count()


def _to_json(answer: Any) -> Any:
    """An answer as it goes into JSON.

    The first answer of a server is made without cattrs, whose import takes 40 ms; with it, all
    later ones take half the time.
    """
    if not next(_answers):
        return to_data(answer)
    from herdbook.entrypoints.operations.wire_converter import unstructure  # noqa: PLC0415

    return unstructure(answer)


@cache
def methods() -> dict[str, Method]:
    """Every method that a client may call, by its name."""
    return {
        each.name: Method(each, acts=True)
        for each in OPERATIONS
        if not each.local and each.name not in ENDLESS
    }


def describe_unknown(name: str) -> str:
    """The error for an unknown method, with a suggestion."""
    for operation in OPERATIONS:
        if operation.name == name and operation.local:
            return f"{name} is for the command line alone"
        if operation.name == name:
            return f"{name} {SUBSCRIBE_INSTEAD}"
        if operation.alias == name and not operation.local:
            return f"there is no method {name}; did you mean {operation.name}?"
    from herdbook.entrypoints.cli.help_text import NOT_SUGGESTED  # noqa: PLC0415

    offered = [each for each in methods() if each.rpartition(".")[2] not in NOT_SUGGESTED]
    hint = suggest(name, offered) or "; rpc.discover lists them all"
    return f"there is no method {name}{hint}"


def suggest(word: str, known: Iterable[str]) -> str:
    """A suggestion for a mistyped name; empty where none is close."""
    from difflib import get_close_matches  # noqa: PLC0415

    close = get_close_matches(word[:100], list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _list_names(names: Sequence[str]) -> str:
    return f"; it takes {', '.join(names)}" if names else "; it takes none"
