"""Reviews in a real browser: the diff of a real worktree, comments, and how they reach an agent."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NARROW, READY, WIDE, OpenDesk
from tests.browser.test_dashboard import violations
from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import desk as mcp_desk
from tests.e2e.mcp_desk import told
from tests.e2e.serve_process import Serving

BEFORE = "".join(f"line {n}\n" for n in range(1, 41))
AFTER = BEFORE.replace("line 5\n", "line five\nline five and a half\n").replace("line 30\n", "")
MINUS, DASH = "\u2212", "\u2013"
HOSTILE = "<img src=x onerror=alert(1)>"
RTL = "\u202egnp.exe"


@pytest.fixture
def work(person: Person, app: Path) -> Path:
    """A phase that brisk-otter has done in a worktree of its own; the worktree."""
    (app / "src").mkdir()
    (app / "src" / "lines.txt").write_text(BEFORE)
    (app / "old.txt").write_text("one\ntwo\nthree\nfour\n")
    person.git(app, "add", "--all")
    person.git(app, "commit", "--quiet", "--message=begin")
    (app / "plan.md").write_text("# Ship it\n\n## Schema\n- [ ] Count\n\n## Screens\n- [ ] Draw\n")
    person.runs(app, "import", "plan", "plan.md")
    person.runs(app, "phase", "approve", "Schema", "Screens")
    tree = Path(person.asks(app, "worktree", "add", "otter")["path"])
    person.registers(tree, "brisk-otter")
    person.runs(tree, "claim", "Count", "--agent", "brisk-otter")
    (tree / "src" / "lines.txt").write_text(AFTER)
    (tree / "src" / "new.py").write_text("def add(a, b):\n    return a + b\n")
    person.git(tree, "mv", "old.txt", "renamed.txt")
    (tree / "data.bin").write_bytes(b"\0\1\2")
    commit(person, tree, "count")
    person.runs(tree, "done", "--agent", "brisk-otter")
    return tree


def commit(person: Person, tree: Path, subject: str) -> None:
    person.git(tree, "add", "--all")
    person.git(tree, "commit", "--quiet", f"--message={subject}")


@pytest.fixture
def serving(person: Person, app: Path, work: Path) -> Iterator[Serving]:
    """A server for the repository of that phase."""
    assert work.is_dir()
    running = Serving(person, app)
    yield running
    assert running.ends() == (0, "")


def opens(open_desk: OpenDesk, server: Serving, query: str = "", **options: Any) -> Page:
    """The review of the phase."""
    (phase,) = [each for each in server.calls("review.queue") if each["name"] == "Schema"]
    return open_desk(server, **options).opens(f"/review/{phase['id']}{query}")


def files(page: Page) -> Locator:
    return page.locator(".file")


def choose(page: Page, name: str) -> None:
    files(page).filter(has_text=name).get_by_role("button").click()
    expect(page.locator(".file-head h2")).to_contain_text(name)


def number(page: Page, line: int) -> Locator:
    """The number of a line of the new text."""
    return page.locator(".line .no:nth-child(2)", has_text=re.compile(f"^{line}$"))


def test_the_diff_is_that_of_the_worktree(serving: Serving, open_desk: OpenDesk) -> None:
    """Reached from the queue of Now and from the list; with every file and its true numbers."""
    desk = open_desk(serving)
    page = desk.opens("/")
    page.get_by_role("link", name="look at the diff").click()
    expect(page.get_by_role("heading", name="Schema", level=1)).to_be_visible()
    expect(page.get_by_text(f"4 files, +4 {MINUS}2")).to_be_visible()
    assert [" ".join(each.split()) for each in files(page).all_inner_texts()] == [
        "A data.bin binary",
        f"R renamed.txt +0 {MINUS}0",
        f"M lines.txt src/ +2 {MINUS}2",
        f"A new.py src/ +2 {MINUS}0",
    ]
    choose(page, "lines.txt")
    assert page.locator(".line.added code").all_inner_texts() == [
        "line five",
        "line five and a half",
    ]
    assert page.locator(".line.removed code").all_inner_texts() == ["line 5", "line 30"]
    choose(page, "data.bin")
    expect(page.get_by_text("A binary file: nothing before, 3 bytes now.")).to_be_visible()
    choose(page, "renamed.txt")
    expect(page.get_by_text("Renamed from old.txt; its contents are the same.")).to_be_visible()
    page.get_by_role("link", name="All reviews").click()
    expect(page.get_by_role("link", name="Schema")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Schema", level=1)).to_be_visible()


def test_a_task_leads_to_its_diff(serving: Serving, open_desk: OpenDesk) -> None:
    (task,) = [each for each in serving.calls("task.list") if each["name"] == "Count"]
    page = open_desk(serving).opens(f"/task/{task['id']}")
    page.get_by_role("link", name="Look at the diff").click()
    expect(page.get_by_role("heading", name="Count", level=1)).to_be_visible()
    expect(page.get_by_text(f"4 files, +4 {MINUS}2")).to_be_visible()


def test_the_head_of_a_file_is_seen_whole(serving: Serving, open_desk: OpenDesk) -> None:
    """Its name and its buttons, from their upper to their lower edge."""
    page = opens(open_desk, serving)
    choose(page, "lines.txt")
    head = page.locator(".diff .file-head")
    expect(head.get_by_role("heading", name="src/lines.txt")).to_be_visible()
    expect(head.get_by_role("button")).to_have_text(["Unified", "Split", "Whole file", "Viewed"])
    cut = """buttons => buttons.filter(each => {
        const { left, top, bottom } = each.getBoundingClientRect();
        return [top + 2, bottom - 2].some(y => document.elementFromPoint(left + 8, y) !== each);
    }).map(each => each.textContent)"""
    assert head.get_by_role("button").evaluate_all(cut) == []


def test_the_view_and_the_file_are_in_the_address(serving: Serving, open_desk: OpenDesk) -> None:
    """Split shows what was removed beside what came in its place, and a reload the same."""
    page = opens(open_desk, serving)
    choose(page, "lines.txt")
    page.get_by_role("button", name="Split").click()
    pair = page.locator(".pair", has_text="line five").first
    assert pair.locator(".half.removed code").inner_text() == "line 5"
    assert pair.locator(".half.added code").inner_text() == "line five"
    assert "view=split" in page.url
    assert "file=src%2Flines.txt" in page.url
    page.reload()
    page.wait_for_selector(READY)
    expect(page.locator(".pair", has_text="line five").first).to_be_visible()
    page.get_by_role("button", name="Whole file").click()
    expect(page.locator(".pair", has_text="line 15").first).to_be_visible()
    page.keyboard.press("s")
    expect(page.locator(".line", has_text="line 15").first).to_be_visible()
    assert "lines=all" in page.url
    assert "view=split" not in page.url


def test_comments_by_mouse_reach_the_agent_as_one_batch(
    serving: Serving, person: Person, work: Path, open_desk: OpenDesk
) -> None:
    """A range by dragging, an unchanged line by a click; with the text of their lines."""
    page = opens(open_desk, serving)
    choose(page, "lines.txt")
    number(page, 5).hover()
    page.mouse.down()
    number(page, 6).hover()
    page.mouse.up()
    expect(page.get_by_label(f"Comment on lines 5{DASH}6 of src/lines.txt")).to_be_focused()
    page.keyboard.type("say it in numbers")
    page.keyboard.press("Control+Enter")
    number(page, 8).click()
    page.get_by_label("Comment on line 8 of src/lines.txt").fill("and here?")
    page.get_by_role("button", name="Add to review").click()
    expect(page.locator(".draft")).to_have_count(2)
    assert person.asks(work, "review", "list") == []
    page.reload()
    page.wait_for_selector(READY)
    expect(page.locator(".draft")).to_have_count(2)
    page.get_by_role("button", name="Send 2 comments").click()
    expect(page.locator(".thread[data-comment]")).to_have_count(2)
    expect(
        page.get_by_text(re.compile("sent to brisk-otter .* ago, not marked as read")).first
    ).to_be_visible()
    (message,) = person.asks(work, "message", "inbox", "--agent", "brisk-otter")
    assert "src/lines.txt:5: say it in numbers" in message["content"]
    phase = person.asks(work, "review", "list")[0]["phase_id"]
    with mcp_desk(person, work) as sat:
        threads = json.loads(told(sat.tries("review", phase=phase)))["threads"]
    first = threads[0]["first"]
    assert (first["line_number"], first["last_line"], first["body"]) == (5, 6, "say it in numbers")
    assert first["line_text"] == "line five\nline five and a half"
    assert threads[1]["first"]["line_text"] == "line 7"
    person.runs(work, "message", "read", message["id"], HERDBOOK_AGENT="brisk-otter")
    expect(page.get_by_text(re.compile("sent to brisk-otter .* ago, read")).first).to_be_visible()


def test_what_was_sent_is_taken_back_as_a_whole(
    serving: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """The comment and the message about it."""
    page = opens(open_desk, serving, "?file=src%2Fnew.py")
    number(page, 1).click()
    page.locator("#composer-text").fill("never mind")
    page.get_by_role("button", name="Send now").click()
    expect(page.locator(".thread[data-comment]")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".thread[data-comment]")).to_have_count(0)
    assert person.asks(app, "review", "list") == []
    assert person.asks(app, "message", "list") == []


def test_a_comment_is_made_answered_and_resolved_by_keys_alone(
    serving: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """And a file is marked as viewed, and the next review opened."""
    page = opens(open_desk, serving, "?file=src%2Fnew.py")
    page.keyboard.press("j")
    page.keyboard.press("J")
    page.keyboard.press("c")
    expect(page.get_by_label(f"Comment on lines 1{DASH}2 of src/new.py")).to_be_focused()
    page.keyboard.type("add types")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".draft")).to_have_count(1)
    page.keyboard.press("S")
    expect(page.locator(".thread[data-comment]")).to_have_count(1)
    (comment,) = person.asks(app, "review", "list")
    assert (comment["line_number"], comment["last_line"], comment["author"]) == (1, 2, "you")
    person.runs(app, "review", "reply", comment["id"], "done so", "--author", "brisk-otter")
    page.get_by_role("button", name="1 new comment: show").click()
    expect(page.get_by_text("done so")).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.press("e")
    expect(page.get_by_text("● resolved")).to_be_visible()
    assert person.asks(app, "review", "show", comment["id"])["resolved"] is True
    page.keyboard.press("e")
    expect(page.get_by_text("● resolved")).to_have_count(0)
    page.keyboard.press("v")
    expect(page.get_by_text("1 of 4 viewed")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("viewed, and the next file")


def test_comments_of_others_wait_to_be_shown(
    serving: Serving, person: Person, app: Path, work: Path, open_desk: OpenDesk
) -> None:
    """Nothing moves under the reader; newer commits too, and then comments are at their lines."""
    page = opens(open_desk, serving, "?file=src%2Flines.txt")
    phase = page.url.split("/review/")[1].split("?")[0]
    box = number(page, 8).bounding_box()
    place = ("--phase", phase, "--at", "src/lines.txt:5", "--author", "calm-lynx")
    for text in ("first", "second"):
        person.runs(app, "review", "add", text, *place)
    expect(page.get_by_role("button", name="2 new comments: show")).to_be_visible()
    expect(page.locator(".thread")).to_have_count(0)
    assert box is not None
    moved = number(page, 8).bounding_box()
    assert moved is not None
    assert moved["x"] == box["x"]
    page.get_by_role("button", name="2 new comments: show").click()
    expect(page.locator(".thread")).to_have_count(2)
    number(page, 8).click()
    page.get_by_label("Comment on line 8 of src/lines.txt").fill("keep this")
    (work / "src" / "lines.txt").write_text(f"a new first line\n{AFTER}")
    commit(person, work, "more")
    person.runs(app, "task", "add", "anything that changes")
    expect(page.get_by_role("button", name="newer commits: show")).to_be_visible()
    page.get_by_role("button", name="Send now").click()
    kept = page.locator(".thread[data-comment]", has_text="keep this")
    expect(kept).to_contain_text("line 9")
    expect(kept).to_contain_text("its lines have moved")


def test_a_review_ends_by_its_operations_and_refusals_are_said_in_place(
    serving: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Sent back, and completed; a comment on what is gone is refused with the server's sentence."""
    page = opens(open_desk, serving)
    page.get_by_role("button", name="Back to work").click()
    expect(page.get_by_text("phase · Ship it · in progress")).to_be_visible()
    (phase,) = [each for each in person.asks(app, "phase", "list") if each["name"] == "Schema"]
    assert phase["status"] == "in_progress"
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Complete")).to_be_visible()
    page.route("**/rpc*", lambda route: refuse(route, "phase.set"))
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_role("alert")).to_have_text("phase: not today. Nothing was written")
    page.unroute("**/rpc*")
    page.get_by_role("button", name="Complete").click()
    expect(page.get_by_text("phase · Ship it · completed")).to_be_visible()
    assert person.asks(app, "phase", "show", phase["id"])["status"] == "completed"


