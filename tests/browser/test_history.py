"""The page of the journal: transactions, filters, Undo, and the way to each moment."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.browser.conftest import NARROW, READY, OpenDesk
from tests.browser.test_rewind import BANNER, cards, last_of, opens_at, positions, works_on
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


def test_changes_stand_by_transaction_and_lead_to_their_moments(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """One Undo and one pair of moments for each; before and after are what the board was then."""
    works_on(person, app)
    steps = server.calls("history", limit=1000)["steps"]
    page = open_desk(server).opens("/history")
    rows = page.locator(".row[class*=row]")
    expect(rows).to_have_count(sum(len(each["entries"]) for each in steps))
    expect(page.get_by_role("button", name="Undo")).to_have_count(len(steps))
    claim = next(each for each in steps if "assignee calm-lynx" in each["entries"][0]["text"])
    assert len(claim["entries"]) > 1
    page.get_by_role("link", name=f"Board before change {claim['seq']}").click()
    expect(page).to_have_url(re.compile(rf"/board\?at={claim['before']}$"))
    expect(page.locator(BANNER)).to_contain_text("As it was")
    expect(page.locator(".column[data-state=ready] .card")).to_have_count(1)
    before = cards(page)
    page.go_back()
    page.get_by_role("link", name=f"Board after change {claim['seq']}").click()
    expect(page.locator(".column[data-state=held] .card")).to_have_count(1)
    after = cards(page)
    assert (before["ready"], before["held"]) == (["Write all tables"], [])
    assert (after["ready"], after["held"]) == ([], ["Write all tables"])


def test_filters_stay_in_the_address(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """By words, by who and by kind; the numbers are those of what is there."""
    works_on(person, app)
    total = server.calls("journal.moments", limit=1)["last"]["seq"]
    page = open_desk(server).opens("/history")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"History {total}")
    page.get_by_label("everybody").select_option("calm-lynx")
    page.get_by_label("everything").select_option("tasks")
    expect(page).to_have_url(re.compile("who=calm-lynx&kind=tasks$"))
    expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile(rf"^History \d of {total}$")
    )
    page.reload()
    page.wait_for_selector(READY)
    texts = page.locator(".row > :nth-child(4)").all_inner_texts()
    assert texts
    assert all(each.startswith("task ") for each in texts)
    page.get_by_role("searchbox").fill("no such words")
    expect(page.locator("li.row")).to_have_count(0)


def test_a_transaction_is_taken_back(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """By its button; at an earlier moment there is none, and the journal ends there."""
    person.runs(app, "task", "add", "Too much")
    page = open_desk(server).opens("/history")
    seq = positions(server)[-1]
    page.get_by_role("button", name=f"Undo change {seq}").click()
    expect(page.get_by_text("removed task Too much")).to_be_visible()
    assert "Too much" not in [each["name"] for each in person.asks(app, "task", "list")]
    opens_at(page, server, "/history", seq)
    expect(page.get_by_text("added task Too much")).to_be_visible()
    expect(page.get_by_text("removed task Too much")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Undo"))).to_have_count(0)
    page.keyboard.press("[")
    expect(page.get_by_text("added task Too much")).to_have_count(0)


def test_on_a_narrow_screen_the_changes_have_the_width_of_the_page(
    server: Serving, open_desk: OpenDesk
) -> None:
    """Who did it and the way to its moments stand above the sentence, not beside it."""
    page = open_desk(server, viewport=NARROW).opens("/history")
    row = page.locator(".history .row", has_text="added agent calm-lynx")
    sentence = row.get_by_text("added agent calm-lynx").bounding_box()
    head = row.locator("xpath=preceding-sibling::li[1]")
    undo = head.get_by_role("button", name="Undo").bounding_box()
    assert sentence is not None
    assert undo is not None
    assert sentence["width"] > NARROW["width"] * 0.8
    assert undo["y"] + undo["height"] / 2 < sentence["y"]


def test_a_long_transaction_is_read_in_parts(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Each says of how many; what comes meanwhile doubles nothing; command and share say it too."""

    def fill(uow: UnitOfWork) -> None:
        uow.tasks.add_all([Task(name=f"no. {number}", order=number) for number in range(2_500)])

    person.at(app).run(Area.WORK, fill)
    server = Serving(person, app)
    page = open_desk(server).opens("/history")
    last = last_of(server)
    heading, rows = page.get_by_role("heading", level=1), page.locator(".history li.row")
    expect(heading).to_have_text(f"History 1,000 of {last:,}")
    expect(rows).to_have_count(11)
    expect(rows.first).to_contain_text(f"1,000 of {last:,} changes: added task no. 1500")
    moments = rows.first.locator(".moments a")
    expect(moments.first).to_have_attribute("href", "/board?at=0")
    expect(moments.last).to_have_attribute("href", f"/board?at={last}")
    page.get_by_role("button", name="and 990 more").click()
    expect(page.get_by_text("added task no. 1510", exact=True)).to_be_visible()
    for read in (f"2,000 of {last:,}", f"{last:,}"):
        page.locator(".windowed").evaluate("(box) => { box.scrollTop = box.scrollHeight }")
        page.get_by_role("button", name="earlier changes").click()
        expect(heading).to_have_text(f"History {read}")
    person.runs(app, "task", "add", "One more")
    total = last_of(server)
    expect(heading).to_have_text(f"History {total:,}")
    page.get_by_role("searchbox").fill("added task no. 7")
    expect(heading).to_have_text(f"History 111 of {total:,}")
    told = person.runs(app, "history", "--limit", "2")
    assert f", 999 of {last} changes\n  #{last - 998} added task no. 1501\n" in told
    person.runs(app, "share", "history", "-o", "history.html")
    assert f"<li>{last - 999:,} earlier changes</li>" in (app / "history.html").read_text()
    assert server.ends() == (0, "")


