"""Plans of all shapes, with names and texts that look like anything but names and texts."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from hypothesis import strategies as st

from herdbook.domain.plan.model import (
    ExecutionMode,
    InitiativeStatus,
    PhaseStatus,
    Priority,
    TaskCategory,
    TaskStatus,
)
from herdbook.domain.plan_text.tree import InitiativeText, PhaseText, PlanText, TaskText

T = TypeVar("T")

SNAGS = (
    *(
        "\\",
        "{",
        "}",
        "^",
        "(",
        ")",
        "[",
        "]",
        "#",
        "##",
        "-",
        "*",
        "`",
        "```",
        "~~~",
        '"',
        ",",
        ":",
    ),
    *(
        "after:",
        "(after: x)",
        "After:",
        "(high)",
        "(low)",
        "^a1",
        '^"',
        "{category: plan}",
        "{x: y}",
    ),
    *("- [ ] x", "1. [x] y", "* [", "+ [] z", "# h", "## h", "---", "***", "status: pending"),
    *("description: d", "name:", "content: c", "{", "\\{", "\\- [ ] x", "\\\\# h", "null", "true"),
    *(" ", "  ", "\t", "\n", "\n\n", "\r\n", "\r", "\x1b", "\x85", "\u2028", "\u00a0", "\ufeff"),
    *("Ü", "日本語", "\U0001f9ea", "e\u0301", "שלום", "\u202eabc\u202c", "\u200d"),
)
"""What a reader could stumble over."""

_pieces = st.one_of(
    st.sampled_from(SNAGS),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
    st.sampled_from(["write", "it", "down"]),
)
texts = st.lists(_pieces, max_size=8).map("".join)
names = st.lists(_pieces, max_size=6).map(lambda pieces: "".join(pieces) or "it")
refs = st.one_of(
    st.from_regex(r"\A[a-z0-9_.-]{1,12}\Z"),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=10),
    st.sampled_from(['"', "a b", "a,b", "^", "{", "\\"]),
).filter(lambda ref: not ref.startswith(("ini_", "pha_", "tsk_")))
_optional = st.none() | texts


def _made(made: Callable[..., T], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[T]:
    # `builds` would find values for what is left out, too.
    return st.fixed_dictionaries(fields).map(lambda values: made(**values))


_tasks = st.recursive(
    _made(
        TaskText,
        name=names,
        ref=st.just(""),
        description=_optional,
        category=st.sampled_from(TaskCategory),
        priority=st.sampled_from(Priority),
        status=st.sampled_from(TaskStatus),
        summary=_optional,
    ),
    lambda inner: st.tuples(inner, st.lists(inner, max_size=3)).map(
        lambda pair: pair[0]._replace(tasks=tuple(pair[1]))
    ),
    max_leaves=6,
)
_some_tasks = st.lists(_tasks, max_size=3).map(tuple)
_phases = _made(
    PhaseText,
    name=names,
    ref=st.just(""),
    content=_optional,
    status=st.sampled_from(PhaseStatus),
    merge_base=st.none() | names,
    tasks=_some_tasks,
)
_initiatives = _made(
    InitiativeText,
    name=names,
    ref=st.just(""),
    status=st.sampled_from(InitiativeStatus),
    branch=st.none() | names,
    execution_mode=st.sampled_from(ExecutionMode),
    quality_review=st.booleans(),
    tasks=_some_tasks,
    phases=st.lists(_phases, max_size=3).map(tuple),
)
_bare = st.builds(
    PlanText, tasks=_some_tasks, initiatives=st.lists(_initiatives, max_size=2).map(tuple)
)


def _count(plan: PlanText) -> tuple[int, int, int]:
    phases = [phase for initiative in plan.initiatives for phase in initiative.phases]
    tops = [*plan.tasks, *(task for each in (*plan.initiatives, *phases) for task in each.tasks)]
    tasks = 0
    while tops:
        tasks += 1
        tops += tops.pop().tasks
    return len(plan.initiatives), len(phases), tasks


@st.composite
def plans(draw: st.DrawFn, *, cycles: bool = True) -> PlanText:
    """A plan whose items wait for any others of their sort, by refs of all kinds.

    Without cycles they wait for items that stand before them and have nothing under them.
    """
    bare = draw(_bare)
    initiatives, phases, tasks = _count(bare)
    total = initiatives + phases + tasks
    found = draw(st.lists(refs, min_size=total, max_size=total, unique=True))
    of_phases, of_tasks = found[:phases], found[phases : phases + tasks]
    left_phases, left_tasks, left = iter(of_phases), iter(of_tasks), iter(found[phases + tasks :])
    earlier_phases: list[str] = []
    earlier_tasks: list[str] = []

    def some(known: list[str]) -> tuple[str, ...]:
        return (
            tuple(draw(st.lists(st.sampled_from(known), max_size=2, unique=True))) if known else ()
        )

    def finished(inner: tuple[TaskText, ...]) -> Iterator[TaskText]:
        for task in inner:
            ref, after = next(left_tasks), some(of_tasks if cycles else earlier_tasks)
            tasks = tuple(finished(task.tasks))
            yield task._replace(ref=ref, after=after, tasks=tasks)
            if not tasks:
                earlier_tasks.append(ref)

    def in_phases(inner: tuple[PhaseText, ...]) -> Iterator[PhaseText]:
        for phase in inner:
            ref, after = next(left_phases), some(of_phases if cycles else earlier_phases)
            yield phase._replace(ref=ref, after=after, tasks=tuple(finished(phase.tasks)))
            earlier_phases.append(ref)

    return PlanText(
        tuple(finished(bare.tasks)),
        tuple(
            each._replace(
                ref=next(left),
                tasks=tuple(finished(each.tasks)),
                phases=tuple(in_phases(each.phases)),
            )
            for each in bare.initiatives
        ),
    )
