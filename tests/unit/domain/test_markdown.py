"""Plans in Markdown, as people and agents write them."""

from pathlib import Path

import pytest

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import (
    ExecutionMode,
    InitiativeStatus,
    PhaseStatus,
    Priority,
    TaskCategory,
    TaskStatus,
)
from herdbook.domain.plan_text.json_lines import read_json_lines, write_json_lines
from herdbook.domain.plan_text.markdown import read_markdown, write_markdown
from herdbook.domain.plan_text.tree import InitiativeText, PhaseText, PlanText, TaskText
from tests.cases import for_each

DOCUMENTATION = (Path(__file__).parents[3] / "docs" / "plans.md").read_text()


def tasks_of(text: str | bytes) -> tuple[TaskText, ...]:
    """The tasks above all headings."""
    return read_markdown(text).tasks


def problems_of(text: str | bytes) -> list[str]:
    """What is wrong with a text, line by line."""
    with pytest.raises(InvalidValue) as raised:
        read_markdown(text)
    assert raised.value.field == "plan"
    *told, last = raised.value.reason.split("\n")
    assert last == "Nothing was written"
    return told


def test_the_example_of_the_documentation_is_the_plan_it_shows() -> None:
    """What docs/plans.md shows can be copied."""
    example = DOCUMENTATION.split("````markdown\n")[1].split("\n````\n\n- `#` is")[0]
    plan = read_markdown(example)
    assert plan == PlanText(
        initiatives=(
            InitiativeText(
                "Login",
                "line-1",
                branch="feature/login",
                execution_mode=ExecutionMode.YOLO,
                phases=(
                    PhaseText(
                        "Schema",
                        "line-5",
                        content="What the tables look like is in the notes.",
                        tasks=(
                            TaskText("Agree on the columns", "line-8", status=TaskStatus.COMPLETED),
                            TaskText(
                                "Write the migration",
                                "line-9",
                                priority=Priority.HIGH,
                                tasks=(TaskText("Test it on a copy", "line-10"),),
                            ),
                            TaskText(
                                "Drop the old column",
                                "line-11",
                                description="Only when nobody reads it any more:\n\n```sql\n"
                                "ALTER TABLE users DROP COLUMN plain_password;\n```",
                                after=("line-9", "line-10"),
                            ),
                        ),
                    ),
                    PhaseText(
                        "Form",
                        "line-18",
                        after=("line-5",),
                        tasks=(
                            TaskText("Draw it", "form", category=TaskCategory.RESEARCH),
                            TaskText("Build it", "line-22", after=("form",)),
                        ),
                    ),
                ),
            ),
        )
    )


@for_each("text", ["", "\n \n\t\n", "\ufeff", b"\n", "---\n\n***\n"])
def test_a_text_with_nothing_in_it_is_an_empty_plan(text: str | bytes) -> None:
    """Blank lines and dividers are nothing."""
    assert read_markdown(text) == PlanText()
    assert write_markdown(PlanText()) == ""


@for_each("bullet", ["-", "*", "+", "1.", "23)"])
@for_each(
    ("box", "status"),
    [
        ("[ ]", TaskStatus.PENDING),
        ("[]", TaskStatus.PENDING),
        ("[x]", TaskStatus.COMPLETED),
        ("[X]", TaskStatus.COMPLETED),
        ("[-]", TaskStatus.IN_PROGRESS),
        ("[~]", TaskStatus.IN_PROGRESS),
        ("[?]", TaskStatus.QUALITY_REVIEW),
        ("[!]", TaskStatus.BLOCKED),
    ],
)
def test_the_box_of_a_task_is_its_status(bullet: str, box: str, status: TaskStatus) -> None:
    """Whatever bullet or number stands before it."""
    (task,) = tasks_of(f"{bullet} {box} Write it")
    assert (task.name, task.status) == ("Write it", status)


