"""Rewind: every page as it was at an earlier moment, in a real browser."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import NARROW, READY, WIDE, OpenDesk
from tests.browser.test_dashboard import paths, violations
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

BANNER = "#past"
SLIDER = "#rewind input"


def last_of(server: Serving) -> int:
    """The number of the last change."""
    return int(server.calls("journal.moments", limit=1)["last"]["seq"])


def positions(server: Serving) -> list[int]:
    """All positions of the journal, oldest first."""
    found = server.calls("journal.moments", limit=1000)
    return [0, *(each["seq"] for each in found["moments"])]


def works_on(person: Person, app: Path) -> None:
    """Let a session happen: claims, completions, failures, names, and what is removed again."""
    person.runs(app, "agent", "answer", "brisk-otter", "Yes")
    person.runs(app, "done", "Choose the keys", "--agent", "brisk-otter", "--summary", "hashed")
    person.runs(app, "task", "set", "Write the tables", "--name", "Write all tables")
    person.runs(app, "claim", "Write all tables", "--agent", "calm-lynx")
    person.runs(app, "task", "add", "Measure it")
    person.runs(app, "task", "move", "Write all tables", "ready")
    person.runs(app, "task", "rm", "Measure it", "--yes")
    person.runs(app, "task", "move", "Write all tables", "completed")


def cards(page: Page) -> dict[str, list[str]]:
    """The names of the cards of each column of the board."""
    return {
        column.get_attribute("data-state") or "": sorted(
            column.locator(".card .line a").all_inner_texts()
        )
        for column in page.locator(".column").all()
    }


def cards_of(board: Any) -> dict[str, list[str]]:
    """The same from an answer of `board`."""
    found: dict[str, list[str]] = {}
    for initiative in board["initiatives"]:
        for phase in initiative["phases"]:
            for state, lane in phase["tasks"].items():
                found.setdefault(state, []).extend(each["name"] for each in lane["shown"])
    return {state: sorted(names) for state, names in found.items()}


def without_empty(columns: dict[str, list[str]]) -> dict[str, list[str]]:
    """The columns that have cards."""
    return {state: names for state, names in columns.items() if names}


def opens_at(page: Page, server: Serving, path: str, seq: int) -> None:
    """Go to a page at a position, by its address."""
    page.goto(f"{server.url.rstrip('/')}{path}?at={seq}")
    page.wait_for_selector(READY)


def test_the_board_at_a_position_is_that_of_a_store_that_stopped_there(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The store is rebuilt independently, from a backup, up to the position."""
    works_on(person, app)
    person.runs(app, "backup", "work")
    page = open_desk(server).opens("/board")
    there = positions(server)
    seen = set()
    for seq in (*there[1:-1:3], there[-1]):
        store = f"lmdb://{person.home}/stopped-{seq}.lmdb"
        person.runs(app, "restore", "work", "--to", store, "--at", str(seq))
        stopped = person.asks(app, "board", "--limit", "25", HERDBOOK_WORK=store)
        opens_at(page, server, "/board", seq)
        assert without_empty(cards(page)) == cards_of(stopped), seq
        seen.add(str(cards_of(stopped)))
    assert len(seen) > 4


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_at_an_earlier_moment(
    server: Serving, open_desk: OpenDesk, scheme: str, size: dict[str, int]
) -> None:
    """Without an error, without a violation that axe knows, and with nothing beside the screen."""
    desk = open_desk(server, color_scheme=scheme, viewport=size)
    seq = positions(server)[-2]
    page = desk.opens()
    for path in paths(server):
        opens_at(page, server, path, seq)
        expect(page.locator(BANNER)).to_contain_text("As it was")
        assert page.evaluate("document.documentElement.scrollWidth > innerWidth") is False, path
        assert (path, violations(page)) == (path, [])


