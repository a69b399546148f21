"""The dashboard as a person uses it, in a real browser."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.http.app import page_names, static_files
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.browser.conftest import MODULES, NARROW, READY, WIDE, OpenDesk
from tests.browser.herds import PastHerd
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\u202egnihtemos\u202c ${alert(1)} {{7*7}}",
    "x" * 200,
)


def paths(server: Serving) -> list[str]:
    """Every page there is, by its folder; the one of a task with a task."""
    task = server.calls("task.list")[0]["id"]
    pages = sorted(page_names(static_files()) - {"task"})
    return ["/", *(f"/{each}" for each in pages), f"/task/{task}"]


def violations(page: Page) -> list[Any]:
    """What axe finds wrong for people who do not see, hear or point as others do."""
    page.evaluate((MODULES / "axe-core" / "axe.min.js").read_text())
    found = page.evaluate("axe.run().then(found => found.violations)")
    return [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_for_everybody(
    server: Serving, open_desk: OpenDesk, scheme: str, size: dict[str, int]
) -> None:
    """No violation that axe knows, nothing beside the screen, no error, no other host."""
    desk = open_desk(server, color_scheme=scheme, viewport=size)
    for path in paths(server):
        page = desk.opens(path)
        beside = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert (path, beside) == (path, False)
        assert (path, violations(page)) == (path, [])
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(17, 19, 24)" if scheme == "dark" else "rgb(251, 251, 252)"
        )
        page.close()


def test_the_palette_and_the_keys_are_for_everybody(server: Serving, open_desk: OpenDesk) -> None:
    """The dialogs too."""
    page = open_desk(server).opens()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_be_visible()
    assert violations(page) == []


def test_a_question_is_answered_by_keys_alone(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The answer reaches the agent, the queue becomes empty, and undo brings the question back."""
    page = open_desk(server).opens()
    expect(page).to_have_title("(1) Now · Herdbook")
    assert page.get_attribute("#icon", "href") == "/static/icons/waiting-1.svg"
    expect(page.get_by_role("heading", name="brisk-otter asks")).to_be_visible()
    page.keyboard.press("1")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page).to_have_title("Now · Herdbook")
    assert [each["content"] for each in person.asks(app, "message", "list")] == ["Yes"]
    (agent,) = person.asks(app, "agent", "list", "--name", "brisk-otter")
    assert agent["status"] == "running"
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="brisk-otter asks")).to_be_visible()
    page.keyboard.press("r")
    page.keyboard.type("not before the tests pass")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    (answer,) = person.asks(app, "message", "list")
    assert answer["content"] == "not before the tests pass"


