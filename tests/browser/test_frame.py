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


def test_a_task_that_was_removed_elsewhere_is_said(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What was read last stays, with the server's sentence above it, until another page is open."""
    (task,) = person.asks(app, "task", "list", "--name", "Draw the form")
    page = open_desk(server).opens(f"/task/{task['id']}")
    person.runs(app, "task", "rm", "Draw the form", "--yes")
    expect(page.locator(STALE).get_by_role("alert")).to_contain_text("no task")
    expect(page.get_by_text("not up to date", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Draw the form")).to_be_visible()
    page.get_by_role("navigation").get_by_role("link", name="Board").click()
    page.wait_for_selector("main[data-ready=board]")
    expect(page.locator(STALE)).to_be_empty()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def test_a_refusal_goes_with_the_next_answer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The page asks again by itself: no change needs to come."""
    page = open_desk(server).opens("/board")
    refuses(page, "board")
    person.runs(app, "task", "add", "Something new")
    expect(page.locator(STALE)).to_have_text("Not up to date: the store cannot be read")
    page.unroute("**/rpc*")
    expect(page.get_by_role("link", name="Something new")).to_be_visible()
    expect(page.locator(STALE)).to_be_empty()


def test_a_cookie_that_has_ended_is_said_in_the_words_of_the_server(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Here because the token was renewed; the feed itself has no words."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    first = Serving(person, app, "--port", port)
    desk = open_desk(first)
    page = desk.opens("/board")
    assert first.ends() == (0, "")
    expect(page.get_by_text("no connection")).to_be_visible()
    again = Serving(person, app, "--port", port, "--new-token")
    expect(page.locator(STALE)).to_contain_text("open the link that herdbook serve prints")
    desk.errors[:] = [each for each in desk.errors if "401" not in each]
    page.close()
    assert again.ends() == (0, "")
    desk.errors[:] = [each for each in desk.errors if "401" not in each]


def test_a_journal_that_cannot_be_read_is_not_live(server: Serving, open_desk: OpenDesk) -> None:
    """The mark says so, and the sentence stands above the page."""
    desk = open_desk(server)
    page = desk.opens("/board")
    trouble = {"type": "StoreUnavailable", "message": "it is gone"}
    page.route(FEED, lambda route: tell(route, ("spaces", []), ("trouble", trouble)))
    page.reload()
    expect(page.get_by_text("not up to date", exact=True)).to_be_visible()
    expect(page.locator(STALE)).to_have_text("Not up to date: it is gone")


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


def test_many_changes_are_one_question_while_the_past_is_shown(
    server: Serving, open_desk: OpenDesk
) -> None:
    """And they are counted without being announced one after the other."""
    page = open_desk(server).opens("/board")
    held: list[Route] = []
    page.route(FEED, lambda route: hold(route, held))
    opens_at(page, server, "/board", positions(server)[-1])
    expect(page.locator(SLIDER)).to_be_visible()
    while not held:
        page.wait_for_timeout(10)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(str(request.post_data)))
    server.calls("task.add", name="Something new")
    changes = [("journal", {"space": "work/x", "seq": each}) for each in range(40)]
    tell(held[0], ("spaces", []), *changes)
    expect(page.locator("#rewind")).to_contain_text("new change")
    assert 0 < sum("journal.moments" in each for each in asked) < 10
    expect(page.locator("#rewind").get_by_role("status")).to_have_count(0)


def test_a_moment_that_is_opened_ends_the_playing(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Else the next step would take its place."""
    works_on(person, app)
    there = positions(server)
    page = open_desk(server).opens("/history")
    opens_at(page, server, "/history", there[3])
    held: list[Route] = []

    def hold_step(route: Route) -> None:
        asked = (route.request.post_data_json or {}).get("params", {})
        (held.append if asked.get("until") == there[4] else Route.fallback)(route)

    page.route("**/rpc*", hold_step)
    page.get_by_role("button", name="Play", exact=True).click()
    while not held:
        page.wait_for_timeout(10)
    page.get_by_role("link", name=re.compile("^Board before change")).last.click()
    page.wait_for_selector("main[data-ready=board]")
    held[0].continue_()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/board\?at=({'|'.join(map(str, there[:3]))})$"))


def test_a_step_that_is_refused_is_said(server: Serving, open_desk: OpenDesk) -> None:
    """Also while changes are played, which ends there."""
    page = open_desk(server).opens("/board")
    opens_at(page, server, "/board", positions(server)[1])
    refuses(page, "journal.moments")
    notice = page.locator("#notices .refusal")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(notice.first).to_contain_text("the store cannot be read")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator(BANNER)).to_be_empty()
    page.keyboard.press("[")
    expect(notice).to_have_count(2)
    expect(page.locator(BANNER)).to_be_empty()


def test_a_list_is_typed_as_json_in_the_palette(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What is none, and begins like one, is said in place; a text is a text."""
    page = open_desk(server).opens("/board")
    page.keyboard.press("Control+k")
    page.keyboard.type("agent wait")
    page.get_by_role("option", name="agent wait").first.wait_for()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("name", exact=False).first.fill("calm-lynx")
    questions = dialog.get_by_label(re.compile("^questions"))
    questions.fill('["One?", "Two?"')
    dialog.get_by_role("button", name="Run").click()
    expect(dialog.get_by_role("alert")).to_contain_text("questions: this is no JSON")
    for typed, known in (('["One?", "Two?"]', ["One?", "Two?"]), ("Three?", "Three?")):
        questions.fill(typed)
        dialog.get_by_role("button", name="Run").click()
        last = known if isinstance(known, str) else known[-1]
        expect(dialog.locator("pre[role=status]")).to_contain_text(last)
        (agent,) = person.asks(app, "agent", "list", "--name", "calm-lynx")
        assert agent["pending_questions"] == known


def test_the_focus_stays_where_the_person_is(server: Serving, open_desk: OpenDesk) -> None:
    """In the page whose link was followed, in the palette, and at the way back to the past."""
    page = open_desk(server).opens("/board")
    page.get_by_role("link", name="Choose the keys").press("Enter")
    page.wait_for_selector("main[data-ready=task]")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("task add")
    page.get_by_role("option", name="task add").first.wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_role("combobox", name="Find a command")).to_be_focused()
    page.keyboard.press("Escape")  # the first one empties the field
    page.keyboard.press("Escape")
    rewind = page.get_by_role("button", name="Rewind", exact=True)
    rewind.click()
    expect(page.locator(SLIDER)).to_be_focused()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").get_by_role("button", name="Close").click()
    page.locator(SLIDER).focus()
    there = positions(server)
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(rf"\?at={there[-2]}$"))
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_selector("main[data-ready=board]")
    expect(page).to_have_url(re.compile(rf"/board\?at={there[-2]}$"))
    page.get_by_role("button", name="Back to now").press("Enter")
    expect(rewind).to_be_focused()


def test_what_was_done_stands_though_it_cannot_be_undone(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The change to undo cannot be looked for; the answer has reached the agent."""
    page = open_desk(server).opens()
    refuses(page, "history")
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page.locator("#notices .notice")).to_contain_text("Yes")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert [each["content"] for each in person.asks(app, "message", "list")] == ["Yes"]
