"""The graph as a person looks at it: forecast, folding, zoom, and the same as a list."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Initiative, Phase, Task, TaskStatus
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.browser.conftest import NARROW, OpenDesk
from tests.browser.test_dashboard import violations
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


def box(page: Page, name: str) -> dict[str, float]:
    """Where the box of a task is."""
    found = page.get_by_role("link", name=re.compile(f"^{name}, ")).bounding_box()
    assert found is not None
    return dict(found)  # type: ignore[arg-type]


def test_a_forecast_says_who_picks_up_what(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The step of each task in its box, the next claim and what finishing frees in words."""
    person.runs(app, "task", "add", "Fill the tables", "--after", "Write the tables")
    page = open_desk(server).opens("/graph")
    page.get_by_label("Forecast for so many agents").fill("2")
    page.get_by_label("Forecast for so many agents").press("Enter")
    expect(page.locator(".forecast")).to_contain_text("With 2 agents: 2 steps")
    expect(page.locator(".forecast")).to_contain_text("The next claim gives Write the tables.")
    expect(page.locator(".forecast")).to_contain_text("1 task waits for a person to decide.")
    assert page.url.endswith("/graph?agents=2")
    page.get_by_role("link", name="Write the tables, step 1, ready, critical").click()
    expect(page.locator(".forecast")).to_contain_text("frees Fill the tables")
    expect(
        page.get_by_role("link", name=re.compile("Draw the form, waiting.*person"))
    ).to_be_visible()
    assert violations(page) == []
    person.runs(app, "task", "move", "Write the tables", "completed")
    expect(page.locator(".forecast")).to_contain_text("The next claim gives Fill the tables.")


def test_phases_fold_by_keys_and_stay_in_order(server: Serving, open_desk: OpenDesk) -> None:
    """A folded phase takes one line and says how many tasks are in it."""
    page = open_desk(server).opens("/graph")
    before = box(page, "Draw the form")["y"]
    phase = page.get_by_role("button", name="Schema · Ship the login, 2 tasks")
    phase.focus()
    page.keyboard.press("Enter")
    expect(phase).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("link", name=re.compile("^Choose the keys"))).to_have_count(0)
    assert box(page, "Draw the form")["y"] < before
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=re.compile("^Choose the keys"))).to_be_visible()
    assert box(page, "Draw the form")["y"] == before


def test_it_grows_by_keys_and_by_the_wheel(server: Serving, open_desk: OpenDesk) -> None:
    """What the pointer is at stays under it, and the page itself does not grow."""
    page = open_desk(server).opens("/graph")
    first = box(page, "Choose the keys")
    page.keyboard.press("+")
    expect(page.get_by_role("button", name="125%")).to_be_visible()
    assert box(page, "Choose the keys")["width"] > first["width"]
    page.keyboard.press("0")
    assert box(page, "Choose the keys") == first
    page.mouse.move(first["x"] + 5, first["y"] + 5)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    expect(page.get_by_role("button", name="125%")).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_the_list_tells_the_same_in_words(server: Serving, open_desk: OpenDesk) -> None:
    """For screen readers and narrow windows; the address keeps it."""
    page = open_desk(server, viewport=NARROW).opens("/graph?agents=1")
    page.get_by_role("button", name="As a list").click()
    assert page.url.endswith("/graph?agents=1&as=list")
    schema = page.get_by_role("region", name="Schema · Ship the login")
    expect(schema.get_by_role("listitem")).to_have_count(2)
    expect(schema).to_contain_text("wave 1, held")
    expect(schema).to_contain_text("step 2")
    assert violations(page) == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_names_are_read_in_the_list_of_a_narrow_screen(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """However much a task waits for, its name has half of the line."""
    names = ("Choose the keys", "Write the tables", "Draw the form")
    person.runs(app, "task", "add", "Send people to the new host", "--after", *names)
    page = open_desk(server, viewport=NARROW).opens("/graph?as=list")
    name = page.get_by_role("link", name="Send people to the new host").bounding_box()
    assert name is not None
    assert name["width"] > NARROW["width"] / 3


def plan_phases(person: Person, app: Path, *sizes: int) -> list[str]:
    """Plan phases of so many tasks, the first of which is completed; the ids of their last ones."""

    def add_phase(uow: UnitOfWork, number: int, size: int) -> str:
        phase = uow.phases.add(Phase(name=f"step {number}", initiative_id=goal.id))
        status = TaskStatus.PENDING if number else TaskStatus.COMPLETED
        tasks = [
            Task(name=f"task {number}-{each}", order=each, phase_id=phase.id, status=status)
            for each in range(size)
        ]
        return uow.tasks.add_all(tasks)[-1].id

    store = person.at(app)
    goal = store.run(Area.WORK, lambda uow: uow.initiatives.add(Initiative(name="goal")))
    return [store.run(Area.WORK, add_phase, *each) for each in enumerate(sizes)]


def test_a_link_to_a_task_shows_it(person: Person, app: Path, open_desk: OpenDesk) -> None:
    """Its phase is unfolded, or the one that is shown, and its box is in the window."""
    for sizes in ((1, 120, 120), (1, 300, 240)):
        last = plan_phases(person, app, *sizes)[-1]
        server = Serving(person, app)
        page = open_desk(server).opens(f"/graph?focus={last}")
        expect(page.locator(f"#box-{last}")).to_be_in_viewport()
        expect(page.locator(f"#box-{last}")).to_have_class("near chosen")
        assert server.ends() == (0, "")


def test_a_plan_that_is_too_large_is_shown_from_what_is_left(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """A phase whose tasks are all completed is not offered, and not called the whole."""
    last = plan_phases(person, app, 5, 200, 4_900)
    (shown,) = plan_phases(person, app, 1, 101)[1:]
    server = Serving(person, app)
    desk = open_desk(server)
    page = desk.opens("/graph")
    expect(page.get_by_role("heading", name="Graph")).to_have_text("Graph 200 of 5,201 tasks")
    options = page.get_by_label("Phase").locator("option")
    expect(options).to_have_text(["step 1 · goal", "step 2 · goal", "step 1 · goal"])
    page = desk.opens(f"/graph?focus={shown}")
    expect(page.locator(f"#box-{shown}")).to_be_in_viewport()
    for other in (last[0], "tsk_00000000000000000000"):
        page = desk.opens(f"/graph?focus={other}")
        expect(page.get_by_role("heading", name="Graph")).to_have_text("Graph 200 of 5,201 tasks")
    assert server.ends() == (0, "")
