"""The page of the journal: transactions, filters, Undo, and the way to each moment."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import NARROW, READY, OpenDesk
from tests.browser.test_rewind import BANNER, cards, opens_at, positions, works_on
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
    """The sentence stands above who did it and the way to its moments, not beside them."""
    page = open_desk(server, viewport=NARROW).opens("/history")
    row = page.locator(".history .row", has_text="added agent calm-lynx")
    sentence = row.get_by_text("added agent calm-lynx").bounding_box()
    undo = row.get_by_role("button", name="Undo").bounding_box()
    assert sentence is not None
    assert undo is not None
    assert sentence["width"] > NARROW["width"] * 0.8
    assert undo["y"] + undo["height"] / 2 > sentence["y"] + sentence["height"]
