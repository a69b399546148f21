"""What waits for the person is answered as it was read, however fast it changes meanwhile."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from herdbook.domain.agents.model import Agent, AgentStatus
from tests.browser.conftest import OpenDesk
from tests.browser.herds import PastHerd
from tests.browser.test_dashboard import violations
from tests.browser.test_late_answers import late
from tests.browser.test_notifications import asks
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


def entry(page: Page, text: str) -> Locator:
    """The entry that says something."""
    return page.locator(".entry", has_text=text)


def sent(person: Person, app: Path) -> list[Any]:
    """What was said to agents."""
    return [each["content"] for each in person.asks(app, "message", "list")]


def lynx_asks(person: Person, app: Path) -> None:
    """Let a second agent ask something."""
    asked = json.dumps([{"question": "May I push?", "options": ["Yes", "No"]}])
    person.runs(app, "agent", "wait", "calm-lynx", "--questions", asked)


def otter_asks_again(person: Person, app: Path) -> None:
    """Answer the question of the first agent in a terminal, and let it ask another one."""
    person.runs(app, "agent", "answer", "brisk-otter", "Not yet")
    asked = json.dumps([{"question": "May I drop the table?", "options": ["Yes", "No"]}])
    person.runs(app, "agent", "wait", "brisk-otter", "--questions", asked)


def test_an_answer_reaches_the_question_that_is_shown_and_no_other(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The agent asks something else by now, and the page has not heard of it yet."""
    page = open_desk(server).opens()
    with late(page, "waiting"):
        otter_asks_again(person, app)
        entry(page, "May I merge?").get_by_role("button", name="Yes").click()
        expect(page.get_by_role("alert")).to_contain_text("Nothing was sent")
        assert sent(person, app) == ["Not yet"]
    page.get_by_role("button", name="Close").click()
    expect(entry(page, "May I drop the table?")).to_be_visible()
    page.mouse.move(1, 1)
    expect(page.locator(".entry")).to_have_count(1)
    entry(page, "May I drop the table?").get_by_role("button", name="No").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert sorted(sent(person, app)) == ["No", "Not yet"]


def test_a_new_question_has_an_empty_answer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What was half written for another one is not sent to it, and can still be copied."""
    page = open_desk(server).opens()
    page.keyboard.press("r")
    page.keyboard.type("only after")
    otter_asks_again(person, app)
    expect(entry(page, "May I merge?")).to_contain_text("no longer waits")
    page.keyboard.press("Enter")
    old, new = (entry(page, text).locator("textarea") for text in ("merge", "drop the table"))
    expect(old).to_have_value("only after")
    expect(new).to_have_value("")
    assert sent(person, app) == ["Not yet"]
    new.focus()
    page.keyboard.type("never")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page.locator(".entry")).to_have_count(0)
    assert sorted(sent(person, app)) == ["Not yet", "never"]


def test_what_is_being_written_is_seen_again_after_a_look_at_the_past(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What a button would send is what stands there."""
    person.runs(app, "task", "add", "later")
    page = open_desk(server).opens()
    box = entry(page, "May I merge?").get_by_role("textbox")
    box.fill("only if")
    page.get_by_role("button", name="Rewind").click()
    expect(box).to_have_count(0)
    page.get_by_role("button", name="Back to now").click()
    expect(box).to_have_value("only if")
    entry(page, "May I merge?").get_by_role("button", name="Reply").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert sent(person, app) == ["only if"]


