"""Answers that come late: none is shown in place of a newer one, on any page."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.conftest import SECONDS, OpenDesk
from tests.browser.test_review import choose, files, opens, serving, work
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

__all__ = ["serving", "work"]

SOON = 400
"""Milliseconds in which a page shows an answer that it has."""


class LateAnswers:
    """The answers of one method, which come when they are released."""

    def __init__(self, page: Page, method: str) -> None:
        self._page = page
        self._method = method
        self._held: list[Route] = []
        self._answers: dict[Route, APIResponse] = {}
        self.is_holding = True
        page.route("**/rpc*", self._take)

    def _take(self, route: Route) -> None:
        asked = route.request.post_data_json or {}
        if self.is_holding and asked.get("method") == self._method:
            self._held.append(route)
            self._answers[route] = route.fetch()
        else:
            route.fallback()

    def wait(self, count: int = 1) -> None:
        """Wait until so many answers are held."""
        until = time.monotonic() + SECONDS / 1000
        while len(self._held) < count or any(each not in self._answers for each in self._held):
            assert time.monotonic() < until, f"{len(self._held)} answers of {self._method}"
            self._page.wait_for_timeout(10)

    def release(self) -> None:
        """Let the answer that is held for the longest time come."""
        route = self._held.pop(0)
        answer = self._answers.pop(route)
        with self._page.expect_response(lambda response: response.request == route.request):
            route.fulfill(response=answer)
        self._page.wait_for_timeout(SOON)

    def end(self) -> None:
        """Let all answers come."""
        self.is_holding = False
        self.wait(len(self._held))
        while self._held:
            self.release()
        self._page.unroute("**/rpc*", self._take)


@contextmanager
def late(page: Page, method: str) -> Iterator[LateAnswers]:
    """Hold the answers of a method, and let them all come at the end."""
    answers = LateAnswers(page, method)
    yield answers
    answers.end()


def test_what_changed_while_a_page_was_read_is_shown(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The first answer is older than the change, and no later change comes."""
    page = open_desk(server).opens("/talk")
    with late(page, "board") as answers:
        page.get_by_role("link", name="Board").click()
        answers.wait()
        with page.expect_response(lambda each: '"waiting"' in (each.request.post_data or "")):
            person.runs(app, "task", "add", "Came meanwhile")
    expect(page.get_by_text("Came meanwhile")).to_be_visible()


def ask_for_phases(page: Page) -> None:
    page.get_by_label("Group by").select_option("phase")


def ask_for_three(page: Page) -> None:
    page.get_by_label("Forecast for so many agents").fill("3")
    page.get_by_label("Forecast for so many agents").press("Enter")


def ask_for_lanes_of_phases(page: Page) -> None:
    page.get_by_label("A lane for each").select_option("phase")


class AskedAgain(NamedTuple):
    """A page, the method that it asks, how a person asks again, and what is told then."""

    path: str
    method: str
    ask: Callable[[Page], None]
    told: str


@pytest.mark.parametrize(
    "case",
    [
        AskedAgain("/board", "board", ask_for_phases, "Newer"),
        AskedAgain("/graph?as=list", "plan", ask_for_three, "With 3 agents"),
        AskedAgain("/lanes", "lanes", ask_for_lanes_of_phases, "Schema"),
    ],
    ids=lambda case: case.method,
)
def test_an_older_answer_does_not_take_the_place_of_a_newer_one(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk, case: AskedAgain
) -> None:
    """It was asked for because of a change, and the newer one by the person."""
    page = open_desk(server).opens(case.path)
    with late(page, case.method) as answers:
        person.runs(app, "task", "add", "Older")
        answers.wait()
        person.runs(app, "task", "add", "Newer")
        answers.is_holding = False
        case.ask(page)
        expect(page.locator("main")).to_contain_text(case.told)
        answers.is_holding = True
        answers.release()
        expect(page.locator("main")).to_contain_text(case.told, timeout=SOON)


def test_a_page_that_was_left_does_not_change_the_address_or_the_title(
    server: Serving, open_desk: OpenDesk
) -> None:
    """Agents and tasks that are opened by their names, one quickly after the other."""
    page = open_desk(server).opens("/agents")
    for path, method, first, second in (
        ("agents", "agent.show", "brisk-otter", "calm-lynx"),
        ("task", "task.show", "Choose the keys", "Draw the form"),
    ):
        with late(page, method) as answers:
            for count, name in enumerate((first, second), 1):
                open_path(page, f"/{path}/{name}")
                answers.wait(count)
            answers.release()
            assert page.evaluate("decodeURI(location.pathname)") == f"/{path}/{second}"
        expect(page.get_by_role("heading", level=1)).to_contain_text(second)
        expect(page).to_have_title(f"(1) {second} · Herdbook")


def open_path(page: Page, path: str) -> None:
    """Follow a link to a page."""
    page.evaluate(
        """path => {
            const link = document.createElement("a");
            link.href = path;
            document.body.append(link);
            link.click();
            link.remove();
        }""",
        path,
    )