@for_each(
    "line",
    [
        "Drop it (high) ^a1 {category: verify} after: ^b, Test it",
        "Drop it ^a1 (HIGH) {category: verify} after: ^b , Test  it",
        "Drop it ^a1 (after: ^b, Test it) {category: verify} (high)",
        "Drop it ^a1 after: ^b, Test it (high) {category: verify}",
        'Drop it ^a1 {category: "verify", priority: high} After: b, Test it,',
        'Drop it ^"a1" {after: "^b, Test it", category: verify} (high)',
    ],
)
def test_what_stands_behind_a_name_may_stand_in_any_order(line: str) -> None:
    """Priority, id, attributes and what to wait for are told from the name by their form."""
    task, *_ = tasks_of(f"- [ ] {line}\n- [ ] Test it ^t\n- [ ] B ^b")
    assert task == TaskText(
        "Drop it", "a1", category=TaskCategory.VERIFY, priority=Priority.HIGH, after=("b", "t")
    )


@for_each(
    ("line", "name"),
    [
        (r"Look after\: the cats", "Look after: the cats"),
        (r"Use \{x: y}", "Use {x: y}"),
        (r"Get \(high)", "Get (high)"),
        (r"Raise to \^2", "Raise to ^2"),
        (r"A back\\slash", "A back\\slash"),
        ("Fix {user} (again) in C:\\dir", "Fix {user} (again) in C:\\dir"),
        ("[x] is a box", "[x] is a box"),
        ("thereafter: silence", "thereafter: silence"),
        ("שלום 🧪 日本語 e\u0301", "שלום 🧪 日本語 e\u0301"),
    ],
)
def test_a_backslash_keeps_a_mark_in_the_name(line: str, name: str) -> None:
    """Where a mark has no meaning it needs none."""
    (task,) = tasks_of(f"- [ ] {line}")
    assert task.name == name


@for_each("inner", ["  ", "   ", "    ", "\t", " \t"])
@for_each("end", ["\n", "\r\n", "\r", "  \n", "\t\r\n"])
def test_a_task_that_is_indented_is_a_child(inner: str, end: str) -> None:
    """By spaces or a tab, however lines end and whatever white space ends them."""
    lines = ["- [ ] a", f"{inner}- [ ] b", f"{inner * 2}* [ ] c", f"{inner}1. [ ] d", "- [ ] e"]
    a, e = tasks_of(end.join(lines))
    b, d = a.tasks
    assert [task.name for task in (a, b, *b.tasks, d, e)] == ["a", "b", "c", "d", "e"]


def test_one_column_is_a_slip_and_no_step_inwards() -> None:
    """Tasks that are a column apart stand side by side."""
    assert [task.name for task in tasks_of("- [ ] a\n - [ ] b\n- [ ] c")] == ["a", "b", "c"]


def test_text_under_a_task_is_its_description() -> None:
    """With its paragraphs, its lists and its own indentation, and also behind its children."""
    (task,) = tasks_of(
        "- [ ] a\n  One\n\n\n    two\n  - three\n  - [ ] b\n    of b\n  four\n\n  \\- [ ] five"
    )
    assert task.description == "One\n\n\n  two\n- three\n\nfour\n\n- [ ] five"
    assert [child.description for child in task.tasks] == ["of b"]


def test_code_is_text_whatever_is_in_it() -> None:
    """Neither tasks nor headings nor backslashes in it mean anything."""
    code = "```markdown\n# no\n- [ ] no\n\\- [ ] no\n\n\tstatus: no\n~~~\n```"
    plan = read_markdown(
        "# i\n## p\n" + code + "\n- [ ] a\n" + "\n".join(f"  {line}" for line in code.split("\n"))
    )
    (phase,) = plan.initiatives[0].phases
    assert phase.content == code
    assert [task.description for task in phase.tasks] == [code]