SEEN = """box => {
  const { top, bottom } = box.getBoundingClientRect()
  return [...box.querySelectorAll("li")].map(each => each.getBoundingClientRect())
    .filter(each => each.bottom > top && each.top < bottom)
    .reduce((sum, each) => sum + Math.min(each.bottom, bottom) - Math.max(each.top, top), 0)
    / (bottom - top)
}"""
"""What part of a list's box has rows in it."""


def add_tasks(person: Person, app: Path, count: int) -> None:
    """Add so many tasks, each by a transaction of its own."""
    place = person.at(app)
    for number in range(count):
        place.run(Area.WORK, lambda uow, name=f"no. {number}": uow.tasks.add(Task(name=name)))


def wait_seen(page: Page, box: str) -> None:
    """Wait until a list is full of rows."""
    page.wait_for_selector(box)
    page.wait_for_function(f"box => ({SEEN})(document.querySelector(box)) > 0.85", arg=box)


def scroll(page: Page, box: str, top: int) -> None:
    """Scroll a list, and wait for its rows."""
    page.locator(box).evaluate("(box, top) => { box.scrollTop = top }", top)
    wait_seen(page, box)


def scroll_top(page: Page, box: str) -> float:
    """How far a list is scrolled."""
    return float(page.locator(box).evaluate("box => box.scrollTop"))


