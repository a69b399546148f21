"""`herdbook serve --demo`: a herd that works, questions to answer, and nothing left of it."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest

from herdbook.entrypoints.demo.herd_plan import BY_NAME, HALTED, STEPS
from tests.e2e.conftest import Files, Person
from tests.e2e.serve_process import Serving
from tests.e2e.test_demo import PATIENCE


@pytest.fixture
def place() -> Iterator[Path]:
    """Where temporary folders are made; its path is short, as sockets need it."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


class ServingDemo(Serving):
    """A server of a demo; its state is in the home that the demo has made."""

    def __init__(self, person: Person, place: Path, *words: str) -> None:
        super().__init__(person, person.home, "--demo", *words, TMPDIR=str(place))

    def find_state(self) -> Path:
        """The folder with everything about the server."""
        folder = Path(self.told["folders"][0]).parent
        return folder / "home" / ".local" / "state" / "herdbook" / "serve"


@pytest.fixture
def demo(person: Person, place: Path) -> Iterator[ServingDemo]:
    """A demo that runs."""
    running = ServingDemo(person, place)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.communicate()


def wait_for(look: Callable[[], Any]) -> Any:
    """Look until something true is found."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.2)
    return found


def test_a_herd_has_worked_and_goes_on(
    demo: ServingDemo, person: Person, place: Path, everything_in: Callable[[Path], Files]
) -> None:
    """There is something on every page, agents run hooks, and an answer reaches one."""
    before = everything_in(person.home)
    elsewhere = next(place.glob("*/elsewhere")).read_text().splitlines()
    assert demo.told["state"] == "demo"
    states = demo.calls("board")["tasks"]
    assert all(states[each] for each in ("ready", "held", "waiting", "blocked", "completed"))
    assert demo.calls("progress")["forecast"] is not None
    assert len(demo.calls("retro.list")) > 20
    waiting = demo.calls("waiting")
    kinds = {each["kind"] for each in waiting}
    assert {"question", "approval", "proposal", "failed", "halted"} <= kinds
    assert any(HALTED.name in each["title"] for each in waiting)
    question = next(each for each in waiting if each["subject"].startswith("agt_"))
    action = question["actions"][0]
    answered = demo.calls(action["method"], **action["params"])
    assert answered["status"] == "running"
    name = answered["name"]
    wait_for(lambda: demo.calls("agent.show", id=name)["pid"] is not None)
    holders = [each["assignee_id"] for each in demo.calls("task.list", status="in_progress")]
    assert len(holders) == len(set(holders))
    done = len(demo.calls("task.list", status="completed", limit=1000))
    wait_for(lambda: len(demo.calls("task.list", status="completed", limit=1000)) > done)
    with demo.feed() as feed:
        pulses = (each for event in feed if event.kind == "pulse" for each in event.data)
        pulse = next(each for each in pulses if each["kind"] == "tool_started")
    assert pulse["agent"] in BY_NAME
    assert pulse["tool"] in dict(STEPS).values()
    assert pulse["space"] is not None
    pids = [each["pid"] for each in demo.calls("agent.list") if each["pid"]]
    assert len(pids) >= 2
    assert demo.ends(signal.SIGINT) == (0, "")
    assert list(place.iterdir()) == []
    assert not any(map(os.path.exists, elsewhere))
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert everything_in(person.home) == before


def test_a_demo_that_is_killed_leaves_nothing(demo: ServingDemo, place: Path) -> None:
    """Another process removes its folder, and its agents end."""
    herd = wait_for(lambda: agents_in(place))
    demo.process.kill()
    demo.process.communicate()
    wait_for(lambda: not list(place.iterdir()))
    _, alive = psutil.wait_procs(herd, timeout=PATIENCE)
    assert alive == []


def agents_in(place: Path) -> list[psutil.Process]:
    """The processes of agents that work below a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            is_agent = any("live_agent" in word for word in process.cmdline())
            if is_agent and Path(process.cwd()).is_relative_to(place):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_it_is_apart_from_the_server_that_runs(person: Person, app: Path, place: Path) -> None:
    """Both run at once; the user's server does not know the demo, and can end without it."""
    own = Serving(person, app)
    demo = ServingDemo(person, place)
    assert demo.url != own.url
    folders = {each["folder"] for each in own.asks("GET", "/spaces").json}
    assert folders == {str(app)}
    person.runs(app, "serve", "--stop")
    assert own.ends() == (0, "")
    assert demo.asks("GET", "/healthz").status == 200
    assert demo.ends() == (0, "")
    assert list(place.iterdir()) == []


def test_folders_and_the_demo_are_not_mixed(
    person: Person, app: Path, everything_in: Callable[[Path], Files]
) -> None:
    """It is refused before anything is made."""
    before = everything_in(person.home)
    for words in ([str(app)], ["--stop"], ["--new-token"]):
        refused = person.tries(app, "serve", "--demo", *words)
        assert (refused.returncode, "cannot be combined with demo" in refused.stderr) == (2, True)
    assert everything_in(person.home) == before
