"""One agent of the herd: `python -m herdbook.entrypoints.demo.live_agent NAME PACE PARENT`.

It goes on with what it holds, and else claims, works, asks, fails, commits and completes until its
parent ends. Whoever looks may answer it, take its task away, halt it or remove it: it goes on.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any, Final

from herdbook.domain.agents.model import AgentStatus
from herdbook.domain.errors import HerdbookError
from herdbook.domain.plan.model import TaskStatus
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo import herd_plan
from herdbook.entrypoints.demo.agent import AgentProcess
from herdbook.entrypoints.hooks.hosts import local_command

MOST_WAITING: Final = 2
"""So many agents wait for the visitor at most, so that the others show something."""
BEAT: Final = 60.0
"""Seconds between two signs of life for a task."""
AGAIN: Final = 3.0
"""Seconds until the next claim after one in vain."""
ASKS_PERSON, ASKS_AGENT, WRITES, PROPOSES = 0.15, 0.3, 0.05, 0.05
"""How often it does so, as a share of its tasks."""


class LiveAgent(AgentProcess):
    """An agent of the herd, at a pace that multiplies all its times."""

    def __init__(self, app: AppContext, name: str, pace: float, parent: int) -> None:
        self.own, self.pace = herd_plan.BY_NAME[name], pace
        self.chance = Random()  # noqa: S311 - a herd does not do the same twice
        super().__init__(app, name, parent, provider=self.own.provider, model=self.own.model)

    def register(self, **setup: str) -> str:
        """Resume, or register; not before a question of before was answered: it would be gone."""
        found = self.call("agent.list", name=self.name)
        if not found:
            return super().register(**setup)
        self.id = str(found[0]["id"])
        self.wait_for(self.is_answered)
        self.call("agent.resume", name=self.name, pid=os.getpid())
        return self.id

    def is_answered(self) -> bool:
        """Whether this agent waits for no person."""
        status: str = self.call("agent.show", id=self.id)["status"]
        return status != AgentStatus.WAITING_FOR_INPUT

    def live(self) -> None:
        """Work for as long as the parent lives."""
        while True:
            try:
                claim = self.wait_for(self.next_task)
                self.work_on(claim["task"], claim["fence"])
            except HerdbookError as error:  # its task was taken, it is halted, or its row is gone
                self.log(f"stopped: {error}")
                self.pause(AGAIN)
            self.pause(self.chance.uniform(1, 5))

    def reply_to(self, question: str) -> str:
        """What this agent knows about a question."""
        return herd_plan.reply_to(question)

    def next_task(self) -> dict[str, Any] | None:
        """The claim that it has, or a new one; None if there is no task for now."""
        held = self.call("task.list", assignee=self.id, status=TaskStatus.IN_PROGRESS, limit=1)
        claim: dict[str, Any] = self.call("task.claim", **{"task": held[0]["id"]} if held else {})
        if claim["task"] is not None:
            return claim
        self.pause(AGAIN)
        return None

    def work_on(self, task: dict[str, Any], fence: int) -> None:
        """Work on a task step by step, and end it well or not."""
        self.log(f"began {task['name']!r}")
        asks = self.chance.random()
        for number, (step, tool) in enumerate(herd_plan.STEPS):
            self.log(step)
            self.run_hook("PreToolUse", tool)
            self.pause(self.chance.uniform(3, 9))
            self.run_hook("PostToolUse", tool)
            self.call("task.heartbeat", task=task["id"], fence=fence)
            if number != 1:
                continue
            if asks < ASKS_PERSON and self.may_ask_person():
                self.ask_person(task, fence)
            elif asks < ASKS_PERSON + ASKS_AGENT:
                self.ask_agent(task["id"])
        if self.chance.random() < self.own.failing:
            self.call("task.fail", task=task["id"], fence=fence)
            self.log(f"gave {task['name']!r} up: {self.chance.choice(herd_plan.REASONS)}")
            return
        file = herd_plan.file_of(task["name"])
        commit_hash = self.commit_file(task, file, herd_plan.code_of(task["name"], self.name))
        summary = f"done in {file}, {commit_hash[:12]}"
        self.call("task.done", task=task["id"], fence=fence, summary=summary)
        self.log(f"completed {task['name']!r} with {commit_hash[:12]}")
        self.tell_person(task)

    def run_hook(self, event: str, tool: str) -> None:
        """Start the hook as a coding agent does before and after it uses a tool."""
        words = shlex.split(local_command(event))
        subprocess.run(  # noqa: S603 - our own file
            words,
            input=json.dumps({"tool_name": tool}).encode(),
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def may_ask_person(self) -> bool:
        """Whether the visitor has not too many questions already."""
        return len(self.call("agent.waiting")) < MOST_WAITING

    def ask_person(self, task: dict[str, Any], fence: int) -> None:
        """Ask the visitor, and wait for the answer as long as it takes."""
        question, answers = self.chance.choice(herd_plan.TO_PERSON)
        asked = [{"question": question, "options": list(answers)}]
        self.call("agent.wait", agent_id=self.id, questions=asked)
        self.await_person(task["id"], fence)

    def await_person(self, task_id: str, fence: int) -> None:
        """Wait until a person has answered, and show meanwhile that it lives."""
        beat = time.monotonic() + BEAT

        def look() -> bool:
            nonlocal beat
            if time.monotonic() >= beat:
                self.call("task.heartbeat", task=task_id, fence=fence)
                beat = time.monotonic() + BEAT
            return self.is_answered()

        self.wait_for(look)
        for message in self.call("message.inbox", agent_id=self.id):
            self.log(f"was told: {message['content']}")
            self.call("message.read", message_id=message["id"])

    def ask_agent(self, task_id: str) -> None:
        """Ask another agent about a task; the answer is read when it comes."""
        others = [each["name"] for each in self.call("agent.list", status=AgentStatus.RUNNING)]
        others = [each for each in others if each != self.name]
        if not others:
            return
        question, _ = self.chance.choice(herd_plan.TO_EACH_OTHER)
        other = self.chance.choice(others)
        key = self.call("conversation.add", question=question, to=other, task=task_id)["id"]
        end = time.monotonic() + AGAIN * 4 * self.pace

        def look() -> str | None:
            answer: str | None = self.call("conversation.show", id=key)["answer"]
            return answer or ("nothing yet" if time.monotonic() > end else None)

        self.log(f"{other} says: {self.wait_for(look)}")

    def tell_person(self, task: dict[str, Any]) -> None:
        """Now and then write to the visitor, or propose a task."""
        chance = self.chance.random()
        if chance < WRITES and not self.waits("msg_"):
            text = self.chance.choice(herd_plan.MESSAGES)
            self.call("message.add", content=text, requires_response=True)
        elif chance < WRITES + PROPOSES and not self.waits("pro_"):
            initiative = self.initiative_of(task)
            if initiative is not None:
                title, why = self.chance.choice(herd_plan.PROPOSALS)
                more = {"summary": why, "content": title, "target_type": "task"}
                self.call("proposal.add", title=title, initiative_id=initiative, **more)

    def initiative_of(self, task: dict[str, Any]) -> str | None:
        """The initiative that a task belongs to."""
        if task["phase_id"] is None:
            return None
        owner: str | None = self.call("phase.show", id=task["phase_id"])["initiative_id"]
        return owner

    def waits(self, prefix: str) -> bool:
        """Whether a row whose id begins so waits for the visitor already."""
        return any(each["subject"].startswith(prefix) for each in self.call("waiting"))

    def pause(self, seconds: float) -> None:
        """Let time pass; questions of others are answered meanwhile."""
        end = time.monotonic() + seconds * self.pace
        self.wait_for(lambda: time.monotonic() >= end)


def main(name: str, pace: str, parent: str) -> None:
    """Run one agent of the herd with both stores open."""
    app = AppContext.at(Path.cwd(), os.environ)
    with app.stores.hold():
        LiveAgent(app, name, float(pace), int(parent)).live()


if __name__ == "__main__":
    main(*sys.argv[1:])
