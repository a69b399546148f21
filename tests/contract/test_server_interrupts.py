"""Ctrl-C ends every wait on a Postgres server; idle connections end by themselves."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from herdbook.adapters import open_store
from herdbook.ports.unit_of_work.run import read
from tests.contract.children import REPOSITORY
from tests.contract.proxies import network
from tests.contract.silent_servers import (
    HANGS,
    backends,
    count,
    server,
    stopped,
    through,
    url,
)
from tests.contract.space import HERE, everything_in
from tests.postgres_server import PostgresServer

__all__ = ["server", "url"]


INTERRUPTED = """
import sys
from herdbook.adapters import open_store
from herdbook.adapters.sql_query import ask
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work

url, scene = sys.argv[1:]

def ready():
    print("ready", flush=True)

def add(uow):
    uow.tasks.add(Task(name="x"))

def wait(uow):
    ready()
    sys.stdin.readline()
    uow.tasks.find("x")

try:
    if scene == "connecting":
        ready()
        open_store(url, patience=600)
    with open_store(url, patience=600) as store:
        match scene:
            case "locked":
                ready()
                run(store, "work/here", add)
            case "stopped":
                run(store, "work/here", wait)
            case "stopped reading":
                read(store, "work/here", wait)
            case "down":
                ready()
                sys.stdin.readline()
                run(store, "work/here", add)
            case "working":
                with unit_of_work(store, "work/here") as uow:
                    ready()
                    uow.session._run("SELECT pg_sleep(600)")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Waiting:
    """A program that waits for a server and is interrupted."""

    def __init__(self, url: str, scene: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, url, scene],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def go_on(self) -> None:
        """Let it do what it waits in."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def interrupt(self) -> float:
        """Press Ctrl-C while it waits; how many seconds it took to end."""
        time.sleep(1)
        assert self._process.poll() is None
        began = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        try:
            told, _ = self._process.communicate(timeout=HANGS)
        finally:
            self._process.kill()
        assert told == "interrupted\n"
        return time.monotonic() - began


def test_ctrl_c_ends_every_wait(url: str, server: PostgresServer) -> None:
    """For a lock, a stopped server process, honest work, a silent server and one that is down."""
    took: dict[str, float] = {}
    schema = url.rpartition("=")[2]
    with psycopg.connect(server.url) as hog:
        hog.execute(f"SELECT * FROM {schema}.heads FOR UPDATE")
        took["locked"] = Waiting(url, "locked").interrupt()
    took["working"] = Waiting(url, "working").interrupt()
    for scene in ("stopped", "stopped reading"):
        waiting = Waiting(url, scene)
        with stopped(server):
            waiting.go_on()
            took[scene] = waiting.interrupt()
    with network(server.port) as between:
        between.drop()
        took["connecting"] = Waiting(through(between, url), "connecting").interrupt()
    waiting = Waiting(url, "down")
    server.stop()
    try:
        waiting.go_on()
        took["down"] = waiting.interrupt()
    finally:
        server.start()
    assert max(took.values()) < HANGS / 3, took


def test_a_connection_that_nobody_uses_is_closed(url: str, server: PostgresServer) -> None:
    """Others need it, and the store stays open and usable."""
    with open_store(url) as store:
        with _threads(8, lambda: read(store, HERE, count)):
            pass
        deadline = time.monotonic() + HANGS
        while backends(server):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert read(store, HERE, count) == 1
        assert len(backends(server)) == 1
    with closing(open_store(url)) as store:
        assert read(store, HERE, count) == 1
    assert not backends(server)


@contextmanager
def _threads(number: int, work: Callable[[], Any]) -> Iterator[None]:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def test_a_connection_that_the_server_closed_is_not_used(url: str, server: PostgresServer) -> None:
    """A restart between two transactions is noticed by nobody, also without `run`."""
    with open_store(url) as store:
        before = everything_in(store)
        server.restart("immediate")
        assert everything_in(store) == before
