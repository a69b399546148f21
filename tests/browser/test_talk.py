"""The page of what is said: it appears live, is answered in place, and stays text."""

import re
from pathlib import Path

from playwright.sync_api import Route, expect

from herdbook.domain.location.areas import Area
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import messaging
from tests.browser.conftest import NARROW, OpenDesk
from tests.browser.test_dashboard import HOSTILE
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


def test_a_message_appears_live_and_the_answer_reaches_the_agent(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Chosen, answered and undone by keys; the agent has the answer in its inbox."""
    page = open_desk(server).opens("/talk")
    expect(page.get_by_text("Nobody has said anything yet.")).to_be_visible()
    words = ("--requires-response", "--agent", "calm-lynx")
    person.runs(app, "message", "add", "May I rename the column?", *words)
    row = page.locator(".entry-row.mine")
    expect(row).to_contain_text("calm-lynx: May I rename the column?")
    expect(row).to_contain_text("needs your answer")
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_accessible_name("Talk 1 in all, 1 needs your answer")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Thread with calm-lynx")).to_be_visible()
    page.wait_for_url("**/talk/msg_*")
    page.keyboard.press("r")
    page.keyboard.type("yes, to account_id")
    page.keyboard.press("Enter")
    expect(page.locator(".line.own")).to_contain_text("yes, to account_id")
    expect(page.locator(".entry-row.mine")).to_have_count(0)
    (got,) = person.asks(app, "message", "inbox", "--agent", "calm-lynx")
    assert (got["content"], got["sender"]) == ("yes, to account_id", "person")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".entry-row.mine")).to_have_count(1)
    assert person.asks(app, "message", "inbox", "--agent", "calm-lynx") == []


def test_one_agent_and_all_agents_are_written_to(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The message to all is one change, which Undo takes back as a whole."""
    page = open_desk(server).opens("/talk")
    page.keyboard.press("c")
    page.get_by_label("Your message").fill("main is frozen")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Sent to 2 agents.")).to_be_visible()
    for agent in ("brisk-otter", "calm-lynx"):
        assert [
            each["content"] for each in person.asks(app, "message", "inbox", "--agent", agent)
        ] == ["main is frozen"]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Taken back.")).to_be_visible()
    assert person.asks(app, "message", "inbox", "--agent", "calm-lynx") == []
    page.get_by_role("button", name="New message").click()
    page.get_by_label("To", exact=True).select_option("calm-lynx")
    page.get_by_label("Your message").fill("how far are you?")
    page.get_by_label("needs an answer").check()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", name="Thread with calm-lynx")).to_be_visible()
    (got,) = person.asks(app, "message", "inbox", "--agent", "calm-lynx")
    assert (got["content"], got["requires_response"]) == ("how far are you?", True)
    assert person.asks(app, "message", "inbox", "--agent", "brisk-otter") == []


def test_a_question_and_a_chat_go_on_in_place(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The person may answer for an agent; a closed question takes no second answer."""
    asked = person.asks(
        app, "conversation", "add", "which port?", "--to", "calm-lynx", "--agent", "brisk-otter"
    )
    phase = person.asks(app, "phase", "list")[0]["id"]
    chat = person.asks(app, "chat", "add", "phase", phase, "--agent", "calm-lynx")["id"]
    page = open_desk(server).opens(f"/talk/{asked['id']}")
    expect(page.locator(".line")).to_have_text(re.compile("which port"))
    page.get_by_label("Your answer").fill("8080")
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_text("It is over.")).to_be_visible()
    assert person.asks(app, "conversation", "show", asked["id"])["answer"] == "8080"
    page.locator(f'[data-id="{chat}"] a').click()
    expect(page.get_by_role("heading", name="Chat with calm-lynx")).to_be_visible()
    page.get_by_label("Your answer").fill("make it shorter")
    page.get_by_role("button", name="Say").click()
    expect(page.locator(".line.own")).to_contain_text("make it shorter")
    (said,) = person.asks(app, "chat", "history", chat)
    assert (said["role"], said["content"]) == ("user", "make it shorter")


def test_a_refused_answer_is_said_in_place_and_what_was_written_stays(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Another has answered the question in the meantime, and the page has not heard of it."""
    asked = person.asks(
        app, "conversation", "add", "which port?", "--to", "calm-lynx", "--agent", "brisk-otter"
    )["id"]
    page = open_desk(server).opens(f"/talk/{asked}")
    page.get_by_label("Your answer").fill("9090")
    late = {"done": False}

    def answer_first(route: Route) -> None:
        if not late["done"] and "conversation.answer" in (route.request.post_data or ""):
            late["done"] = True
            person.runs(app, "conversation", "answer", asked, "8080")
        route.continue_()

    page.route("**/rpc*", answer_first)
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("alert")).to_contain_text("answer")
    assert person.asks(app, "conversation", "show", asked)["answer"] == "8080"


def test_reading_marks_a_thread(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """By a key, as one change."""
    person.runs(app, "message", "add", "the tables are written", "--agent", "calm-lynx")
    page = open_desk(server).opens("/talk")
    expect(page.get_by_text("1 unread").first).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Thread with calm-lynx")).to_be_visible()
    page.keyboard.press("e")
    expect(page.get_by_text("1 unread")).to_have_count(0)
    assert person.asks(app, "message", "inbox") == []


def test_what_agents_say_stays_text(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """In the list and in the lines, on a narrow screen too, and nothing is beside it."""
    for text in HOSTILE:
        person.runs(app, "message", "add", text, "--agent", "calm-lynx")
    page = open_desk(server, viewport=NARROW).opens("/talk")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    expect(page.locator(".entry-row")).to_have_count(len(HOSTILE))
    for text in HOSTILE:
        page.locator(".entry-row a").filter(has_text=text[:30]).first.click()
        expect(page.locator(".line .prose")).to_have_text(text)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="← All").click()
    assert page.locator("main img, main script").count() == 0
    assert dialogs == []


def test_many_threads_are_a_few_rows(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The total is true, more of them come on demand, and few are in the document."""

    def fill(uow: UnitOfWork) -> None:
        for number in range(350):
            messaging.send(uow, f"line {number}")

    person.at(app).run(Area.WORK, fill)
    page = open_desk(server).opens("/talk")
    expect(page.get_by_role("heading", name="Talk 100 of 350")).to_be_visible()
    assert 0 < page.locator(".entry-row").count() <= 40
    page.locator(".windowed").evaluate("box => { box.scrollTop = 100000 }")
    page.get_by_role("button", name="250 more").click()
    expect(page.get_by_role("heading", name="Talk 200 of 350")).to_be_visible()
    assert page.locator(".entry-row").count() <= 40


def test_on_a_narrow_screen_every_thread_can_be_reached(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The list scrolls in itself, and is where it was when one comes back from a thread."""

    def fill(uow: UnitOfWork) -> None:
        for number in range(40):
            messaging.send(uow, f"line {number}")

    person.at(app).run(Area.WORK, fill)
    page = open_desk(server, viewport=NARROW).opens("/talk")
    expect(page.get_by_role("heading", name="Talk 40")).to_be_visible()
    box = page.locator(".talk .windowed")
    place = box.bounding_box()
    assert place is not None
    assert place["y"] + place["height"] <= NARROW["height"]
    page.mouse.move(place["x"] + 100, place["y"] + 100)
    page.mouse.wheel(0, 30 * 56)
    wanted = server.calls("talk.list", limit=100)["entries"][31]["id"]
    row = page.locator(f'[data-id="{wanted}"]')
    expect(row).to_be_in_viewport()
    top = box.evaluate("box => box.scrollTop")
    row.click()
    expect(page.locator(".line .prose")).to_be_visible()
    page.get_by_role("button", name="← All").click()
    expect(row).to_be_in_viewport()
    assert box.evaluate("box => box.scrollTop") == top


def test_what_is_new_moves_no_thread_under_the_pointer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Neither by itself nor by its button."""
    person.runs(app, "message", "add", "the first", "--agent", "calm-lynx")
    page = open_desk(server).opens("/talk")
    first = page.locator(".entry-row").first
    first.hover()
    before = first.bounding_box()
    words = ("the second", "--agent", "brisk-otter", "--requires-response")
    person.runs(app, "message", "add", *words)
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    expect(first).to_contain_text("the first")
    assert first.bounding_box() == before
    page.mouse.move(5, 5)
    expect(first).to_contain_text("the second")
