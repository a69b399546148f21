"""Whole plans in and out: the store becomes what a text says, and a text what the store holds."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from herdbook.domain.entity import evolve
from herdbook.domain.errors import CycleRefused, InvalidValue, NotFound
from herdbook.domain.plan.model import PhaseStatus, Task, TaskStatus
from herdbook.domain.plan_text.json_lines import read_json_lines, write_json_lines
from herdbook.domain.plan_text.markdown import read_markdown, write_markdown
from herdbook.domain.plan_text.tree import PlanText, walk_items
from herdbook.ports.engine.dictionary import AGENTS, TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from herdbook.services.plan_text.import_export import ImportReport, export_plan, import_plan
from tests.cases import for_each
from tests.contract.rows import make
from tests.contract.turns import Begin
from tests.unit.domain.plans import plans

SHARES = {"memory": 30, "lmdb": 20, "postgres": 8, "duckdb": 5}
"""How many random plans each store is given."""
PLAN = """\
- [ ] Loose ^loose

# Login ^login
branch: feature/login
execution_mode: yolo

- [ ] StatementRunner about it ^talk {category: discuss}

## Schema ^schema

The tables.

- [ ] Write the migration (high) ^write
  As SQL.
  - [ ] Test it on a copy ^test
- [!] Drop the old column (low) ^drop after: ^write, ^test

## Form ^form
after: ^schema

