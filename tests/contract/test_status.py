"""Who works on what and waits for whom, and which worktrees there are, on every store."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.conversation import Conversation, Message
from herdbook.domain.entity import evolve
from herdbook.domain.journal import Actor
from herdbook.domain.plan.model import Task
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.agents.worktrees import REFRESH_AFTER, record_worktree, worktree_occupants
from herdbook.services.plan import claims
from herdbook.services.plan.status import YOU, StatusRow, status

Begin = Callable[..., Any]
HERE = Actor(worktree="aaaaaaaaaaaa")
THERE = Actor(worktree="bbbbbbbbbbbb")


def rows_of(begin: Begin) -> dict[str, StatusRow]:
    """The rows of a status by the names of their agents."""
    with begin(write=False) as uow:
        return {row.agent.name if row.agent else "": row for row in status(uow).rows}


def test_an_agent_stands_with_its_task_and_its_lease(begin: Begin) -> None:
    """The task it holds, since its claim, until its lease ends, in the worktree it works in."""
    with begin(actor=HERE) as uow:
        agent = uow.agents.add(Agent(name="otter", status="running"))
        uow.tasks.add(Task(name="parse"))
        held = claims.claim(uow, agent.id, halts=NO_HALTS, ttl=timedelta(hours=1))
        uow.commit()
    (row,) = rows_of(begin).values()
    assert (row.agent.id, row.agent.task_id) == (agent.id, held.task.id)
    assert row.task == held.task
    assert (row.since, row.lease_until) == (held.task.updated_at, held.opening.lease_until)
    assert row.worktree_id == HERE.worktree
    assert row.waiting_for == ()


def test_an_agent_with_two_tasks_stands_twice(begin: Begin) -> None:
    """Every held task has its row, and an idle agent one without."""
    with begin() as uow:
        busy, idle = uow.agents.add_all([Agent(name="busy", status="running"), Agent(name="idle")])
        uow.tasks.add_all([Task(name="one"), Task(name="two")])
        claims.claim(uow, busy.id, halts=NO_HALTS)
        claims.claim(uow, busy.id, halts=NO_HALTS)
        uow.commit()
    with begin(write=False) as uow:
        found = [(row.agent.name, row.task and row.task.name) for row in status(uow).rows]
    assert sorted(found[:2]) == [("busy", "one"), ("busy", "two")]
    assert found[2:] == [(idle.name, None)]


def test_a_held_task_without_an_agent_is_shown(begin: Begin) -> None:
    """Who held it was removed; the task is still held, and nobody should overlook it."""
    with begin(actor=THERE) as uow:
        agent = uow.agents.add(Agent(name="otter"))
        uow.tasks.add(Task(name="parse"))
        claims.claim(uow, agent.id, halts=NO_HALTS)
        uow.commit()
    with begin() as uow:
        uow.agents.remove(agent.id)
        uow.commit()
    (row,) = rows_of(begin).values()
    assert row.agent is None
    assert row.task is not None
    assert row.worktree_id == THERE.worktree


def test_whom_an_agent_waits_for(begin: Begin) -> None:
    """Agents it asked, and people; what was answered is waited for no longer."""
    with begin() as uow:
        asks, told, human = uow.agents.add_all(
            [
                Agent(name="asks"),
                Agent(name="told", status="running"),
                Agent(name="human", status="waiting_for_input"),
            ]
        )
        for question in ("what?", "and why?"):
            uow.conversations.add(
                Conversation(from_agent_id=asks.id, to_agent_id=told.id, question=question)
            )
        answered = uow.conversations.add(
            Conversation(from_agent_id=told.id, to_agent_id=asks.id, question="how?")
        )
        uow.conversations.answer(answered.id, "so")
        uow.messages.add(
            Message(
                sender_type="agent",
                sender_id=told.id,
                recipient_type="user",
                content="may I?",
                requires_response=True,
            )
        )
        uow.commit()
    found = {name: row.waiting_for for name, row in rows_of(begin).items()}
    assert found == {"asks": ("told",), "told": (YOU,), human.name: (YOU,)}


def test_who_is_done_is_not_shown(begin: Begin) -> None:
    """Stopped agents are not, crashed ones until somebody dismissed them."""
    with begin() as uow:
        now = uow.now
        uow.agents.add_all(
            [
                Agent(name="stopped", status="stopped"),
                Agent(name="crashed", status="crashed"),
                Agent(name="dismissed", status="crashed", user_dismissed_at=now),
            ]
        )
        uow.commit()
    assert list(rows_of(begin)) == ["crashed"]


def test_the_last_change_of_an_agent_and_of_all(begin: Begin) -> None:
    """Each row has its agent's last journal entry, the status the last one of all."""
    with begin() as uow:
        uow.agents.add_all([Agent(name="otter"), Agent(name="lynx")])
        uow.commit()
    for name in ("otter", "lynx", "otter"):
        with begin(actor=Actor(agent=name, worktree="cccccccccccc")) as uow:
            uow.tasks.add(Task(name=f"by {name}"))
            uow.commit()
    with begin(write=False) as uow:
        found = status(uow)
        last = uow.journal.last()
    assert found.last_entry is not None
    assert (found.last_entry.seq, found.last_entry.worktree) == (last, "cccccccccccc")
    entries = {row.agent.name: row.last_entry for row in found.rows if row.agent}
    assert [entries[name].seq for name in ("otter", "lynx")] == [last, last - 1]
    assert (found.ready, found.held, found.waiting) == (3, 0, 0)


