"""A plan as Markdown: headings and task lists, as one would write them by hand."""

from collections.abc import Iterator
from typing import Final

from herdbook.domain.plan.model import Priority, TaskStatus
from herdbook.domain.plan_text.blocks import (
    ATTRIBUTE,
    DIVIDER,
    HEADING,
    ITEM,
    Fence,
    can_be_written,
    indent_width,
    opening_fence,
    outdent,
    read_text_line,
    text_lines,
)
from herdbook.domain.plan_text.draft import DependencyRef, Draft, assemble, set_field
from herdbook.domain.plan_text.inline import (
    escape_name,
    fits_on_line,
    format_ref,
    format_value,
    parse_after,
    parse_item_line,
    parse_value,
    quote,
)
from herdbook.domain.plan_text.problems import Problems, split_lines
from herdbook.domain.plan_text.tree import (
    INITIATIVE,
    PHASE,
    TASK,
    InitiativeText,
    ItemKind,
    PhaseText,
    PlanText,
    TaskText,
    field_rules,
    non_default_fields,
)

BOXES: Final = {
    " ": TaskStatus.PENDING,
    "x": TaskStatus.COMPLETED,
    "~": TaskStatus.IN_PROGRESS,
    "?": TaskStatus.QUALITY_REVIEW,
    "!": TaskStatus.BLOCKED,
    "-": TaskStatus.IN_PROGRESS,
    "X": TaskStatus.COMPLETED,
    "": TaskStatus.PENDING,
}
"""The characters in a task's checkbox; of several for one status, the first is written."""
_FLAGS: Final = {"true": True, "yes": True, "false": False, "no": False}
_TEXTS: Final = {PHASE: "content", TASK: "description"}


def read_markdown(text: str | bytes) -> PlanText:
    """Parse a plan in Markdown; raises InvalidValue with what is wrong in which lines."""
    reader = _MarkdownReader()
    for number, line in split_lines(text):
        reader.read(number, line.rstrip(" \t"))
    return reader.end()


class _MarkdownReader:
    """The position in the text: the current heading, the open tasks, the open code block."""

    def __init__(self) -> None:
        self.problems = Problems()
        self.drafts: list[Draft] = []
        self.texts: dict[Draft, list[str]] = {}
        self.columns: dict[Draft, int] = {}
        self.section: Draft | None = None
        self.open: list[tuple[int, Draft]] = []
        self.fence: tuple[Fence, int, Draft | None] | None = None
        self.fresh: Draft | None = None  # its attributes may follow
        self.blanks = 0
        self.last: Draft | None = None

    def read(self, number: int, line: str) -> None:
        if not line:
            self.blanks += 1
            self.fresh = None
            return
        indent = indent_width(line)
        bare = line.lstrip(" \t")
        if self.fence is not None and self._take_code_line(indent, line):
            return
        if item := ITEM.match(bare):
            self._task(number, indent, item[1], item[2] or "")
        elif indent == 0 and (heading := HEADING.match(bare)):
            self._heading(number, len(heading[1]), heading[2] or "")
        elif indent == 0 and DIVIDER.match(bare):
            self.fresh = None
        elif not self._take_attribute(number, indent, bare):
            self._text(number, indent, line)

    def end(self) -> PlanText:
        if self.fence is not None:
            self.problems.add(self.fence[0].line, "this block of code does not end")
        for draft, lines in self.texts.items():
            set_field(draft, _TEXTS[draft.kind], "\n".join(lines), draft.line, self.problems)
        return assemble(self.drafts, self.problems)

    def _take_code_line(self, indent: int, line: str) -> bool:
        """Take a line of a code block; a line outside the block's item ends it unclosed."""
        if self.fence is None:
            return False
        fence, least, owner = self.fence
        if indent < least:
            self.problems.add(fence.line, "this block of code does not end")
            self.fence = None
            return False
        if owner is not None:
            self._append(owner, outdent(line, self.columns[owner]))
        if fence.ends_with(line):
            self.fence = None
        self.blanks = 0
        return True

    def _heading(self, number: int, level: int, text: str) -> None:
        self.open.clear()
        above = self.section
        if above is not None and above.kind is PHASE:
            above = above.parent
        if level == 1:
            self.section = self._begin(Draft(INITIATIVE, number), text)
        elif level > 2:  # noqa: PLR2004 - as many levels as there are sorts of headings
            self.problems.add(number, "a heading is an initiative (#) or a phase (##)")
        else:
            if above is None:
                self.problems.add(number, "this phase is in no initiative: begin one with # above")
            self.section = self._begin(Draft(PHASE, number, above), text)

    def _task(self, number: int, indent: int, box: str, text: str) -> None:
        # Less than two columns are not a nesting level but a slip.
        while self.open and indent < self.open[-1][0] + 2:
            self.open.pop()
        under = self.open[-1][1] if self.open else self.section
        draft = Draft(TASK, number, under)
        self.open.append((indent, draft))
        if box not in BOXES:
            known = ", ".join(f"[{each}]" for each in BOXES if each)
            self.problems.add(number, f"[{box}] is not one of {known}")
        elif BOXES[box] is not TaskStatus.PENDING:
            set_field(draft, "status", BOXES[box], number, self.problems)
        self._begin(draft, text)

    def _begin(self, draft: Draft, text: str) -> Draft:
        head = parse_item_line(text)
        draft.ref = head.ref
        if head.name:
            set_field(draft, "name", head.name, draft.line, self.problems)
        for key, value in head.attributes:
            self._attribute(draft, key, value, draft.line)
        draft.after += [DependencyRef(draft.line, *each) for each in head.after]
        self.drafts.append(draft)
        self.fresh = draft
        return draft

    def _take_attribute(self, number: int, indent: int, bare: str) -> bool:
        draft, found = self.fresh, ATTRIBUTE.match(bare)
        if draft is None or found is None:
            return False
        if self.open and indent <= self.open[-1][0]:
            return False
        key = "after" if found[1].lower() == "after" else found[1]
        if key not in ("after", *draft.kind.fields):
            return False
        self._attribute(draft, key, parse_value(found[2] or ""), number)
        return True

    def _attribute(self, draft: Draft, key: str, value: str, number: int) -> None:
        if key == "after":
            draft.after += [DependencyRef(number, *each) for each in parse_after(value)]
        elif key not in draft.kind.fields:
            known = ", ".join(_known_keys(draft.kind))
            self.problems.add(
                number, f"{key} is not one of {known} (a brace in a name is written \\{{)"
            )
        elif field_rules(draft.kind)[key].python_type is bool:
            set_field(draft, key, _FLAGS.get(value, value), number, self.problems)
        else:
            set_field(draft, key, value, number, self.problems)

    def _text(self, number: int, indent: int, line: str) -> None:
        owner = next((task for column, task in reversed(self.open) if column < indent), None)
        if owner is None and not self.open and self.section and self.section.kind is PHASE:
            owner = self.section
        self.fresh = None
        if fence := opening_fence(line, number):
            inside = next((column + 1 for column, task in self.open if task is owner), 0)
            self.fence = fence, inside, owner
        if owner is None:
            self.problems.add(number, self._stray_text_reason())
            return
        first = owner not in self.texts
        column = self.columns.setdefault(owner, indent)
        text = outdent(line, column)
        outermost = owner.kind is PHASE
        self._append(owner, read_text_line(text, first=first, outermost=outermost))

    def _append(self, owner: Draft, text: str) -> None:
        lines = self.texts.setdefault(owner, [])
        if lines:
            lines += [""] * (self.blanks if self.last is owner else 1)
        lines.append(text)
        self.last = owner
        self.blanks = 0

    def _stray_text_reason(self) -> str:
        if self.open:
            return "text about a task is indented under it, text about a phase is above its tasks"
        if self.section:
            return "an initiative has no text of its own: write it under a phase or a task"
        return (
            "this is neither a heading nor a task (- [ ] …), and there is nothing it could be about"
        )