def refuse(route: Any, method: str) -> None:
    """Answer one method with a refusal, as the server does."""
    message = json.loads(route.request.post_data)
    if message["method"] != method:
        route.continue_()
        return
    error = {"code": 2001, "message": "phase: not today. Nothing was written"}
    route.fulfill(body=json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))


def test_hostile_names_and_lines_stay_text(
    serving: Serving, person: Person, work: Path, open_desk: OpenDesk
) -> None:
    """Markup, scripts, directions and control characters of files are shown, and run nowhere."""
    names = ["<script>alert(1)</script>", 'quo"te', "new\nline", RTL, os.fsdecode(b"\xff.txt")]
    (work / "evil").mkdir()
    for name in names:
        (work / "evil" / name.replace("/", "\u2215")).write_text(f"{HOSTILE}\nx = 'a{RTL}' # ok\n")
    commit(person, work, "evil")
    page = opens(open_desk, serving)
    page.evaluate("window.alerted = []; window.alert = (text) => window.alerted.push(text); 0")
    shown = " ".join(files(page).all_inner_texts())
    for name in (
        "<script>alert(1)<\u2215script>",
        'quo"te',
        "newU+000Aline",
        "U+202Egnp.exe",
        "\\xff.txt",
    ):
        assert name in shown
    for name in ("script>", "U+202E", "\\xff", "U+000A"):
        choose(page, name)
        expect(page.locator(".line code").first).to_have_text(HOSTILE)
        expect(page.locator(".line code").nth(1)).to_have_text("x = 'aU+202Egnp.exe' # ok")
    number(page, 1).click()
    page.locator("#composer-text").fill(HOSTILE)
    page.get_by_role("button", name="Send now").click()
    expect(page.locator(".comment .prose")).to_have_text(HOSTILE)
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.alerted") == []