def test_a_page_is_rewound_by_keys_and_by_mouse(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The address has the position; the way back leads to now, and now is live again."""
    works_on(person, app)
    there = positions(server)
    page = open_desk(server).opens("/board")
    expect(page.locator(SLIDER)).to_have_count(0)
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(rf"/board\?at={there[-2]}$"))
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(rf"/board\?at={there[-3]}$"))
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile(rf"/board\?at={there[-2]}$"))
    ago = there[-1] - there[-2]
    expect(page.locator(BANNER)).to_contain_text(f"{ago} change{'s' if ago > 1 else ''} ago")
    slider = page.locator(SLIDER)
    slider.focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile(r"/board\?at=0$"))
    expect(page.get_by_text("The plan was empty.")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(rf"/board\?at={there[1]}$"))
    box = slider.bounding_box()
    assert box
    page.mouse.move(box["x"] + 10, box["y"] + box["height"] / 2)
    page.mouse.down()
    for part in (0.3, 0.6, 0.5):
        page.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2)
    page.mouse.up()
    middle = there[-1] // 2
    near = [seq for seq in there if middle - 8 <= seq <= middle + 8]
    expect(page).to_have_url(re.compile(rf"/board\?at=({'|'.join(map(str, near))})$"))
    page.get_by_role("button", name="Back to now").click()
    expect(page).to_have_url(re.compile(r"/board$"))
    expect(page.locator(BANNER)).to_be_empty()
    person.runs(app, "task", "add", "Something new")
    expect(page.get_by_role("link", name="Something new")).to_be_visible()
    page.go_back()
    expect(page.locator(BANNER)).to_contain_text("As it was")


def test_a_late_answer_does_not_lead_back_to_the_past(server: Serving, open_desk: OpenDesk) -> None:
    """Of a moment that was asked for before going back to now, by the button or by the browser."""
    page = open_desk(server).opens("/board")
    there = positions(server)
    held: list[Route] = []

    def hold_moments(route: Route) -> None:
        if (route.request.post_data_json or {}).get("method") == "journal.moments":
            held.append(route)
        else:
            route.fallback()

    for go_to_now in (page.get_by_role("button", name="Back to now").click, page.go_back):
        page.keyboard.press("[")
        expect(page).to_have_url(re.compile(rf"/board\?at={there[-2]}$"))
        page.locator(SLIDER).focus()
        page.route("**/rpc*", hold_moments)
        page.keyboard.press("ArrowLeft")
        while not held:
            page.wait_for_timeout(10)
        go_to_now()
        expect(page).to_have_url(re.compile(r"/board$"))
        (late,) = held
        held.clear()
        with page.expect_response(lambda response, late=late: response.request == late.request):
            late.continue_()
        page.unroute("**/rpc*")
        page.wait_for_timeout(200)
        expect(page.locator(BANNER)).to_be_empty()
        expect(page).to_have_url(re.compile(r"/board$"))


def test_nothing_moves_while_the_past_is_shown(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """New changes are counted; a reload and other pages stay at the moment."""
    page = open_desk(server).opens("/board")
    seq = positions(server)[-1]
    page.get_by_role("button", name="Rewind", exact=True).click()
    expect(page).to_have_url(re.compile(rf"/board\?at={seq}$"))
    person.runs(app, "task", "add", "Something new")
    expect(page.locator("#rewind")).to_contain_text("new change")
    expect(page.get_by_role("link", name="Something new")).to_have_count(0)
    page.reload()
    page.wait_for_selector(READY)
    expect(page.get_by_role("link", name="Something new")).to_have_count(0)
    for name in ("Agents", "Graph", "History", "Board"):
        link = page.get_by_role("navigation").get_by_role("link", name=name)
        assert (link.get_attribute("href") or "").endswith(f"?at={seq}")
        link.click()
        expect(page).to_have_url(re.compile(rf"/{name.lower()}\?at={seq}$"))
    page.keyboard.press("g")
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile(rf"/\?at={seq}$"))
    expect(page.locator("#queue-title")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.get_by_role("searchbox", name="Filter tasks").fill("keys")
    expect(page).to_have_url(re.compile(rf"/board\?q=keys&at={seq}$"))
    page.get_by_role("link", name="Choose the keys").click()
    expect(page).to_have_url(re.compile(rf"/task/tsk_\w+\?at={seq}$"))


def test_the_past_can_only_be_read(server: Serving, open_desk: OpenDesk) -> None:
    """There is nothing to press that writes, keys and drops are refused, and nothing is written."""
    page = open_desk(server).opens()
    seq, last = positions(server)[-1], last_of(server)
    opens_at(page, server, "/", seq)
    expect(page.get_by_role("heading", name="brisk-otter asks")).to_be_visible()
    expect(page.get_by_role("button", name="Yes")).to_have_count(0)
    expect(page.get_by_role("textbox")).to_have_count(0)
    page.keyboard.press("1")
    expect(page.get_by_role("alert")).to_contain_text("an earlier moment, which can only be read")
    opens_at(page, server, "/board", seq)
    card = page.locator(".card", has_text="Write the tables")
    card.drag_to(page.locator(".column[data-state=completed]"))
    expect(page.get_by_role("alert")).to_contain_text("an earlier moment, which can only be read")
    ready = page.locator(".column[data-state=ready] .card")
    expect(ready.filter(has_text="Write the tables")).to_be_visible()
    card.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Write the tables")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Move to|Undo"))).to_have_count(0)
    page.keyboard.press("Control+k")
    search = page.get_by_role("combobox", name="Find a command")
    search.fill("task")
    expect(page.get_by_role("option", name="task show")).to_be_visible()
    for name in ("task move", "task add", "task done"):
        expect(page.get_by_role("option", name=re.compile(rf"^{name}\b"))).to_have_count(0)
    search.fill("board")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".answer")).to_contain_text(f'"seq": {seq}')
    assert last_of(server) == last


def test_changes_are_played_until_now(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Each moment is one of the journal's; a pause stays where it is; at the end it is now."""
    works_on(person, app)
    there = positions(server)
    page = open_desk(server).opens("/board")
    opens_at(page, server, "/board", there[1])
    page.get_by_label("Speed").select_option("20")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page).not_to_have_url(re.compile(rf"\?at={there[1]}$"))
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    stopped = re.search(r"at=(\d+)", page.url)
    assert stopped
    assert int(stopped[1]) in there[2:-1]
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page).to_have_url(re.compile(r"/board$"))
    expect(page.locator(BANNER)).to_be_empty()
    assert without_empty(cards(page)) == cards_of(person.asks(app, "board", "--limit", "25"))


