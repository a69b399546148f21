"""Shared pages: one file that reads without a server, without scripts, by everybody."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from herdbook.entrypoints.http.app import static_files
from herdbook.entrypoints.operations.share.rows import PAGES
from tests.browser.conftest import MODULES, NARROW, WIDE, OpenDesk
from tests.browser.test_dashboard import HOSTILE
from tests.browser.test_record import FEW, MANY, graded
from tests.browser.test_review import serving, work
from tests.browser.test_rewind import last_of, opens_at, positions, works_on
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

__all__ = ["graded", "serving", "work"]


@pytest.fixture
def reader(chromium: Browser) -> Iterator[Page]:
    """A window of somebody who has nothing but the file and runs no scripts."""
    context = chromium.new_context(java_script_enabled=False, offline=True, viewport=WIDE)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert [each for each in asked if not each.startswith("file://")] == []


def shares(person: Person, app: Path, page: str, *words: str) -> Path:
    """Share a page, and give back the file."""
    key = ["Write the tables"] if page == "task" else []
    person.runs(app, "share", page, *key, "-o", f"{page}.html", "--force", *words)
    return app / f"{page}.html"


def is_clean(page: Page) -> list[str]:
    """The names of what axe finds; it is a script, and the only one that ever runs here."""
    page.evaluate((MODULES / "axe-core" / "axe.min.js").read_text())
    found = page.evaluate("axe.run().then(found => found.violations)")
    return [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in found]


EXPECTED = {
    "now": ("Waiting for a person (1)", "brisk-otter asks", "May I merge?", "Progress (0 of 3"),
    "board": ("held 1", "Choose the keys", "Draw the form", "waits for"),
    "graph": ("3 unfinished tasks", "Choose the keys", "Screens"),
    "task": ("Task: Write the tables", "Waits for", "Changes"),
    "agents": ("2 agents", "calm-lynx", "waiting for input"),
    "lanes": ("brisk-otter", "Choose the keys", "until now"),
    "history": ("of", "added task Draw the form", "assignee brisk-otter"),
    "record": ("Setups", "Agents"),
    "health": ("is not on the PATH", "work: lmdb://app/.git/herdbook/work.lmdb, ", "checks well"),
    "talk": ("0 of 0", "Nobody has said anything yet."),
    "review": ("To review (0)", "Under way"),
}


def test_every_page_reads_without_scripts(
    server: Serving, person: Person, app: Path, reader: Page
) -> None:
    """Its headings, its rows, the repository, the time and the position; nothing is loaded."""
    assert EXPECTED.keys() == set(PAGES)
    last = last_of(server)
    for name, words in EXPECTED.items():
        file = shares(person, app, name)
        text = file.read_text()
        assert "<script" not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in text
        assert str(app) not in text
        assert str(person.home) not in text
        assert str(app.parent) not in text
        assert sys.prefix not in text
        reader.goto(file.as_uri())
        expect(reader.get_by_role("heading", level=1)).to_be_visible()
        for each in words:
            expect(reader.locator("body")).to_contain_text(each)
        expect(reader.get_by_role("banner")).to_contain_text(app.name)
        expect(reader.get_by_role("banner")).to_contain_text(f"after change #{last}")
        expect(reader.locator("header time")).to_have_text(re.compile(r"^\d{4}-\d\d-\d\d .* UTC$"))


def test_the_shared_record_says_how_sure_it_is(graded: Serving, reader: Page) -> None:
    """The merit with its interval, how much was seen, the grades and the trend, as on the page."""
    person, app = graded.person, graded.folder
    answer = person.asks(app, "leaderboard")
    reader.goto(shares(person, app, "record").as_uri())
    best = answer["setups"][0]
    merit = best["merit_interval"]
    row = reader.get_by_role("row").filter(has_text="claude opus")
    expect(row).to_contain_text(
        f"{merit['estimate']:.1f}, between {merit['low']:.1f} and {merit['high']:.1f}"
    )
    expect(row).to_contain_text(f"{MANY} commits, {MANY} graded, 0 bugs")
    expect(row).to_contain_text(f"{MANY} excellent")
    expect(row).to_contain_text(f"{best['trend_tells']} (mean grades by week, ")
    thin = reader.get_by_role("row").filter(has_text="claude haiku")
    expect(thin).to_contain_text(f"too little to tell: {FEW} of 10 commits")
    reasons = [answer["reasons"][name] for name in ("why", "certainty", "change")]
    assert reader.locator("dd").all_inner_texts() == reasons


def test_a_shared_thread_has_what_was_said(server: Serving, reader: Page) -> None:
    """In the list with its state, and by its id with all its lines; hostile texts stay texts."""
    person, app = server.person, server.folder
    words = ("--requires-response", "--agent", "calm-lynx")
    person.runs(app, "message", "add", HOSTILE[0], *words)
    reader.goto(shares(person, app, "talk").as_uri())
    row = reader.get_by_role("row").filter(has_text="calm-lynx")
    expect(row).to_contain_text("needs your answer")
    expect(row).to_contain_text(HOSTILE[0])
    (entry,) = person.asks(app, "talk", "list")["entries"]
    person.runs(app, "share", "talk", entry["id"], "-o", "one.html")
    reader.goto((app / "one.html").as_uri())
    expect(reader.get_by_role("heading", level=1)).to_have_text("Thread with calm-lynx")
    expect(reader.get_by_role("listitem")).to_contain_text(HOSTILE[0])


def test_a_shared_review_has_its_diff_and_its_comments(
    serving: Serving, work: Path, chromium: Browser
) -> None:
    """In the queue, and by its name with files, lines and what was said of them."""
    person, app = serving.person, serving.folder
    (found,) = [each for each in serving.calls("review.queue") if each["name"] == "Schema"]
    person.runs(app, "review", "add", "why?", "--phase", found["id"], "--at", "src/lines.txt:5")
    context = chromium.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(shares(person, app, "review").as_uri())
    expect(page.get_by_role("row").filter(has_text="Schema")).to_contain_text("1 of 1 open")
    person.runs(app, "share", "review", "Schema", "-o", "one.html")
    assert str(work) not in (app / "one.html").read_text()
    page.goto((app / "one.html").as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text("Review: Schema")
    part = page.locator("section").filter(has_text="src/lines.txt (")
    expect(part.locator("ins").first).to_have_text("    5 + line five\n")
    expect(part.locator("del").first).to_have_text("    5 - line 5\n")
    expect(part.get_by_role("listitem")).to_contain_text("line 5, open")
    expect(part.get_by_role("listitem")).to_contain_text("why?")
    assert is_clean(page) == []
    context.close()
    told = person.tries(app, "share", "review", "Schema", "--at", "1", "-o", "never.html")
    assert "not known of then" in told.stderr


def test_the_shared_progress_has_its_chances_and_its_picture(server: Serving, reader: Page) -> None:
    """Two moments, the pace, a drawing with its words, and a bar for each phase."""
    person, app = server.person, server.folder
    for name in (f"step {number}" for number in range(9)):
        person.runs(app, "task", "add", name)
        person.runs(app, "task", "move", name, "completed")
    reader.goto(shares(person, app, "now").as_uri())
    part = reader.locator("section").filter(has_text="Progress (9 of 12 done)")
    expect(part).to_contain_text(re.compile(r"done by .* \(50%\) or .* \(90%\)"))
    expect(part).to_contain_text("Completed: 9 in the last hour")
    expect(part.get_by_role("img", name=re.compile("to 9 of 12 tasks done"))).to_be_visible()
    expect(part.get_by_role("progressbar", name="Schema: 0 of 2 done")).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_shared_page_is_for_everybody(
    server: Serving, chromium: Browser, scheme: str, size: dict[str, int]
) -> None:
    """No violation that axe knows, and nothing beside the screen."""
    person, app = server.person, server.folder
    # The policy of the file forbids every script; axe is one.
    context = chromium.new_context(color_scheme=scheme, viewport=size, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    for name in PAGES:
        page.goto(shares(person, app, name).as_uri())
        assert (name, is_clean(page)) == (name, [])
        beside = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert (name, beside) == (name, False)
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dark == ("rgb(17, 19, 24)" if scheme == "dark" else "rgb(251, 251, 252)")
    context.close()


def test_hostile_texts_stay_texts(
    server: Serving, person: Person, app: Path, chromium: Browser
) -> None:
    """In every page, also where scripts could run."""
    names = (*HOSTILE, '" onload="alert(1)', "</style></title><script>alert(1)</script>", "a\0b")
    for each in names:
        server.calls("task.add", name=each.replace("\0", ""), description=each.replace("\0", ""))
    context = chromium.new_context()
    page = context.new_page()
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    for name in ("board", "graph", "history", "now"):
        page.goto(shares(person, app, name).as_uri())
        assert (
            page.evaluate("document.querySelectorAll('script, img, [onload], [onerror]').length")
            == 0
        )
        if name in ("board", "graph"):
            shown = page.locator("main").inner_text()
            assert "<img src=x onerror=alert(1)>" in shown
            assert "</script><script>alert(1)</script>" in shown
            assert "\u202e" not in shown
    assert said == []
    context.close()


def test_a_shared_page_can_be_of_an_earlier_moment(
    server: Serving, person: Person, app: Path, reader: Page
) -> None:
    """The board of then, with the time of then; what was not known then is said or refused."""
    seq = positions(server)[-1]
    works_on(person, app)
    reader.goto(shares(person, app, "board", "--at", str(seq)).as_uri())
    expect(reader.get_by_role("banner")).to_contain_text("as it was")
    expect(reader.get_by_role("banner")).to_contain_text(f"after change #{seq}")
    expect(reader.locator("main")).to_contain_text("brisk-otter waits for you, lease not known")
    expect(reader.locator("main")).not_to_contain_text("Write all tables")
    reader.goto(shares(person, app, "agents", "--at", str(seq)).as_uri())
    expect(reader.locator("main")).to_contain_text("not known of then")
    told = person.tries(app, "share", "record", "--at", str(seq), "-o", "never.html")
    assert told.returncode == 2
    assert "not known of then" in told.stderr
    assert not (app / "never.html").exists()


def test_the_palette_says_the_command_for_what_is_open(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """With the id of the task, the thread or the review that the page shows."""
    (phase, *_) = person.asks(app, "phase", "list")
    desk = open_desk(server)
    for path, words in (("/board", "board"), (f"/review/{phase['id']}", f"review {phase['id']}")):
        page = desk.opens(path)
        page.keyboard.press("Control+k")
        page.get_by_placeholder("Find a command").fill("share")
        page.get_by_role("option", name="share").first.click()
        name = words.partition(" ")[0]
        expect(page.locator("pre.answer")).to_have_text(f"herdbook share {words} -o {name}.html")


def test_nothing_is_written_but_what_was_asked_for(person: Person, app: Path) -> None:
    """A file that is there stays, unless that is said; so does what a link leads to."""
    person.runs(app, "task", "add", "one")
    kept = app / "kept.html"
    kept.write_text("mine")
    (app / "link.html").symlink_to(app / "nowhere.html")
    for name in ("kept.html", "link.html"):
        for _ in range(2):
            told = person.tries(app, "share", "board", "-o", name)
            assert told.returncode == 2
            assert "is there already; --force replaces it" in told.stderr
    assert kept.read_text() == "mine"
    assert not (app / "nowhere.html").exists()
    answer = person.asks(app, "share", "board", "-o", "kept.html", "--force")
    assert answer["bytes"] == kept.stat().st_size > 1000
    person.runs(app, "share", "board", "-o", "link.html", "--force")
    assert not (app / "link.html").is_symlink()
    assert not (app / "nowhere.html").exists()
    for words in (("task",), ("board", "one"), ("nothing",)):
        assert person.tries(app, "share", *words, "-o", "x.html").returncode == 2
    assert person.tries(app, "share", "task", "no such task", "-o", "x.html").returncode != 0
    assert person.tries(app, "share", "board", "-o", "no/such/folder.html").returncode != 0
    assert sorted(each.name for each in app.glob("*.html")) == ["kept.html", "link.html"]
    assert not [each for each in app.iterdir() if each.name.startswith(".kept")]


def test_the_palette_says_the_command(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Of the page and the moment that are shown; the command does it."""
    seq = positions(server)[-1]
    page = open_desk(server).opens("/board")
    opens_at(page, server, "/board", seq)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find a command").fill("share")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="herdbook share")).to_have_text(
        f"herdbook share board --at {seq} -o board.html"
    )
    person.runs(app, *f"share board --at {seq} -o board.html".split())
    assert (app / "board.html").exists()


def test_the_pages_that_are_offered_can_be_shared() -> None:
    """The table of pages says the same as the command."""
    table = static_files()["/static/page_table.js"].content.decode()
    offered = re.search(r"SHARED = new Set\(\[(.*)\]\)", table)
    assert offered
    assert re.findall(r'"(\w+)"', offered[1]) == list(PAGES)