def test_a_huge_diff_stays_windowed(
    serving: Serving, person: Person, work: Path, open_desk: OpenDesk
) -> None:
    """Of 12,000 lines and 600 files a few are in the document, and the end can be reached."""
    (work / "huge.txt").write_text("".join(f"{n} {'x' * (n % 300)}\n" for n in range(1, 12_001)))
    (work / "many").mkdir()
    for n in range(600):
        (work / "many" / f"file{n:03}").write_text("x\n")
    commit(person, work, "huge")
    page = opens(open_desk, serving, "?file=huge.txt")
    expect(page.get_by_text(f"605 files, +12,604 {MINUS}2")).to_be_visible()
    expect(number(page, 1)).to_be_visible()
    assert page.locator(".line").count() < 200
    assert page.locator(".file").count() < 100
    box = page.locator('[data-list="diff"]')
    for _ in range(60):
        box.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
        page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        if number(page, 12_000).count():
            break
    expect(number(page, 12_000)).to_be_visible()
    assert page.locator(".line").count() < 200
    number(page, 12_000).click()
    page.get_by_label("Comment on line 12000 of huge.txt").fill("the last one")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".draft")).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_review_is_for_everybody(
    serving: Serving, open_desk: OpenDesk, scheme: str, size: dict[str, int]
) -> None:
    """With threads, a draft and an open composer: axe finds nothing, and nothing is beside."""
    (phase,) = [each for each in serving.calls("review.queue") if each["name"] == "Schema"]
    comments = [{"file": "src/lines.txt", "line": n, "body": "why?\n" * n} for n in (5, 6)]
    serving.calls("review.submit", subject=phase["id"], comments=comments)
    page = opens(open_desk, serving, "?file=src%2Flines.txt", color_scheme=scheme, viewport=size)
    number(page, 8).click()
    page.keyboard.type("a draft")
    page.keyboard.press("Control+Enter")
    number(page, 9).click()
    expect(page.locator(".composer")).to_be_visible()
    assert violations(page) == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_a_comment_that_is_written_is_a_draft_wherever_one_goes(
    serving: Serving, open_desk: OpenDesk
) -> None:
    """More lines, another file, another page; what is cancelled is not kept."""
    page = opens(open_desk, serving, "?file=src%2Flines.txt")
    number(page, 8).click()
    page.get_by_label("Comment on line 8 of src/lines.txt").fill("first")
    expect(page.get_by_role("button", name=re.compile("^Send \\d"))).to_have_count(0)
    page.get_by_role("button", name="Whole file").click()
    expect(page.locator(".draft")).to_contain_text("first")
    number(page, 5).click()
    page.get_by_label("Comment on line 5 of src/lines.txt").fill("second")
    choose(page, "new.py")
    number(page, 1).click()
    page.locator("#composer-text").fill("third")
    page.keyboard.press("Escape")
    expect(page.locator("#composer-text")).to_have_count(0)
    number(page, 2).click()
    page.locator("#composer-text").fill("fourth")
    page.get_by_role("link", name="Board").first.click()
    page.wait_for_selector("main[data-ready=board]")
    page.go_back()
    expect(page.locator(".draft")).to_contain_text("fourth")
    page.get_by_role("button", name="Send 3 comments").click()
    expect(page.get_by_role("button", name=re.compile("^Send \\d"))).to_have_count(0)
    bodies = [each["body"] for each in serving.calls("review.list")]
    assert sorted(bodies) == ["first", "fourth", "second"]


