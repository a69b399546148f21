"""The frame around the pages: what it says when it cannot keep up, and where the focus is."""

import json
import re
import socket
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import OpenDesk
from tests.browser.test_rewind import BANNER, SLIDER, opens_at, positions, works_on
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

STALE = "#stale"
FEED = re.compile(r"/feed(\?.*)?$")
REFUSED = {"code": -32000, "message": "the store cannot be read", "data": None}


def refuses(page: Page, *methods: str) -> None:
    """Let the server refuse some methods, until the route is taken away."""

    def answer(route: Route) -> None:
        message = route.request.post_data_json or {}
        if message.get("method") in methods:
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": REFUSED})
            route.fulfill(body=body, content_type="application/json")
        else:
            route.fallback()

    page.route("**/rpc*", answer)


def tell(feed: Route, *events: tuple[str, Any]) -> None:
    """Let the feed be these events, and come to its end."""
    told = "".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events)
    feed.fulfill(body=f"retry: 1000000\n\n{told}", content_type="text/event-stream")


def hold(route: Route, held: list[Route]) -> None:
    """Let a request wait for whoever takes it from the list."""
    held.append(route)


def test_what_changed_before_the_feed_began_is_shown(server: Serving, open_desk: OpenDesk) -> None:
    """The page was read, and the feed tells only what comes after its own beginning."""
    desk = open_desk(server)
    desk.opens("/board").close()
    held: list[Route] = []
    desk.context.route(FEED, lambda route: hold(route, held))
    page = desk.opens("/board")
    while not held:
        page.wait_for_timeout(10)
    server.calls("task.add", name="In between")
    held[0].continue_()
    expect(page.get_by_role("link", name="In between")).to_be_visible()