def test_the_title_names_what_is_shown_after_every_change(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Also when the number of what waits comes after the page."""
    page = open_desk(server).opens("/agents/calm-lynx")
    expect(page).to_have_title("(1) calm-lynx · Herdbook")
    with late(page, "waiting") as answers:
        person.runs(app, "task", "add", "Another")
        answers.wait(2)
    expect(page).to_have_title("(1) calm-lynx · Herdbook")


def test_the_number_of_what_waits_is_the_newest(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """An older number comes after it when a moment was left meanwhile."""
    page = open_desk(server).opens("/board")
    count = page.get_by_role("navigation", name="Pages").locator(".count")
    with late(page, "waiting") as answers:
        page.keyboard.press("[")
        answers.wait()
        person.runs(app, "message", "add", "May I?", "--requires-response", "--agent", "calm-lynx")
        answers.is_holding = False
        page.get_by_role("button", name="Back to now").click()
        expect(count).to_have_text("2")
        answers.is_holding = True
        answers.release()
        expect(count).to_have_text("2", timeout=SOON)


def test_what_was_read_of_the_past_is_not_shown_after_going_back_to_now(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Nor is what was read of now shown as an earlier moment."""
    person.runs(app, "task", "add", "The last one")
    page = open_desk(server).opens("/board")
    card = page.get_by_text("The last one")
    expect(card).to_be_visible()
    with late(page, "board") as answers:
        page.keyboard.press("[")
        answers.wait()
        page.get_by_role("button", name="Back to now").click()
        answers.wait(2)
        answers.release()
        expect(card).to_be_visible(timeout=SOON)
        answers.release()
        answers.is_holding = False
        page.keyboard.press("[")
        expect(card).to_have_count(0)


def test_an_answer_goes_to_the_thread_that_is_shown(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Another was chosen and is not there yet; what was written for that stays unsent."""
    for agent in ("brisk-otter", "calm-lynx"):
        person.runs(app, "message", "add", f"I am {agent}", "--requires-response", "--agent", agent)
    page = open_desk(server).opens("/talk")
    page.locator(".entry-row", has_text="I am calm-lynx").click()
    page.get_by_label("Your answer").fill("for the lynx")
    page.locator(".entry-row", has_text="I am brisk-otter").click()
    expect(page.get_by_role("heading", name="Thread with brisk-otter")).to_be_visible()
    page.get_by_label("Your answer").fill("for the otter")
    with late(page, "talk.show") as answers:
        page.locator(".entry-row", has_text="I am calm-lynx").click()
        answers.wait()
        page.get_by_label("Your answer").press("Enter")
        expect(page.get_by_text("Answered.")).to_be_visible()
    expect(page.get_by_role("heading", name="Thread with calm-lynx")).to_be_visible()
    expect(page.get_by_label("Your answer")).to_have_value("for the lynx")
    (got,) = person.asks(app, "message", "inbox", "--agent", "brisk-otter")
    assert got["content"] == "for the otter"
    assert person.asks(app, "message", "inbox", "--agent", "calm-lynx") == []


def test_an_answer_is_given_once(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """However often its key is pressed before the server has answered."""
    page = open_desk(server).opens()
    expect(page.get_by_role("heading", name="brisk-otter asks")).to_be_visible()
    with late(page, "agent.answer") as answers:
        page.keyboard.press("1")
        page.keyboard.press("1")
        answers.wait()
        page.wait_for_timeout(SOON)
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert [each["content"] for each in person.asks(app, "message", "list")] == ["Yes"]


def test_a_card_stays_where_it_was_put(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """An answer that does not know of it yet comes while the card is on its way."""
    page = open_desk(server).opens("/board")
    card = page.locator(".column[data-state=completed] .card", has_text="Write the tables")
    with late(page, "board") as answers:
        person.runs(app, "task", "add", "Another")
        answers.wait()
        with late(page, "task.move") as moves:
            page.locator(".card a", has_text="Write the tables").focus()
            page.keyboard.press("e")
            moves.wait()
            expect(card).to_be_visible()
            answers.release()
            expect(card).to_be_visible(timeout=SOON)
    expect(card).to_be_visible()


def test_earlier_changes_are_read_once(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """However often they are asked for before they are there."""
    plan = "# Much\n\n## To do\n" + "".join(f"- [ ] task {number}\n" for number in range(600))
    (app / "much.md").write_text(plan)
    person.runs(app, "import", "plan", "much.md")
    for number in range(3):
        person.runs(app, "task", "add", f"later {number}")
    page = open_desk(server).opens("/history")
    title = page.get_by_role("heading", level=1)
    more = page.get_by_role("button", name="earlier changes")
    page.locator(".windowed").evaluate("box => box.scrollTo(0, box.scrollHeight)")
    with late(page, "history") as answers:
        more.click()
        more.click()
        answers.wait(2)
    total = server.calls("history", limit=1)["last"]
    expect(title).to_have_text(f"History {total}")


def test_a_command_that_was_left_does_not_come_back(server: Serving, open_desk: OpenDesk) -> None:
    """Its answer comes while another command is filled in."""
    page = open_desk(server).opens()
    with late(page, "status") as answers:
        page.keyboard.press("Control+k")
        page.keyboard.type("status")
        page.get_by_role("option", name=re.compile("^status ")).first.click()
        page.get_by_role("button", name="Run").click()
        answers.wait()
        page.get_by_role("button", name="Back").click()
        page.get_by_role("combobox").fill("task add")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="task add")).to_be_visible()
        answers.release()
        expect(page.get_by_role("heading", name="task add")).to_be_visible(timeout=SOON)


def test_the_file_that_was_opened_last_is_shown(
    serving: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """A file is opened while another, and then a change, is read."""
    page = opens(open_desk, serving)
    choose(page, "renamed.txt")
    with late(page, "review.diff") as answers:
        files(page).filter(has_text="new.py").get_by_role("button").click()
        answers.wait()
        files(page).filter(has_text="lines.txt").get_by_role("button").click()
        answers.wait(2)
        answers.release()
        expect(page.locator(".file-head h2")).to_contain_text("renamed.txt", timeout=SOON)
        answers.is_holding = False
        person.runs(app, "task", "add", "Another")
        page.wait_for_timeout(3 * SOON)
        expect(page.locator(".file-head h2")).to_contain_text("renamed.txt", timeout=SOON)
        answers.release()
        expect(page.locator(".file-head h2")).to_contain_text("lines.txt")