def test_drafts_of_two_windows_do_not_replace_each_other(
    serving: Serving, open_desk: OpenDesk
) -> None:
    """Each adds its own; what one has sent, the other does not send again."""
    one = opens(open_desk, serving, "?file=src%2Flines.txt")
    two = one.context.new_page()
    two.goto(one.url)
    two.wait_for_selector(READY)
    for page, line in ((one, 8), (two, 9), (one, 7)):
        number(page, line).click()
        page.locator("#composer-text").fill(f"on {line}")
        page.get_by_role("button", name="Add to review").click()
    expect(one.locator(".draft")).to_have_count(3)
    two.get_by_role("button", name=re.compile("^Send ")).click()
    expect(two.locator(".thread[data-comment]")).to_have_count(2)
    one.get_by_role("button", name=re.compile("^Send ")).click()
    expect(one.locator(".thread[data-comment]")).to_have_count(3)
    bodies = [each["body"] for each in serving.calls("review.list")]
    assert sorted(bodies) == ["on 7", "on 8", "on 9"]


def test_a_review_that_was_left_is_held_by_nothing(serving: Serving, open_desk: OpenDesk) -> None:
    """However often one is opened, nothing more listens to the size of the window."""
    page = opens(open_desk, serving)
    path = page.url
    page.evaluate("""() => {
        window.listened = 0;
        const own = EventTarget.prototype.addEventListener;
        EventTarget.prototype.addEventListener = function (kind, ...rest) {
            if (this === window || this instanceof MediaQueryList) window.listened += 1;
            return own.call(this, kind, ...rest);
        };
    }""")
    for _ in range(2):
        page.get_by_role("link", name="Board").first.click()
        page.wait_for_selector("main[data-ready=board]")
        page.go_back()
        page.wait_for_selector("main[data-ready=review]")
    assert page.url == path
    assert page.evaluate("window.listened") == 0
