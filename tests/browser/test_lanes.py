"""The page of lanes: bars, marks, zoom, many agents and many bars, in a real browser."""

from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, READY, OpenDesk
from tests.browser.herds import PastHerd
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

BARS = ".lane .bar"


def looks(page: Page, name: str) -> list[str]:
    """What the bars of a lane look like, from left to right."""
    lane = page.locator(".lane").filter(has_text=name)
    return [each.replace("bar ", "") for each in lane.locator(".bar").evaluate_all(CLASSES)]


CLASSES = """bars => bars
    .map(each => [each.querySelector("rect").x.baseVal.value, each.getAttribute("class")])
    .sort((one, other) => one[0] - other[0]).map(each => each[1])"""


def test_a_little_session_has_the_right_bars(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """What the command line does shows as it is done: a claim, a question, its answer, the end."""
    page = open_desk(server).opens("/lanes")
    expect(page.locator(".lane.asks")).to_have_count(1)
    assert looks(page, "brisk-otter") == ["held", "asks"]
    person.runs(app, "agent", "answer", "brisk-otter", "yes")
    expect(page.locator(".lane.asks")).to_have_count(0)
    assert looks(page, "brisk-otter") == ["held", "asked", "held"]
    lane = page.locator(".lane").filter(has_text="brisk-otter")
    expect(lane.locator(".mark.asked")).to_have_count(1)
    expect(lane.locator(".mark.answered")).to_have_count(1)
    person.runs(app, "claim", "Write the tables", "--agent", "calm-lynx")
    expect(page.locator(".lane").filter(has_text="calm-lynx").locator(".bar.held")).to_have_count(1)
    person.runs(app, "done", "--agent", "brisk-otter")
    expect(lane.locator(".bar.completed")).to_have_count(2)
    person.runs(app, "task", "fail", "--agent", "calm-lynx")
    expect(page.locator(".bar.failed")).to_have_count(1)
    title = page.locator(".bar.failed title").text_content() or ""
    assert title.startswith("calm-lynx held Write the tables, ")
    assert title.endswith("; failed")


def test_a_commit_is_a_tick(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """On the lane of the agent that the record has it of."""
    person.runs(app, "hooks", "install", "git")
    person.commits(app, "brisk-otter", "Choose the keys")
    person.runs(app, "flush")
    page = open_desk(server).opens("/lanes")
    tick = page.locator(".lane").filter(has_text="brisk-otter").locator(".mark.commit title")
    expect(tick).to_have_count(1)
    assert "Choose the keys" in (tick.text_content() or "")


def test_dragging_and_keys_zoom_and_a_click_opens_the_task(
    server: Serving, open_desk: OpenDesk
) -> None:
    """The address has the window; 0 leads back to now."""
    page = open_desk(server).opens("/lanes")
    drawing = page.locator(".lane svg").first
    box = drawing.bounding_box()
    assert box is not None
    middle = box["y"] + 12
    page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, middle, steps=4)
    expect(page.locator(".brush")).to_be_visible()
    page.mouse.up()
    page.wait_for_url("**/lanes?from=*&to=*")
    expect(page.locator(".brush")).to_have_count(0)
    dragged = page.url
    page.mouse.move(5, 5)
    page.keyboard.press("-")
    page.wait_for_function("before => location.href !== before", arg=dragged)
    wider = page.url
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("before => location.href !== before", arg=wider)
    page.reload()
    page.wait_for_selector(READY)
    assert "from=" in page.url
    page.keyboard.press("0")
    page.wait_for_url("**/lanes")
    page.keyboard.press("j")
    expect(page.locator(".lane.chosen")).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="Choose the keys")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/task/*")
    page.go_back()
    page.wait_for_selector(f"{READY} .bar")
    page.locator(".bar").first.click()
    page.wait_for_url("**/task/*")


def test_forty_agents_are_forty_lanes(person: Person, app: Path, open_desk: OpenDesk) -> None:
    """On a wide and on a narrow screen nothing is beside it; each bar is in its own lane."""
    herd = PastHerd(person, app, 40, timedelta(hours=3))
    herd.work(4, timedelta(minutes=20))
    herd.ask(7, "May I?")
    herd.close()
    server = Serving(person, app)
    for size in ({"width": 1280, "height": 1200}, NARROW):
        page = open_desk_again(open_desk, server, size)
        expect(page.get_by_role("heading", name="Lanes 40 agents")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator(".drawing-box").get_attribute("data-marks") == "svg"
        heights = page.locator(".lane").evaluate_all(
            "lanes => lanes.map(each => each.getBoundingClientRect().height)"
        )
        assert set(heights) == {24}
        bars = page.locator(".bar rect").evaluate_all(
            "bars => bars.map(each => each.getBoundingClientRect().height)"
        )
        assert len(bars) == 4 * len(heights) + page.locator(".lane.asks").count()
        assert set(bars) == {16}
        page.get_by_role("button", name="List").click()
        expect(page.get_by_role("list", name="What happened, newest first")).to_be_visible()
        expect(page.locator(".lanes .row").first).to_contain_text("agent-007")
    assert server.ends() == (0, "")


def open_desk_again(open_desk: OpenDesk, server: Serving, size: dict[str, int]) -> Page:
    """A window of this size, in a browser that has a cookie of the server."""
    if not hasattr(server, "cookies"):
        desk = open_desk(server, viewport=size)
        page = desk.opens("/lanes")
        vars(server)["cookies"] = desk.context.cookies()
        return page
    desk = open_desk(server, viewport=size)
    desk.context.add_cookies(vars(server)["cookies"])
    page = desk.context.new_page()
    page.goto(f"{server.url.rstrip('/')}/lanes")
    page.wait_for_selector(READY)
    return page


def test_more_than_two_thousand_bars_are_drawn_on_a_canvas(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """In the colours of the page, few of them at a time, and a click still opens the task."""
    herd = PastHerd(person, app, 120, timedelta(hours=7))
    herd.work(21, timedelta(minutes=12))
    herd.close()
    server = Serving(person, app)
    page = open_desk(server, color_scheme="dark").opens("/lanes")
    expect(page.locator(".drawing-box")).to_have_attribute("data-marks", "canvas")
    expect(page.get_by_role("heading", name="Lanes 100 of 120 agents")).to_be_visible()
    page.get_by_role("button", name="20 agents more").click()
    expect(page.get_by_role("heading", name="Lanes 120 agents")).to_be_visible()
    assert 0 < page.locator("canvas").count() <= 60
    assert page.locator(BARS).count() == 0
    colours = page.locator("canvas").nth(3).evaluate(PIXELS)
    assert "69,84,74,255" in colours  # completed, in the dark
    page.locator(".drawing-box").evaluate("box => { box.scrollTop = 100000 }")
    expect(page.get_by_text("agent-110", exact=True)).to_be_visible()
    canvas = page.locator(".lane").filter(has_text="agent-110").locator("canvas")
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + canvas.evaluate(LAST_BAR) - 4, box["y"] + 12)
    page.wait_for_url("**/task/*")
    expect(page.get_by_role("heading", name="task 110 of")).to_be_visible()
    assert server.ends() == (0, "")


LAST_BAR = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 6, canvas.width, 1)
  let x = canvas.width - 1
  while (x > 0 && data[4 * x] !== 69) x--
  return x
}"""
PIXELS = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
  const found = new Set()
  for (let at = 0; at < data.length; at += 4) found.add(data.slice(at, at + 4).join(","))
  return [...found]
}"""


def test_a_scale_leaves_idle_times_narrow_and_can_be_read_backwards(
    server: Serving, open_desk: OpenDesk
) -> None:
    """Each moment is drawn where it is found again, and later ones further right."""
    page = open_desk(server).opens("/lanes")
    found = page.evaluate(
        """async () => {
          const { makeScale, findTicks, GAP } = await import("/static/pages/lanes/scale.js")
          const gaps = [{ since: 100000, until: 5000000 }, { since: 6000000, until: 7000000 }]
          const scale = makeScale({ since: 0, until: 8000000 }, gaps, 1000)
          const moments = [0, 50000, 100000, 3000000, 5500000, 6500000, 7999999]
          return {
            places: moments.map(scale.x),
            again: moments.map(each => scale.moment(scale.x(each))),
            gaps: scale.pieces.filter(each => each.isGap).map(each => each.right - each.left),
            gap: GAP,
            end: scale.x(8000000),
            ticks: findTicks(scale, 84).map(each => each.x),
          }
        }"""
    )
    assert found["places"] == sorted(found["places"])
    assert [round(each, 6) for each in found["gaps"]] == [found["gap"]] * 2
    assert [round(each) for each in found["again"]] == [
        0,
        50_000,
        100_000,
        3_000_000,
        5_500_000,
        6_500_000,
        7_999_999,
    ]
    assert abs(found["end"] - 1000) < 1e-6
    steps = [b - a for a, b in zip(found["ticks"], found["ticks"][1:], strict=False)]
    assert steps
    assert min(steps) >= 84


def test_nobody_at_work_says_the_one_command(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    person.registers(app, "brisk-otter")
    server = Serving(person, app)
    page = open_desk(server).opens("/lanes")
    expect(page.get_by_text("Nobody held anything in the last 8h.")).to_be_visible()
    page.get_by_role("button", name="Idle").click()
    expect(page.get_by_role("link", name="brisk-otter")).to_be_visible()
    assert server.ends() == (0, "")


def test_lanes_say_what_waits_while_the_pointer_is_on_them(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """In the drawing and in the list: nothing moves, and what is new is counted and shown."""
    page = open_desk(server).opens("/lanes")
    lane = page.locator(".lane").filter(has_text="brisk-otter")
    lane.locator("svg").hover()
    before = page.locator(".lane, .bar rect").evaluate_all(PLACES)
    person.runs(app, "claim", "Write the tables", "--agent", "calm-lynx")
    expect(page.get_by_role("button", name="1 new, show")).to_be_visible()
    expect(page.locator(".lane")).to_have_count(1)
    person.runs(app, "agent", "answer", "brisk-otter", "yes")
    expect(page.locator(".lane.asks")).to_have_count(0)
    assert page.locator(".lane, .bar rect").evaluate_all(PLACES) == before
    page.get_by_role("button", name="new, show").click()
    expect(page.locator(".lane")).to_have_count(2)
    page.keyboard.press("v")
    rows = page.locator(".lanes .row")
    rows.first.hover()
    count = rows.count()
    person.runs(app, "done", "Write the tables", "--agent", "calm-lynx")
    expect(rows.filter(has_text="calm-lynx").first).to_contain_text("completed")
    assert rows.count() == count


PLACES = "all => all.map(each => JSON.stringify(each.getBoundingClientRect()))"


def test_lanes_that_stand_still_say_so(server: Serving, open_desk: OpenDesk) -> None:
    """Once the line of now is beyond what is shown; the button leads to now."""
    page = open_desk(server).opens("/lanes")
    page.clock.install()
    page.reload()
    page.wait_for_selector(READY)
    page.locator(".lane svg").first.hover()
    expect(page.locator(".now-line")).to_be_visible()
    page.clock.run_for(120_000)
    expect(page.locator(".now-line")).to_have_count(0)
    page.get_by_role("button", name="paused, show now").dispatch_event("click")
    expect(page.locator(".now-line")).to_be_visible()
    expect(page.get_by_role("button", name="paused")).to_have_count(0)


def test_the_chosen_bar_stays_when_a_lane_comes_before_it(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The keys go on from it, and the page is still drawn."""
    page = open_desk(server).opens("/lanes")
    page.get_by_role("button", name="Idle").click()
    page.keyboard.press("j")
    chosen = page.locator(".lane.chosen")
    expect(chosen).to_contain_text("brisk-otter")
    person.registers(app, "able-ant")
    person.runs(app, "claim", "Write the tables", "--agent", "able-ant")
    expect(page.locator(".lane").first).to_contain_text("able-ant")
    page.keyboard.press("h")
    expect(chosen).to_contain_text("brisk-otter")
    page.keyboard.press("l")
    expect(chosen).to_contain_text("brisk-otter")
    person.runs(app, "done", "Write the tables", "--agent", "able-ant")
    expect(page.locator(".lane").filter(has_text="able-ant").locator(".completed")).to_have_count(1)


def test_scrolled_lanes_are_seen_again_after_the_list(
    person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """They are where they were, and fill a high window."""
    herd = PastHerd(person, app, 90, timedelta(hours=1))
    herd.work(1, timedelta(minutes=20))
    herd.close()
    server = Serving(person, app)
    page = open_desk(server, viewport={"width": 1280, "height": 1600}).opens("/lanes")
    expect(page.get_by_text("agent-057", exact=True)).to_be_in_viewport()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator(".drawing-box").evaluate("box => { box.scrollTop = 1200 }")
    expect(page.get_by_text("agent-060", exact=True)).to_be_in_viewport()
    page.keyboard.press("v")
    expect(page.get_by_role("list", name="What happened, newest first")).to_be_visible()
    page.keyboard.press("v")
    expect(page.get_by_text("agent-060", exact=True)).to_be_in_viewport()
    assert server.ends() == (0, "")
