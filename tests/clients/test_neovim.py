"""Neovim, headless, with the recipe that people paste: editors/neovim/herdbook.lua."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import CHECKOUT, LINES, Reviewed

SCENES = Path(__file__).with_name("neovim.lua")
RECIPE = CHECKOUT / "editors" / "neovim" / "herdbook.lua"
Plays = Callable[[str], dict[str, Any]]


@pytest.fixture
def plays(
    reviewed: Reviewed, tmp_path: Path, program: Callable[[str], str], herdbook: str
) -> Plays:
    """Runs a scene in Neovim in the repository; the facts it found."""

    def play(scene: str) -> dict[str, Any]:
        facts = tmp_path / "facts.json"
        folders = {
            f"XDG_{each}_HOME": str(tmp_path / "neovim" / each.lower())
            for each in ("CONFIG", "DATA", "CACHE")  # its server knows its stores by the state
        }
        told = subprocess.run(
            [program("nvim"), "--headless", "-u", "NONE", "-n", "-c", f"luafile {SCENES}"],
            cwd=reviewed.folder,
            env={
                **reviewed.person.variables,
                **folders,
                "HERDBOOK_PROGRAM": herdbook,
                "HERDBOOK_RECIPE": str(RECIPE),
                "HERDBOOK_SCENE": scene,
                "HERDBOOK_FACTS": str(facts),
                "HERDBOOK_FILE": str(reviewed.file),
                "HERDBOOK_COMMENT": reviewed.comment,
                "HERDBOOK_PROPOSAL": reviewed.proposal,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert told.returncode == 0, told.stderr
        found: dict[str, Any] = json.loads(facts.read_text())
        assert "error" not in found, f"{found.get('error')}\n{told.stderr}"
        seen: dict[str, Any] = found["facts"]
        return seen

    return play


def test_a_comment_stands_at_its_line(plays: Plays, reviewed: Reviewed) -> None:
    """Neovim attaches by itself and shows a review's comment at the line it was made on."""
    facts = plays("attach")
    assert facts["name"] == "herdbook"
    assert facts["root"] == str(reviewed.folder)
    assert facts["message"] == "you: an f-string?"
    assert (facts["column"], facts["severity"], facts["source"]) == (4, 3, "herdbook")


def test_a_comment_keeps_to_its_line_while_the_buffer_is_edited(
    plays: Plays, reviewed: Reviewed
) -> None:
    """A comment moves with its line, says that it was removed, and comes back with it."""
    facts = plays("edit")
    assert facts["removed"].startswith("you: an f-string?\n(")
    assert "removed" in facts["removed"]
    assert facts["back"] == "you: an f-string?"
    head, tail = LINES[1].split("🐄")
    expected = ["import sys", "", LINES[0], f"{head}🐄", f"    and a second line{tail}", *LINES[2:]]
    assert facts["lines"] == reviewed.file.read_text().splitlines() == expected


def test_a_code_action_resolves_a_comment(plays: Plays, reviewed: Reviewed) -> None:
    """The menu of code actions has Resolve, which resolves the comment and takes it off."""
    facts = plays("resolve")
    assert [title.split()[0] for title in facts["titles"]] == ["Resolve", "Reply"]
    assert reviewed.asks("review", "show", reviewed.comment)["resolved"] is True


def test_a_code_action_asks_for_a_reply(plays: Plays, reviewed: Reviewed) -> None:
    """The code action Reply asks for the text in Neovim and adds it to the thread."""
    assert plays("reply")["message"] == "you: an f-string?\nyou: done, see below"
    (thread,) = reviewed.asks("review", "threads", reviewed.phase)
    assert [each["body"] for each in thread["replies"]] == ["done, see below"]


def test_commands_claim_complete_dismiss_and_grade(plays: Plays, reviewed: Reviewed) -> None:
    """Commands do what the command line does, and an error says what is wrong."""
    facts = plays("commands")
    assert facts["claimed"]["result"]["task"]["id"] == reviewed.task
    assert "nobody-knows" in facts["nothing"]["error"]["message"]
    assert facts["completed"]["result"]["summary"] == "sagde hej"
    assert reviewed.asks("task", "show", reviewed.task)["status"] == "completed"
    assert facts["dismissed"]["result"]["id"] == reviewed.proposal
    assert reviewed.asks("proposal", "show", reviewed.proposal)["status"] == "dismissed"
    assert "error" not in facts["graded"]


def said(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what is null: some versions of Neovim do not hold that in a table."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def test_any_method_can_be_called(plays: Plays, reviewed: Reviewed) -> None:
    """A request of Neovim's own making gets what the command line prints, or its error."""
    facts = plays("request")
    listed = said(reviewed.asks("task", "list"))
    assert said(facts["tasks"]["result"]) == said(facts["all"]["result"]) == listed
    assert facts["missing"]["error"]["code"] == 3001


def test_what_another_process_does_is_shown(plays: Plays) -> None:
    """A comment goes, comes and grows in the margin as another process resolves and replies."""
    assert plays("live")["message"] == "you: an f-string?\nbrisk-otter: from elsewhere"


def test_above_a_file_stand_the_agents_that_change_it(plays: Plays, reviewed: Reviewed) -> None:
    """Right behind a save, a code lens above the first line names the agent and its task."""
    facts = plays("lens")
    assert facts["before"] == []
    assert facts["line"] == 0
    assert facts["title"].startswith("brisk-otter: greet in Danish")
    assert reviewed.task[:8] in facts["title"]
