"""What goes and what is emptied when a row is removed, and how the journal tells it."""

from typing import Any

import pytest

from herdbook.domain.errors import NotFound
from herdbook.domain.journal import JournalEntry, Op
from herdbook.ports.engine.dictionary import (
    AGENTS,
    CHANGE_SETS,
    CHAT_MESSAGES,
    CHAT_SESSIONS,
    CONVERSATIONS,
    DICTIONARY,
    INITIATIVE_PROJECTS,
    INITIATIVES,
    MESSAGES,
    OPENINGS,
    PAGES,
    PHASE_DEPENDENCIES,
    PHASES,
    PROPOSALS,
    REVIEW_COMMENTS,
    TASK_DEPENDENCIES,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.cases import for_each
from tests.contract.conftest import Begin
from tests.contract.rows import cascades, make
from tests.contract.space import everything_in

every_tree = for_each(
    ("kind", "parent"),
    [
        (TASKS, "parent_task_id"),
        (PAGES, "parent_page_id"),
        (MESSAGES, "parent_message_id"),
        (REVIEW_COMMENTS, "parent_comment_id"),
    ],
    ids=["tasks", "pages", "messages", "review_comments"],
)


def _removing(begin: Begin, kind: Kind[Any], *keys: str) -> list[JournalEntry]:
    """Remove rows in a transaction of their own; gives what the journal tells of it."""
    with begin() as uow:
        uow.remove(kind, keys)
        uow.commit()
    with begin(write=False) as uow:
        return uow.journal.of_tx(uow.journal.since(uow.journal.last() - 1)[0].tx)


def _told(entries: list[JournalEntry], op: Op) -> list[tuple[str, str]]:
    return [(entry.entity, entry.key) for entry in entries if entry.op is op]


def _dangling(entries: list[JournalEntry]) -> list[tuple[str, str, str]]:
    """What was still there, and named a row by this field, when that row had been removed."""
    removed_at = {
        (entry.entity, entry.key): entry.seq for entry in entries if entry.op is Op.REMOVE
    }
    return [
        (entry.entity, entry.key, reference.field)
        for entry in entries
        for reference in DICTIONARY.kinds[entry.entity].references
        if (target := (entry.before or {}).get(reference.field)) is not None
        and removed_at.get((reference.target, target), entry.seq + 1) < entry.seq
    ]


def _everything_on(uow: UnitOfWork, initiative_id: str, agent_id: str, project_id: str) -> None:
    """Hang a row of every kind that can go with an initiative on it, near and far."""
    on_it = {"initiative_id": initiative_id}
    first, second = make(uow, PHASES, **on_it), make(uow, PHASES, **on_it)
    make(uow, PHASE_DEPENDENCIES, phase_id=second.id, depends_on_phase_id=first.id)
    task, other = make(uow, TASKS, **on_it), make(uow, TASKS, phase_id=first.id)
    make(uow, TASKS, parent_task_id=other.id)
    make(uow, TASK_DEPENDENCIES, task_id=task.id, depends_on_task_id=other.id)
    make(uow, INITIATIVE_PROJECTS, project_id=project_id, **on_it)
    page = make(uow, PAGES, **on_it)
    make(uow, PAGES, parent_page_id=page.id, **on_it)
    make(uow, PROPOSALS, agent_id=agent_id, **on_it)
    change_set = make(uow, CHANGE_SETS, **on_it)
    comment = make(uow, REVIEW_COMMENTS, phase_id=second.id)
    make(uow, REVIEW_COMMENTS, phase_id=second.id, parent_comment_id=comment.id)
    chat = make(uow, CHAT_SESSIONS, **on_it)
    make(uow, CHAT_MESSAGES, chat_session_id=chat.id, change_set_id=change_set.id)


def _going_with(name: str) -> set[str]:
    """The kinds whose rows can go with a row of this kind, its own included."""
    found, fresh = {name}, [name]
    while fresh:
        for kind, reference in DICTIONARY.referrers[fresh.pop()]:
            if cascades(reference) and kind.name not in found:
                found.add(kind.name)
                fresh.append(kind.name)
    return found


def test_all_that_hangs_on_a_row_goes_and_nothing_else(
    store: Store, begin: Begin, space: str
) -> None:
    """Of two initiatives with everything that can hang on one, the other stays as it was."""
    with begin() as uow:
        agent, project = make(uow, AGENTS), make(uow, DICTIONARY.kinds["projects"])
        _everything_on(uow, make(uow, INITIATIVES).id, agent.id, project.id)
        uow.commit()
    before = everything_in(store, space)
    with begin() as uow:
        goes = make(uow, INITIATIVES)
        _everything_on(uow, goes.id, agent.id, project.id)
        uow.commit()
    entries = _removing(begin, INITIATIVES, goes.id)
    after = everything_in(store, space)
    # Who proposed something for an initiative is at it, and at none when it is gone.
    assert [each.initiative_id for each in after["agents"]] == [None]
    for each in (before, after):
        del each["journal"], each["heads"], each["agents"]
    assert after == before
    assert {entity for entity, _ in _told(entries, Op.REMOVE)} == _going_with("initiatives")


def test_what_refers_to_a_row_is_told_before_it(begin: Begin) -> None:
    """A reader of the journal never meets a row whose reference is already gone."""
    with begin() as uow:
        agent, project = make(uow, AGENTS), make(uow, DICTIONARY.kinds["projects"])
        initiative = make(uow, INITIATIVES)
        _everything_on(uow, initiative.id, agent.id, project.id)
        # Found through the initiative, long before the parent that is found through its phase.
        phase = make(uow, PHASES, initiative_id=initiative.id)
        parent = make(uow, TASKS, phase_id=phase.id)
        make(uow, TASKS, initiative_id=initiative.id, parent_task_id=parent.id)
        holder = make(uow, AGENTS, task_id=parent.id, initiative_id=initiative.id)
        uow.commit()
    entries = _removing(begin, INITIATIVES, initiative.id)
    emptied = sorted([("agents", agent.id), ("agents", holder.id)])
    assert sorted(_told(entries, Op.SAVE)) == emptied
    assert _told(entries, Op.REMOVE)[-1] == ("initiatives", initiative.id)
    assert _dangling(entries) == []


def _tree(uow: UnitOfWork, kind: Kind[Any], parent: str) -> dict[str, Any]:
    """A root with two branches of two leaves each, under readable names."""
    tree: dict[str, Any] = {"": make(uow, kind)}
    shared = {
        reference.field: getattr(tree[""], reference.field)
        for reference in kind.references
        if reference.field != parent
    }
    for name in ("a", "b", "aa", "ab", "ba", "bb"):
        tree[name] = make(uow, kind, **{**shared, parent: tree[name[:-1]].id})
    return tree


@every_tree
def test_a_branch_goes_with_what_it_grew_from(begin: Begin, kind: Kind[Any], parent: str) -> None:
    """Removing a row of a tree takes all below it, leaves first, and leaves the rest."""
    with begin() as uow:
        tree = _tree(uow, kind, parent)
        uow.commit()
    entries = _removing(begin, kind, tree["a"].id)
    with begin(write=False) as uow:
        left = uow.select(find(kind))
    assert {row.id: row for row in left} == {tree[n].id: tree[n] for n in ("", "b", "ba", "bb")}
    order = [key for _, key in _told(entries, Op.REMOVE)]
    assert sorted(order) == sorted(tree[name].id for name in ("a", "aa", "ab"))
    assert order[-1] == tree["a"].id


@every_tree
def test_rows_that_are_named_and_hang_on_one_another_go_once(
    begin: Begin, kind: Kind[Any], parent: str
) -> None:
    """A removal may name a row, its parent and itself again: each is told once, leaves first."""
    with begin() as uow:
        tree = _tree(uow, kind, parent)
        uow.commit()
    named = [tree[name].id for name in ("", "ab", "b", "ab", "bb", "a")]
    entries = _removing(begin, kind, *named)
    order = [key for _, key in _told(entries, Op.REMOVE)]
    assert sorted(order) == sorted(row.id for row in tree.values())
    assert _dangling(entries) == []
    with begin(write=False) as uow:
        assert uow.count(find(kind)) == 0


@pytest.mark.parametrize("kind", [PAGES, MESSAGES], ids=lambda kind: kind.name)
def test_rows_that_hang_on_one_another_in_a_circle_go_all_the_same(
    begin: Begin, kind: Kind[Any]
) -> None:
    """A row that is its own ancestor, as older stores may hold, goes like any other, told once."""
    parent = {"pages": "parent_page_id", "messages": "parent_message_id"}[kind.name]
    with begin() as uow:
        root = make(uow, kind)
        rest = {name: value for name, value in vars(root).items() if name not in {"id", parent}}
        circle = {"one": "three", "two": "one", "three": "two", "itself": "itself"}
        rows = [kind.entity(id=one, **{**rest, parent: up}) for one, up in circle.items()]
        uow.session.insert(kind, rows)
        uow.commit()
    entries = _removing(begin, kind, "one", "itself")
    assert sorted(key for _, key in _told(entries, Op.REMOVE)) == sorted(circle)
    with begin(write=False) as uow:
        assert uow.select(find(kind)) == [root]


def test_a_deep_tree_goes_whole(begin: Begin) -> None:
    """Fifty generations go from the youngest to the oldest."""
    with begin() as uow:
        ids = [f"tsk_{number:02}" for number in range(50)]
        parents = [None, *ids]
        uow.add(
            TASKS,
            [
                TASKS.entity(id=key, name=key, parent_task_id=parent)
                for key, parent in zip(ids, parents, strict=False)
            ],
        )
        uow.commit()
    entries = _removing(begin, TASKS, ids[0])
    assert _told(entries, Op.REMOVE) == [("tasks", key) for key in reversed(ids)]


def test_three_thousand_rows_go_at_once(begin: Begin) -> None:
    """A wide cascade leaves no row, no opening and no gap in the journal."""
    with begin() as uow:
        phase = make(uow, PHASES, status="approved")
        keys = [f"tsk_{number:04}" for number in range(3_000)]
        uow.add(TASKS, [TASKS.entity(id=key, name=key, phase_id=phase.id) for key in keys])
        uow.tasks.add_dependencies(zip(keys[1::2], keys[::2], strict=True))
        stays = make(uow, TASKS)
        uow.commit()
    with begin(write=False) as uow:
        assert (uow.count(find(OPENINGS)), uow.count(find(WAITING))) == (1_501, 1_500)
        last = uow.journal.last()
    entries = _removing(begin, PHASES, phase.id)
    assert [entry.seq for entry in entries] == list(range(last + 1, last + 4_502))
    assert [entry.op for entry in entries] == [Op.REMOVE] * 4_501
    with begin(write=False) as uow:
        assert uow.select(find(TASKS)) == [stays]
        assert [opening.task_id for opening in uow.select(find(OPENINGS))] == [stays.id]
        assert uow.count(find(WAITING)) == uow.count(find(TASK_DEPENDENCIES)) == 0


def test_two_rows_may_refer_to_each_other(begin: Begin) -> None:
    """An agent and its task: whichever goes, the other stays and is emptied."""
    with begin() as uow:
        agents = [make(uow, AGENTS, id=f"agt_{n}") for n in (1, 2)]
        tasks = [make(uow, TASKS, id=f"tsk_{n}", assignee_id=f"agt_{n}") for n in (1, 2)]
        agents = [
            uow.agents.save(AGENTS.entity(**{**vars(agent), "task_id": task.id}))
            for agent, task in zip(agents, tasks, strict=True)
        ]
        uow.commit()
    gone = _removing(begin, AGENTS, "agt_1") + _removing(begin, TASKS, "tsk_2")
    assert [(entry.op, entry.key) for entry in gone] == [
        (Op.SAVE, "tsk_1"),
        (Op.REMOVE, "agt_1"),
        (Op.SAVE, "agt_2"),
        (Op.REMOVE, "tsk_2"),
    ]
    with begin(write=False) as uow:
        (task,), (agent,) = uow.select(find(TASKS)), uow.select(find(AGENTS))
        assert find_differences(uow) == []
    assert (task.id, task.assignee_id, task.version) == ("tsk_1", None, 2)
    assert (agent.id, agent.task_id, agent.version) == ("agt_2", None, 3)


def test_many_rows_are_emptied_at_once(begin: Begin) -> None:
    """Each row that named what went is saved once, and the journal tells what it named."""
    with begin() as uow:
        agent, other = make(uow, AGENTS), make(uow, AGENTS)
        tasks = uow.add(
            TASKS,
            [
                TASKS.entity(id=f"tsk_{n:03}", name=f"{n}", assignee_id=owner.id)
                for n, owner in enumerate([agent, other] * 150)
            ],
        )
        uow.commit()
    entries = _removing(begin, AGENTS, agent.id)
    emptied = [task.id for task in tasks if task.assignee_id == agent.id]
    assert sorted(_told(entries, Op.SAVE)) == [("tasks", key) for key in emptied]
    assert _told(entries, Op.REMOVE) == [("agents", agent.id)]
    for entry in entries[:-1]:
        assert entry.before is not None
        assert entry.after is not None
        assert (entry.before["assignee_id"], entry.after["assignee_id"]) == (agent.id, None)
        assert (entry.before["version"], entry.after["version"]) == (1, 2)
    with begin(write=False) as uow:
        assert [task.id for task in uow.tasks.of_assignee(other.id)] == [
            task.id for task in tasks if task.assignee_id == other.id
        ]
        assert uow.count(find(TASKS, {"assignee_id": None})) == 150


def test_a_row_that_would_go_and_be_emptied_goes(begin: Begin) -> None:
    """A chat message goes with its chat, though the change set it names goes too."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        change_set = make(uow, CHANGE_SETS, initiative_id=initiative.id)
        chat = make(uow, CHAT_SESSIONS, initiative_id=initiative.id)
        message = make(uow, CHAT_MESSAGES, chat_session_id=chat.id, change_set_id=change_set.id)
        uow.commit()
    entries = _removing(begin, INITIATIVES, initiative.id)
    assert _told(entries, Op.SAVE) == []
    told = _told(entries, Op.REMOVE)
    assert sorted(told) == [
        ("change_sets", change_set.id),
        ("chat_messages", message.id),
        ("chat_sessions", chat.id),
        ("initiatives", initiative.id),
    ]
    assert told[0] == ("chat_messages", message.id)


def test_a_row_is_emptied_in_several_fields_at_once(begin: Begin) -> None:
    """What named several rows that go is saved once, without any of them."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        phase = make(uow, PHASES, initiative_id=initiative.id)
        task = make(uow, TASKS, phase_id=phase.id)
        named = {"initiative_id": initiative.id, "phase_id": phase.id, "task_id": task.id}
        asked = make(uow, CONVERSATIONS, **named)
        uow.commit()
    entries = _removing(begin, INITIATIVES, initiative.id)
    with begin(write=False) as uow:
        emptied = uow.conversations.get(asked.id)
    assert emptied == CONVERSATIONS.entity(
        **{
            **vars(asked),
            **dict.fromkeys(named),
            "version": 2,
            "updated_at": emptied.updated_at,
        }
    )
    (entry,) = [each for each in entries if each.op is Op.SAVE]
    assert entry.before is not None
    assert {name: entry.before[name] for name in named} == named


def test_what_came_and_went_in_one_transaction_leaves_two_entries(
    store: Store, begin: Begin, space: str
) -> None:
    """Rows added and removed by a cascade of the same transaction are in the journal only."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES, status="active")
        task = make(uow, TASKS, initiative_id=initiative.id)
        uow.initiatives.remove(initiative.id)
        uow.commit()
    found = everything_in(store, space)
    assert set(found) == {"journal", "heads"}
    assert [(entry.op, entry.key) for entry in found["journal"]] == [
        (Op.ADD, initiative.id),
        (Op.ADD, task.id),
        (Op.REMOVE, task.id),
        (Op.REMOVE, initiative.id),
    ]


def test_a_removal_that_names_something_missing_removes_nothing(
    store: Store, begin: Begin, space: str
) -> None:
    """Removing many is all or none."""
    with begin() as uow:
        tree = _tree(uow, TASKS, "parent_task_id")
        uow.commit()
    before = everything_in(store, space)
    with begin() as uow:
        with pytest.raises(NotFound) as refusal:
            uow.remove(TASKS, [tree["a"].id, "tsk_missing", tree["b"].id])
        assert uow.changes == []
        assert len(uow.session.select(find(TASKS))) == len(tree)
    assert (refusal.value.entity, refusal.value.key) == ("task", "tsk_missing")
    assert everything_in(store, space) == before


def test_removing_what_others_wait_for_lets_them_go_on(begin: Begin) -> None:
    """A task whose dependency, child or phase dependency went is ready in the same transaction."""
    with begin() as uow:
        first, second = (make(uow, PHASES, status="approved") for _ in range(2))
        uow.phases.add_dependency(second.id, first.id)
        blocker, dependent = make(uow, TASKS), make(uow, TASKS)
        uow.tasks.add_dependency(dependent.id, blocker.id)
        parent = make(uow, TASKS)
        child = make(uow, TASKS, parent_task_id=parent.id)
        behind = make(uow, TASKS, phase_id=second.id)
        uow.commit()
    with begin(write=False) as uow:
        waiting = {row.task_id: row.blockers for row in uow.select(find(WAITING))}
    assert waiting == {dependent.id: 1, parent.id: 1, behind.id: 1}
    _removing(begin, TASKS, blocker.id, child.id)
    _removing(begin, PHASES, first.id)
    with begin(write=False) as uow:
        assert uow.select(find(WAITING)) == []
        ready = {row.task_id for row in uow.select(find(OPENINGS))}
        assert find_differences(uow) == []
    assert ready == {dependent.id, parent.id, behind.id}