def _known_keys(kind: ItemKind) -> tuple[str, ...]:
    return (*kind.fields, "after") if kind.may_wait else kind.fields


def write_markdown(plan: PlanText) -> str:
    """Format a plan as Markdown that parses to the same plan."""
    blocks = [*_tasks_lines(plan.tasks)]
    for initiative in plan.initiatives:
        blocks += [*_section_lines("#", initiative), *_tasks_lines(initiative.tasks)]
        for phase in initiative.phases:
            blocks += [*_section_lines("##", phase), *_tasks_lines(phase.tasks)]
    while blocks and not blocks[0]:
        del blocks[0]
    return "\n".join([*blocks, ""]) if blocks else ""


def _section_lines(mark: str, item: InitiativeText | PhaseText) -> Iterator[str]:
    fields = non_default_fields(item)
    content = fields.pop("content", None)
    yield ""
    yield " ".join([mark, *_name_words(fields), format_ref(item.ref)])
    as_text = isinstance(content, str) and can_be_written(content)
    if content is not None and not as_text:
        fields["content"] = content
    yield from _attribute_lines(fields)
    if isinstance(item, PhaseText) and item.after:
        yield f"after: {', '.join(map(format_ref, item.after))}"
    if isinstance(content, str) and as_text:
        yield ""
        yield from text_lines(content, outermost=True)
    if item.tasks:
        yield ""


def _tasks_lines(tasks: tuple[TaskText, ...], depth: int = 0) -> Iterator[str]:
    for task in tasks:
        white = "  " * depth
        for number, line in enumerate(_task_lines(task)):
            yield f"{white}{'  ' if number and line else ''}{line}" if line else ""
        yield from _tasks_lines(task.tasks, depth + 1)


def _task_lines(task: TaskText) -> Iterator[str]:
    """The lines of one task, without indentation."""
    fields = non_default_fields(task)
    box = next(mark for mark, status in BOXES.items() if status is task.status)
    fields.pop("status", None)
    words = [f"- [{box}]", *_name_words(fields)]
    priority = fields.pop("priority", Priority.MEDIUM)
    if priority is not Priority.MEDIUM:
        words.append(f"({priority})")
    words.append(format_ref(task.ref))
    choices = [f"{key}: {fields.pop(key)}" for key in ("category", "type") if key in fields]
    if choices:
        words.append(f"{{{', '.join(choices)}}}")
    if task.after:
        words.append(f"after: {', '.join(map(format_ref, task.after))}")
    yield " ".join(words)
    description = fields.pop("description", None)
    as_text = isinstance(description, str) and can_be_written(description)
    if description is not None and not as_text:
        fields["description"] = description
    yield from _attribute_lines(fields)
    if isinstance(description, str) and as_text:
        yield from text_lines(description, outermost=False)


def _name_words(fields: dict[str, object]) -> list[str]:
    """The name as it is written on the item's line, unless it cannot be written there."""
    name = fields.get("name")
    if isinstance(name, str) and fits_on_line(name):
        del fields["name"]
        return [escape_name(name)]
    return []


def _attribute_lines(fields: dict[str, object]) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, bool):
            yield f"{key}: {'true' if value else 'false'}"
        elif isinstance(value, list):
            yield f"{key}: {', '.join(value)}"
        else:
            text = str(value)
            yield f"{key}: {quote(text) if key == 'name' else format_value(text)}"
