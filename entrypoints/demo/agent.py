"""One agent of the demo: `python -m herdbook.entrypoints.demo.agent NAME PACE PARENT`.

Its working folder is its worktree and its name is in HERDBOOK_AGENT. It registers, waits for a
message, and then claims, works, commits and completes until nothing is left or it is refused. While
it waits it answers what it is asked. It ends when its parent does.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from herdbook.adapters.git.worktree_lock import worktree_lock
from herdbook.domain.errors import AgentHalted, InvalidValue, NotFound, StaleFence
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo import scenario
from herdbook.entrypoints.demo.sandbox import git
from herdbook.entrypoints.rpc.methods import methods
from herdbook.ports.engine.dictionary import OPENINGS, WAITING
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.git import PATIENCE
from herdbook.services import messaging


class AgentProcess:
    """The agent that this process is; it calls what an agent calls over JSON-RPC.

    It sends no heartbeats: every task of the demo ends long before the lease of a claim.
    """

    def __init__(self, app: AppContext, name: str, pace: str, parent: int) -> None:
        if app.workspace.facts is None:
            raise InvalidValue("folder", "an agent of the demo works in its repository")
        self.app, self.common_dir = app, app.workspace.facts.common_dir
        self.name, self.pace, self.parent = name, scenario.PACES[pace], parent
        self.methods = methods()
        own = self.call("agent.add", name=name, provider=scenario.PROVIDER, pid=os.getpid())
        self.id = own["id"]

    def call(self, method: str, **parameters: Any) -> Any:
        """Call an operation as this agent."""
        return self.methods[method](self.app, parameters)

    def run(self) -> None:
        """Wait for the message to begin, do tasks, and stop; nothing asked is left unanswered."""
        (message,) = self.wait_for(lambda: self.call("message.inbox", agent_id=self.id))
        self.call("message.read", message_id=message["id"])
        result = self.do_tasks()
        self.answer_questions()
        self.call("agent.stop", agent_id=self.id, exit_code=0, result=result)

    def do_tasks(self) -> dict[str, Any]:
        """Do one task after the other, and return what to store as the agent's result."""
        done: list[str] = []
        try:
            while claim := self.wait_for(self.next_claim).get("claim"):
                if self.do_task(claim, asks=not done):
                    done.append(claim["task"]["name"])
        except AgentHalted as error:
            self.log(f"refused: {error}")
            return {"done": done, "refused": type(error).__name__, "why": str(error)}
        return {"done": done}

    def next_claim(self) -> dict[str, Any] | None:
        """Claim a task; no claim if all are done, and None if there is no task for now."""
        try:
            return {"claim": self.call("task.claim")}
        except NotFound:
            return {"claim": None} if self.app.read(Area.WORK, _all_done) else None

    def do_task(self, claim: dict[str, Any], *, asks: bool) -> bool:
        """Work on a task, commit, complete it and wait for the grade; False if it was lost."""
        task_id, name = claim["task"]["id"], claim["task"]["name"]
        self.log(f"began {name!r}, building on {len(claim['summaries'])} summaries")
        if asks:
            self.ask(task_id)
        end = time.monotonic() + self.pace.work
        # The agent that is to be killed is never done.
        self.wait_for(lambda: self.name != scenario.KILLED.name and time.monotonic() >= end)
        commit_hash = self.commit(task_id, name)
        summary = f"see {commit_hash[:12]}"
        try:
            self.call("task.done", task=task_id, fence=claim["fence"], summary=summary)
        except StaleFence as error:
            self.log(str(error))
            return False
        self.log(f"handed in {name!r} with {commit_hash[:12]}")
        self.wait_for(lambda: self.app.read(Area.RECORD, _is_graded, self.name, commit_hash))
        return True

    def ask(self, task_id: str) -> None:
        """Ask another agent about a task, wait for its answer and log it."""
        question, other = scenario.QUESTIONS[self.name][0], scenario.BY_NAME[self.name].asks
        key = self.call("conversation.add", question=question, to=other, task=task_id)["id"]
        found = self.wait_for(lambda: self.app.read(Area.WORK, messaging.find_answer, key))
        self.log(f"{other} says: {found.answer}")

    def commit(self, task_id: str, name: str) -> str:
        """Append to the file of a task and commit it; the hash of the commit."""
        folder = self.app.workspace.folder
        (file,) = (task.file for task in scenario.TASKS if task.name == name)
        # Two agents share a worktree, and git refuses the second one that writes its index.
        with worktree_lock(self.common_dir, PATIENCE):
            with (folder / file).open("a") as written:
                written.write(f"{name}, by {self.name}\n")
            git(folder, "add", "--", file)
            message = f"{name}\n\n{scenario.TRAILER}: {task_id}"
            git(folder, "commit", "--quiet", f"--message={message}", "--", file)
            return git(folder, "rev-parse", "HEAD").strip()

    def wait_for(self, look: Callable[[], Any]) -> Any:
        """Look until something true is found, and answer questions meanwhile.

        SystemExit if the process that started this one has ended.
        """
        while True:
            self.answer_questions()
            if found := look():
                return found
            if os.getppid() != self.parent:
                raise SystemExit("the process that started this agent has ended")
            time.sleep(self.pace.look)

    def answer_questions(self) -> None:
        """Answer every question that waits for this agent."""
        while asked := self.call("conversation.listen"):
            reply = scenario.REPLIES[asked["question"]]
            self.call("conversation.answer", conversation_id=asked["id"], text=reply)

    def log(self, text: str) -> None:
        """Append a line to the agent's log."""
        self.call("log.add", agent_id=self.id, content=f"{text}\n")


def main(name: str, pace: str, parent: str) -> None:
    """Run one agent with both stores open."""
    app = AppContext.at(Path.cwd(), os.environ)
    with app.open(Area.WORK, create=True), app.open(Area.RECORD, create=True):
        AgentProcess(app, name, pace, int(parent)).run()


def _all_done(uow: UnitOfWork) -> bool:
    return not uow.count(find(OPENINGS)) and not uow.count(find(WAITING))


def _is_graded(uow: UnitOfWork, name: str, commit_hash: str) -> bool:
    return uow.retrospectives.of_commit(name, scenario.PROJECT, commit_hash) is not None


if __name__ == "__main__":
    main(*sys.argv[1:])