def test_it_is_told_since_when_an_agent_waits_and_not_since_when_it_works(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """It claimed a task five hours ago, and asked two hours ago."""
    herd = PastHerd(person, app, 1, timedelta(hours=5))
    herd.run(lambda uow: uow.tasks.add(Task(name="write the parser")))
    herd.run(claims.claim, herd.agents[0], halts=NO_HALTS, ttl=timedelta(hours=9))
    herd.now += timedelta(hours=3)
    herd.ask(0, "May I?")
    herd.close()
    server = Serving(person, app)
    page = open_desk(server).opens()
    expect(page.locator(".worker")).to_contain_text("waits for you, 2h")
    assert server.ends() == (0, "")


def test_an_agent_that_holds_several_tasks_is_one_row(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Its first task is named, and how many more it holds; there are as many rows as agents."""
    person.runs(app, "claim", "Write the tables", "--agent", "brisk-otter")
    desk = open_desk(server)
    told = "Choose the keys and 1 more"
    workers = desk.opens().locator(".worker")
    expect(workers.filter(has_text="brisk-otter")).to_contain_text(told)
    expect(workers).to_have_count(2)
    expect(desk.opens("/agents").locator(".row", has_text="brisk-otter")).to_contain_text(told)


def test_a_page_looks_the_same_whatever_was_open_before_it(
    server: Serving, open_desk: OpenDesk
) -> None:
    """Only its own style counts: a name of one page may mean something else on another."""
    page = open_desk(server).opens()
    for name in sorted(page_names(static_files()) - {"task"}):
        link = page.get_by_role("navigation").get_by_role("link", name=name.title())
        link.click()
        page.wait_for_selector(f"main[data-ready={name}]")
        styles = page.evaluate(
            "[...document.styleSheets].filter(each => !each.disabled).map(each => each.href)"
        )
        own = ("page.css", "pages.css", f"pages/{name}/page.css")
        assert styles == [f"{server.url.rstrip('/')}/static/{each}" for each in own]


def test_enter_follows_the_link_that_has_the_focus(server: Serving, open_desk: OpenDesk) -> None:
    """Also where Enter means something else, and something is chosen that it could open."""
    page = open_desk(server).opens()
    ways = {"board": "Talk", "talk": "Lanes", "lanes": "Review", "review": "Now"}
    for name, other in ways.items():
        page.goto(f"{server.url.rstrip('/')}/{name}")
        page.wait_for_selector(f"main[data-ready={name}]")
        page.keyboard.press("j")
        link = page.get_by_role("navigation").get_by_role("link", name=other)
        link.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(f"main[data-ready={other.lower()}]")


def test_answers_of_any_length_stay_in_their_entry(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """One of eighty letters without a space, at both widths."""
    asked = json.dumps([{"question": "q" * 300, "options": ["n" * 80, "no"]}])
    person.runs(app, "agent", "wait", "calm-lynx", "--questions", asked)
    page = open_desk(server).opens()
    answer = page.get_by_role("button", name="nnn")
    entry = page.locator(".entry", has=answer)
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        inner, outer = answer.bounding_box(), entry.bounding_box()
        assert inner is not None
        assert outer is not None
        assert inner["x"] + inner["width"] < outer["x"] + outer["width"] <= size["width"]
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_the_name_of_the_page_is_seen_on_a_narrow_screen(
    server: Serving, open_desk: OpenDesk
) -> None:
    """The names do not fit; they are scrolled to the one that is shown."""
    desk = open_desk(server, viewport=NARROW)
    for path, title in (("/health", "Health"), ("/", "Now"), ("/record", "Record")):
        link = desk.opens(path).get_by_role("navigation").get_by_role("link", name=title)
        expect(link).to_be_in_viewport(ratio=0.9)


def test_what_agents_are_at_is_read_on_a_narrow_screen(
    server: Serving, open_desk: OpenDesk
) -> None:
    """What an agent waits for, and how long, is not cut off."""
    page = open_desk(server, viewport=NARROW).opens()
    why = page.locator(".worker .why")
    expect(why.first).to_contain_text("waits for you")
    cut = why.evaluate_all("all => all.filter(each => each.scrollWidth > each.clientWidth).length")
    assert cut == 0


def test_a_refused_answer_is_said_in_place(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Somebody else was faster, and the page has not heard of it yet."""
    page = open_desk(server).opens()
    page.route("**/feed*", lambda route: route.abort())
    page.route(
        "**/rpc*", lambda route: route.fulfill(body=_answer_late(route, server, person, app))
    )
    page.get_by_role("button", name="Yes").click()
    expect(page.get_by_role("alert")).to_contain_text("waits for nobody")


def _answer_late(route: Any, server: Serving, person: Person, app: Path) -> str:
    """Let the agent be answered by another before the page's own answer comes."""
    message = json.loads(route.request.post_data)
    if message["method"] == "agent.answer":
        person.runs(app, "agent", "answer", "brisk-otter", "No")
    result = server.calls(message["method"], **message["params"])
    kind = "error" if isinstance(result, dict) and "code" in result else "result"
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], kind: result})


