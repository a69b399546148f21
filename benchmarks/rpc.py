"""What a server costs: its first reply, a call, and many calls, each against its bar in one run.

The installed program is started in a real repository with a thousand tasks on LMDB. Calls go over
its pipes as bytes that were made beforehand, so that it is the server that is measured and not a
client; the same use case is called in this process, on a store that is open. Run with `make bench`.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.commands import repository
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.client import Client
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.serialize import row_to_data
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan.task_details import task_details

STARTS, ROUNDS, CALLS = 20, 25, 200
MANY = 10_000
FIRST_REPLY, PER_CALL, GROWTH = 200.0, 3.0, 8.0
"""The bars: milliseconds over a bare interpreter, times the use case, MiB that may be added."""


ECHO = "import os\nwhile told := os.read(0, 65536): os.write(1, told)"
"""A server that does nothing: what it takes is the price of two pipes and two switches."""


class Pipes:
    """A server, and its two pipes."""

    def __init__(self, command: list[str], root: Path, variables: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=root,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.into, self.out = self.process.stdin, self.process.stdout

    def ask(self, question: bytes) -> bytes:
        """Send a line, and read one."""
        os.write(self.into.fileno(), question)
        return self.out.readline()

    def close(self) -> None:
        """End it."""
        self.into.close()
        self.out.read()
        self.process.wait()
        self.out.close()


def line(method: str, id_: int, **params: object) -> bytes:
    """A request."""
    message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def first_reply(program: str, root: Path, variables: dict[str, str], question: bytes) -> float:
    """How many milliseconds pass from the start of a server to its first answer, over bare."""
    over: list[float] = []
    for _ in range(STARTS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True, env=variables)
        bare = time.perf_counter() - start
        start = time.perf_counter()
        pipes = Pipes([program, "rpc"], root, variables)
        assert b'"result"' in pipes.ask(question)
        over.append((time.perf_counter() - start - bare) * 1_000)
        pipes.close()
    return statistics.median(over)


def timed(work: Callable[[], object]) -> float:
    """How many microseconds a call takes, over many."""
    start = time.perf_counter()
    for _ in range(CALLS):
        work()
    return (time.perf_counter() - start) / CALLS * 1_000_000


def pipelined(pipes: Pipes, task_id: str, calls: int) -> float:
    """How many microseconds a call takes when all are sent without a pause."""
    questions = b"".join(line("task.show", number, id=task_id) for number in range(calls))

    def send() -> None:
        pipes.into.write(questions)
        pipes.into.flush()

    sending = threading.Thread(target=send)
    start = time.perf_counter()
    sending.start()
    for _ in range(calls):
        assert b'"result"' in pipes.out.readline()
    sending.join()
    return (time.perf_counter() - start) / calls * 1_000_000


def grown(pipes: Pipes, task_id: str) -> float:
    """By how many MiB a server grows while it answers ten thousand requests."""
    process = psutil.Process(pipes.process.pid)
    before: int = process.memory_info().rss
    pipelined(pipes, task_id, MANY)
    after: int = process.memory_info().rss
    return (after - before) / 1024**2


def judged(value: float, bar: float) -> str:
    """A bar, and whether it was missed."""
    return f"bar {bar:g}" + ("" if value <= bar else "  missed")


def main() -> int:
    """Print each figure with its bar."""
    program = shutil.which("herdbook", path=str(Path(sys.executable).parent))
    assert program is not None, "`make setup` installs it"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        variables = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "USER": "bench"}
        variables["HERDBOOK_BACKUP"] = "off"
        os.environ.update(variables)  # what this process writes itself belongs there too
        root = repository(folder, variables)
        measure(program, root, variables)
    return 0


def show_task(uow: UnitOfWork, task_id: str) -> dict[str, object]:
    """What `task.show` answers, without its wire."""
    task = crud.find_row(uow, TASKS, task_id)
    return {**row_to_data(task), **task_details(uow, task)}


def measure(program: str, root: Path, variables: dict[str, str]) -> None:
    """Take all figures in one repository."""
    here = AppContext.at(root, variables)
    task_id = here.read(Area.WORK, crud.list_rows, TASKS, {}, limit=1)[0].id
    question = line("task.show", 1, id=task_id)
    reply = first_reply(program, root, variables, question)
    print(f"first reply: {reply:+.1f} ms over bare, {judged(reply, FIRST_REPLY)}")
    pipes = Pipes([program, "rpc"], root, variables)
    answer = pipes.ask(question)
    floor = Pipes([sys.executable, "-c", ECHO], root, variables)
    space = here.workspace.space(Area.WORK)
    within, pings, floors, bursts, clients = [], [], [], [], []
    with here.open(Area.WORK) as store, Client.spawn(root, variables=variables) as herd:
        for _ in range(ROUNDS):
            within.append(timed(lambda: read(store, space, show_task, task_id)))
            pings.append(timed(lambda: pipes.ask(question)))
            floors.append(timed(lambda: floor.ask(answer)))
            bursts.append(pipelined(pipes, task_id, CALLS))
            clients.append(timed(lambda: herd.call("task.show", id=task_id)))
    base, asked = statistics.median(within), statistics.median(pings)
    ratio = asked / base
    print(f"task.show in-process on an open store: {base:.0f} µs (medians of {ROUNDS} x {CALLS})")
    print(f"task.show, asked and answered in turn: {asked:.0f} µs")
    print(f"  {ratio:.2f} times in-process, {judged(ratio, PER_CALL)}")
    print(f"  of which a server that echoes takes {statistics.median(floors):.0f} µs")
    print(f"task.show, sent without a pause: {statistics.median(bursts):.0f} µs")
    print(f"task.show by the Python client: {statistics.median(clients):.0f} µs")
    first, second = grown(pipes, task_id), grown(pipes, task_id)
    print(f"{MANY:,} requests without a pause: {first:+.1f} MiB")
    print(f"  {MANY:,} more: {second:+.1f} MiB, {judged(second, GROWTH)}")
    pipes.close()
    floor.close()


if __name__ == "__main__":
    sys.exit(main())
