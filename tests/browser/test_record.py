"""The page of the record: which setup works best, and grades that are given there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, OpenDesk
from tests.browser.test_dashboard import HOSTILE, violations
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

MANY = 12
"""Commits of a setup that are enough to compare it."""
FEW = 3


@pytest.fixture
def graded(person: Person, app: Path) -> Iterator[Serving]:
    """A server for a repository whose record was made by commits, grades and a bug."""
    person.runs(app, "hooks", "install", "git")
    setups = {"otter": ("claude", "opus"), "lynx": ("codex", "gpt"), "mole": ("claude", "haiku")}
    for agent, (provider, model) in setups.items():
        person.runs(app, "agent", "add", agent, "--provider", provider, "--model", model)
    for number in range(MANY):
        works(person, app, "otter", f"add lib{number}.rs", "excellent")
        works(person, app, "lynx", f"change lib{number}.rs", "bad")
    for number in range(FEW):
        works(person, app, "mole", f"trim lib{number}.rs", "good")
    person.runs(app, "bug", "lynx", "--note", "loses the last line")
    running = Serving(person, app)
    yield running
    assert running.ends() == (0, "")


def works(person: Person, app: Path, agent: str, subject: str, grade: str) -> None:
    """Let an agent commit, and both grade that."""
    made = person.commits(app, agent, subject)
    person.runs(app, "grade", agent, made, "--self", "good", "--user", grade)


def setups(page: Page) -> list[Any]:
    """The setups of the list, from the first to the last."""
    return page.get_by_role("list", name="Setups").get_by_role("listitem").all()


def test_the_setups_of_real_commits_are_ranked(
    graded: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """With n, the mix of grades, and what tells too little; a filter is in the address."""
    desk = open_desk(graded)
    page = desk.opens("/record")
    first, second, third = setups(page)
    expect(first).to_contain_text("claude opus")
    expect(first).to_contain_text("better than the others")
    expect(first).to_contain_text(f"{MANY} commits{MANY} graded, 0 bugs")
    expect(first).to_contain_text(f"{MANY} excellent")
    expect(second).to_contain_text("codex gpt")
    expect(second).to_contain_text("behind the first")
    expect(second).to_contain_text(f"{MANY} graded, 1 bug")
    expect(second).to_contain_text(f"{MANY} bad")
    expect(third).to_contain_text(f"too little to tell: {FEW} of 10 commits")
    answer = person.asks(app, "leaderboard")
    assert [each["observations"] for each in answer["setups"]] == [MANY, MANY, FEW]
    for name in ("why", "certainty", "change"):
        expect(page.get_by_text(answer["reasons"][name])).to_be_visible()
    page.get_by_role("combobox", name="language").select_option("rust")
    expect(page).to_have_url(f"{graded.url}record?language=rust")
    expect(page.get_by_role("heading", name="by projects in rust")).to_be_visible()
    assert len(setups(page)) == 3
    assert violations(page) == []
    here = answer["here"]
    other = desk.opens(f"/record?project={here}")
    expect(other.get_by_role("heading", name=f"by project {here}")).to_be_visible()
    lost = desk.opens("/record?project=nowhere")
    expect(lost.get_by_role("alert")).to_contain_text("there is no project 'nowhere'")
    lost.get_by_role("combobox", name="project").select_option("")
    expect(lost.get_by_role("list", name="Setups")).to_be_visible()


def test_a_grade_from_the_page_lands_in_the_record(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """By keys alone and with a note, or by buttons."""
    person.runs(app, "hooks", "install", "git")
    person.registers(app, "otter")
    for subject in ("second.rs", HOSTILE[0], "first.rs"):
        person.commits(app, "otter", subject)
    server = Serving(person, app)
    page = open_desk(server).opens("/record")
    expect(page.get_by_role("heading", name="without your grade 3")).to_be_visible()
    expect(page.get_by_text(HOSTILE[0], exact=True)).to_be_visible()
    page.keyboard.press("3")
    page.keyboard.type("small and clear")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Graded good: otter stands at 62")).to_be_visible()
    expect(page.get_by_role("heading", name="without your grade 2")).to_be_visible()
    (standing,) = person.asks(app, "standing", "otter")
    assert standing["communication_score"] == 62
    (said,) = person.asks(app, "activity", "list")
    assert (said["task"], said["outcome"]) == ("first.rs", "small and clear")
    late = page.locator(".commit", has_text="second.rs")
    late.get_by_role("button", name="bad").click()
    assert violations(page) == []
    late.get_by_role("button", name="Grade bad").click()
    expect(page.get_by_text("Graded bad: otter stands at 61")).to_be_visible()
    assert [each["task"] for each in person.asks(app, "grade")] == [HOSTILE[0]]
    assert server.ends() == (0, "")


def test_a_grade_that_was_given_meanwhile_is_refused_in_place(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """In the words of the server."""
    person.runs(app, "hooks", "install", "git")
    person.registers(app, "otter")
    made = person.commits(app, "otter", "first.rs")
    server = Serving(person, app)
    page = open_desk(server).opens("/record")
    page.get_by_role("button", name="bad").click()

    def be_late(route: Any) -> None:
        if '"user":' in route.request.post_data:
            person.runs(app, "grade", "otter", made, "--user", "excellent")
        route.continue_()

    page.route("**/rpc*", be_late)
    page.get_by_role("button", name="Grade bad").click()
    expect(page.get_by_role("alert")).to_contain_text("the user's grade of otter's commit")
    (standing,) = person.asks(app, "standing", "otter")
    assert standing["communication_score"] == 65
    assert server.ends() == (0, "")


def test_the_page_follows_the_record(person: Person, app: Path, open_desk: OpenDesk) -> None:
    """From an empty record, which says the one command, to a first commit and its grades."""
    server = Serving(person, app)
    page = open_desk(server, viewport=NARROW).opens("/record")
    expect(page.get_by_text("herdbook hooks install git").first).to_be_visible()
    assert violations(page) == []
    person.runs(app, "hooks", "install", "git")
    person.registers(app, "otter")
    made = person.commits(app, "otter", "first.rs")
    person.runs(app, "flush")
    expect(page.get_by_role("list", name="Setups")).to_contain_text("1 commit")
    expect(page.get_by_role("heading", name="without your grade 1")).to_be_visible()
    person.runs(app, "grade", "otter", made, "--self", "good", "--user", "bad")
    expect(page.get_by_role("heading", name="Graded by both lately")).to_be_visible()
    expect(page.get_by_text("No commit waits for your grade")).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert server.ends() == (0, "")