def test_an_empty_space_has_a_status(begin: Begin) -> None:
    """Nothing is shown, and nothing fails."""
    with begin(write=False) as uow:
        found = status(uow)
    assert (found.rows, found.worktrees, found.last_entry) == ((), (), None)


def test_a_worktree_is_written_down_once_and_when_it_changes(begin: Begin) -> None:
    """Seeing it again soon writes nothing; a new path or branch is written at once."""
    seen = []
    for branch in ("main", "main", "login"):
        with begin() as uow:
            seen.append(
                record_worktree(uow, "aaaaaaaaaaaa", "/src/app", branch=branch, is_main=True)
            )
            seen[-1] = uow.worktrees.get("aaaaaaaaaaaa")
            uow.commit()
    assert [each.version for each in seen] == [1, 1, 2]
    assert seen[2].branch == "login"
    assert seen[2].created_at == seen[0].created_at


def test_a_worktree_not_seen_for_long_is_written_down_again(begin: Begin) -> None:
    """Its last sight is never much older than it says."""
    with begin() as uow:
        record_worktree(uow, "aaaaaaaaaaaa", "/src/app", branch=None, is_main=False)
        uow.commit()
    with begin() as uow:
        known = uow.worktrees.get("aaaaaaaaaaaa")
        uow.worktrees.save(evolve(known, last_seen_at=known.last_seen_at - 2 * REFRESH_AFTER))
        uow.commit()
    with begin() as uow:
        again = record_worktree(uow, "aaaaaaaaaaaa", "/src/app", branch=None, is_main=False)
        assert (again.version, again.last_seen_at) == (3, uow.now)


def test_who_is_in_a_worktree_and_at_what(begin: Begin) -> None:
    """Its agents in any status, those at work, and the unfinished tasks they hold."""
    with begin(actor=HERE) as uow:
        otter, lynx = uow.agents.add_all(
            [Agent(name="otter", status="running"), Agent(name="lynx", status="stopped")]
        )
        uow.tasks.add_all([Task(name="one"), Task(name="two")])
        done = claims.claim(uow, otter.id, halts=NO_HALTS)
        claims.complete(uow, done.task.id, done.fence)
        held = claims.claim(uow, otter.id, halts=NO_HALTS)
        uow.commit()
    with begin(actor=THERE) as uow:
        uow.agents.add(Agent(name="elsewhere", status="running"))
        uow.commit()
    with begin(write=False) as uow:
        found = worktree_occupants(uow, "aaaaaaaaaaaa")
    assert {agent.name for agent in found.agents} == {otter.name, lynx.name}
    assert [agent.status for agent in found.at_work] == [AgentStatus.RUNNING]
    assert [task.id for task in found.tasks] == [held.task.id]
