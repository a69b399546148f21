"""Assembles items, as a reader found them one by one, into a plan."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan_text.problems import Problems
from herdbook.domain.plan_text.tree import (
    DEEPEST,
    INITIATIVE,
    ITEM_KINDS,
    PHASE,
    TASK,
    InitiativeText,
    ItemKind,
    PhaseText,
    PlanText,
    TaskText,
    field_rules,
)
from herdbook.domain.values import KEY

T = TypeVar("T", TaskText, PhaseText)
_ID: Final = re.compile(r"(ini|pha|tsk)_\S+")


class DependencyRef(NamedTuple):
    """A dependency as it is written in the text: a ref, or possibly a name."""

    line: int
    text: str
    is_ref: bool


class Draft:
    """An item while a text is being read."""

    def __init__(self, kind: ItemKind, line: int, parent: "Draft | None" = None) -> None:
        self.kind = kind
        self.line = line
        self.parent = parent
        self.ref = ""
        self.values: dict[str, Any] = {}  # each was validated by the rule of its field
        self.after: list[DependencyRef] = []
        self.children: list[Draft] = []

    @property
    def name(self) -> str:
        """The name; empty if there is none or it is not valid."""
        name = self.values.get("name")
        return name if isinstance(name, str) else ""

    @property
    def path(self) -> tuple[int, ...]:
        """The line numbers of its ancestors, the outermost first."""
        lines: list[int] = []
        draft = self.parent
        while draft is not None and len(lines) <= DEEPEST + 2:
            lines.append(draft.line)
            draft = draft.parent
        return tuple(reversed(lines))


def set_field(draft: Draft, field: str, value: object, line: int, problems: Problems) -> None:
    """Set a field; adds a problem if the value is invalid or the field is already set."""
    if field in draft.values:
        problems.add(line, f"{field} is given twice")
        return
    try:
        draft.values[field] = field_rules(draft.kind)[field].check(field, value)
    except InvalidValue as error:
        problems.add(line, str(error))
        draft.values[field] = None


def assemble(drafts: Sequence[Draft], problems: Problems) -> PlanText:
    """Build the plan from all items of a text; raises InvalidValue with all that is wrong."""
    by_ref = _index_refs(drafts, problems)
    names: dict[tuple[ItemKind, str], list[Draft]] = {}
    for draft in drafts:
        if "name" not in draft.values and not draft.ref.startswith(draft.kind.prefix):
            problems.add(draft.line, f"the {draft.kind.title} has no name")
        names.setdefault((draft.kind, normalise_name(draft.name)), []).append(draft)
        if _nesting_depth(draft) > DEEPEST:
            problems.add(draft.line, f"tasks are nested deeper than {DEEPEST} levels")
    after = {
        draft.ref: _resolve_dependencies(draft, by_ref, names, problems)
        for draft in drafts
        if draft.after
    }
    problems.check()
    for draft in drafts:
        if draft.parent is not None:
            draft.parent.children.append(draft)
    top = [draft for draft in drafts if draft.parent is None]
    return PlanText(
        tuple(_waiting_item(TaskText, each, after) for each in top if each.kind is TASK),
        tuple(_initiative(each, after) for each in top if each.kind is INITIATIVE),
    )


def normalise_name(name: str) -> str:
    """A name for lookup: runs of white space count as one space."""
    return " ".join(name.split())


def _nesting_depth(draft: Draft) -> int:
    depth = 0
    each: Draft | None = draft
    while each is not None and each.kind is TASK and depth <= DEEPEST:
        depth += 1
        each = each.parent
    return depth


def _index_refs(drafts: Sequence[Draft], problems: Problems) -> dict[str, Draft]:
    """Every item by its ref; an item without one is labelled by its line number."""
    by_ref: dict[str, Draft] = {}
    for draft in drafts:
        if not draft.ref:
            continue
        try:
            KEY.check("the id", draft.ref)
        except InvalidValue as error:
            problems.add(draft.line, str(error))
        other = next((s for s in ITEM_KINDS if draft.ref.startswith(s.prefix)), draft.kind)
        if other is not draft.kind:
            problems.add(draft.line, f"{draft.ref} is the id of a {other.title}")
        first = by_ref.setdefault(draft.ref, draft)
        if first is not draft:
            problems.add(draft.line, f"line {first.line} has the id {draft.ref} too")
    for draft in drafts:
        if not draft.ref:
            label = f"line-{draft.line}"
            while label in by_ref:
                label += "-"
            draft.ref = label
            by_ref[label] = draft
    return by_ref


def _resolve_dependencies(
    draft: Draft,
    by_ref: dict[str, Draft],
    names: dict[tuple[ItemKind, str], list[Draft]],
    problems: Problems,
) -> tuple[str, ...]:
    """The refs of what an item waits for, each once."""
    if not draft.kind.may_wait:
        problems.add(draft.after[0].line, f"an {draft.kind.title} cannot wait for another")
        return ()
    found: dict[str, None] = {}
    for awaited in draft.after:
        if not awaited.is_ref:
            called = names.get((draft.kind, normalise_name(awaited.text)), [])
            nearest = _nearest(draft, called) or called
            if len(nearest) > 1:
                problems.add(awaited.line, _ambiguous_name(awaited.text, nearest))
            if nearest:
                found[nearest[0].ref] = None
                continue
        target = by_ref.get(awaited.text)
        if target is None and not _may_be_stored(awaited.text, draft.kind):
            problems.add(awaited.line, _unknown_dependency(awaited, draft.kind))
        elif target is not None and target.kind is not draft.kind:
            reason = f"a {draft.kind.title} cannot wait for an item of another sort"
            problems.add(awaited.line, f"{reason}: {awaited.text} is of line {target.line}")
        found[awaited.text] = None
    return tuple(found)


def _ambiguous_name(name: str, nearest: Sequence[Draft]) -> str:
    lines = " or ".join(str(each.line) for each in nearest[:3])
    return (
        f"{name!r} can be the {nearest[0].kind.title} of line {lines}: give the one you mean an "
        "id, as in ^a1, and wait for ^a1"
    )


def _unknown_dependency(awaited: DependencyRef, kind: ItemKind) -> str:
    if awaited.is_ref:
        return f"no {kind.title} has the id {awaited.text!r}"
    return f"no {kind.title} is called {awaited.text!r} (a comma in a name is written \\,)"


def _may_be_stored(ref: str, kind: ItemKind) -> bool:
    """Whether this can be the id of an item that is in the store and not in the text."""
    return bool(_ID.fullmatch(ref)) and ref.startswith(kind.prefix)


def _nearest(draft: Draft, called: Iterable[Draft]) -> list[Draft]:
    """The nearest of the named items: siblings first, then farther out."""
    own = draft.path
    best: tuple[int, int] | None = None
    nearest: list[Draft] = []
    for other in called:
        if other is draft:
            continue
        path = other.path
        shared = next(
            (at for at, (one, two) in enumerate(zip(own, path, strict=False)) if one != two),
            min(len(own), len(path)),
        )
        distance = (len(own) - shared, len(path) - shared)
        if best is None or distance < best:
            best, nearest = distance, [other]
        elif distance == best:
            nearest.append(other)
    return nearest


After = dict[str, tuple[str, ...]]


def _waiting_item(make: type[T], draft: Draft, after: After) -> T:
    """A task or a phase, with its tasks."""
    return make(
        ref=draft.ref,
        after=after.get(draft.ref, ()),
        tasks=tuple(_waiting_item(TaskText, each, after) for each in draft.children),
        **({"name": ""} | draft.values),
    )


def _initiative(draft: Draft, after: After) -> InitiativeText:
    return InitiativeText(
        ref=draft.ref,
        tasks=tuple(
            _waiting_item(TaskText, each, after) for each in draft.children if each.kind is TASK
        ),
        phases=tuple(
            _waiting_item(PhaseText, each, after) for each in draft.children if each.kind is PHASE
        ),
        **({"name": ""} | draft.values),
    )