def test_durations_end_at_the_moment(server: Serving, open_desk: OpenDesk) -> None:
    """What was asked just then was asked for seconds, whatever the clock says since."""
    desk = open_desk(server)
    page = desk.opens()
    page.clock.install()
    page.clock.fast_forward(12 * 24 * 3600 * 1000)
    opens_at(page, server, "/", positions(server)[-1])
    expect(page.locator(".entry time")).to_have_text(re.compile(r"^\d+s$"))
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator(".entry time")).to_have_text("12d")


def test_what_is_no_position_is_said_with_the_way_back(
    server: Serving, open_desk: OpenDesk
) -> None:
    """A number that is not there yet, a text that is none, and a page of something not known."""
    page = open_desk(server).opens()
    for at in ("999999", "yesterday", "-1", "1e3"):
        page.goto(f"{server.url.rstrip('/')}/board?at={at}")
        expect(page.get_by_role("alert")).to_contain_text("The moment of this address ")
        page.get_by_role("link", name="Back to now").click()
        expect(page).to_have_url(re.compile(r"/board$"))
        expect(page.locator(".column").first).to_be_visible()
    task = server.calls("task.list")[0]["id"]
    page.goto(f"{server.url.rstrip('/')}/task/{task}?at=0")
    expect(page.get_by_role("alert")).to_contain_text("no task")
    page.locator(SLIDER).focus()
    page.keyboard.press("End")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
