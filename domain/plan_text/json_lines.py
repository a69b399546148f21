"""A plan as JSON Lines: one item a line, for programs."""

import json
from typing import Final

from herdbook.domain.plan_text.draft import Awaited, Draft, assemble, put
from herdbook.domain.plan_text.problems import Problems, lines_of
from herdbook.domain.plan_text.tree import (
    DEEPEST,
    INITIATIVE,
    PHASE,
    SORTS,
    TASK,
    PlanText,
    Sort,
    said_of,
    sort_of,
    walk,
)

_UNDER: Final = {
    INITIATIVE: {},
    PHASE: {"initiative": INITIATIVE},
    TASK: {"initiative": INITIATIVE, "phase": PHASE, "parent": TASK},
}
"""In which key an item names what it stands under."""


class _Twice(ValueError):
    """A key stands twice in one object."""


def read_lines(text: str | bytes) -> PlanText:
    """The plan in JSON Lines; InvalidValue tells what is wrong in which lines."""
    problems = Problems()
    drafts: list[Draft] = []
    under: dict[Draft, tuple[Sort, str]] = {}
    for number, line in lines_of(text):
        if line.strip(" \t"):
            said = _object(line, number, problems)
            draft = _draft(said, number, problems) if said is not None else None
            if draft is not None and said is not None:
                drafts.append(draft)
                _read_fields(draft, said, under, problems)
    _place(drafts, under, problems)
    return assemble(drafts, problems)


def write_lines(plan: PlanText) -> str:
    """The plan in JSON Lines that are read as the same plan; what is as by default is left out."""
    lines: list[str] = []
    for item, above in walk(plan):
        sort = sort_of(item)
        said: dict[str, object] = {"kind": sort.title, "ref": item.ref}
        if above is not None:
            said[_key_of(sort, sort_of(above))] = above.ref
        said |= said_of(item)
        after = item._asdict().get("after")
        if after:
            said["after"] = after
        lines.append(json.dumps(said, ensure_ascii=False) + "\n")
    return "".join(lines)


def _key_of(sort: Sort, above: Sort) -> str:
    return next(key for key, each in _UNDER[sort].items() if each is above)


def _object(line: str, number: int, problems: Problems) -> dict[str, object] | None:
    try:
        said = json.loads(line, object_pairs_hook=_once)
    except _Twice as error:
        problems.add(number, str(error))
    except json.JSONDecodeError as error:
        problems.add(number, f"is not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError):
        problems.add(number, "is not JSON that can be read: a number too long, or nested too deep")
    else:
        if isinstance(said, dict):
            return said
        problems.add(number, "is not a JSON object")
    return None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(f"{key} is given twice")
        found[key] = value
    return found


def _draft(said: dict[str, object], number: int, problems: Problems) -> Draft | None:
    kind = said.pop("kind", None)
    sort = next((each for each in SORTS if each.title == kind), None)
    if sort is None:
        known = ", ".join(each.title for each in SORTS)
        problems.add(number, f"kind: {kind!r} is not one of {known}")
        return None
    draft = Draft(sort, number)
    ref = said.pop("ref", None)
    if isinstance(ref, str):
        draft.ref = ref
    elif ref is not None:
        problems.add(number, f"ref: must be text, not {type(ref).__name__}")
    return draft


def _read_fields(
    draft: Draft,
    said: dict[str, object],
    under: dict[Draft, tuple[Sort, str]],
    problems: Problems,
) -> None:
    sort = draft.sort
    for key, value in said.items():
        if key in sort.fields:
            if value is not None or sort.made._field_defaults.get(key, "") is not None:
                put(draft, key, value, draft.line, problems)
        elif key == "after" and sort.may_wait:
            draft.after = _refs(value, draft.line, problems)
        elif key not in _UNDER[sort]:
            problems.add(draft.line, f"{key}: is no key of {sort.title}s")
        elif value is None:
            continue
        elif draft in under:
            known = ", ".join(_UNDER[sort])
            problems.add(draft.line, f"{key}: a {sort.title} stands under one item alone: {known}")
        elif isinstance(value, str):
            under[draft] = _UNDER[sort][key], value
        else:
            problems.add(draft.line, f"{key}: must be text, not {type(value).__name__}")
    if sort is PHASE and draft not in under:
        problems.add(draft.line, "initiative: a phase needs one")


def _refs(value: object, number: int, problems: Problems) -> list[Awaited]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return [Awaited(number, each, is_ref=True) for each in value]
    problems.add(number, "after: must be a list of refs")
    return []


def _place(drafts: list[Draft], under: dict[Draft, tuple[Sort, str]], problems: Problems) -> None:
    """Put every item under the one it names, wherever in the text that stands."""
    by_ref = {draft.ref: draft for draft in reversed(drafts) if draft.ref}
    for draft, (sort, ref) in under.items():
        above = by_ref.get(ref)
        if above is None or above.sort is not sort:
            problems.add(draft.line, f"no {sort.title} has the ref {ref!r}")
        else:
            draft.under = above
    for draft in drafts:
        if _stands_in_itself(draft):
            problems.add(draft.line, f"the task {draft.ref!r} stands under itself")
            draft.under = None


def _stands_in_itself(draft: Draft) -> bool:
    above = draft.under
    steps = 0
    while above is not None and above is not draft and steps <= DEEPEST:
        above = above.under
        steps += 1
    return above is draft
