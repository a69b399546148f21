"""Several repositories in one browser: each tab shows its own, which its address names."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.conftest import READY, OpenDesk
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


@pytest.fixture
def other(
    server: Serving,
    person: Person,
    tmp_path: Path,
) -> Path:
    """A second repository, which has a task and an agent, and is served too."""
    folder: Path = person.repository(tmp_path / "other")
    person.runs(folder, "task", "add", "Plant the trees")
    person.registers(folder, "slow-heron")
    link = adds(person, folder)
    assert link.endswith(f"&repo={key_of(server, folder)}")
    return folder


def adds(person: Person, folder: Path) -> str:
    """Let the server that runs serve a folder; the link that it prints."""
    return str(person.asks(folder, "serve", "--no-open")["link"])


def key_of(server: Serving, folder: Path) -> str:
    """The name of a repository in addresses."""
    spaces = server.asks("GET", "/spaces").json
    (key,) = (
        each["key"] for each in spaces if (each["folder"], each["area"]) == (str(folder), "work")
    )
    return str(key)


def asked_folders(page: Page) -> set[str]:
    """The folders that the calls of a page are about, as they come."""
    found: set[str] = set()

    def note(request: Request) -> None:
        place = urlsplit(request.url)
        if place.path == "/rpc":
            found.update(map(unquote, parse_qs(place.query)["folder"]))

    page.on("request", note)
    return found


def task_link(page: Page, name: str) -> Any:
    """The link of a task on the board."""
    return page.get_by_role("link", name=name)


def test_each_tab_keeps_its_repository(
    server: Serving, person: Person, app: Path, other: Path, open_desk: OpenDesk
) -> None:
    """What is chosen in one is not asked by another, and written by none but its own."""
    desk = open_desk(server)
    first, second = desk.opens("/talk"), desk.opens("/board")
    expect(task_link(second, "Choose the keys")).to_be_visible()
    second.get_by_label("Repository").select_option(label="other")
    expect(task_link(second, "Plant the trees")).to_be_visible()
    expect(second).to_have_url(re.compile(rf"/board\?repo={key_of(server, other)}$"))
    expect(first).to_have_url(re.compile(rf"/talk\?repo={key_of(server, app)}$"))
    here, there = asked_folders(first), asked_folders(second)
    for page, name in ((first, "said here"), (second, "said there")):
        page.keyboard.press("Control+k")
        page.keyboard.type("task add")
        page.get_by_role("option", name="task add").first.wait_for()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("name (needed)").fill(name)
        dialog.get_by_role("button", name="Run").click()
        expect(dialog.locator("pre")).to_contain_text(name)
        page.keyboard.press("Escape")
    expect(task_link(second, "said there")).to_be_visible()
    assert (here, there) == ({str(app)}, {str(other)})
    assert len(person.asks(app, "task", "list", "--name", "said here")) == 1
    assert len(person.asks(other, "task", "list", "--name", "said there")) == 1
    second.reload()
    expect(task_link(second, "said there")).to_be_visible()
    third = desk.opens("/board")  # the last choice is what new tabs begin with
    expect(task_link(third, "Plant the trees")).to_be_visible()


def test_a_deep_link_opens_its_repository(
    server: Serving, app: Path, other: Path, open_desk: OpenDesk
) -> None:
    """Whatever was chosen last; links and the history keep it, and a moment its journal."""
    desk = open_desk(server)
    page = desk.opens("/board")
    here, there = key_of(server, app), key_of(server, other)
    (task,) = server.calls("task.list", other)
    page.goto(f"{server.url.rstrip('/')}/task/{task['id']}?repo={there}")
    expect(page.get_by_role("heading", name="Plant the trees")).to_be_visible()
    page.get_by_role("navigation").get_by_role("link", name="Board").click()
    expect(page).to_have_url(re.compile(rf"/board\?repo={there}$"))
    expect(task_link(page, "Plant the trees")).to_be_visible()
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(rf"/board\?repo={there}&at=\d+$"))
    page.get_by_label("Repository").select_option(label="app")
    expect(page).to_have_url(re.compile(rf"/board\?repo={here}$"))
    expect(task_link(page, "Choose the keys")).to_be_visible()
    expect(page.locator("#past")).to_be_empty()
    page.go_back()
    expect(page).to_have_url(re.compile(rf"/board\?repo={there}&at=\d+$"))
    expect(page.locator("#past")).to_contain_text("As it was")
    expect(page.get_by_label("Repository")).to_have_value(there)
    page.go_back()
    expect(task_link(page, "Plant the trees")).to_be_visible()
    page.goto(f"{server.url.rstrip('/')}/board?repo=00000000")
    expect(page.get_by_role("alert")).to_contain_text("is not served here")


def test_the_printed_link_leads_to_the_repository_it_was_printed_in(
    server: Serving, person: Person, app: Path, other: Path, open_desk: OpenDesk
) -> None:
    """Also where another one was chosen before; the address shows no ticket."""
    desk = open_desk(server)
    page = desk.opens("/board")
    for folder, name in ((other, "Plant the trees"), (app, "Choose the keys")):
        page.goto("about:blank")
        page.goto(adds(person, folder))
        page.wait_for_selector(READY)
        expect(page).to_have_url(re.compile(rf"/\?repo={key_of(server, folder)}$"))
        page.get_by_role("navigation").get_by_role("link", name="Board").click()
        page.wait_for_selector("main[data-ready=board]")
        expect(task_link(page, name)).to_be_visible()


def test_a_repository_that_is_added_becomes_live_in_a_new_tab(
    server: Serving, person: Person, tmp_path: Path, open_desk: OpenDesk
) -> None:
    """Another tab has the feed since before; it gets the list of both."""
    desk = open_desk(server)
    first = desk.opens("/board")
    expect(task_link(first, "Choose the keys")).to_be_visible()
    assert urlsplit(first.url).query == ""
    folder = person.repository(tmp_path / "later")
    person.runs(folder, "task", "add", "Plant the trees")
    link = adds(person, folder)
    second = desk.opens(f"/board?repo={parse_qs(urlsplit(link).fragment)['repo'][0]}")
    expect(task_link(second, "Plant the trees")).to_be_visible()
    expect(first.get_by_label("Repository")).to_be_visible()
    person.runs(folder, "task", "add", "Water them")
    expect(task_link(second, "Water them")).to_be_visible()
    metrics = server.asks("GET", "/metrics").body.decode()
    assert "herdbook_feed_clients 1\n" in metrics


def test_one_repository_has_plain_addresses(server: Serving, open_desk: OpenDesk) -> None:
    """Nothing is named where there is nothing to choose."""
    page = open_desk(server).opens("/board")
    expect(page.get_by_label("Repository")).to_have_count(0)
    assert urlsplit(page.url).query == ""
    assert "repo=" not in server.told["link"]
    links = page.locator("a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
    assert not any("repo=" in each for each in links)
