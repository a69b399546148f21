"""How soon the dashboard shows 10,000 tasks, and how soon two pages show the claim of a command.

Chromium, which HERDBOOK_TEST_CHROMIUM names or the PATH has, looks at the installed `herdbook
serve` of a real repository on LMDB. A page is painted when it shows its content, not when the
browser has drawn something. A claim is made by `herdbook claim` in a process of its own and counts
from the time that its transaction has in the journal. A line of calibration says how quick the
machine is at the moment. Needs the packages of `make browser`. Run with `make bench`.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page

from benchmarks.commands import repository
from benchmarks.machine import calibrate, percentile
from herdbook.domain.agents.model import Agent
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.context import AppContext
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.browser.chromium import launch_chromium

TASKS, CLAIMS, LOADS = 9_000, 10, 5
"""Besides the thousand tasks of every benchmark; how often is claimed, and each page loaded."""
PATHS = ("/", "/board", "/board?by=phase", "/graph", "/lanes", "/agents", "/history")
PAINT_BAR, CLAIM_BAR = 1_000.0, 500.0
"""Milliseconds in which a page with 10,000 tasks is painted, and in which a claim is shown."""
READY = "main[data-ready]"
NOTE_READY = """
new MutationObserver((_, watcher) => {
  if (!document.querySelector("main[data-ready]")) return;
  watcher.disconnect();
  requestAnimationFrame(() => (window.painted = performance.now()));
}).observe(document, { subtree: true, childList: true, attributes: true });
"""
WATCH = """(place) => {
  const text = () => document.querySelector(place).textContent;
  const before = text();
  window.seen = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${place} still says ${before}`)), 60_000);
    new MutationObserver((_, watcher) => {
      if (text() === before) return;
      watcher.disconnect();
      resolve(Date.now());
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
}"""
PLACES = {"/board": "#column-held", "/": "#herd-title"}
"""What says on each page how many tasks are held: of 100 cards only some are drawn."""


@contextmanager
def serving(root: Path, variables: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What the server of a repository says of itself."""
    program = shutil.which("herdbook", path=str(Path(sys.executable).parent)) or "herdbook"
    words = [program, "serve", "--no-open", "--json"]
    with subprocess.Popen(
        words, cwd=root, env=variables, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.terminate()


def open_context(browser: Browser, told: dict[str, Any]) -> BrowserContext:
    """A browser that the server knows."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto(f"{told['url']}#{urlsplit(told['link']).fragment}")
    page.wait_for_selector(READY)
    page.close()
    context.add_init_script(NOTE_READY)
    return context


def load(context: BrowserContext, address: str) -> tuple[Page, float]:
    """A page, and the milliseconds until its content was painted."""
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(READY)
    page.wait_for_function("window.painted !== undefined")
    painted: float = page.evaluate("window.painted")
    return page, painted


def measure_paint(context: BrowserContext, url: str) -> None:
    """Print how long each page takes."""
    print(f"first paint of {TASKS + 1000:,} tasks: navigation begins → content painted")
    for path in PATHS:
        taken = []
        for _ in range(LOADS):
            page, painted = load(context, url + path)
            taken.append(painted)
            page.close()
        middle = statistics.median(taken)
        mark = "" if middle < PAINT_BAR else f"  above the bar of {PAINT_BAR:.0f} ms"
        print(f"{path:>18} {middle:8.0f} ms, slowest {max(taken):6.0f}{mark}")


def measure_claims(context: BrowserContext, url: str, app: AppContext) -> None:
    """Print how long claims take until two pages show them."""
    pages = {path: load(context, url + path)[0] for path in PLACES}
    program = shutil.which("herdbook", path=str(Path(sys.executable).parent)) or "herdbook"
    delays: dict[str, list[float]] = {path: [] for path in PLACES}
    for number in range(CLAIMS):
        name = f"claimed {number}"
        for path, page in pages.items():
            page.evaluate(WATCH, PLACES[path])
        words = [program, "claim", name, "--agent", f"late-{number}"]
        subprocess.run(
            words,
            cwd=app.workspace.folder,
            env=dict(app.workspace.variables),
            check=True,
            capture_output=True,
        )
        begun = app.read(Area.WORK, _time_of_claim, name)
        for path, page in pages.items():
            delays[path].append(page.evaluate("window.seen") - begun)
    print("a claim by a command: its transaction → both pages show it")
    for path, taken in delays.items():
        mark = "" if percentile(taken, 0.99) < CLAIM_BAR else f"  above {CLAIM_BAR:.0f} ms"
        print(f"{path:>18} p50 {percentile(taken, 0.5):6.0f} ms, last {max(taken):6.0f}{mark}")


def _time_of_claim(uow: UnitOfWork, name: str) -> float:
    entries = [each for each in uow.journal.all_entries() if each.entity == "tasks"]
    (key,) = (each.key for each in entries if (each.after or {}).get("name") == name)
    claims = [each for each in entries if each.key == key and "fence" in (each.after or {})]
    return claims[-1].time.timestamp() * 1e3


def fill(uow: UnitOfWork) -> None:
    """More tasks, and agents that will claim some of them."""
    uow.tasks.add_all([Task(name=f"more {number}", order=number) for number in range(TASKS)])
    uow.tasks.add_all([Task(name=f"claimed {number}") for number in range(CLAIMS)])
    uow.agents.add_all([Agent(name=f"late-{number}") for number in range(CLAIMS)])


def main() -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        variables = {**os.environ, "USER": "somebody", "HERDBOOK_BACKUP": "off"}
        root = repository(Path(folder), variables)
        app = AppContext.at(root, variables)
        app.run(Area.WORK, fill)
        print(calibrate(root))
        with serving(root, variables) as told, launch_chromium() as browser:
            context, url = open_context(browser, told), told["url"].rstrip("/")
            measure_paint(context, url)
            measure_claims(context, url, app)


if __name__ == "__main__":
    main()
