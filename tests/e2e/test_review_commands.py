"""Reviews as a person and an agent have them: the diff of a worktree, comments, and their end."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import desk, told

BEFORE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
AFTER = "def add(a, b):\n    return a + b + 0\n\n\ndef sub(a, b):\n    return a - b\n\n\nTWO = 2\n"


@pytest.fixture
def work(person: Person, app: Path) -> Path:
    """A phase in review, done by brisk-otter in a worktree of its own; the worktree."""
    (app / "calc.py").write_text(BEFORE)
    (app / "old name.txt").write_text("one\ntwo\nthree\n")
    person.git(app, "add", "--all")
    person.git(app, "commit", "--quiet", "--message=begin")
    (app / "plan.md").write_text("# Ship it\n\n## Schema\n- [ ] Count\n")
    person.runs(app, "import", "plan", "plan.md")
    person.runs(app, "phase", "approve", "Schema")
    tree = Path(person.asks(app, "worktree", "add", "otter")["path"])
    person.registers(tree, "brisk-otter")
    person.runs(tree, "claim", "--agent", "brisk-otter")
    (tree / "calc.py").write_text(AFTER)
    person.git(tree, "mv", "old name.txt", "new name.txt")
    person.git(tree, "add", "--all")
    person.git(tree, "commit", "--quiet", "--message=count")
    return tree


def submit(person: Person, app: Path, *comments: dict[str, Any], **variables: str) -> Any:
    words = ("review", "submit", "Schema", "--comments", json.dumps(comments))
    return person.asks(app, *words, **variables)


def test_the_diff_of_a_phase_is_that_of_its_agent_s_worktree(
    person: Person, app: Path, work: Path
) -> None:
    """Against where it left the default branch, from any folder of the repository."""
    person.git(app, "commit", "--quiet", "--allow-empty", "--message=meanwhile")
    for folder in (app, work):
        answer = person.asks(folder, "review", "diff", "Schema")
        assert answer["source"]["name"] == "otter"
        assert answer["source"]["agents"] == ["brisk-otter"]
        assert answer["total"] == {"files": 2, "added": 4, "removed": 1}
        facts = {each["path"]: (each["change"], each["old_path"]) for each in answer["files"]}
        assert facts == {
            "calc.py": ("modified", None),
            "new name.txt": ("renamed", "old name.txt"),
        }
    lines = [line for hunk in answer["files"][0]["hunks"] for line in hunk["lines"]]
    assert [(line["type"], line["old"], line["new"]) for line in lines][:3] == [
        ("context", 1, 1),
        ("removed", 2, None),
        ("added", None, 2),
    ]
    text = person.runs(app, "review", "diff", "Schema")
    assert "+    return a + b + 0" in text
    assert "old name.txt => new name.txt" in text
    assert "2 files, +4 -1" in text
    stat = person.runs(app, "review", "diff", "Schema", "--stat")
    assert "return a + b" not in stat


def test_work_on_the_only_branch_needs_its_begin_to_be_told(person: Person, app: Path) -> None:
    """There is nothing to compare it with until the phase has a merge base."""
    (app / "plan.md").write_text("# Ship it\nbranch: main\n\n## Schema\n- [ ] Count\n")
    person.runs(app, "import", "plan", "plan.md")
    begin = person.git(app, "rev-parse", "HEAD").strip()
    (app / "calc.py").write_text(BEFORE)
    person.git(app, "add", "calc.py")
    person.git(app, "commit", "--quiet", "--message=count")
    problem = person.asks(app, "review", "diff", "Schema")["problem"]
    assert problem.startswith("there is no other branch to compare main with")
    person.runs(app, "phase", "set", "Schema", "--merge-base", begin)
    answer = person.asks(app, "review", "diff", "Schema")
    assert (answer["problem"], answer["total"]["files"]) == (None, 1)


def test_a_task_and_an_initiative_have_diffs_too(person: Person, app: Path, work: Path) -> None:
    """By their ids or names; that of the initiative is on its branch, if it exists."""
    assert person.asks(app, "review", "diff", "Count", "--stat")["source"]["name"] == "otter"
    person.runs(app, "initiative", "set", "Ship it", "--branch", "herd/ship")
    (initiative,) = person.asks(app, "initiative", "list")
    person.git(app, "branch", initiative["branch"], "main")
    person.git(work, "checkout", "--quiet", initiative["branch"])
    person.git(work, "merge", "--quiet", "otter")
    answer = person.asks(app, "review", "diff", initiative["id"], "--stat")
    assert answer["source"]["name"] == initiative["branch"]
    assert answer["total"]["files"] == 2


def test_what_is_not_committed_is_counted(person: Person, app: Path, work: Path) -> None:
    """And not shown: nobody else can see it."""
    (work / "scratch").write_text("x\n")
    answer = person.asks(app, "review", "diff", "Schema", "--stat")
    assert answer["source"]["uncommitted"] == 1
    assert [each["path"] for each in answer["files"]] == ["calc.py", "new name.txt"]
    shown = person.runs(app, "review", "diff", "Schema")
    assert "not committed in its worktree: 1 file\n" in shown


@pytest.mark.usefixtures("work")
def test_only_files_of_the_diff_can_be_asked_for(person: Person, app: Path) -> None:
    """Neither other files of the repository nor paths out of it."""
    (app / "plan.md").write_text("secret\n")
    for name in ("plan.md", "../../../etc/passwd", "/etc/passwd", "", "calc.py\n", ":(top)calc.py"):
        refused = person.tries(app, "review", "diff", "Schema", "--file", name)
        assert refused.returncode == 2
        assert "not among the files that were changed" in refused.stderr
    refused = person.tries(app, "review", "diff", "Schema", "--source", "main")
    assert refused.returncode == 2
    assert "is not one of the branches of this work: otter" in refused.stderr


def test_without_a_branch_the_answer_says_why_there_is_no_diff(person: Person, app: Path) -> None:
    """The comments can be read all the same."""
    (app / "plan.md").write_text("# Ship it\n\n## Schema\n- [ ] Count\n")
    person.runs(app, "import", "plan", "plan.md")
    answer = person.asks(app, "review", "diff", "Schema")
    assert answer["files"] == []
    assert answer["problem"].startswith("its initiative names no branch, and no agent")
    person.runs(app, "initiative", "set", "Ship it", "--branch", "herd/ship")
    answer = person.asks(app, "review", "diff", "Schema")
    assert "'herd/ship' does not exist here" in answer["problem"]


def test_comments_reach_the_agent_and_come_back_resolved(
    person: Person, app: Path, work: Path
) -> None:
    """As one batch, with the text of the lines, by MCP, the inbox and `prime`."""
    answer = submit(
        person,
        app,
        {"file": "calc.py", "line": 2, "body": "why + 0?"},
        {"file": "calc.py", "line": 5, "last_line": 6, "type": "context", "body": "type these"},
        {"file": "calc.py", "line": 2, "type": "removed", "body": "this was right"},
    )
    assert answer["to"] == "brisk-otter"
    texts = [each["line_text"] for each in answer["comments"]]
    assert texts == [
        "    return a + b + 0",
        "def sub(a, b):\n    return a - b",
        "    return a + b",
    ]
    assert len({each["message_id"] for each in answer["comments"]}) == 1
    assert "why + 0?" in person.runs(work, "message", "inbox", "--agent", "brisk-otter", "--json")
    assert "review comments" in person.runs(work, "prime", HERDBOOK_AGENT="brisk-otter")
    (message,) = person.asks(work, "message", "inbox", "--agent", "brisk-otter")
    with desk(person, work) as sat:
        introduced = sat.tries("introduce")
        assert not introduced.is_error, told(introduced)
        phase = answer["comments"][0]["phase_id"]
        threads = json.loads(told(sat.tries("review", phase=phase, resolved=False)))["threads"]
        bodies = {each["first"]["body"]: each["first"] for each in threads}
        assert bodies.keys() == {"why + 0?", "type these", "this was right"}
        assert threads[-1]["first"]["body"] == "type these"
        assert bodies["why + 0?"]["line_text"] == "    return a + b + 0"
        resolved = sat.tries("resolve", comment=bodies["why + 0?"]["id"])
        assert not resolved.is_error, told(resolved)
    person.runs(work, "message", "read", message["id"], HERDBOOK_AGENT="brisk-otter")
    seen = person.asks(app, "review", "diff", "Schema", "--file", "calc.py")["threads"]
    states = [(each["side"], each["line"], each["first"]["resolved"]) for each in seen]
    assert states == [("new", 2, True), ("old", 2, False), ("new", 5, False)]
    sent = seen[0]["sent"][seen[0]["first"]["id"]]
    assert (sent["to"], sent["status"]) == ("brisk-otter", "read")


def test_a_comment_moves_with_its_lines(person: Person, app: Path, work: Path) -> None:
    """Over commits that came after it; one whose line is gone says so."""
    submit(
        person,
        app,
        {"file": "calc.py", "line": 9, "body": "three"},
        {"file": "calc.py", "line": 2, "body": "why + 0?"},
    )
    lines = AFTER.splitlines(keepends=True)
    (work / "calc.py").write_text("".join(["import os\n", "\n", lines[0], *lines[2:]]))
    person.git(work, "commit", "--quiet", "--all", "--message=answer")
    seen = person.asks(app, "review", "diff", "Schema", "--file", "calc.py")["threads"]
    assert [(each["line"], each["state"]) for each in seen] == [(4, "outdated"), (10, "moved")]


def test_a_comment_on_what_was_seen_is_about_that_commit(
    person: Person, app: Path, work: Path
) -> None:
    """Also if there are newer ones; a commit of another branch is refused."""
    seen = person.asks(app, "review", "diff", "Schema", "--stat")["source"]["head"]
    (work / "calc.py").write_text(f"import os\n{AFTER}")
    person.git(work, "commit", "--quiet", "--all", "--message=more")
    person.registers(work, "calm-lynx")
    answer = submit(
        person,
        app,
        {"file": "calc.py", "line": 2, "commit": seen, "body": "why?"},
        HERDBOOK_AGENT="calm-lynx",
    )
    (comment,) = answer["comments"]
    assert (comment["commit_hash"], comment["author"]) == (seen, "calm-lynx")
    assert comment["line_text"] == "    return a + b + 0"
    (thread,) = person.asks(app, "review", "diff", "Schema", "--file", "calc.py")["threads"]
    assert (thread["line"], thread["state"]) == (3, "moved")
    assert "  |     return a + b + 0\n" in person.runs(app, "review", "threads", "Schema")
    person.git(app, "commit", "--quiet", "--allow-empty", "--message=elsewhere")
    other = person.git(app, "rev-parse", "HEAD").strip()
    for commit in (other, "0" * 40, "HEAD", "--all", 7):
        given = json.dumps([{"file": "calc.py", "line": 2, "commit": commit, "body": "why?"}])
        refused = person.tries(app, "review", "submit", "Schema", "--comments", given)
        assert refused.returncode == 2
    assert len(person.asks(app, "review", "list")) == 1


@pytest.mark.usefixtures("work")
def test_nothing_is_written_if_one_comment_is_wrong(person: Person, app: Path) -> None:
    """A batch is one transaction."""
    good = {"file": "calc.py", "line": 2, "body": "why?"}
    for wrong in (
        {"file": "calc.py", "line": 99, "body": "x"},
        {"file": "plan.md", "line": 1, "body": "x"},
        {"file": "calc.py", "line": 0, "body": "x"},
        {"file": "calc.py", "line": True, "body": "x"},
        {"file": "calc.py", "line": 3, "last_line": 2, "body": "x"},
        {"file": "calc.py", "line": 2, "body": "  "},
        {"file": "calc.py", "line": 2, "type": "odd", "body": "x"},
        {"file": "calc.py", "line": 2, "body": "x", "author": "root"},
        {"reply_to": "rev_0000000000", "body": "x"},
        {"line": 2},
    ):
        words = ("review", "submit", "Schema", "--comments", json.dumps([good, wrong]))
        assert person.tries(app, *words).returncode in {2, 3}
    for comments in ("[]", "{}", '"x"', "7"):
        words = ("review", "submit", "Schema", "--comments", comments)
        assert person.tries(app, *words).returncode == 2
    assert person.asks(app, "review", "list") == []
    assert person.asks(app, "message", "list") == []


def test_the_queue_has_what_was_handed_in(person: Person, app: Path, work: Path) -> None:
    """The phase when its last task is done; completed or sent back, it has left the queue."""
    (before,) = person.asks(app, "review", "queue")
    assert (before["name"], before["is_waiting"]) == ("Schema", False)
    person.runs(work, "done", "--agent", "brisk-otter")
    (entry,) = person.asks(app, "review", "queue")
    assert (entry["name"], entry["is_waiting"], entry["agents"]) == (
        "Schema",
        True,
        ["brisk-otter"],
    )
    assert [each["label"] for each in entry["steps"]] == ["Complete", "Back to work"]
    submit(person, app, {"file": "calc.py", "line": 2, "body": "why?"})
    assert "1 of 1 open" in person.runs(app, "review", "queue")
    person.runs(app, "phase", "set", "Schema", "--status", "completed")
    assert person.asks(app, "review", "queue") == []
    assert person.asks(app, "review", "diff", "Schema", "--stat")["total"]["files"] == 2


def test_names_and_texts_of_any_bytes_are_printed(person: Person, app: Path, work: Path) -> None:
    """Escaped: nothing of them reaches the terminal as it is."""
    name = os.fsdecode(b"\xff\x1b[31m")
    (work / name).write_bytes(b"\x1b[2J \xfe\n")
    person.git(work, "add", "--all")
    person.git(work, "commit", "--quiet", "--message=odd")
    text = person.runs(app, "review", "diff", "Schema")
    assert "\x1b" not in text
    told_name = person.asks(app, "review", "diff", "Schema", "--stat")["files"][-1]["path"]
    assert told_name == "\\xff\x1b[31m"
    (file,) = [
        each
        for each in person.asks(app, "review", "diff", "Schema", "--file", told_name)["files"]
        if each["hunks"]
    ]
    assert file["hunks"][0]["lines"][0]["text"] == "\x1b[2J \\xfe"
    answer = submit(person, app, {"file": told_name, "line": 1, "body": "odd"})
    assert answer["comments"][0]["line_text"] == "\x1b[2J \\xfe"