- [ ] Build it ^build after: ^loose, ^talk
"""

_numbers = itertools.count(1)


def imported(begin: Begin, text: str, **options: str) -> ImportReport:
    """Bring a text in Markdown into the store."""
    with begin(**options) as uow:
        report = import_plan(uow, read_markdown(text))
        uow.commit()
    with begin(write=False, **options) as uow:
        assert find_differences(uow) == []
    return report


def exported(begin: Begin, initiative_id: str | None = None, **options: str) -> str:
    """The plan of the store in Markdown."""
    with begin(write=False, **options) as uow:
        return write_markdown(export_plan(uow, initiative_id))


def ids_of(report: ImportReport) -> dict[str, str]:
    """The ids of what was added, by the labels it had in the text."""
    return {added.ref: added.id for added in report.added}


def labelled(text: str, ids: dict[str, str]) -> str:
    """The text with labels in place of ids."""
    for label, key in ids.items():
        text = text.replace(key, label)
    return text


def changes_of(report: ImportReport) -> dict[str, tuple[str, ...]]:
    """The fields that were changed, by the names of what they are of."""
    return {changed.name: changed.fields for changed in report.changed}


def last_entry(begin: Begin) -> int:
    """How many entries the journal has."""
    with begin(write=False) as uow:
        return uow.journal.last()


def in_order(begin: Begin) -> list[str]:
    """The names of all tasks as they stand in the plan."""
    with begin(write=False) as uow:
        return [
            each.item.name for each in walk_items(export_plan(uow)) if each.item.ref[:3] == "tsk"
        ]


def test_a_plan_is_exported_as_it_was_imported(begin: Begin) -> None:
    """Only that labels have become ids; phases and tasks stay in their order."""
    report = imported(begin, PLAN)
    assert labelled(exported(begin), ids_of(report)) == PLAN
    assert [(added.kind, added.name) for added in report.added] == [
        ("task", "Loose"),
        ("initiative", "Login"),
        ("task", "StatementRunner about it"),
        ("phase", "Schema"),
        ("task", "Write the migration"),
        ("task", "Test it on a copy"),
        ("task", "Drop the old column"),
        ("phase", "Form"),
        ("task", "Build it"),
    ]
    assert report[1:] == ((), (), 0)


def test_a_plan_goes_through_any_store_and_back(engine: str, begin: Begin, space: str) -> None:
    """Whatever its names and texts; read again from its own text it changes nothing."""

    @settings(max_examples=SHARES[engine], database=None)
    @given(plans(cycles=False))
    def check(plan: PlanText) -> None:
        here, there = (f"{space}-{next(_numbers)}" for _ in range(2))
        with begin(space=here) as uow:
            import_plan(uow, plan)
            uow.commit()
        with begin(space=here) as uow:
            out = export_plan(uow)
            assert [vars_of(each.item) for each in walk_items(out)] == [
                vars_of(each.item) for each in walk_items(plan)
            ]
            assert import_plan(uow, read_json_lines(write_json_lines(out)))[:3] == ((), (), ())
            assert import_plan(uow, read_markdown(write_markdown(out)))[:3] == ((), (), ())
        with begin(space=there) as uow:
            import_plan(uow, out)
            assert export_plan(uow) == out

    check()


def vars_of(item: tuple[object, ...]) -> dict[str, object]:
    """What an item is apart from its id and from what is under it."""
    values = item._asdict()  # type: ignore[attr-defined]
    values["after"] = len(values.get("after", ()))
    return {name: value for name, value in values.items() if name not in ("ref", "tasks", "phases")}


def test_a_plan_in_lines_is_the_same_in_another_space(begin: Begin, space: str) -> None:
    """Ids, statuses and order are what they were, so the text is."""
    imported(begin, PLAN.replace("[!]", "[x]").replace("- [ ] Build", "- [?] Build"))
    with begin(write=False) as uow:
        text = write_json_lines(export_plan(uow))
    with begin(space=f"{space}-other") as uow:
        import_plan(uow, read_json_lines(text))
        uow.commit()
    with begin(space=f"{space}-other") as uow:
        assert write_json_lines(export_plan(uow)) == text


def test_importing_what_was_exported_changes_nothing(begin: Begin) -> None:
    """No row is written, and the journal says nothing."""
    imported(begin, PLAN)
    with begin() as uow:
        (phase, *_) = uow.phases.page()
        parent = uow.tasks.add(Task(name="parent", phase_id=phase.id, order=-3))
        uow.tasks.add(Task(name="child of no phase", parent_task_id=parent.id))
        uow.tasks.add_all([Task(name="same order") for _ in range(5)])
        uow.commit()
    before = last_entry(begin)
    text = exported(begin)
    report = imported(begin, text)
    assert report[:3] == ((), (), ())
    assert report.unchanged == 16
    assert (last_entry(begin), exported(begin)) == (before, text)


EDITS: dict[str, tuple[Callable[[str], str], dict[str, tuple[str, ...]]]] = {
    "name": (lambda text: text.replace("Loose", "Tight"), {"Tight": ("name",)}),
    "description": (
        lambda text: text.replace("As SQL.", "As\n\n  Python."),
        {"Write the migration": ("description",)},
    ),
    "no description": (
        lambda text: text.replace("  As SQL.\n", ""),
        {"Write the migration": ("description",)},
    ),
    "content": (lambda text: text.replace("The tables", "Tables"), {"Schema": ("content",)}),
    "priority": (
        lambda text: text.replace(" (high)", "").replace("Loose", "Loose (high)"),
        {"Loose": ("priority",), "Write the migration": ("priority",)},
    ),
    "attributes": (
        lambda text: text.replace("category: discuss", "category: plan").replace(
            "branch: ", "branch: my-"
        ),
        {"Login": ("branch",), "StatementRunner about it": ("category",)},
    ),
    "a dependency less": (
        lambda text: text.replace(", ^test", ""),
        {"Drop the old column": ("after",)},
    ),
    "no dependencies": (
        lambda text: text.replace(" after: ^write, ^test", "").replace("after: ^schema\n", ""),
        {"Drop the old column": ("after",), "Form": ("after",)},
    ),
    "a dependency more": (
        lambda text: text.replace("Loose ^loose", "Loose ^loose after: ^drop"),
        {"Loose": ("after",)},
    ),
    "status": (
        lambda text: text.replace("[!]", "[ ]").replace("- [ ] Loose", "- [x] Loose"),
        {"Drop the old column": ("status",), "Loose": ("status",)},
    ),
    "parent": (
        lambda text: text.replace("  - [ ] Test", "- [ ] Test"),
        {"Test it on a copy": ("parent_task_id",)},
    ),
}


@for_each("edit", EDITS)
def test_importing_an_edited_export_changes_what_was_edited(begin: Begin, edit: str) -> None:
    """That, and nothing else; and then the export is the edited text."""
    ids = ids_of(imported(begin, PLAN))
    change, expected = EDITS[edit]
    edited = change(PLAN)
    assert edited != PLAN
    text = edited
    for label, key in ids.items():
        text = text.replace(f"^{label}", f"^{key}")
    report = imported(begin, text)
    assert changes_of(report) == expected
    assert (report.added, report.left_alone) == ((), ())
    assert report.unchanged == 9 - len(expected)
    assert labelled(exported(begin), ids) == edited


def test_what_is_missing_in_the_text_is_left_alone_and_reported(begin: Begin) -> None:
    """Nothing is ever removed, and what waits for it waits on."""
    ids = ids_of(imported(begin, PLAN))
    before = exported(begin)
    report = imported(
        begin, f"# Login ^{ids['login']}\nbranch: feature/login\nexecution_mode: yolo\n"
    )
    assert exported(begin) == before
    assert (report.changed, report.unchanged) == ((), 1)
    assert {(left.kind, left.name) for left in report.left_alone} == {
        ("phase", "Schema"),
        ("phase", "Form"),
        ("task", "StatementRunner about it"),
        ("task", "Write the migration"),
        ("task", "Test it on a copy"),
        ("task", "Drop the old column"),
        ("task", "Build it"),
    }
    assert {left.reason for left in report.left_alone} == {"is not in the text"}


def test_tasks_are_in_the_order_of_the_text(begin: Begin) -> None:
    """As they stand in the plan and as they are claimed, also when they are moved or come later."""
    imported(begin, "\n".join(f"- [ ] {name}" for name in "abcdef"))
    assert in_order(begin) == list("abcdef")
    lines = exported(begin).splitlines()
    moved = [lines[4], lines[0], "- [ ] x", "- [ ] y", *lines[1:4], lines[5], "- [ ] z"]
    report = imported(begin, "\n".join(moved))
    assert changes_of(report) == {"e": ("order",)}
    assert in_order(begin) == list("eaxybcdfz")
    with begin(write=False) as uow:
        assert [task.name for task in uow.tasks.ready(20)] == list("eaxybcdfz")


def test_tasks_move_with_all_that_is_under_them(begin: Begin) -> None:
    """Into another phase, and under a task that is new, though that waits for where they were."""
    ids = ids_of(imported(begin, "# i ^i\n## p ^p\n- [ ] a ^a\n  - [ ] b ^b\n## q ^q\nafter: ^p\n"))
    text = (
        f"# i ^{ids['i']}\n## p ^{ids['p']}\n## q ^{ids['q']}\nafter: ^{ids['p']}\n"
        f"- [ ] new\n  - [ ] a ^{ids['a']}\n    - [ ] newer\n    - [ ] b ^{ids['b']}\n"
    )
    report = imported(begin, text)
    assert {name: set(fields) - {"order"} for name, fields in changes_of(report).items()} == {
        "a": {"parent_task_id", "phase_id"},
        "b": {"phase_id"},
    }
    with begin(write=False) as uow:
        tasks = {task.name: task for task in uow.tasks.page()}
        assert {task.phase_id for task in tasks.values()} == {ids["q"]}
        assert tasks["a"].parent_task_id == tasks["new"].id
        assert tasks["b"].parent_task_id == tasks["newer"].parent_task_id == tasks["a"].id
    assert in_order(begin) == ["new", "a", "newer", "b"]


def test_a_phase_moves_to_a_new_initiative(begin: Begin) -> None:
    """With its tasks."""
    imported(begin, "# i ^i\n## p ^p\n- [ ] a ^a\n")
    text = exported(begin).replace("\n## p", "\n# j\n\n## p")
    report = imported(begin, text)
    assert changes_of(report) == {"p": ("initiative_id",)}
    with begin(write=False) as uow:
        plan = export_plan(uow)
    assert [len(initiative.phases) for initiative in plan.initiatives] == [0, 1]
    assert plan.initiatives[1].phases[0].tasks[0].name == "a"


def test_one_initiative_is_exported_alone(begin: Begin) -> None:
    """What it waits for elsewhere is named by its id, and importing that changes nothing."""
    ids = ids_of(imported(begin, f"{PLAN}\n# Other ^other\n\n- [ ] else ^else after: ^talk\n"))
    with begin() as uow:
        uow.tasks.save(evolve(uow.tasks.get(ids["talk"]), parent_task_id=ids["loose"]))
        uow.tasks.remove_dependency(ids["build"], ids["loose"])
        uow.commit()
    for label in ("login", "other"):
        text = exported(begin, ids[label])
        before = last_entry(begin)
        report = imported(begin, text)
        assert (report[:3], last_entry(begin)) == (((), (), ()), before)
    assert labelled(exported(begin, ids["other"]), ids) == (
        "# Other ^other\n\n- [ ] else ^else after: ^talk\n"
    )
    with begin(write=False) as uow, pytest.raises(NotFound):
        export_plan(uow, "ini_nowhere")


@for_each(
    ("text", "cycle"),
    [
        ("- [ ] one ^a after: ^b\n- [ ] two ^b after: ^a\n", {"one", "two"}),
        ("- [ ] one ^a after: ^a\n", {"one"}),
        ("- [ ] one\n  - [ ] two after: one\n", {"one", "two"}),
        ("# i\n## one\nafter: two\n## two\nafter: one\n", {"one", "two"}),
        ("- [ ] new after: ^tsk_there\n# i\n- [ ] there ^tsk_there after: new", {"new", "there"}),
    ],
)
def test_what_would_wait_for_itself_is_refused_by_name(
    begin: Begin, text: str, cycle: set[str]
) -> None:
    """And nothing is written of the whole text."""
    with begin() as uow:
        uow.tasks.add(Task(id="tsk_there", name="there"))
        uow.commit()
    before = last_entry(begin)
    with begin() as uow:
        with pytest.raises(CycleRefused) as raised:
            import_plan(uow, read_markdown(text))
        assert set(raised.value.cycle) == cycle
    assert last_entry(begin) == before


def test_waiting_for_what_is_nowhere_is_refused(begin: Begin) -> None:
    """It is told by name who waits for what, all of it at once."""
    text = "- [ ] a after: ^tsk_1, ^tsk_2\n# i\n## p\nafter: ^pha_1"
    with begin() as uow, pytest.raises(InvalidValue) as raised:
        import_plan(uow, read_markdown(text))
    for told in ("'a' waits for tsk_1", "'a' waits for tsk_2", "'p' waits for pha_1"):
        assert told in raised.value.reason


def test_a_text_takes_no_task_out_of_anybodys_hands(begin: Begin) -> None:
    """A stale text neither frees what is held nor takes back what is completed; it is reported."""
    ids = ids_of(imported(begin, "- [ ] held (high) ^held\n- [ ] done ^done\n- [ ] free ^free\n"))
    text = exported(begin)
    with begin() as uow:
        agent = make(uow, AGENTS)
        held, done = (claims.claim(uow, agent.id, halts=NO_HALTS) for _ in range(2))
        assert held is not None
        assert done is not None
        claims.complete(uow, done.task.id, done.fence)
        uow.commit()
    report = imported(begin, text.replace("- [ ] free", "- [~] free").replace("held (", "hold ("))
    assert changes_of(report) == {"hold": ("name",)}
    assert [(left.id, left.reason) for left in report.left_alone] == [
        (ids["held"], "its status stays in_progress, not pending: somebody holds it"),
        (ids["done"], "its status stays completed, not pending: what is completed stays completed"),
        (
            ids["free"],
            "its status stays pending, not in_progress: only a claim leads to in_progress",
        ),
    ]
    with begin() as uow:
        claims.complete(uow, held.task.id, held.fence)
        uow.commit()


@pytest.mark.parametrize(
    ("mode", "end"),
    [("yolo", PhaseStatus.COMPLETED), ("review_per_phase", PhaseStatus.PENDING_REVIEW)],
)
def test_a_phase_follows_its_tasks(begin: Begin, mode: str, end: PhaseStatus) -> None:
    """Its last completed task ends it, and a new one takes it up again."""
    imported(begin, f"# i\nexecution_mode: {mode}\n## p\nstatus: approved\n- [ ] a\n- [x] b\n")
    text = exported(begin).replace("[ ]", "[x]")
    assert changes_of(imported(begin, text)) == {"p": ("status",), "a": ("status",)}
    with begin(write=False) as uow:
        assert [phase.status for phase in uow.phases.page()] == [end]
    assert changes_of(imported(begin, exported(begin) + "- [ ] c\n")) == {"p": ("status",)}
    with begin(write=False) as uow:
        assert [phase.status for phase in uow.phases.page()] == [PhaseStatus.IN_PROGRESS]


def test_a_phase_has_the_status_the_text_gives_it(begin: Begin) -> None:
    """It opens when it is approved, and does not go back."""
    imported(begin, "# i\n## p ^p\n- [ ] a\n")
    text = exported(begin)
    report = imported(begin, text.replace("\n\n- [ ] a", "\nstatus: approved\n\n- [ ] a"))
    assert changes_of(report) == {"p": ("status",)}
    with begin(write=False) as uow:
        assert [task.name for task in uow.tasks.ready(5)] == ["a"]
    (left,) = imported(begin, text).left_alone
    assert left.reason == "its status stays approved, not pending: it has come as far as approved"


def test_an_id_without_a_name_points_at_what_is_there(begin: Begin) -> None:
    """It keeps its place and all it has, but for what is said of it and put under it."""
    ids = ids_of(imported(begin, PLAN))
    report = imported(
        begin,
        f"- [x] ^{ids['test']}\n- [ ] ^{ids['write']} {{category: verify}} after: ^{ids['loose']}\n"
        f"  - [ ] Inner ^inner\n# ^{ids['login']}\n## ^{ids['schema']}\n- [ ] Extra ^extra\n",
    )
    assert changes_of(report) == {
        "Test it on a copy": ("status",),
        "Write the migration": ("category", "after"),
    }
    assert report.left_alone == ()
    expected = (
        PLAN.replace("- [ ] Test", "- [x] Test")
        .replace("^write\n", "^write {category: verify} after: ^loose\n")
        .replace("^drop after: ^write, ^test\n", "^drop after: ^write, ^test\n- [ ] Extra ^extra\n")
    )
    lines = labelled(exported(begin), ids | ids_of(report)).splitlines()
    assert lines.pop(lines.index("  - [ ] Inner ^inner")) == "  - [ ] Inner ^inner"
    assert sorted(lines) == sorted(expected.splitlines())
    with begin(write=False) as uow:
        inner = uow.tasks.get(ids_of(report)["inner"])
    assert (inner.parent_task_id, inner.phase_id) == (ids["write"], ids["schema"])


def test_an_id_without_a_name_that_points_nowhere_is_refused(begin: Begin) -> None:
    """There is nothing to make a new item of."""
    with begin() as uow, pytest.raises(InvalidValue, match="task tsk_1 is given without a name"):
        import_plan(uow, read_markdown("- [x] ^tsk_1"))


def test_phases_stay_in_the_order_in_which_they_were_added(begin: Begin) -> None:
    """Where the text has another order, that is reported."""
    imported(begin, "# i\n## p\n## q\n")
    with begin(write=False) as uow:
        plan = export_plan(uow)
    (initiative,) = plan.initiatives
    turned = initiative._replace(phases=initiative.phases[::-1])
    with begin() as uow:
        report = import_plan(uow, PlanText(initiatives=(turned,)))
        uow.commit()
    assert report[:2] == ((), ())
    assert [(left.name, left.reason) for left in report.left_alone] == [
        ("p", "phases stay in the order in which they were added")
    ]
    with begin(write=False) as uow:
        assert export_plan(uow) == plan


def test_an_item_without_an_id_of_the_store_is_new_each_time(begin: Begin) -> None:
    """Labels are of the text; nothing is found by its name."""
    imported(begin, "- [ ] a ^a")
    imported(begin, "- [ ] a ^a")
    assert in_order(begin) == ["a", "a"]


def test_everything_an_import_does_is_one_transaction(begin: Begin) -> None:
    """The journal has it under one name, so that it can be taken back whole."""
    imported(begin, PLAN)
    with begin(write=False) as uow:
        entries = list(uow.journal.all_entries())
    assert len({entry.tx for entry in entries}) == 1
    assert len(entries) == 9 + 5


def test_hundreds_of_tasks_are_imported_at_once(begin: Begin) -> None:
    """Each waits for the one before, and the first alone is ready."""
    lines = ["- [ ] t0", *(f"- [ ] t{n} after: t{n - 1}" for n in range(1, 400))]
    imported(begin, "\n".join(lines))
    with begin(write=False) as uow:
        assert uow.count(find(TASKS)) == 400
        assert [task.name for task in uow.tasks.ready(5)] == ["t0"]
        assert uow.count(find(TASKS, {"status": TaskStatus.PENDING})) == 400