def test_a_list_that_was_scrolled_is_seen_again(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Where it was, after another page or grouping; what a filter leaves of it is seen as well."""
    add_tasks(person, app, 150)
    server = Serving(person, app)
    page = open_desk(server).opens("/history")
    changes = ".history .windowed"
    wait_seen(page, changes)
    scroll(page, changes, 3_000)
    for key, name in (("b", "board"), ("h", "history")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_selector(f"main[data-ready={name}]")
    wait_seen(page, changes)
    assert scroll_top(page, changes) == 3_000
    page.get_by_role("searchbox").fill("no. 14")
    expect(page.locator(".history li.row")).to_have_count(11)
    expect(page.get_by_text("added task no. 149", exact=True)).to_be_in_viewport()
    ready = ".column.ready .windowed"
    page.goto(f"{server.url.rstrip('/')}/board?q=no.")
    page.wait_for_selector(READY)
    expect(page.get_by_role("heading", name="ready 150")).to_be_visible()
    scroll(page, ready, 5_000)
    by = page.get_by_label("Group by")
    by.select_option("phase")
    scroll(page, ".groups .windowed", 2_000)
    by.select_option("state")
    wait_seen(page, ready)
    assert scroll_top(page, ready) == 5_000
    by.select_option("phase")
    wait_seen(page, ".groups .windowed")
    assert scroll_top(page, ".groups .windowed") == 2_000
    assert server.ends() == (0, "")


def test_a_high_window_is_filled(person: Person, app: Path, open_desk: OpenDesk) -> None:
    """From its opening on, and when it gets higher; at most two hundred rows are drawn."""
    add_tasks(person, app, 150)
    server = Serving(person, app)
    page = open_desk(server, viewport={"width": 1280, "height": 1600}).opens("/history")
    wait_seen(page, ".history .windowed")
    page.set_viewport_size({"width": 1280, "height": 2000})
    wait_seen(page, ".history .windowed")
    assert page.locator(".history li.row").count() <= 80
    assert server.ends() == (0, "")


def test_undo_stays_under_the_pointer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What is new waits until the pointer leaves or its button is pressed, and is counted."""
    person.runs(app, "task", "add", "Too much")
    page = open_desk(server).opens("/history")
    first = page.locator(".history li.row").first
    undo = first.get_by_role("button", name="Undo")
    undo.hover()
    before = undo.bounding_box()
    person.runs(app, "task", "add", "One more")
    person.runs(app, "task", "add", "And another")
    fresh = page.get_by_role("button", name="2 new")
    expect(fresh).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"History {last_of(server)}")
    expect(first).to_contain_text("Too much")
    assert undo.bounding_box() == before
    page.mouse.down()
    page.mouse.up()
    expect(first).to_contain_text("removed task Too much")
    expect(fresh).to_have_count(0)
    names = [each["name"] for each in person.asks(app, "task", "list")]
    assert "Too much" not in names
    assert {"One more", "And another"} <= set(names)
    person.runs(app, "task", "add", "The fourth")
    place = page.get_by_role("button", name="1 new").bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 5, place["y"] + 5, steps=30)
    page.mouse.down()
    page.mouse.up()
    expect(first).to_contain_text("added task The fourth")
    first.hover()
    person.runs(app, "task", "add", "The fifth")
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    expect(page.get_by_text("added task The fifth")).to_have_count(0)
    page.mouse.move(5, 5)
    expect(first).to_contain_text("added task The fifth")
    expect(page.get_by_role("button", name="1 new")).to_have_count(0)


def test_under_the_focus_nothing_moves_either(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Of the keyboard; the button for what is new can be reached and pressed by keys."""
    page = open_desk(server).opens("/history")
    page.get_by_label("everything").focus()
    page.keyboard.press("Tab")
    expect(page.locator(".history .windowed")).to_be_focused()
    person.runs(app, "task", "add", "One more")
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    expect(page.get_by_text("added task One more")).to_have_count(0)
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="1 new")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("added task One more")).to_be_visible()
    expect(page.locator(".history .windowed")).to_be_focused()


def test_a_filter_that_nothing_passes_says_so_and_is_cleared(
    server: Serving, open_desk: OpenDesk
) -> None:
    """By a button; the address is that of the page again."""
    page = open_desk(server).opens("/history?q=no such words&kind=tasks")
    expect(page.get_by_text("No change matches.")).to_be_visible()
    page.get_by_role("button", name="Clear the filter").click()
    expect(page.get_by_text("No change matches.")).to_have_count(0)
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page.locator(".history li.row").first).to_be_visible()
    expect(page).to_have_url(re.compile("/history$"))