def test_nothing_moves_under_the_pointer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What has gone stays in its place and does nothing, until the pointer has left."""
    lynx_asks(person, app)
    page = open_desk(server).opens()
    button = entry(page, "May I push?").get_by_role("button", name="Yes")
    button.hover()
    before = button.bounding_box()
    person.runs(app, "agent", "answer", "brisk-otter", "No")
    old = entry(page, "May I merge?")
    expect(old).to_contain_text("no longer waits")
    for each in old.get_by_role("button").all():
        expect(each).to_be_disabled()
    assert violations(page) == []
    assert button.bounding_box() == before
    asks(person, app, "brisk-otter", "And now?")
    expect(page.locator(".entry").last).to_contain_text("And now?")
    assert button.bounding_box() == before
    page.mouse.move(1, 1)
    expect(old).to_have_count(0)
    expect(page.locator(".entry")).to_have_count(2)


def test_agents_and_next_tasks_keep_their_places_too(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What they do is told in place; who comes waits until the pointer leaves."""
    page = open_desk(server).opens()
    workers, ready = page.locator(".worker"), page.locator("ol.next li")
    expect(workers).to_have_count(2)
    expect(ready).to_have_count(1)
    workers.nth(1).hover()
    before = workers.nth(1).bounding_box()
    person.registers(app, "able-ant")
    expect(page.get_by_role("button", name="1 change, show")).to_be_visible()
    person.runs(app, "task", "add", "Ask the lawyers")
    expect(page.get_by_role("button", name="2 changes, show")).to_be_visible()
    person.runs(app, "agent", "answer", "brisk-otter", "Yes")
    expect(workers.nth(0)).to_contain_text("running")
    expect(workers.nth(0)).to_contain_text("brisk-otter")
    assert (workers.count(), ready.count()) == (2, 1)
    assert workers.nth(1).bounding_box() == before
    page.mouse.move(1, 1)
    expect(workers).to_have_count(3)
    expect(ready).to_have_count(2)


def test_a_double_click_answers_one_question(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Undo is offered at once; what was answered leaves with the pointer."""
    lynx_asks(person, app)
    page = open_desk(server).opens()
    first = entry(page, "May I merge?")
    first.get_by_role("button", name="Yes").dblclick()
    expect(first).to_contain_text("answered")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_title("(1) Now · Herdbook")
    assert sent(person, app) == ["Yes"]
    page.mouse.move(1, 1)
    expect(first).to_have_count(0)
    expect(entry(page, "May I push?")).to_be_visible()


def test_a_key_answers_only_what_was_chosen(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """When that has gone, nothing is chosen until the person chooses again."""
    lynx_asks(person, app)
    page = open_desk(server).opens()
    page.keyboard.press("1")
    expect(page.locator(".entry")).to_have_count(1)
    expect(page.locator(".entry.chosen")).to_have_count(0)
    page.keyboard.press("1")
    page.keyboard.press("j")
    expect(page.locator(".entry.chosen")).to_contain_text("May I push?")
    assert sent(person, app) == ["Yes"]
    page.keyboard.press("2")
    expect(page.locator(".entry")).to_have_count(0)
    assert sorted(sent(person, app)) == ["No", "Yes"]
    otter_asks = json.dumps(["Again?"])
    person.runs(app, "agent", "wait", "brisk-otter", "--questions", otter_asks)
    expect(entry(page, "Again?")).to_be_visible()
    page.keyboard.press("r")
    expect(entry(page, "Again?").locator("textarea")).to_be_focused()


def test_a_key_that_is_held_down_moves_and_does_nothing_else_again(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """It goes from entry to entry, and selects a card once."""
    lynx_asks(person, app)
    person.runs(app, "message", "add", "It is built.", "--agent", "calm-lynx")
    page = open_desk(server).opens()
    page.keyboard.down("j")
    page.keyboard.down("j")
    page.keyboard.up("j")
    expect(page.locator(".entry.chosen")).to_contain_text("It is built.")
    page.goto(f"{server.url.rstrip('/')}/board")
    page.wait_for_selector("main[data-ready=board]")
    page.locator(".card a", has_text="Write the tables").focus()
    for _ in range(4):
        page.keyboard.down("x")
    page.keyboard.up("x")
    expect(page.locator(".card.selected")).to_have_count(1)


def test_a_number_that_is_cut_says_so(person: Person, app: Path, open_desk: OpenDesk) -> None:
    """On the page and in the terminal."""
    herd = PastHerd(person, app, 0, timedelta(hours=1))
    crashed = [Agent(name=f"agent-{at:03}", status=AgentStatus.CRASHED) for at in range(201)]
    herd.run(lambda uow: uow.agents.add_all(crashed))
    herd.close()
    assert "more than the 200" in person.runs(app, "waiting")
    server = Serving(person, app)
    page = open_desk(server).opens()
    expect(page.get_by_role("heading", level=1)).to_contain_text("200+")
    expect(page.get_by_text("and 150+ more")).to_be_visible()
    expect(page).to_have_title("(200+) Now · Herdbook")
    badge = page.get_by_role("navigation", name="Pages").locator(".count")
    expect(badge).to_have_text("200+")
    assert server.ends() == (0, "")
