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
    fence_of,
    indent_of,
    outdented,
    read_text_line,
    written_text,
)
from herdbook.domain.plan_text.draft import Awaited, Draft, assemble, put
from herdbook.domain.plan_text.inline import (
    is_even,
    quoted,
    read_after,
    read_head,
    value_of,
    written_name,
    written_ref,
    written_value,
)
from herdbook.domain.plan_text.problems import Problems, lines_of
from herdbook.domain.plan_text.tree import (
    INITIATIVE,
    PHASE,
    TASK,
    InitiativeText,
    PhaseText,
    PlanText,
    Sort,
    TaskText,
    rules_of,
    said_of,
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
"""What stands in the box of a task; of several for one status, the first is written."""
_FLAGS: Final = {"true": True, "yes": True, "false": False, "no": False}
_TEXTS: Final = {PHASE: "content", TASK: "description"}


def read_markdown(text: str | bytes) -> PlanText:
    """The plan in a Markdown text; InvalidValue tells what is wrong in which lines."""
    reader = _Reader()
    for number, line in lines_of(text):
        reader.read(number, line.rstrip(" \t"))
    return reader.end()


class _Reader:
    """Where in a text we are: under which heading, in which tasks, in which block of code."""

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
        indent = indent_of(line)
        bare = line.lstrip(" \t")
        if self.fence is not None and self._is_code(indent, line):
            return
        if item := ITEM.match(bare):
            self._task(number, indent, item[1], item[2] or "")
        elif indent == 0 and (heading := HEADING.match(bare)):
            self._heading(number, len(heading[1]), heading[2] or "")
        elif indent == 0 and DIVIDER.match(bare):
            self.fresh = None
        elif not self._is_attribute(number, indent, bare):
            self._text(number, indent, line)

    def end(self) -> PlanText:
        if self.fence is not None:
            self.problems.add(self.fence[0].line, "this block of code does not end")
        for draft, lines in self.texts.items():
            put(draft, _TEXTS[draft.sort], "\n".join(lines), draft.line, self.problems)
        return assemble(self.drafts, self.problems)

    def _is_code(self, indent: int, line: str) -> bool:
        """Take a line of a block of code; a line that leaves its item is none."""
        if self.fence is None:
            return False
        fence, least, owner = self.fence
        if indent < least:
            self.problems.add(fence.line, "this block of code does not end")
            self.fence = None
            return False
        if owner is not None:
            self._append(owner, outdented(line, self.columns[owner]))
        if fence.ends_with(line):
            self.fence = None
        self.blanks = 0
        return True

    def _heading(self, number: int, level: int, text: str) -> None:
        self.open.clear()
        above = self.section
        if above is not None and above.sort is PHASE:
            above = above.under
        if level == 1:
            self.section = self._begin(Draft(INITIATIVE, number), text)
        elif level > 2:  # noqa: PLR2004 - as many levels as there are sorts of headings
            self.problems.add(number, "a heading is an initiative (#) or a phase (##)")
        else:
            if above is None:
                self.problems.add(number, "this phase is in no initiative: begin one with # above")
            self.section = self._begin(Draft(PHASE, number, above), text)

    def _task(self, number: int, indent: int, box: str, text: str) -> None:
        # Less than two columns are no step inwards, but a slip.
        while self.open and indent < self.open[-1][0] + 2:
            self.open.pop()
        under = self.open[-1][1] if self.open else self.section
        draft = Draft(TASK, number, under)
        self.open.append((indent, draft))
        if box not in BOXES:
            known = ", ".join(f"[{each}]" for each in BOXES if each)
            self.problems.add(number, f"[{box}] is not one of {known}")
        elif BOXES[box] is not TaskStatus.PENDING:
            put(draft, "status", BOXES[box], number, self.problems)
        self._begin(draft, text)

    def _begin(self, draft: Draft, text: str) -> Draft:
        head = read_head(text)
        draft.ref = head.ref
        if head.name:
            put(draft, "name", head.name, draft.line, self.problems)
        for key, value in head.attributes:
            self._attribute(draft, key, value, draft.line)
        draft.after += [Awaited(draft.line, *each) for each in head.after]
        self.drafts.append(draft)
        self.fresh = draft
        return draft

    def _is_attribute(self, number: int, indent: int, bare: str) -> bool:
        draft, found = self.fresh, ATTRIBUTE.match(bare)
        if draft is None or found is None:
            return False
        if self.open and indent <= self.open[-1][0]:
            return False
        key = "after" if found[1].lower() == "after" else found[1]
        if key not in ("after", *draft.sort.fields):
            return False
        self._attribute(draft, key, value_of(found[2] or ""), number)
        return True

    def _attribute(self, draft: Draft, key: str, value: str, number: int) -> None:
        if key == "after":
            draft.after += [Awaited(number, *each) for each in read_after(value)]
        elif key not in draft.sort.fields:
            known = ", ".join(_keys(draft.sort))
            self.problems.add(
                number, f"{key} is not one of {known} (a brace in a name is written \\{{)"
            )
        elif rules_of(draft.sort)[key].python_type is bool:
            put(draft, key, _FLAGS.get(value, value), number, self.problems)
        else:
            put(draft, key, value, number, self.problems)

    def _text(self, number: int, indent: int, line: str) -> None:
        owner = next((task for column, task in reversed(self.open) if column < indent), None)
        if owner is None and not self.open and self.section and self.section.sort is PHASE:
            owner = self.section
        self.fresh = None
        if fence := fence_of(line, number):
            inside = next((column + 1 for column, task in self.open if task is owner), 0)
            self.fence = fence, inside, owner
        if owner is None:
            self.problems.add(number, self._homeless())
            return
        first = owner not in self.texts
        column = self.columns.setdefault(owner, indent)
        text = outdented(line, column)
        outermost = owner.sort is PHASE
        self._append(owner, read_text_line(text, first=first, outermost=outermost))

    def _append(self, owner: Draft, text: str) -> None:
        lines = self.texts.setdefault(owner, [])
        if lines:
            lines += [""] * (self.blanks if self.last is owner else 1)
        lines.append(text)
        self.last = owner
        self.blanks = 0

    def _homeless(self) -> str:
        if self.open:
            return (
                "text about a task is indented under it, text about a phase stands above its tasks"
            )
        if self.section:
            return "an initiative has no text of its own: write it under a phase or a task"
        return (
            "this is neither a heading nor a task (- [ ] …), and there is nothing it could be about"
        )


def _keys(sort: Sort) -> tuple[str, ...]:
    return (*sort.fields, "after") if sort.may_wait else sort.fields


def write_markdown(plan: PlanText) -> str:
    """The plan as Markdown that is read as the same plan."""
    blocks = [*_tasks(plan.tasks)]
    for initiative in plan.initiatives:
        blocks += [*_section("#", initiative), *_tasks(initiative.tasks)]
        for phase in initiative.phases:
            blocks += [*_section("##", phase), *_tasks(phase.tasks)]
    while blocks and not blocks[0]:
        del blocks[0]
    return "\n".join([*blocks, ""]) if blocks else ""


def _section(mark: str, item: InitiativeText | PhaseText) -> Iterator[str]:
    said = said_of(item)
    content = said.pop("content", None)
    yield ""
    yield " ".join([mark, *_named(said), written_ref(item.ref)])
    as_text = isinstance(content, str) and can_be_written(content)
    if content is not None and not as_text:
        said["content"] = content
    yield from _attributes(said)
    if isinstance(item, PhaseText) and item.after:
        yield f"after: {', '.join(map(written_ref, item.after))}"
    if isinstance(content, str) and as_text:
        yield ""
        yield from written_text(content, outermost=True)
    if item.tasks:
        yield ""


def _tasks(tasks: tuple[TaskText, ...], depth: int = 0) -> Iterator[str]:
    for task in tasks:
        white = "  " * depth
        for number, line in enumerate(_task(task)):
            yield f"{white}{'  ' if number and line else ''}{line}" if line else ""
        yield from _tasks(task.tasks, depth + 1)


def _task(task: TaskText) -> Iterator[str]:
    """The lines of one task, as if it stood outermost."""
    said = said_of(task)
    box = next(mark for mark, status in BOXES.items() if status is task.status)
    said.pop("status", None)
    words = [f"- [{box}]", *_named(said)]
    priority = said.pop("priority", Priority.MEDIUM)
    if priority is not Priority.MEDIUM:
        words.append(f"({priority})")
    words.append(written_ref(task.ref))
    choices = [f"{key}: {said.pop(key)}" for key in ("category", "type") if key in said]
    if choices:
        words.append(f"{{{', '.join(choices)}}}")
    if task.after:
        words.append(f"after: {', '.join(map(written_ref, task.after))}")
    yield " ".join(words)
    description = said.pop("description", None)
    as_text = isinstance(description, str) and can_be_written(description)
    if description is not None and not as_text:
        said["description"] = description
    yield from _attributes(said)
    if isinstance(description, str) and as_text:
        yield from written_text(description, outermost=False)


def _named(said: dict[str, object]) -> list[str]:
    """The name as it stands in its line, unless it is one that cannot."""
    name = said.get("name")
    if isinstance(name, str) and is_even(name):
        del said["name"]
        return [written_name(name)]
    return []


def _attributes(said: dict[str, object]) -> Iterator[str]:
    for key, value in said.items():
        if isinstance(value, bool):
            yield f"{key}: {'true' if value else 'false'}"
        else:
            text = str(value)
            yield f"{key}: {quoted(text) if key == 'name' else written_value(text)}"
