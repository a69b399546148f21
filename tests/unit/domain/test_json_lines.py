"""Plans in JSON Lines, as programs write them."""

from pathlib import Path

import pytest

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import PhaseStatus, Priority
from herdbook.domain.plan_text.json_lines import read_json_lines, write_json_lines
from herdbook.domain.plan_text.tree import InitiativeText, PhaseText, PlanText, TaskText
from tests.cases import for_each

DOCUMENTATION = (Path(__file__).parents[3] / "docs" / "plans.md").read_text()


def problems_of(text: str | bytes) -> list[str]:
    """What is wrong with a text, line by line."""
    with pytest.raises(InvalidValue) as raised:
        read_json_lines(text)
    *told, last = raised.value.reason.split("\n")
    assert last == "Nothing was written"
    return told


def test_the_example_of_the_documentation_is_the_plan_it_shows() -> None:
    """What docs/plans.md shows can be copied, and is written the same."""
    example = DOCUMENTATION.split("```jsonl\n")[1].split("```")[0]
    plan = read_json_lines(example)
    assert plan == PlanText(
        initiatives=(
            InitiativeText(
                "Login",
                "login",
                branch="feature/login",
                phases=(
                    PhaseText(
                        "Schema",
                        "schema",
                        status=PhaseStatus.APPROVED,
                        tasks=(
                            TaskText(
                                "Write the migration",
                                "migration",
                                priority=Priority.HIGH,
                                tasks=(TaskText("Test it on a copy", "copy"),),
                            ),
                            TaskText("Drop the old column", "drop", after=("migration", "copy")),
                        ),
                    ),
                ),
            ),
        )
    )
    assert write_json_lines(plan) == example


def test_an_item_may_stand_before_the_one_it_stands_under() -> None:
    """Lines say the order of items that stand together, and nothing else."""
    plan = read_json_lines(
        '{"kind": "task", "name": "c", "parent": "b"}\r\n\r\n'
        '{"kind": "task", "name": "b", "ref": "b", "initiative": "a"}\r\n'
        '{"kind": "initiative", "name": "a", "ref": "a", "branch": null}\r\n'
        '{"kind": "task", "name": "d", "parent": "b", "phase": null}\r\n'
    )
    children = (TaskText("c", "line-1"), TaskText("d", "line-5"))
    task = TaskText("b", "b", tasks=children)
    assert plan == PlanText(initiatives=(InitiativeText("a", "a", tasks=(task,)),))


@for_each("text", ["", "\n\n", b" \n"])
def test_a_text_with_nothing_in_it_is_an_empty_plan(text: str | bytes) -> None:
    """Blank lines are nothing."""
    assert read_json_lines(text) == PlanText()
    assert write_json_lines(PlanText()) == ""


@for_each(
    ("line", "told"),
    [
        ("{", "is not JSON: "),
        ("[]", "is not a JSON object"),
        ("[" * 100_000, "is not JSON that can be read"),
        ('{"kind": "task", "x": ' + "1" * 5_000 + "}", "is not JSON that can be read"),
        ('{"kind": "task", "name": "a", "name": "b"}', "name is given twice"),
        ('{"name": "a"}', "kind: None is not one of initiative, phase, task"),
        ('{"kind": ["task"], "name": "a"}', "kind: ['task'] is not one of"),
        ('{"kind": "task"}', "the task has no name"),
        ('{"kind": "task", "name": null}', "name: must be text, not NoneType"),
        ('{"kind": "task", "name": ""}', "name: must have 1 to 500 characters"),
        ('{"kind": "task", "name": "a", "ref": 1}', "ref: must be text, not int"),
        ('{"kind": "task", "name": "a", "colour": 1}', "colour: is no key of tasks"),
        ('{"kind": "task", "name": "a", "fence": 1}', "fence: is no key of tasks"),
        ('{"kind": "initiative", "name": "a", "after": []}', "after: is no key of initiatives"),
        ('{"kind": "task", "name": "a", "status": "done"}', "status: 'done' is not one of"),
        ('{"kind": "task", "name": "a", "status": null}', "status: None is not one of"),
        ('{"kind": "task", "name": "\\ud800"}', "name: has half a surrogate pair"),
        ('{"kind": "task", "name": "a\\u0000"}', "name: may not contain the character NUL"),
        ('{"kind": "initiative", "name": "a", "quality_review": 1}', "quality_review: must be"),
        ('{"kind": "task", "name": "a", "after": "b"}', "after: must be a list of refs"),
        ('{"kind": "task", "name": "a", "after": ["b"]}', "no task has the id 'b'"),
        ('{"kind": "task", "name": "a", "phase": "b"}', "no phase has the ref 'b'"),
        ('{"kind": "task", "name": "a", "phase": 1}', "phase: must be text, not int"),
        (
            '{"kind": "task", "name": "a", "phase": "b", "initiative": "c"}',
            "initiative: a task has one parent only",
        ),
        ('{"kind": "phase", "name": "a"}', "initiative: a phase needs one"),
        (
            '{"kind": "task", "name": "a", "ref": "b", "parent": "b"}',
            "the task 'b' is its own ancestor",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(line: str, told: str) -> None:
    """Unknown keys and bad values are never passed over."""
    assert problems_of(f"\n{line}")[0].startswith(f"line 2: {told}")


def test_tasks_that_stand_under_one_another_are_refused() -> None:
    """Each of them is told."""
    told = problems_of(
        '{"kind": "task", "name": "a", "ref": "a", "parent": "b"}\n'
        '{"kind": "task", "name": "b", "ref": "b", "parent": "a"}\n'
    )
    assert told[0] == "line 1: the task 'a' is its own ancestor"


@pytest.mark.parametrize("depth", [101, 5_000])
def test_a_hundred_tasks_in_one_another_are_the_most(depth: int) -> None:
    """Deeper ones are refused, in whatever order they come."""
    lines = ['{"kind": "task", "name": "t", "ref": "0", "parent": null}']
    lines += [
        f'{{"kind": "task", "name": "t", "ref": "{n}", "parent": "{n - 1}"}}'
        for n in range(1, depth)
    ]
    assert len(read_json_lines("\n".join(lines[:100])).tasks) == 1
    for text in ("\n".join(lines), "\n".join(reversed(lines))):
        assert "tasks are nested deeper than 100 levels" in problems_of(text)[0]
