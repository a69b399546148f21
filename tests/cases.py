"""Runs a law over a list of cases as one test, and reports every case that fails.

`for_each` takes what `pytest.mark.parametrize` takes. A test per case costs pytest and its workers
eight milliseconds whatever it does, and the same again in each worker that collects it, so a law
over three hundred fields took seconds to state what is checked in a tenth of one. The cases of a
loop share the fixtures of their test; `begin` and `space` are the exception: each case has a space
of its own. A law that takes any other fixture of its own, such as `tmp_path`, is parametrised.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

PER_CASE = ("begin", "space")
"""The fixtures that are made for each case."""

Law = Callable[..., None]
Ids = Callable[[Any], str | None] | Iterable[str] | None


def for_each(names: str | Sequence[str], cases: Iterable[Any], *, ids: Ids = None) -> Any:
    """Run the decorated law once for each case; ValueError if there is no case.

    The test fails with a group of the exceptions of all failing cases, and its message has their
    names. A test that skips itself or is interrupted ends at once.
    """
    fields = tuple(part.strip() for part in names.split(",")) if isinstance(names, str) else names
    listed = _named(len(fields), list(cases), ids)
    if not listed:
        raise ValueError(f"there is no case of {', '.join(fields)}")

    def decorate(law: Law) -> Law:
        parameters = inspect.signature(law).parameters

        @functools.wraps(law)
        def run_all(**fixtures: Any) -> None:
            failures = []
            for number, (name, values) in enumerate(listed):
                given = {**_of_case(fixtures, number), **dict(zip(fields, values, strict=True))}
                try:
                    law(**given)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - all are told
                    failure.add_note(f"in the case {name}")
                    failures.append((name, failure))
            if failures:
                which = ", ".join(name for name, _ in failures)
                raise BaseExceptionGroup(
                    f"{len(failures)} of {len(listed)} cases fail: {which}",
                    [failure for _, failure in failures],
                )

        rest = [each for each in parameters.values() if each.name not in fields]
        run_all.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]
        run_all.loops = True  # type: ignore[attr-defined]
        return run_all

    return decorate


def check_fixtures(item: pytest.Item) -> None:
    """Refuse a loop whose cases would share a fixture that is made for one test: UsageError."""
    if not getattr(getattr(item, "function", None), "loops", False):
        return
    found = item._fixtureinfo  # type: ignore[attr-defined] # pytest has no public name for it
    given = item.callspec.params if hasattr(item, "callspec") else ()
    for name in found.initialnames:  # also those that a test is given without asking
        definitions = found.name2fixturedefs.get(name, ())
        own = any(each.scope == "function" for each in definitions)
        if own and name not in PER_CASE and name not in given:
            raise pytest.UsageError(f"{item.nodeid}: the cases of a loop would share {name!r}")


def _of_case(fixtures: dict[str, Any], number: int) -> dict[str, Any]:
    """The fixtures for one case: its space is its own."""
    changed = dict(fixtures)
    if "space" in fixtures:
        changed["space"] = f"{fixtures['space']}-{number}"
    if "begin" in fixtures:
        changed["begin"] = fixtures["begin"].in_space(f"{fixtures['begin'].space}-{number}")
    return changed


def _named(width: int, cases: list[Any], ids: Ids) -> list[tuple[str, Sequence[Any]]]:
    """The cases as sequences of values, each with a name to report it by."""
    found = []
    given = [None] * len(cases) if ids is None or callable(ids) else list(ids)
    for case, name in zip(cases, given, strict=True):
        if not hasattr(case, "marks"):
            values, own = case if width > 1 else (case,), None
        elif case.marks:
            raise ValueError("a case of a loop can have no marks")
        else:  # pytest.param
            values, own = case.values, case.id
        joined = "-".join(_name(value, ids) for value in values)
        found.append((own or name or joined, values))
    return found


def _name(value: Any, ids: Ids) -> str:
    told = ids(value) if callable(ids) else None
    return told or getattr(value, "__name__", None) or repr(value)[:60]
