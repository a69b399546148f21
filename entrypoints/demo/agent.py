"""One agent of the demo: `python -m herdbook.entrypoints.demo.agent NAME PACE PARENT`.

It is a process of its own, stands in its worktree and has its name in HERDBOOK_AGENT. It comes to
work, waits until it may begin, and then claims, works, commits and hands in, until there is nothing
left or it may not go on. Whatever it waits for, it answers what it is asked meanwhile. It ends when
its parent does.
"""

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from herdbook.adapters.git.worktree_lock import worktree_lock
from herdbook.domain.conversation import Message
from herdbook.domain.errors import AgentHalted, InvalidValue, NotFound, StaleFence
from herdbook.domain.location.areas import Area
from herdbook.domain.location.identity import GitFacts
from herdbook.domain.record.model import Retrospective
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo.judging import PROJECT, PROVIDER
from herdbook.entrypoints.demo.plot import NAMED, PACES, REPLIES, STEPS, Fate, Member, Pace
from herdbook.entrypoints.demo.stage import git
from herdbook.entrypoints.operations.agents import handlers as comings
from herdbook.entrypoints.operations.conversation import handlers as conversation_handlers
from herdbook.entrypoints.operations.plan import handlers as plan_handlers
from herdbook.entrypoints.operations.plan.handlers import ClaimAnswer
from herdbook.ports.engine.dictionary import OPENINGS, WAITING
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.git import PATIENCE
from herdbook.services import messaging
from herdbook.services.agents import agent_lifecycle, logs

R = TypeVar("R")

LEASE: Final = timedelta(seconds=15)
"""Short, and still longer than any machine stands still: nobody alive loses a task."""
BEAT: Final = 1.0
"""How many seconds lie between two heartbeats."""
TRAILER: Final = "Herdbook-Task"
"""What a commit's message calls the task it is for."""


class Me(NamedTuple):
    """Who this process is, where it stands, and who started it."""

    here: AppContext
    facts: GitFacts
    member: Member
    pace: Pace
    id: str
    parent: int


def main(name: str, pace: str, parent: str) -> None:
    """Live one agent's life."""
    here = AppContext.at(Path.cwd(), os.environ)
    if here.workspace.facts is None:
        raise InvalidValue("folder", "an agent of the demo works in its repository")
    with here.open(Area.WORK, create=True), here.open(Area.RECORD, create=True):
        came = comings.register(
            here,
            name=name,
            provider=PROVIDER,
            model=None,
            mode="execute",
            session=None,
            pid=os.getpid(),
            prompt=None,
        )
        me = Me(here, here.workspace.facts, NAMED[name], PACES[pace], came.id, int(parent))
        message = attend(me, lambda: _first_message(me))
        here.run(Area.WORK, messaging.read, message.id)
        leave(me, work(me))


def work(me: Me) -> dict[str, Any]:
    """Do one task after the other; what came of it in the end."""
    done: list[str] = []
    while True:
        try:
            claim: ClaimAnswer | Literal[False] = attend(me, lambda: next_claim(me))
        except AgentHalted as error:
            log(me, f"refused: {error}")
            return {"done": done, "refused": type(error).__name__, "why": str(error)}
        if not claim:
            return {"done": done}
        if perform(me, claim, asks=not done):
            done.append(claim["task"].name)


def next_claim(me: Me) -> ClaimAnswer | Literal[False] | None:
    """The next task; False when all are done, and None when there is just none for now."""
    try:
        return plan_handlers.claim(me.here, agent=None, initiative=None, phase=None, ttl=LEASE)
    except NotFound:
        return False if me.here.read(Area.WORK, _all_done) else None


def perform(me: Me, claim: ClaimAnswer, *, asks: bool) -> bool:
    """Work on a task to its end; False if it was somebody else's by then."""
    task_id, name = claim["task"].id, claim["task"].name
    log(me, f"began {name!r}, building on {len(claim['summaries'])} summaries")
    if asks:
        asked = conversation_handlers.ask(
            me.here, question=me.member.question, to=me.member.asks, agent=None, task=task_id,
            wait=None,
        )  # fmt: skip
        answer = attend(me, lambda: me.here.read(Area.WORK, messaging.find_answer, asked.id), claim)
        log(me, f"{me.member.asks} says: {answer.answer}")
    end = time.monotonic() + me.pace.work
    attend(me, lambda: _over(me, end), claim)
    commit_hash = commit(me, task_id, name)
    try:
        plan_handlers.complete(
            me.here, task=task_id, fence=claim["fence"], summary=f"see {commit_hash[:12]}"
        )
    except StaleFence as error:
        log(me, str(error))
        return False
    log(me, f"handed in {name!r} with {commit_hash[:12]}")
    attend(me, lambda: me.here.read(Area.RECORD, _verdict, me.member.name, commit_hash))
    return True


def commit(me: Me, task_id: str, name: str) -> str:
    """Write the file a task ends with and commit it; the commit's hash."""
    file = next(step.file for step in STEPS if step.name == name)
    folder = me.here.workspace.folder
    # Two agents share a worktree, and git refuses the second one that writes its index.
    with worktree_lock(me.facts.common_dir, PATIENCE):
        with (folder / file).open("a") as written:
            written.write(f"{name}, by {me.member.name}\n")
        git(folder, "add", "--", file)
        message = f"{name}\n\n{TRAILER}: {task_id}"
        git(folder, "commit", "--quiet", f"--message={message}", "--", file)
        return git(folder, "rev-parse", "HEAD").strip()


def attend(me: Me, found: Callable[[], R | None], claim: ClaimAnswer | None = None) -> R:
    """Wait until something is found: answer what is asked, and keep the task that is held."""
    beat = time.monotonic() + BEAT
    while True:
        answer_all(me)
        if claim is not None and time.monotonic() >= beat:
            plan_handlers.heartbeat(me.here, task=claim["task"].id, fence=claim["fence"], ttl=LEASE)
            beat = time.monotonic() + BEAT
        answer = found()
        if answer is not None:
            return answer
        if os.getppid() != me.parent:
            raise SystemExit("whoever started this agent is gone, and so is the demo")
        time.sleep(me.pace.look)


def answer_all(me: Me) -> None:
    """Answer every question that waits for this agent."""
    while (asked := conversation_handlers.listen(me.here, agent=None, wait=None)) is not None:
        me.here.run(Area.WORK, messaging.answer, asked.id, REPLIES[asked.question])


def log(me: Me, text: str) -> None:
    """Print, where it is kept."""
    me.here.run(Area.WORK, logs.append, me.id, f"{text}\n")


def leave(me: Me, result: dict[str, Any]) -> None:
    """End on purpose, with nothing left unanswered: who asks does so before the last task ends."""
    answer_all(me)
    me.here.run(Area.WORK, agent_lifecycle.stop, me.id, 0, result)


def _first_message(me: Me) -> Message | None:
    return next(iter(me.here.read(Area.WORK, messaging.inbox, me.id, limit=1)), None)


def _all_done(uow: UnitOfWork) -> bool:
    return not uow.count(find(OPENINGS)) and not uow.count(find(WAITING))


def _over(me: Me, end: float) -> bool | None:
    """Whether the work is done; the one that is to be killed is never done."""
    done = me.member.fate is not Fate.KILLED and time.monotonic() >= end
    return done or None


def _verdict(uow: UnitOfWork, name: str, commit_hash: str) -> Retrospective | None:
    return uow.retrospectives.of_commit(name, PROJECT, commit_hash)


if __name__ == "__main__":
    main(*sys.argv[1:])
