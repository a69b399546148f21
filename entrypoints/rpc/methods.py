"""The table of operations as methods: which there are, and what a client may hand to them.

Parameters are data. A method that would follow something for ever, open a path or read standard
input does that on the command line only; here such a parameter is refused.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.cli.parser import (
    arguments_of,
    as_duration,
    as_moment,
    parameters_of,
    shown,
)
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.model import Operation, Parameter, code_of
from herdbook.entrypoints.operations.registry import OPERATIONS
from herdbook.entrypoints.rpc.codes import invalid

ENDLESS = frozenset({"journal.follow"})
"""What gives answers until it is stopped, and nothing else."""
FOLLOWING = frozenset({"follow", "watch"})
"""The flags that make an operation go on and on."""
INSTEAD = "cannot be had over JSON-RPC; journal.subscribe tells what changes, as it happens"
LARGEST = 2**63 - 1
MOST_ANSWERS = 1_000
"""So many of what the command line prints line by line come at once, unless a limit is given."""


def _language(value: str) -> str | None:
    from herdbook.domain.record.languages import LANGUAGES, language_named  # noqa: PLC0415

    if language_named(value) is not None:
        return None
    return f"{value!r} is no language of {', '.join(LANGUAGES)}, and no folder is taken from here"


CHECKED: Mapping[tuple[str, str], Callable[[str], str | None]] = {("advise", "goal"): _language}
"""What a client may give less of than a person; each tells what is wrong, if something is."""


class Method:
    """An operation as a client calls it."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.name = operation.name

    @cached_property
    def _all(self) -> tuple[Parameter, ...]:
        return parameters_of(self.operation)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What a client may give, by its place: what is needed, then the rest."""
        taken = [each for each in self._all if each.name not in FOLLOWING]
        return tuple(sorted(taken, key=lambda each: not each.required))

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        """Under which names a parameter is known: as typed, and as the field or argument it is."""
        names = {called(each): each for each in self._all}
        for each in self._all:
            names.setdefault(each.field or each.name, each)
        return names

    @cached_property
    def _can_wait(self) -> bool:
        return any(each.name == "wait" for each in self._all)

    @cached_property
    def _code(self) -> Callable[..., Any]:
        code: Callable[..., Any] = code_of(self.operation.code)
        return code

    def waits(self, params: Any) -> bool:
        """Whether a call may take as long as it is told to."""
        if not self._can_wait:
            return False
        return isinstance(params, list) or bool(params and params.get("wait"))

    def arguments(self, params: Any) -> dict[str, Any]:
        """What the code is called with; an error with every parameter that does not fit."""
        problems: list[tuple[str, str]] = []
        given = self._given(params, problems)
        converted: dict[str, Any] = {}
        for parameter in self._all:
            value = given.get(parameter.name)
            if value is None:
                value = _default(parameter)
                if value is None and parameter.required:
                    problems.append((called(parameter), "is needed"))
            else:
                try:
                    value = self._value(parameter, value)
                except InvalidValue as error:
                    problems.append((called(parameter), error.reason))
            converted[parameter.name] = value
        if problems:
            raise invalid(problems)
        return arguments_of(self.operation, self._all, converted)

    def __call__(self, here: AppContext, params: Any) -> Any:
        """Do it; the answer as it goes into JSON."""
        arguments = self.arguments(params)
        answer = self._code(here, **arguments)
        if isinstance(answer, Iterator):
            return list(islice(answer, arguments.get("limit") or MOST_ANSWERS))
        return answer

    def _given(self, params: Any, problems: list[tuple[str, str]]) -> dict[str, Any]:
        """The parameters by the names of the table, from what was sent by name or by place."""
        if params is None:
            return {}
        if isinstance(params, list):
            names = [each.name for each in self.parameters]
            if len(params) > len(names):
                many = f"takes {len(names)} parameters, not {len(params)}"
                problems.append((self.name, many))
            return dict(zip(names, params, strict=False))
        given: dict[str, Any] = {}
        for name, value in params.items():
            parameter = self._by_name.get(name)
            if parameter is None:
                problems.append((name, f"is no parameter of {self.name}{self._hint(name)}"))
            elif parameter.name in given:
                problems.append((name, f"is the same as {called(parameter)}, which is given too"))
            else:
                given[parameter.name] = value
        return given

    def _hint(self, name: str) -> str:
        return meant(name, self._by_name) or _listed([called(each) for each in self.parameters])

    def _value(self, parameter: Parameter, value: Any) -> Any:
        if parameter.name in FOLLOWING and value is True:
            raise InvalidValue(parameter.name, INSTEAD)
        if not parameter.many:
            found = checked(parameter, value)
            check = CHECKED.get((self.name, parameter.name))
            wrong = None if check is None else check(value)
            if wrong is not None:
                raise InvalidValue(parameter.name, wrong)
            return found
        if not isinstance(value, list) or not value:
            raise InvalidValue(parameter.name, "must be an array with something in it")
        return [checked(parameter, each) for each in value]


def checked(parameter: Parameter, value: Any) -> Any:
    """A value of the kind that a parameter has; InvalidValue says what it should be."""
    name, kind = parameter.name, parameter.kind
    if kind == "json":
        return value
    if kind in ("flag", "yesno"):
        return _of_type(name, value, bool, "true or false")
    if kind == "number":
        return _number(name, value)
    if kind == "duration" and type(value) in (int, float):
        value = f"{value:f}"
    text = _of_type(name, value, str, _WORDS.get(kind, "a text"))
    if "\0" in text:
        raise InvalidValue(name, "may not hold a NUL")
    if parameter.choices and text not in parameter.choices:
        raise InvalidValue(name, f"must be one of {', '.join(parameter.choices)}")
    if kind == "path":
        raise InvalidValue(name, "is a path, and no path is taken from here")
    if kind == "secret":
        from herdbook.domain.secret import Secret  # noqa: PLC0415

        return Secret(text)
    convert = _CONVERTERS.get(kind)
    return text if convert is None else convert(name, text)


_WORDS = {
    "moment": "a time, such as 2026-05-01T12:00Z",
    "duration": "a length of time: 90s, 5m, 2h, or a number of seconds",
    "secret": "a text",
}


_CONVERTERS: Mapping[str, Callable[[str, str], object]] = {
    "moment": as_moment,
    "duration": as_duration,
}


def _of_type(name: str, value: Any, wanted: type, words: str) -> Any:
    if type(value) is not wanted:
        raise InvalidValue(name, f"must be {words}")
    return value


def _number(name: str, value: Any) -> int:
    number: int = _of_type(name, value, int, "a whole number")
    least = 1 if name == "limit" else -LARGEST - 1
    if not least <= number <= LARGEST:
        raise InvalidValue(name, f"must be a whole number from {least} to {LARGEST}")
    return number


def _default(parameter: Parameter) -> Any:
    if parameter.kind == "flag":
        return False
    if parameter.default is None or parameter.kind == "number":
        return parameter.default
    return checked(parameter, parameter.default)


def called(parameter: Parameter) -> str:
    """What a parameter is called over JSON-RPC: as on the command line, in snake_case."""
    return shown(parameter).replace("-", "_")


@cache
def methods() -> dict[str, Method]:
    """Every method that a program from outside may call, by its name."""
    return {
        each.name: Method(each)
        for each in OPERATIONS
        if not each.local and each.name not in ENDLESS
    }


def unknown(name: str) -> str:
    """What to say of a method that there is not."""
    for operation in OPERATIONS:
        if operation.name == name and operation.local:
            return f"{name} is for the command line alone"
        if operation.name == name:
            return f"{name} {INSTEAD}"
        if operation.alias == name and not operation.local:
            return f"there is no method {name}; did you mean {operation.name}?"
    hint = meant(name, methods()) or "; rpc.discover lists them all"
    return f"there is no method {name}{hint}"


def meant(word: str, known: Mapping[str, object]) -> str:
    """A question for somebody who mistyped; nothing where nothing is like it."""
    from difflib import get_close_matches  # noqa: PLC0415

    close = get_close_matches(word[:100], list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _listed(names: Sequence[str]) -> str:
    return f"; it takes {', '.join(names)}" if names else "; it takes none"
