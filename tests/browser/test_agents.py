"""The pages of agents: what each is at, and the way back for those that are stuck."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, WIDE, OpenDesk
from tests.browser.test_dashboard import HOSTILE, violations
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


def id_of(person: Person, app: Path, name: str) -> str:
    """The id of an agent."""
    (agent,) = person.asks(app, "agent", "list", "--name", name)
    return str(agent["id"])


def find_section(page: Page, name: str) -> Any:
    """A part of the page by its heading."""
    return page.get_by_role("region", name=name)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_an_agent_is_told_of_with_everything_and_answered(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk, size: dict[str, int]
) -> None:
    """Its setup, worktree, task and standing; its question is answered by a key."""
    page = open_desk(server, viewport=size).opens("/agents/brisk-otter")
    expect(page).to_have_url(f"{server.url}agents/{id_of(person, app, 'brisk-otter')}")
    expect(page).to_have_title("(1) brisk-otter · Herdbook")
    expect(find_section(page, "Facts")).to_contain_text(f"{app} on main")
    expect(find_section(page, "Facts")).to_contain_text("claude execute")
    held = find_section(page, "Holds").get_by_role("link", name="Choose the keys")
    expect(held).to_be_visible()
    expect(find_section(page, "Standing")).to_contain_text("brisk-otter may work; 1 more bug")
    assert violations(page) == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    expect(page.get_by_text("May I merge?")).to_be_visible()
    page.keyboard.press("1")
    expect(page.get_by_text("May I merge?")).to_have_count(0)
    assert [each["content"] for each in person.asks(app, "message", "list")] == ["Yes"]


def test_an_agent_that_waits_for_you_does_so_on_every_page(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Also one that goes on while its letter needs an answer; then it runs again everywhere."""
    words = ("Which colour?", "--requires-response", "--agent", "calm-lynx")
    letter = person.asks(app, "message", "add", *words)
    key = id_of(person, app, "calm-lynx")
    desk = open_desk(server)
    places = [
        desk.opens("/").locator(".worker", has_text="calm-lynx"),
        desk.opens("/agents").locator("li.row", has_text="calm-lynx"),
        desk.opens(f"/agents/{key}").locator(".filter"),
    ]
    for each in places:
        expect(each).to_contain_text("waits for you")
    person.runs(app, "message", "reply", letter["id"], "blue")
    for each in places:
        expect(each).to_contain_text("idle")


def test_a_halted_agent_is_reinstated_in_place_and_a_late_click_is_refused(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The list has it first; the refusal is the server's own sentence."""
    person.runs(app, "bug", "calm-lynx", "--note", "loses the last line")
    desk = open_desk(server)
    agents = desk.opens("/agents")
    rows = agents.get_by_role("list", name="Agents").get_by_role("listitem")
    expect(rows.filter(has_text="calm-lynx")).to_contain_text("halted")
    page = desk.opens(f"/agents/{id_of(person, app, 'calm-lynx')}")
    expect(find_section(page, "Standing")).to_contain_text("its last skill point")

    def be_late(route: Any) -> None:
        if '"method":"reinstate"' in route.request.post_data:
            person.runs(app, "reinstate", "calm-lynx")
        route.continue_()

    page.route("**/rpc*", be_late)
    page.get_by_role("button", name="Reinstate").click()
    expect(page.get_by_role("alert")).to_contain_text("is not halted")
    page.get_by_role("alert").get_by_role("button", name="Close").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    person.runs(app, "bug", "calm-lynx")
    again = desk.opens("/agents/calm-lynx")
    again.get_by_role("button", name="Reinstate").click()
    expect(find_section(again, "Standing")).to_contain_text("calm-lynx may work")
    (standing,) = person.asks(app, "standing", "calm-lynx")
    assert standing["active"]


def test_an_agent_that_crashed_is_resumed_and_one_that_runs_is_stopped(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """A process that really ended; both can be taken back."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    person.runs(app, "agent", "add", "deft-mole", "--pid", str(process.pid))
    page = open_desk(server).opens("/agents/deft-mole")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    process.communicate()
    person.runs(app, "agent", "crashed")
    expect(page.get_by_role("heading", name="deft-mole crashed")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_role("heading", name="deft-mole crashed")).to_have_count(0)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("button", name="Undo").last.click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    (agent,) = person.asks(app, "agent", "list", "--name", "deft-mole")
    assert agent["status"] == "idle"


def test_the_end_of_a_log_is_shown_and_followed(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Text as it is, the last fifty pieces, and new ones without a reload."""
    for number in range(60):
        person.runs(app, "log", "add", f"line {number}.", "--agent", "calm-lynx")
    person.runs(app, "log", "add", HOSTILE[0], "--agent", "calm-lynx")
    page = open_desk(server).opens("/agents/calm-lynx")
    log = page.get_by_label("Log", exact=True)
    expect(log).to_contain_text("line 59.")
    expect(log).to_contain_text(HOSTILE[0])
    assert "line 10." not in log.inner_text()
    assert "line 11." in log.inner_text()
    assert log.evaluate("box => box.scrollTop + box.clientHeight >= box.scrollHeight - 8")
    person.runs(app, "log", "add", "and one more", "--agent", "calm-lynx")
    expect(log).to_contain_text("and one more", timeout=60_000)
    assert page.locator("main img").count() == 0


def test_agents_keep_their_places_under_the_pointer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What they do is told in place; who comes, and another order, wait."""
    page = open_desk(server).opens("/agents")
    rows = page.get_by_role("list", name="Agents").get_by_role("listitem")
    expect(rows.nth(0)).to_contain_text("brisk-otter")
    rows.nth(1).hover()
    person.registers(app, "able-ant")
    fresh = page.get_by_role("button", name="1 change, show")
    expect(fresh).to_be_visible()
    person.runs(app, "bug", "calm-lynx")
    expect(rows.nth(1)).to_contain_text("halted")
    expect(rows.nth(1)).to_contain_text("calm-lynx")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="2 changes, show").click()
    expect(rows).to_have_count(3)
    rows.nth(0).hover()
    person.registers(app, "able-bee")
    expect(fresh).to_be_visible()
    page.mouse.move(5, 5)
    expect(rows).to_have_count(4)
    expect(fresh).to_have_count(0)
