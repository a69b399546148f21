"""The board: groups, a selection, new names, and what the server says before a card is dropped."""

from pathlib import Path

from playwright.sync_api import Page, expect

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Initiative, Phase, Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.browser.conftest import OpenDesk
from tests.browser.test_dashboard import violations
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


def test_the_board_by_phase_agent_and_worktree(server: Serving, open_desk: OpenDesk) -> None:
    """Headings with true numbers; the address keeps the grouping and the filter."""
    desk = open_desk(server)
    page = desk.opens("/board")
    page.get_by_label("Group by").select_option("phase")
    expect(page.get_by_role("button", name="Schema")).to_be_visible()
    expect(page.get_by_role("img", name="Schema: 0 of 2 done")).to_be_visible()
    expect(page.get_by_role("link", name="Draw the form")).to_be_visible()
    assert page.url.endswith("/board?by=phase")
    assert violations(page) == []
    page.get_by_role("button", name="Screens").click()
    expect(page.get_by_role("link", name="Draw the form")).to_have_count(0)
    page.get_by_label("Filter tasks").fill("keys")
    expect(page.get_by_role("link", name="Write the tables")).to_have_count(0)
    assert page.url.endswith("/board?by=phase&q=keys")
    page = desk.opens("/board?by=agent")
    names = page.locator(".group .fold").all_inner_texts()
    assert [each.removeprefix("▾ ") for each in names] == ["brisk-otter", "Nobody holds it"]
    page = desk.opens("/board?by=worktree")
    expect(page.get_by_role("button", name="main")).to_be_visible()


def test_a_card_says_that_its_agent_waits_for_you(
    server: Serving, open_desk: OpenDesk, person: Person, app: Path
) -> None:
    """In words and with the mark of what waits, until it is answered; no other card is as loud."""
    page = open_desk(server).opens("/board")
    card = page.get_by_role("listitem").filter(has_text="Choose the keys")
    expect(card).to_contain_text("waits for you")
    expect(page.locator(".card.asks")).to_have_count(1)
    person.runs(app, "agent", "answer", "brisk-otter", "Yes")
    expect(page.locator(".card.asks")).to_have_count(0)
    expect(card).to_contain_text("brisk-otter")
    expect(card).not_to_contain_text("waits for you")


def test_several_cards_are_moved_at_once(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Selected by x or by Ctrl and a click; those that may not go stay, with the reason."""
    for name in ("one", "two"):
        person.runs(app, "task", "add", name)
    page = open_desk(server).opens("/board")
    page.get_by_role("link", name="one", exact=True).focus()
    page.keyboard.press("x")
    page.locator(".card", has_text="two").click(modifiers=["Control"])
    page.locator(".card", has_text="Choose the keys").click(modifiers=["Control"])
    expect(page.get_by_text("3 tasks selected")).to_be_visible()
    page.get_by_role("button", name="Move to blocked").click()
    blocked = page.locator('[data-state="blocked"]')
    expect(blocked.get_by_role("link", name="one")).to_be_visible()
    expect(blocked.get_by_role("link", name="two")).to_be_visible()
    expect(blocked.get_by_role("alert")).to_contain_text("brisk-otter holds it")
    held = page.locator('[data-state="held"]')
    expect(held.get_by_role("link", name="Choose the keys")).to_be_visible()
    found = person.asks(app, "task", "list", "--status", "blocked")
    assert sorted(each["name"] for each in found) == ["one", "two"]


def test_a_card_is_renamed_in_place(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Escape leaves it as it is, Enter keeps the new name, and Undo is offered."""
    page = open_desk(server).opens("/board")
    page.get_by_role("link", name="Write the tables").focus()
    page.keyboard.press("n")
    page.keyboard.type("nothing")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Write the tables")).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.type("Write all tables")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Write all tables")).to_be_visible()
    assert len(person.asks(app, "task", "list", "--name", "Write all tables")) == 1
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="Write the tables")).to_be_visible()


def test_where_a_card_may_not_go_is_said_while_it_is_dragged(
    server: Serving, open_desk: OpenDesk
) -> None:
    """Those columns are dimmed with the server's reason, and nothing moves under the hand."""
    page = open_desk(server).opens("/board")
    before = columns(page)
    page.locator('[data-state="waiting"] .card', has_text="Draw the form").hover()
    page.mouse.down()
    page.mouse.move(400, 300)
    ready = page.locator('[data-state="ready"]')
    expect(ready.locator(".reason")).to_contain_text("to be approved")
    expect(page.locator('[data-state="held"] .reason')).to_contain_text("herdbook claim")
    expect(page.locator('[data-state="blocked"] .reason')).to_have_count(0)
    assert columns(page) == before
    page.mouse.up()
    expect(page.locator(".reason")).to_have_count(0)


def columns(page: Page) -> list[object]:
    """Where the columns and the cards are."""
    return [each.bounding_box() for each in page.locator(".column, .card").all()]


def test_by_keys_only_what_is_possible_can_be_chosen(server: Serving, open_desk: OpenDesk) -> None:
    """The dialog of m says why not."""
    page = open_desk(server).opens("/board")
    page.get_by_role("link", name="Draw the form").focus()
    page.keyboard.press("m")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="ready")).to_be_disabled()
    expect(dialog).to_contain_text("to be approved")
    expect(dialog.get_by_role("button", name="blocked")).to_be_enabled()
    assert violations(page) == []


