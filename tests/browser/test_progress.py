"""How far the plan is, on the page where people look."""

import re
from pathlib import Path

from playwright.sync_api import expect

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Initiative, Phase, Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.browser.conftest import OpenDesk
from tests.browser.test_dashboard import violations
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


def test_now_says_how_far_each_phase_is_and_what_is_not_known(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Bars with exact numbers in words, and no forecast before there can be one."""
    page = open_desk(server).opens("/")
    progress = page.get_by_role("region", name="Progress")
    expect(progress.get_by_role("heading")).to_have_text("Progress 0 of 3 done")
    expect(progress).to_contain_text("is not known yet: too few tasks were completed")
    progress.get_by_text("Ship the login").click()
    expect(progress.get_by_role("img", name="Schema: 0 of 2 done")).to_be_visible()
    expect(progress.get_by_role("img", name="Screens: 0 of 1 done")).to_be_visible()
    assert violations(page) == []
    person.runs(app, "task", "move", "Write the tables", "completed")
    expect(progress.get_by_role("heading")).to_have_text("Progress 1 of 3 done")
    half = progress.get_by_role("img", name="Schema: 1 of 2 done")
    expect(half).to_have_attribute("title", "1 of 2 done, 50%")
    expect(progress.get_by_text("Completed: 1 in the last hour")).to_be_visible()


def test_a_forecast_comes_with_its_chances_and_the_way_there(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Two moments, and a drawing whose text says what it shows."""
    names = [f"step {number}" for number in range(9)]
    for name in names:
        person.runs(app, "task", "add", name)
        person.runs(app, "task", "move", name, "completed")
    page = open_desk(server).opens("/")
    progress = page.get_by_role("region", name="Progress")
    expect(progress.get_by_role("heading")).to_have_text("Progress 9 of 12 done")
    expect(progress).to_contain_text("(50%)")
    expect(progress).to_contain_text("(90%, in ")
    drawing = progress.locator("figure svg")
    expect(drawing).to_have_attribute("aria-label", re.compile("to 9 of 12 tasks done$"))
    titles = drawing.locator("title").all_text_contents()
    assert len(titles) == 25
    assert "9 of 12 done" in titles[-1]


def test_lists_of_any_length_begin_with_their_first_rows(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Phases of an initiative, what waits for a task, the graph as a list, and reviews."""

    def fill(uow: UnitOfWork) -> str:
        goal = uow.initiatives.add(Initiative(name="goal"))
        phases = uow.phases.add_all(
            [
                Phase(name=f"step {n}", initiative_id=goal.id, status="in_progress")
                for n in range(60)
            ]
        )
        first = uow.tasks.add(Task(name="first", phase_id=phases[0].id))
        for number in range(70):
            task = uow.tasks.add(Task(name=f"task {number}", phase_id=phases[0].id))
            uow.tasks.add_dependency(task.id, first.id)
        return first.id

    first = person.at(app).run(Area.WORK, fill)
    server = Serving(person, app)
    desk = open_desk(server)
    page = desk.opens("/")
    bars = page.locator(".initiatives .progress-row .bar")
    expect(bars).to_have_count(1)
    page.locator(".initiatives summary").click()
    expect(page.locator(".initiatives")).to_contain_text("and 59 more phases")
    expect(bars).to_have_count(2)
    page.locator(".initiatives summary").click()
    expect(bars).to_have_count(1)
    for path, rest in ((f"/task/{first}", 20), ("/graph?as=list", 21), ("/review", 10)):
        page = desk.opens(path)
        rows = page.locator("main li").filter(has=page.get_by_role("link"))
        expect(rows).to_have_count(50)
        assert violations(page) == []
        page.get_by_role("button", name=f"and {rest} more").click()
        expect(rows).to_have_count(50 + rest)
    assert server.ends() == (0, "")
