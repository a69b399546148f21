"""Grades, standings and advice as a person meets them, by the installed program."""

import json
import os
import pty
import re
import shlex
import subprocess
from pathlib import Path

from tests.e2e.conftest import PROGRAM, Person
from tests.e2e.rpc_process import Pipes
from tests.e2e.serve_process import Serving
from tests.unit.entrypoints.terminals import Terminal


def commands_in(shown: str) -> list[list[str]]:
    """The commands that a text offers, as a shell would read them."""
    found = re.findall(r"^  herdbook (.*)$", shown, re.MULTILINE)
    return [shlex.split(each) for each in found]


def test_grade_alone_offers_what_nobody_graded_with_the_command_for_it(
    keeper: Person, app: Path
) -> None:
    """On a pipe nothing is asked; each command that is shown grades its commit when typed."""
    assert "no commit of this repository waits" in keeper.tries(app, "grade").stdout
    keeper.runs(app, "hooks", "install", "git")
    keeper.registers(app, "otter", "odd one")
    keeper.commits(app, "otter", "fix the clock")
    keeper.commits(app, "odd one", "draw\x1b[31m the form")
    own = keeper.asks(app, "grade", "otter", "HEAD~1", "--self", "good", HERDBOOK_AGENT="otter")
    assert own["retrospective"] is None
    shown = keeper.tries(app, "grade")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "2 commits without your grade" in shown.stdout
    assert "fix the clock (graded good by itself)" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert keeper.asks(app, "grade", "--limit", "1")[0]["agent"] == "odd one"
    assert [each["agent"] for each in keeper.asks(app, "grade", "otter")] == ["otter"]
    assert keeper.asks(app, "grade", HERDBOOK_AGENT="otter") == []
    (mine,) = keeper.asks(app, "grade", HERDBOOK_AGENT="odd one")
    assert (mine["missing"], mine["user_grade"]) == ("agent", None)
    assert "--self" in keeper.runs(app, "grade", HERDBOOK_AGENT="odd one")
    for words in commands_in(shown.stdout):
        keeper.runs(app, *words)
    assert keeper.asks(app, "grade") == []
    assert [each["user_grade"] for each in keeper.asks(app, "retro", "list")] == [2]


def test_grade_alone_is_a_list_over_rpc(person: Person, app: Path) -> None:
    """And a grade without its commit is refused there as at the command line."""
    person.runs(app, "hooks", "install", "git")
    person.registers(app, "otter")
    made = person.commits(app, "otter", "fix the clock")
    with Pipes(person, app) as pipes:
        (waiting,) = pipes.call("grade")
        assert (waiting["commit_hash"], waiting["task"]) == (made, "fix the clock")
        assert (waiting["agent_grade"], waiting["missing"]) == (None, "user")
        assert pipes.call("grade", user="good")["code"] == 2001
    for words in (("--user", "good"), ("otter", "--self", "good")):
        told = person.tries(app, "grade", *words)
        assert (told.returncode, told.stdout) == (2, "")
        assert "commit: is needed with a grade; `herdbook grade` lists" in told.stderr
    assert person.tries(app, "grade", "oter").returncode == 3
    outside = person.tries(person.home, "grade")
    assert outside.returncode == 2
    assert "is graded inside its repository, and this folder is in none" in outside.stderr


def test_at_a_terminal_each_commit_is_asked_for(person: Person, app: Path) -> None:
    """An empty answer leaves a commit for later; what is no grade is asked for again."""
    person.runs(app, "hooks", "install", "git")
    person.registers(app, "otter")
    for subject in ("fix the clock", "draw the form"):
        person.commits(app, "otter", subject)
    screen, line = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "grade"],
        cwd=app,
        env={**person.variables, "TERM": "dumb"},
        stdin=line,
        stdout=line,
        stderr=line,
    )
    os.close(line)
    terminal = Terminal(screen, process)
    try:
        terminal.wait_for("draw the form.*empty for none: ")
        terminal.type("\n")
        terminal.wait_for("fix the clock.*empty for none: ")
        terminal.type("fine\n")
        terminal.wait_for("is not one of.*empty for none: ")
        terminal.type("good\n")
        assert terminal.end() == 0
    finally:
        process.kill()
        process.wait()
        os.close(screen)
    assert "1 commit without your grade" in terminal.shown
    (left,) = person.asks(app, "grade")
    assert left["task"] == "draw the form"
    (standing,) = person.asks(app, "standing", "otter")
    assert standing["communication_score"] == 62


def test_a_server_in_a_terminal_asks_nobody(person: Person, app: Path) -> None:
    """Who calls it sits elsewhere, and waits for an answer."""
    person.runs(app, "hooks", "install", "git")
    person.registers(app, "otter")
    made = person.commits(app, "otter", "fix the clock")
    screen, line = pty.openpty()
    server = Serving(person, app, terminal=line)
    os.close(line)
    try:
        (waiting,) = server.calls("grade")
        assert waiting["commit_hash"] == made
        given = server.calls("grade", agent="otter", commit=made, user="good")
        assert given["standing"]["communication_score"] == 62
        assert server.calls("grade") == []
    finally:
        server.process.kill()
        server.process.communicate()
        os.close(screen)


def test_a_standing_says_what_it_means_and_what_would_change_it(keeper: Person, app: Path) -> None:
    """In sentences for one agent, with the numbers in the JSON; a halt names its end."""
    keeper.registers(app, "otter", "heron")
    keeper.runs(app, "grade", "otter", "HEAD", "--self", "good", "--user", "excellent")
    shown = keeper.runs(app, "standing", "otter")
    assert "otter may work; 1 more bug would halt it" in shown
    assert "9,999 more experience points will raise it to 2 skill points" in shown
    assert "communication score 67, +7 since the start; mean grade 3.5 of 1 graded commit" in shown
    (otter,) = keeper.asks(app, "standing", "otter")
    assert (otter["experience_missing"], otter["bugs_until_halt"], otter["graded"]) == (9_999, 1, 1)
    assert otter["mean_grade"]["low"] <= otter["mean_grade"]["estimate"] == 3.5
    halted = "heron is halted: its bugs have cost its last skill point; `herdbook reinstate heron`"
    assert halted in keeper.runs(app, "bug", "heron")
    both = keeper.runs(app, "standing")
    assert halted in both
    assert "SCORE starts at 60" in both
    shown = keeper.runs(app, "retro", "list")
    assert "otter: 2.0 by itself, 5.0 by you, on average of 1; too few to tell" in shown


def test_advice_says_why_how_sure_and_what_would_change_it(keeper: Person, app: Path) -> None:
    """From the first commit on: what is missing for a comparison, by setup and number."""
    keeper.runs(app, "agent", "add", "cody", "--provider", "codex", "--model", "gpt-5")
    keeper.runs(app, "grade", "cody", "HEAD", "--self", "good", "--user", "good")
    told = json.loads(keeper.runs(app, "advise", "--json", "--full"))
    assert [each["provider"] for each in told["setups"]] == ["codex"]
    needed = [(each["model"], each["commits"]) for each in told["reasons"]["needed"]]
    assert needed == [("gpt-5", 9), (None, 10)]
    shown = keeper.runs(app, "advise")
    assert "what would change it: 9 more commits of codex gpt-5" in shown
    assert "a comparison needs 2 setups with 10 commits each; you have 0" in shown
