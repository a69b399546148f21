"""A plan that is written and read again is the same plan, in both formats."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan_text.json_lines import read_json_lines, write_json_lines
from herdbook.domain.plan_text.markdown import read_markdown, write_markdown
from herdbook.domain.plan_text.tree import InitiativeText, PhaseText, PlanText, TaskText
from tests.unit.domain.plans import SNAGS, names, plans, refs, texts

Read = Callable[[str], PlanText]
Write = Callable[[PlanText], str]

FORMATS = pytest.mark.parametrize(
    ("read", "write"),
    [
        pytest.param(read_markdown, write_markdown, id="markdown"),
        pytest.param(read_json_lines, write_json_lines, id="lines"),
    ],
)


@FORMATS
@settings(max_examples=60)
@given(plan=plans())
def test_any_plan_is_read_as_it_was_written(read: Read, write: Write, plan: PlanText) -> None:
    """Whatever its shape, and whatever its names and texts look like."""
    assert read(write(plan)) == plan


@FORMATS
@settings(max_examples=300)
@given(name=names, ref=refs)
def test_any_name_is_read_as_it_was_written(read: Read, write: Write, name: str, ref: str) -> None:
    """Of a task and of a heading, with any id."""
    plan = PlanText((TaskText(name, ref),), (InitiativeText(name, "of another"),))
    assert read(write(plan)) == plan


@FORMATS
@settings(max_examples=300)
@given(text=texts)
def test_any_text_is_read_as_it_was_written(read: Read, write: Write, text: str) -> None:
    """Of a task, of its child and of a phase."""
    inner = TaskText("inner", "inner", description=text)
    task = TaskText("task", "task", description=text, summary=text, tasks=(inner,))
    phase = PhaseText("phase", "phase", content=text, tasks=(task,))
    plan = PlanText(initiatives=(InitiativeText("initiative", "initiative", phases=(phase,)),))
    assert read(write(plan)) == plan


@FORMATS
@settings(max_examples=300)
@given(
    lines=st.lists(
        st.tuples(
            st.sampled_from(["", "  ", "\t", "- [ ] ", "# ", "## ", '{"kind": ', "after: "]),
            st.lists(st.sampled_from(SNAGS), max_size=4).map("".join),
        ).map("".join),
        max_size=8,
    )
)
def test_any_text_is_a_plan_or_is_refused(read: Read, write: Write, lines: list[str]) -> None:
    """Nothing else comes of it, and a plan that was found in it can be written."""
    with suppress(InvalidValue):
        plan = read("\n".join(lines))
        assert read(write(plan)) == plan


def test_reading_and_writing_a_plan_does_not_wait_for_attrs() -> None:
    """Who only converts a text makes no row of a store."""
    script = (
        "import sys; from herdbook.domain.plan_text.json_lines import write_json_lines;"
        "from herdbook.domain.plan_text.markdown import read_markdown;"
        "write_json_lines(read_markdown('# i\\n## p\\n- [x] a (high)'));"
        "print('attr' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert told.stdout == "False\n"
