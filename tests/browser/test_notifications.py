"""What newly waits for the person is told: in the tab, and on the desktop if that is wanted."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from herdbook.entrypoints.http.app import static_files
from tests.browser.conftest import READY, Desk, OpenDesk
from tests.browser.test_dashboard import violations
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

WATCHED = """
window.shown = [];
window.asked = 0;
const Own = window.Notification;
const ask = Own.requestPermission.bind(Own);
window.Notification = class extends Own {
  constructor(title, options) {
    super(title, options);
    window.shown.push([title, options.body, options.tag]);
  }
  static requestPermission() { window.asked++; return ask(); }
};
"""
"""The browser's own notifications, of which it is written down which ones were made."""


def watches(desk: Desk) -> None:
    """Write down in every window which notifications it makes."""
    desk.context.add_init_script(WATCHED)


def shown(page: Page) -> list[Any]:
    """The notifications of a window."""
    found: list[Any] = page.evaluate("window.shown")
    return found


def asks(person: Person, app: Path, agent: str, question: str) -> None:
    """Let an agent wait for the person."""
    asked = f'[{{"question": "{question}"}}]'
    person.runs(app, "agent", "wait", agent, "--questions", asked)


def test_nothing_is_shown_or_asked_until_it_is_wanted(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Also where the browser would allow it; the tab says it anyway."""
    desk = open_desk(server, permissions=["notifications"])
    watches(desk)
    page = desk.opens()
    expect(page).to_have_title("(1) Now · Herdbook")
    asks(person, app, "calm-lynx", "And now?")
    expect(page).to_have_title("(2) Now · Herdbook")
    assert page.get_attribute("#icon", "href") == "/static/icons/waiting-2.svg"
    assert (shown(page), page.evaluate("window.asked")) == ([], 0)
    assert page.evaluate("localStorage.getItem('herdbook.notifications')") is None


def test_each_new_thing_is_shown_once_by_one_window(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Not what waited before, not what was said, not by a second window, and not again."""
    desk = open_desk(server, permissions=["notifications"])
    watches(desk)
    first, second = desk.opens(), desk.opens("/board")
    first.get_by_role("button", name="Notify me").click()
    expect(first.get_by_role("button", name="Stop notifying me")).to_be_visible()
    assert first.evaluate("window.asked") == 1
    assert violations(first) == []
    asks(person, app, "calm-lynx", "token=hunter2, may I use it?")
    for page in (first, second):
        expect(page).to_have_title(re.compile(r"^\(2\)"))
    (agent,) = person.asks(app, "agent", "list", "--name", "calm-lynx")
    told = [["calm-lynx asks", "It waits for you.", f"herdbook {agent['id']}"]]
    assert sorted([shown(first), shown(second)]) == [[], told]
    leader, other = (first, second) if shown(first) else (second, first)
    person.runs(app, "task", "add", "Something else")
    leader.reload()
    leader.wait_for_selector(READY)
    expect(leader).to_have_title(re.compile(r"^\(2\)"))
    # The lock has gone to the other window: it knows what was shown already.
    person.runs(app, "agent", "answer", "calm-lynx", "No")
    for page in (leader, other):
        expect(page).to_have_title(re.compile(r"^\(1\)"))
    asks(person, app, "calm-lynx", "Why not?")
    for page in (leader, other):
        expect(page).to_have_title(re.compile(r"^\(2\)"))
    assert [*shown(leader), *shown(other)] == told
    first.get_by_role("button", name="Stop notifying me").click()
    person.runs(app, "agent", "answer", "calm-lynx", "Because")
    expect(first).to_have_title(re.compile(r"^\(1\)"))
    asks(person, app, "calm-lynx", "Really?")
    expect(first).to_have_title(re.compile(r"^\(2\)"))
    assert [*shown(leader), *shown(other)] == told


def test_a_refusal_of_the_browser_is_said(server: Serving, open_desk: OpenDesk) -> None:
    """And nothing is kept."""
    page = open_desk(server).opens()
    page.evaluate("Notification.requestPermission = async () => 'denied'")
    page.get_by_role("button", name="Notify me").click()
    expect(page.get_by_text("does not let this page show notifications")).to_be_visible()
    assert page.evaluate("localStorage.getItem('herdbook.notifications')") is None


def test_there_is_an_icon_for_every_count() -> None:
    """Each is a picture that loads nothing."""
    files = static_files()
    for number in range(1, 10):
        icon = files[f"/static/icons/waiting-{number}.svg"]
        assert icon.media_type == "image/svg+xml"
        assert f">{number}</text>" in icon.content.decode()