def test_attributes_stand_in_braces_or_directly_below() -> None:
    """Behind a blank line or other text the same words are text."""
    plan = read_markdown(
        "# i {status: archived, quality_review: yes}\nexecution_mode: yolo\n"
        "## p\nstatus: approved\nmerge_base: abc\n\nstatus: blocked\n"
        '- [ ] t\n  category: plan\n  summary: "a\\nb"\n  owner: me\n  priority: high\n'
    )
    (initiative,) = plan.initiatives
    assert (initiative.status, initiative.quality_review) == (InitiativeStatus.ARCHIVED, True)
    assert initiative.execution_mode is ExecutionMode.YOLO
    (phase,) = initiative.phases
    assert (phase.status, phase.merge_base) == (PhaseStatus.APPROVED, "abc")
    assert phase.content == "status: blocked"
    (task,) = phase.tasks
    assert (task.category, task.summary) == (TaskCategory.PLAN, "a\nb")
    assert (task.priority, task.description) == (Priority.MEDIUM, "owner: me\npriority: high")


def test_what_to_wait_for_may_stand_in_lines_of_its_own() -> None:
    """Of phases and of tasks, several of them, and begun with a capital."""
    plan = read_markdown(
        "# i\n## p\n## q\nAfter: p\n- [ ] a\n- [ ] b\n  after: a\n  After: ^tsk_1\n"
    )
    _, phase = plan.initiatives[0].phases
    assert phase.after == ("line-2",)
    assert phase.tasks[1].after == ("line-5", "tsk_1")


def test_an_id_of_the_store_needs_no_name() -> None:
    """It points at what is there, and is written as it was read."""
    text = "- [x] ^tsk_1\n\n# ^ini_1\n\n## ^pha_1\nstatus: approved\n\n- [ ] new ^a\n"
    plan = read_markdown(text)
    assert [task.name for task in plan.tasks] == [""]
    assert write_markdown(plan) == text
    assert read_json_lines(write_json_lines(plan)) == plan


def test_of_several_tasks_with_a_name_the_nearest_is_waited_for() -> None:
    """First one that stands beside it, then one of its phase, of its initiative, of the plan."""
    plan = read_markdown(
        "- [ ] Test ^top\n- [ ] Only\n# i\n- [ ] Loose ^loose\n## p\n- [ ] Test ^p\n"
        "- [ ] a\n  - [ ] Test ^inner\n  - [ ] b after: Test\n- [ ] c after: Test\n"
        "## q\n- [ ] d after: Loose, Only\n- [ ] e after: Test\n"
    )
    p, q = plan.initiatives[0].phases
    _, a, c = p.tasks
    assert a.tasks[1].after == ("inner",)
    assert c.after == ("p",)
    assert q.tasks[0].after == ("loose", "line-2")
    assert q.tasks[1].after == ("p",)


def test_names_that_are_as_near_are_refused_and_their_lines_told() -> None:
    """Nobody guesses which one is meant."""
    (told,) = problems_of("- [ ] a\n- [ ] a\n- [ ] b after: a")
    assert told.startswith(
        "line 3: 'a' can be the task of line 1 or 2: give the one you mean an id"
    )


def test_an_id_of_the_store_may_be_waited_for_though_it_is_not_in_the_text() -> None:
    """Whether it is in the store is for the import to say."""
    plan = read_markdown("# i\n## p\nafter: ^pha_1\n- [ ] a after: ^tsk_1, tsk_2")
    (phase,) = plan.initiatives[0].phases
    assert phase.after == ("pha_1",)
    assert phase.tasks[0].after == ("tsk_1", "tsk_2")