def test_two_pages_see_what_a_command_does(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """In two windows of one browser, of which one reads the feed, and in another browser."""
    desk = open_desk(server)
    pages = [desk.opens("/board"), desk.opens("/"), open_desk_again(open_desk, server, desk)]
    person.runs(app, "claim", "Write the tables", "--agent", "calm-lynx")
    held = pages[0].locator('[data-state="held"]')
    expect(held.get_by_role("link", name="Write the tables")).to_be_visible()
    for page in pages[1:]:
        row = page.locator(".worker", has_text="calm-lynx")
        expect(row.get_by_role("link", name="Write the tables")).to_be_visible()


def test_changes_that_never_pause_are_shown(server: Serving, open_desk: OpenDesk) -> None:
    """Many agents write many times a second; the page does not wait until they are done."""
    page = open_desk(server).opens("/board")
    is_over = Event()

    def write() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            server.calls("task.add", name=f"Task {number}")

    with ThreadPoolExecutor(1) as other:
        writing = other.submit(write)
        try:
            expect(page.get_by_role("link", name="Task 1", exact=True)).to_be_visible()
            assert not writing.done()
        finally:
            is_over.set()
        writing.result()


def open_desk_again(open_desk: OpenDesk, server: Serving, desk: Any) -> Page:
    """A second browser with the first one's cookie."""
    other = open_desk(server, storage_state=desk.context.storage_state())
    other._is_known = True
    page: Page = other.opens("/")
    return page


def test_seven_windows_of_a_browser_have_one_feed(server: Serving, open_desk: OpenDesk) -> None:
    """Else the seventh would wait for a connection that never gets free."""
    desk = open_desk(server)
    for _ in range(7):
        page = desk.opens("/board")
    metrics = server.asks("GET", "/metrics").body.decode()
    assert "herdbook_feed_clients 1\n" in metrics
    expect(page.get_by_role("heading", name="ready")).to_be_visible()


def test_a_server_that_was_killed_and_comes_back_loses_nothing(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What was done meanwhile is on the board; a page that could not be opened then is opened."""
    person.runs(app, "task", "add", "before")
    with socket.create_server(("127.0.0.1", 0)) as free:  # no other test's server takes this one
        port = str(free.getsockname()[1])
    first = Serving(person, app, "--port", port)
    desk = open_desk(first)
    page, other = desk.opens("/board"), desk.opens("/board")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    first.process.kill()
    first.process.communicate()
    expect(page.get_by_text("no connection")).to_be_visible()
    expect(other.get_by_text("no connection")).to_be_visible()
    other.get_by_role("link", name="Agents").click()
    expect(other.get_by_role("alert")).to_be_visible()
    names = [f"meanwhile {number}" for number in range(3)]
    for name in names:
        person.runs(app, "task", "add", name)
    again = Serving(person, app, "--port", port)
    for name in ["before", *names]:
        expect(page.get_by_role("link", name=name)).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(other.get_by_text("No agents yet.")).to_be_visible()
    board = person.asks(app, "board")
    assert page.locator(".card").count() == sum(board["tasks"].values()) == 4
    assert again.ends() == (0, "")


def test_a_card_is_dropped_and_a_refused_drop_goes_back(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The refusal is the server's own sentence, where the card was dropped."""
    page = open_desk(server).opens("/board")
    ready, waiting = page.locator('[data-state="ready"]'), page.locator('[data-state="waiting"]')
    waiting.locator(".card", has_text="Draw the form").drag_to(ready)
    expect(ready.get_by_role("alert")).to_contain_text("to be approved")
    expect(waiting.get_by_role("link", name="Draw the form")).to_be_visible()
    expect(ready.get_by_role("link", name="Draw the form")).to_have_count(0)
    held = page.locator('[data-state="held"]')
    held.locator(".card", has_text="Choose the keys").drag_to(ready)
    expect(ready.get_by_role("link", name="Choose the keys")).to_be_visible()
    # The card moves before the server has agreed; then there is an undo.
    page.get_by_role("button", name="Undo").wait_for()
    (task,) = person.asks(app, "task", "list", "--name", "Choose the keys")
    assert task["status"] == "pending"


def test_a_card_is_moved_by_keys(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Chosen by h, j, k and l, moved by m, opened by Enter; g and a letter change the page."""
    page = open_desk(server).opens()
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_selector('main[data-ready="board"]')
    page.keyboard.press("j")
    page.keyboard.press("m")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="completed").press("Enter")
    completed = page.locator('[data-state="completed"]')
    expect(completed.get_by_role("link", name="Write the tables")).to_be_visible()
    page.get_by_role("button", name="Undo").wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Write the tables", level=1)).to_be_visible()
    (task,) = person.asks(app, "task", "list", "--name", "Write the tables")
    assert task["status"] == "completed"
    assert page.url.endswith(f"/task/{task['id']}")


def test_the_palette_runs_a_command_and_says_a_refusal(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Every operation that programs can call is there, with its help."""
    page = open_desk(server).opens("/board")
    page.keyboard.press("Control+k")
    page.keyboard.type("task add")
    page.get_by_role("option", name="task add").first.wait_for()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("name (needed)").fill("from the palette")
    dialog.get_by_role("button", name="Run").click()
    expect(dialog.locator("pre")).to_contain_text('"name": "from the palette"')
    dialog.get_by_label("after").fill("no such task")
    dialog.get_by_role("button", name="Run").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no such task")
    assert len(person.asks(app, "task", "list", "--name", "from the palette")) == 1
    dialog.get_by_role("button", name="Back").click()
    expect(page.get_by_role("option", name="task add").first).to_be_visible()


def test_what_agents_write_stays_text(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Names, questions and notes, on every page."""
    for name in HOSTILE:
        person.runs(app, "task", "add", name)
    person.runs(app, "message", "add", HOSTILE[0], "--agent", "calm-lynx", "--requires-response")
    desk = open_desk(server)
    for path in paths(server):
        page = desk.opens(path)
        page.on("dialog", lambda dialog: desk.errors.append(dialog.message))
        assert page.locator("main img, main script").count() == 0
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        page.close()
    page = desk.opens("/board")
    for name in HOSTILE:
        expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
    page = desk.opens("/")
    expect(page.get_by_text(HOSTILE[0], exact=True).first).to_be_visible()


def test_ten_thousand_tasks_are_a_few_rows(person: Person, app: Path, open_desk: OpenDesk) -> None:
    """The totals are true, and whatever one scrolls to, at most two hundred are in the document."""

    def fill(uow: UnitOfWork) -> None:
        uow.tasks.add_all([Task(name=f"task {number}", order=number) for number in range(10_000)])

    person.at(app).run(Area.WORK, fill)
    server = Serving(person, app)
    page = open_desk(server).opens("/board")
    expect(page.get_by_role("heading", name="ready 10,000")).to_be_visible()
    page.get_by_role("button", name="and 9,975 more").click()
    page.get_by_role("button", name="and 9,800 more").wait_for(state="attached")
    ready = page.locator('[data-state="ready"] .windowed')
    for top in (3_000, 9_000, 100_000):
        ready.evaluate("(box, top) => { box.scrollTop = top }", top)
        page.wait_for_timeout(100)
        assert 0 < page.locator("main li").count() <= 200
    for path in ("/", "/graph", "/agents", "/history"):
        other = page.context.new_page()
        other.goto(f"{server.url.rstrip('/')}{path}")
        other.wait_for_selector(READY)
        assert other.locator("main li, main svg a").count() <= 500
        other.close()
    assert server.ends() == (0, "")


def test_an_empty_repository_says_the_one_command_that_changes_it(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """On every page; and the page fills by itself when it was typed."""
    server = Serving(person, app)
    desk = open_desk(server)
    page = desk.opens("/")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page.get_by_text("herdbook agent add brisk-otter")).to_be_visible()
    for path in ("/board", "/graph", "/history"):
        other = desk.opens(path)
        expect(other.get_by_text("herdbook task add")).to_be_visible()
        assert violations(other) == []
    person.registers(app, "brisk-otter")
    expect(page.get_by_role("link", name="brisk-otter")).to_be_visible()
    assert server.ends() == (0, "")
