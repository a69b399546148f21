"""One workflow of many at once: `python -m tests.e2e.worker GATE ROUNDS`, a process of its own.

It leaves a file in the folder GATE, waits until nobody holds the lock there, and then adds a task,
claims one, completes it and follows the journal until it has seen that, round by round. What it did
comes out as one line of JSON.
"""

import json
import os
import sys
import time
from fcntl import LOCK_SH, flock
from pathlib import Path

from herdbook.domain.agents.model import Agent
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.context import AppContext
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims


def follow(store: Store, space: str, seen: int, task_id: str) -> int:
    """Read the journal from where we were until it tells that a task is done."""
    while True:
        entries = read(store, space, lambda uow, seq: uow.journal.since(seq), seen)
        for entry in entries:
            assert entry.seq == seen + 1, f"{entry.seq} follows {seen}"
            seen = entry.seq
            after = entry.after or {}
            if entry.key == task_id and after.get("status") == "completed":
                return seen
        if not entries:
            time.sleep(0.01)


def main() -> None:
    """Work, and tell."""
    gate, rounds = Path(sys.argv[1]), int(sys.argv[2])
    here = AppContext.at(Path.cwd(), os.environ)
    told: dict[str, list[object]] = {"added": [], "completed": [], "seconds": []}
    name = f"agent-{os.getpid()}"
    (gate / f"ready-{os.getpid()}").touch()
    with (gate / "lock").open() as lock:
        flock(lock, LOCK_SH)
    with here.open(Area.WORK, create=True) as store:
        space, actor = here.workspace.space(Area.WORK), here.actor
        run(store, space, here.record_worktree, actor=actor)
        agent = run(store, space, lambda uow: uow.agents.add(Agent(name=name)), actor=actor)
        seen = 0
        for number in range(rounds):
            start = time.perf_counter()
            task = Task(name=f"{name} {number}")
            added = run(store, space, lambda uow, task: uow.tasks.add(task), task, actor=actor)
            claim = run(store, space, claims.claim, agent.id, halts=NO_HALTS, actor=actor)
            assert claim is not None, "whoever adds first finds something to claim"
            run(store, space, claims.complete, claim.task.id, claim.fence, actor=actor)
            told["seconds"].append(time.perf_counter() - start)
            seen = follow(store, space, seen, claim.task.id)
            told["added"].append(added.id)
            told["completed"].append(claim.task.id)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