@for_each(
    ("text", "told"),
    [
        ("hello", "line 1: this is neither a heading nor a task"),
        ("\n- hello", "line 2: this is neither a heading nor a task"),
        ("## p", "line 1: this phase is in no initiative"),
        ("# i\n\n### x", "line 3: a heading is an initiative (#) or a phase (##)"),
        ("# i\ntext", "line 2: an initiative has no text of its own"),
        ("# i\n## p\n- [ ] a\ntext", "line 4: text about a task is indented under it"),
        ("- [ ]", "line 1: the task has no name"),
        ("#", "line 1: the initiative has no name"),
        ("- [q] a", "line 1: [q] is not one of [ ], [x]"),
        ("- [ ] a {colour: red}", "line 1: colour is not one of name, description"),
        ("- [ ] a {category: wait}", "line 1: category: 'wait' is not one of execute, "),
        ("- [ ] a (high)\n  priority: low", "line 2: priority is given twice"),
        ("- [x] a {status: pending}", "line 1: status is given twice"),
        ("# i {quality_review: maybe}", "line 1: quality_review: must be true or false"),
        ("- [ ] " + "x" * 501, "line 1: name: must have 1 to 500 characters, has 501"),
        ("- [ ] a after: b, c", "line 1: no task is called 'b' (a comma in a name is written \\,)"),
        ("- [ ] a after: ^b", "line 1: no task has the id 'b'"),
        ("# i\n## p ^p\n- [ ] a after: ^p", "line 3: a task cannot wait for an item of another"),
        ("# i after: j", "line 1: an initiative cannot wait for another"),
        ("- [ ] a ^x\n- [ ] b ^x", "line 2: line 1 has the id x too"),
        ("- [ ] a ^pha_1", "line 1: pha_1 is the id of a phase"),
        ("- [ ] a ^" + "x" * 65, "line 1: the id: may have at most 64 bytes"),
        ("- [ ] a\n  ```\n  x\n- [ ] b", "line 2: this block of code does not end"),
        ("# i\n## p\n~~~\nx", "line 3: this block of code does not end"),
        ("- [ ] a\n\0", "line 2: is not text: it has the character U+0000"),
        ("- [ ] a\n- [ ] \ud800", "line 2: is not text: it has the character U+D800"),
        (b"- [ ] a\n\n\xff\xfe", "line 3: is not text: byte 9 (0xff) is not UTF-8"),
        (b"\x7fELF\x02\x01\x01\0", "line 1: is not text: it has the character U+0002"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str | bytes, told: str) -> None:
    """And with what can be done instead, where that is not plain."""
    assert problems_of(text)[0].startswith(told)


def test_problems_are_told_together_up_to_twenty() -> None:
    """In the order of their lines, and a word that there is more."""
    told = problems_of("- [ ] a after: b\n- [ ]\nx\n# i\ny")
    assert [each.split(":")[0] for each in told] == ["line 1", "line 2", "line 3", "line 5"]
    told = problems_of("\n".join(["x"] * 50))
    assert [each.split(":")[0] for each in told[:20]] == [f"line {n}" for n in range(1, 21)]
    assert told[20:] == ["and there is more"]


def nested(depth: int) -> str:
    """A task in a task in a task."""
    return "# i\n## p\n" + "\n".join(f"{'  ' * n}- [ ] t" for n in range(depth))


def test_a_hundred_tasks_in_one_another_are_the_most() -> None:
    """One more is refused, a thousand are refused no less politely."""
    plan = read_markdown(nested(100))
    assert read_markdown(write_markdown(plan)) == plan
    for depth in (101, 1_000):
        assert problems_of(nested(depth))[0] == (
            "line 103: tasks are nested deeper than 100 levels"
        )


def test_ten_thousand_tasks_are_read_and_written() -> None:
    """Each waits for the one before, by its name."""
    lines = ["- [ ] t0", *(f"- [ ] t{n} (low) after: t{n - 1}\n  d{n}" for n in range(1, 10_000))]
    plan = read_markdown("\n".join(lines))
    assert len(plan.tasks) == 10_000
    assert plan.tasks[-1].after == (plan.tasks[-2].ref,)
    assert read_markdown(write_markdown(plan)) == plan


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_is_written_reads_like_what_people_write(ending: str) -> None:
    """A plan in its own form is written as it was read."""
    text = (
        "- [ ] Loose ^a\n\n# Login ^b\nbranch: x\n\n## Schema ^c\nstatus: approved\n\n"
        "Content\n\n- [x] Write it (high) ^d {category: verify}\n  Described\n"
        "  - [ ] Inner ^e after: ^a, ^g\n- [!] Look after\\: it ^g\n\n## Form ^f\nafter: ^c\n"
    )
    assert write_markdown(read_markdown(text.replace("\n", ending))) == text
