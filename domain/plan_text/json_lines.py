"""A plan as JSON Lines: one item per line, for programs."""

import json
from typing import Final

from herdbook.domain.plan_text.draft import DependencyRef, Draft, assemble, set_field
from herdbook.domain.plan_text.problems import Problems, split_lines
from herdbook.domain.plan_text.tree import (
    DEEPEST,
    INITIATIVE,
    ITEM_KINDS,
    PHASE,
    TASK,
    ItemKind,
    PlanText,
    item_kind,
    non_default_fields,
    walk_items,
)

_PARENT_KEYS: Final = {
    INITIATIVE: {},
    PHASE: {"initiative": INITIATIVE},
    TASK: {"initiative": INITIATIVE, "phase": PHASE, "parent": TASK},
}
"""The keys in which an item names its parent, by the kind of item."""


class _DuplicateKey(ValueError):
    """A key occurs twice in one object."""


def read_json_lines(text: str | bytes) -> PlanText:
    """Parse a plan in JSON Lines; raises InvalidValue with what is wrong in which lines."""
    problems = Problems()
    drafts: list[Draft] = []
    under: dict[Draft, tuple[ItemKind, str]] = {}
    for number, line in split_lines(text):
        if line.strip(" \t"):
            fields = _parse_object(line, number, problems)
            draft = _start_draft(fields, number, problems) if fields is not None else None
            if draft is not None and fields is not None:
                drafts.append(draft)
                _read_fields(draft, fields, under, problems)
    _attach_parents(drafts, under, problems)
    return assemble(drafts, problems)


def write_json_lines(plan: PlanText) -> str:
    """Format a plan as JSON Lines that parse to the same plan; default values are left out."""
    lines: list[str] = []
    for item, above in walk_items(plan):
        kind = item_kind(item)
        fields: dict[str, object] = {"kind": kind.title, "ref": item.ref}
        if above is not None:
            fields[_parent_key(kind, item_kind(above))] = above.ref
        fields |= non_default_fields(item)
        after = item._asdict().get("after")
        if after:
            fields["after"] = after
        lines.append(json.dumps(fields, ensure_ascii=False) + "\n")
    return "".join(lines)


def _parent_key(kind: ItemKind, above: ItemKind) -> str:
    return next(key for key, each in _PARENT_KEYS[kind].items() if each is above)


def _parse_object(line: str, number: int, problems: Problems) -> dict[str, object] | None:
    try:
        fields = json.loads(line, object_pairs_hook=_reject_duplicates)
    except _DuplicateKey as error:
        problems.add(number, str(error))
    except json.JSONDecodeError as error:
        problems.add(number, f"is not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError):
        problems.add(number, "is not JSON that can be read: a number too long, or nested too deep")
    else:
        if isinstance(fields, dict):
            return fields
        problems.add(number, "is not a JSON object")
    return None


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _DuplicateKey(f"{key} is given twice")
        found[key] = value
    return found


def _start_draft(fields: dict[str, object], number: int, problems: Problems) -> Draft | None:
    title = fields.pop("kind", None)
    kind = next((each for each in ITEM_KINDS if each.title == title), None)
    if kind is None:
        known = ", ".join(each.title for each in ITEM_KINDS)
        problems.add(number, f"kind: {title!r} is not one of {known}")
        return None
    draft = Draft(kind, number)
    ref = fields.pop("ref", None)
    if isinstance(ref, str):
        draft.ref = ref
    elif ref is not None:
        problems.add(number, f"ref: must be text, not {type(ref).__name__}")
    return draft


def _read_fields(
    draft: Draft,
    fields: dict[str, object],
    under: dict[Draft, tuple[ItemKind, str]],
    problems: Problems,
) -> None:
    kind = draft.kind
    for key, value in fields.items():
        if key in kind.fields:
            if value is not None or kind.text_class._field_defaults.get(key, "") is not None:
                set_field(draft, key, value, draft.line, problems)
        elif key == "after" and kind.may_wait:
            draft.after = _parse_refs(value, draft.line, problems)
        elif key not in _PARENT_KEYS[kind]:
            problems.add(draft.line, f"{key}: is no key of {kind.title}s")
        elif value is None:
            continue
        elif draft in under:
            known = ", ".join(_PARENT_KEYS[kind])
            problems.add(draft.line, f"{key}: a {kind.title} has one parent only: {known}")
        elif isinstance(value, str):
            under[draft] = _PARENT_KEYS[kind][key], value
        else:
            problems.add(draft.line, f"{key}: must be text, not {type(value).__name__}")
    if kind is PHASE and draft not in under:
        problems.add(draft.line, "initiative: a phase needs one")


def _parse_refs(value: object, number: int, problems: Problems) -> list[DependencyRef]:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return [DependencyRef(number, each, is_ref=True) for each in value]
    problems.add(number, "after: must be a list of refs")
    return []


def _attach_parents(
    drafts: list[Draft], under: dict[Draft, tuple[ItemKind, str]], problems: Problems
) -> None:
    """Put every item under the parent it names, wherever in the text that is."""
    by_ref = {draft.ref: draft for draft in reversed(drafts) if draft.ref}
    for draft, (kind, ref) in under.items():
        above = by_ref.get(ref)
        if above is None or above.kind is not kind:
            problems.add(draft.line, f"no {kind.title} has the ref {ref!r}")
        else:
            draft.parent = above
    for draft in drafts:
        if _is_own_ancestor(draft):
            problems.add(draft.line, f"the task {draft.ref!r} is its own ancestor")
            draft.parent = None


def _is_own_ancestor(draft: Draft) -> bool:
    above = draft.parent
    steps = 0
    while above is not None and above is not draft and steps <= DEEPEST:
        above = above.parent
        steps += 1
    return above is draft
