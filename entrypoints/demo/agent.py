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
from herdbook.domain.errors import AgentHalted
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo import scenario
from herdbook.entrypoints.demo.sandbox import git
from herdbook.entrypoints.rpc.methods import methods
from herdbook.ports.world.git import PATIENCE
from herdbook.services.journal.feed import Waiter


class AgentProcess:
    """The agent that this process is; it calls what an agent calls over JSON-RPC.

    It sends no heartbeats: every task of the demo ends long before the lease of a claim.
    """

    def __init__(self, app: AppContext, name: str, parent: int, **setup: str) -> None:
        self.app, self.name, self.parent = app, name, parent
        self.methods = methods()
        self.id = self.register(**setup)

    def register(self, **setup: str) -> str:
        """Register this process as the agent; the agent's id."""
        added = self.call("agent.add", name=self.name, pid=os.getpid(), **setup)
        return str(added["id"])

    def call(self, method: str, **parameters: Any) -> Any:
        """Call an operation as this agent."""
        return self.methods[method](self.app, parameters)

    def run(self, pace: str) -> None:
        """Wait for the message to begin, do tasks, and stop; nothing asked is left unanswered."""
        self.work_time, _ = scenario.PACES[pace]
        (message,) = self.wait_for(lambda: self.call("message.inbox", agent_id=self.id))
        self.call("message.read", message_id=message["id"])
        result: dict[str, Any] = {"done": []}
        try:
            while claim := self.wait_for(self.next_claim).get("claim"):
                self.do_task(claim, asks=not result["done"])
                result["done"].append(claim["task"]["name"])
        except AgentHalted as error:
            self.log(f"refused: {error}")
            result |= {"refused": type(error).__name__, "why": str(error)}
        self.answer_questions()
        self.call("agent.stop", agent_id=self.id, exit_code=0, result=result)

    def next_claim(self) -> dict[str, Any] | None:
        """Claim a task; no claim if all are done, and None if there is no task for now."""
        claim = self.call("task.claim")
        if claim["task"] is not None:
            return {"claim": claim}
        tasks = self.call("task.list")
        return {"claim": None} if all(t["status"] == "completed" for t in tasks) else None

    def do_task(self, claim: dict[str, Any], *, asks: bool) -> None:
        """Work on a task, commit, complete it and wait for the grade."""
        task = claim["task"]
        self.log(f"began {task['name']!r}, building on {len(claim['summaries'])} summaries")
        if asks:
            self.ask(task["id"])
        end = time.monotonic() + self.work_time
        # The agent that is to be killed is never done.
        self.wait_for(lambda: self.name != scenario.KILLED.name and time.monotonic() >= end)
        commit_hash = self.commit(task)
        summary = f"see {commit_hash[:12]}"
        self.call("task.done", task=task["id"], fence=claim["fence"], summary=summary)
        self.log(f"completed {task['name']!r} with {commit_hash[:12]}")
        self.wait_for(lambda: self.is_graded(commit_hash))

    def is_graded(self, commit_hash: str) -> bool:
        """Whether a commit of this agent has been graded."""
        graded = self.call("retro.list", agent=self.name)
        return any(each["commit_hash"] == commit_hash for each in graded)

    def ask(self, task_id: str) -> None:
        """Ask another agent about a task, wait for its answer and log it."""
        question, other = scenario.QUESTIONS[self.name][0], scenario.BY_NAME[self.name].asks
        key = self.call("conversation.add", question=question, to=other, task=task_id)["id"]
        answer = self.wait_for(lambda: self.call("conversation.show", id=key)["answer"])
        self.log(f"{other} says: {answer}")

    def commit(self, task: dict[str, Any]) -> str:
        """Append to the file of a task and commit it; the hash of the commit."""
        return self.commit_file(task, task["description"], f"{task['name']}, by {self.name}\n")

    def commit_file(self, task: dict[str, Any], file: str, text: str) -> str:
        """Append a text to a file and commit it for a task; the hash of the commit."""
        folder = self.app.workspace.folder
        common_dir = git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
        # Two agents share a worktree, and git refuses the second one that writes its index.
        with worktree_lock(common_dir, PATIENCE):
            with (folder / file).open("a") as written:
                written.write(text)
            git(folder, "add", "--", file)
            message = f"{task['name']}\n\n{scenario.TRAILER}: {task['id']}"
            git(folder, "commit", "--quiet", f"--message={message}", "--", file)
            return git(folder, "rev-parse", "HEAD").strip()

    def wait_for(self, look: Callable[[], Any]) -> Any:
        """Look until something true is found, and answer questions meanwhile.

        SystemExit if the process that started this one has ended.
        """
        space = self.app.workspace.space(Area.WORK)
        with self.app.open(Area.WORK) as store, Waiter(store, space) as waiter:
            while True:
                self.answer_questions()
                if found := look():
                    return found
                if os.getppid() != self.parent:
                    raise SystemExit("the process that started this agent has ended")
                waiter.wait()

    def answer_questions(self) -> None:
        """Answer every question that waits for this agent."""
        while asked := self.call("conversation.listen"):
            reply = self.reply_to(asked["question"])
            self.call("conversation.answer", conversation_id=asked["id"], text=reply)

    def reply_to(self, question: str) -> str:
        """What this agent knows about a question."""
        return dict(scenario.QUESTIONS.values())[question]

    def log(self, text: str) -> None:
        """Append a line to the agent's log."""
        self.call("log.add", agent_id=self.id, content=f"{text}\n")


def main(name: str, pace: str, parent: str) -> None:
    """Run one agent with both stores open."""
    app = AppContext.at(Path.cwd(), os.environ)
    with app.stores.hold():
        AgentProcess(app, name, int(parent), provider="demo").run(pace)


if __name__ == "__main__":
    main(*sys.argv[1:])