def test_no_card_moves_under_the_pointer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What others do waits until the pointer leaves; cards that stay say what is known of them."""
    for name in ("one", "two", "three"):
        person.runs(app, "task", "add", name)
    page = open_desk(server).opens("/board")
    ready = page.locator('[data-state="ready"]')
    page.locator(".card", has_text="two").hover()
    before = columns(page)
    person.runs(app, "claim", "one", "--agent", "calm-lynx")
    fresh = page.get_by_role("button", name="1 change, show")
    expect(fresh).to_be_visible()
    person.runs(app, "agent", "answer", "brisk-otter", "Yes")
    expect(page.locator(".card", has_text="Choose the keys")).not_to_contain_text("waits for you")
    assert columns(page) == before
    expect(ready.get_by_role("link", name="one")).to_be_visible()
    fresh.click()
    held = page.locator('[data-state="held"]')
    expect(held.get_by_role("link", name="one")).to_be_visible()
    page.locator(".card", has_text="two").hover()
    person.runs(app, "task", "add", "four")
    expect(fresh).to_be_visible()
    page.mouse.move(5, 5)
    expect(ready.get_by_role("link", name="four")).to_be_visible()
    expect(fresh).to_have_count(0)


def test_what_the_person_did_is_shown_under_the_pointer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """A move by keys, its Undo, and another grouping, while the pointer rests on a card."""
    person.runs(app, "task", "add", "one")
    page = open_desk(server).opens("/board")
    page.get_by_role("link", name="one").focus()
    page.locator(".card", has_text="Choose the keys").hover()
    person.runs(app, "task", "add", "two")
    expect(page.get_by_role("button", name="1 change, show")).to_be_visible()
    page.keyboard.press("e")
    completed = page.locator('[data-state="completed"]')
    expect(completed.get_by_role("link", name="one")).to_be_visible()
    expect(page.get_by_role("link", name="two")).to_be_visible()
    page.get_by_role("button", name="Undo").wait_for()
    page.get_by_role("button", name="Undo").dispatch_event("click")
    expect(page.locator('[data-state="ready"]').get_by_role("link", name="one")).to_be_visible()
    expect(page.get_by_role("button", name=", show")).to_have_count(0)
    page.get_by_label("Group by").select_option("phase")
    expect(page.get_by_role("button", name="Schema")).to_be_visible()


def test_the_board_is_rewound_under_the_pointer(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The keys of rewinding show another moment wherever the pointer is."""
    person.runs(app, "task", "add", "one")
    page = open_desk(server).opens("/board")
    page.locator(".card", has_text="Choose the keys").hover()
    page.keyboard.press("[")
    expect(page.get_by_role("link", name="one")).to_have_count(0)
    page.keyboard.press("]")
    expect(page.get_by_role("link", name="one")).to_be_visible()


def test_nothing_moves_under_a_card_that_is_dragged(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What others do meanwhile is shown when the card was dropped."""
    for name in ("one", "two"):
        person.runs(app, "task", "add", name)
    page = open_desk(server).opens("/board")
    page.locator(".card", has_text="two").hover()
    page.mouse.down()
    page.mouse.move(400, 300, steps=4)
    expect(page.locator('[data-state="held"] .reason')).to_be_visible()
    before = columns(page)
    person.runs(app, "claim", "one", "--agent", "calm-lynx")
    expect(page.get_by_role("button", name="1 change, show")).to_be_visible()
    assert columns(page) == before
    page.locator('[data-state="blocked"]').hover()
    page.mouse.up()
    blocked, held = page.locator('[data-state="blocked"]'), page.locator('[data-state="held"]')
    expect(blocked.get_by_role("link", name="two")).to_be_visible()
    expect(held.get_by_role("link", name="one")).to_be_visible()


def test_what_the_board_does_not_show_is_said(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Phases, initiatives and tasks beyond its bounds, and completed tasks, which it leaves out."""

    def fill(uow: UnitOfWork) -> None:
        goals = uow.initiatives.add_all([Initiative(name=f"goal {n}") for n in range(22)])
        phases = uow.phases.add_all(
            [Phase(name=f"step {n}", initiative_id=goals[0].id) for n in range(53)]
        )
        uow.tasks.add_all([Task(name=f"loose {n}") for n in range(1_020)])
        uow.tasks.add_all(
            [Task(name=f"old {n}", phase_id=phases[0].id, status="completed") for n in range(40)]
        )

    person.at(app).run(Area.WORK, fill)
    server = Serving(person, app)
    desk = open_desk(server)
    page = desk.opens("/board")
    hidden = page.get_by_text("Not on the board:")
    expect(hidden).to_have_text(
        "Not on the board: 3 more phases of goal 0; 2 more initiatives: name one with"
        " --initiative; 20 more tasks without a phase, not shown."
    )
    done = page.locator('[data-state="completed"]')
    expect(done.get_by_role("button", name="more")).to_have_count(0)
    expect(done).to_contain_text("more: herdbook task list --status completed")
    assert violations(page) == []
    page = desk.opens("/board?by=agent")
    expect(page.locator(".group")).to_contain_text("Nobody holds it")
    expect(page.locator(".group")).to_contain_text("of 1,060")
    for count in ("1,032", "857"):
        page.get_by_role("button", name=f"and {count} more").click()
    foot = page.locator(".more")
    expect(foot).to_contain_text("37 of them completed: herdbook task list --status completed")
    expect(foot.get_by_role("button")).to_have_count(0)
    assert server.ends() == (0, "")
