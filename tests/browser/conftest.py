"""The dashboard in a real browser: Chromium, driven by Playwright, on the installed program."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.chromium import launch_chromium
from tests.e2e.conftest import Person, app, person, warm
from tests.e2e.serve_process import Serving

__all__ = ["app", "person", "warm"]

MODULES = Path(os.environ.get("HERDBOOK_CLIENTS_NODE_MODULES", "node_modules"))
SECONDS = 60_000
"""Milliseconds in which anything happens; whoever waits so long has found a fault."""
WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 390, "height": 844}
READY = "main[data-ready]"
expect.set_options(timeout=SECONDS)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser for all tests; each opens windows of its own."""
    with launch_chromium() as browser:
        yield browser


class Desk:
    """Somebody's browser: its windows share cookies, the feed and what was chosen.

    What a window writes to its console as an error, and what it asks of another host, is noted.
    """

    def __init__(self, browser: Browser, server: Serving, **options: Any) -> None:
        self.server = server
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.context: BrowserContext = browser.new_context(**{"viewport": WIDE, **options})
        self.context.set_default_timeout(SECONDS)
        self.context.route("**/*", self._route)
        self._is_known = False

    def opens(self, path: str = "/") -> Page:
        """Open a page in a new window; the first one by the link that the server prints."""
        page = self.context.new_page()
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        if not self._is_known:
            page.goto(f"{self.server.url.rstrip('/')}/#t={self.server.ticket}")
            page.wait_for_selector(READY)
            self._is_known = True
        page.goto(f"{self.server.url.rstrip('/')}{path}")
        page.wait_for_selector(READY)
        return page

    def _note(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _route(self, route: Route) -> None:
        if route.request.url.startswith((self.server.url, "data:", "blob:")):
            route.continue_()
        else:
            self.foreign.append(route.request.url)
            route.abort()


OpenDesk = Callable[..., Desk]


@pytest.fixture
def open_desk(chromium: Browser) -> Iterator[OpenDesk]:
    """Opens browsers, and states at the end that all of them found nothing to complain of."""
    desks: list[Desk] = []

    def make(server: Serving, **options: Any) -> Desk:
        desks.append(Desk(chromium, server, **options))
        return desks[-1]

    yield make
    for desk in desks:
        desk.context.close()
        assert desk.foreign == []
        lost = "net::ERR_CONNECTION_REFUSED", "net::ERR_INCOMPLETE", "net::ERR_EMPTY_RESPONSE"
        assert [each for each in desk.errors if not any(word in each for word in lost)] == []


@pytest.fixture
def server(person: Person, app: Path) -> Iterator[Serving]:
    """A server for a repository in which there is a plan, with agents and a question."""
    plan = "# Ship the login\n\n## Schema\n- [ ] Choose the keys\n- [ ] Write the tables\n"
    (app / "plan.md").write_text(f"{plan}\n## Screens\n- [ ] Draw the form\n")
    person.runs(app, "import", "plan", "plan.md")
    person.runs(app, "phase", "after", "Screens", "Schema")
    person.runs(app, "phase", "approve", "Schema")
    person.registers(app, "brisk-otter", "calm-lynx")
    person.runs(app, "claim", "Choose the keys", "--agent", "brisk-otter")
    asked = '[{"question": "May I merge?", "options": ["Yes", "No"]}]'
    person.runs(app, "agent", "wait", "brisk-otter", "--questions", asked)
    running = Serving(person, app)
    yield running
    assert running.ends() == (0, "")
