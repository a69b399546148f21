"""No list is cut in silence: whatever takes `--limit` says how much there is besides."""

import re
from pathlib import Path

import pytest

from herdbook.entrypoints.operations.model import parameters_of
from herdbook.entrypoints.operations.registry import OPERATIONS
from tests.e2e.conftest import Person

OTTER = {"HERDBOOK_AGENT": "otter"}
CRUD_LIST = "crud.handlers:list_"
LISTS = {
    "initiative.list": "2 of 3",
    "task.list": "2 of 6",
    "task.list --label db": "2 of 3",
    "task.list --initiative {goal}": "2 of 3",
    "task.ready": "2 of 6",
    "search idea": "2 of 3",
    "log.list": "2 of 3 pieces",
    "journal.list": r"2 of \d\d entries",
    "history": r"\d+ of \d\d changes",
    "message.list": "2 of 6",
    "message.inbox": "2 of 3",
    "message.inbox --agent otter": "2 of 3",
    "message.unanswered": "2 of 6",
    "message.unanswered --to otter": "2 of 3",
    "chat.history {chat}": "2 of 3",
    "activity.list": "2 of 3",
    "activity.list --agent otter": "2 of 3",
    "retro.list": "2 of 3",
    "retro.list --agent otter": "2 of 3",
    "grade": "2 of more than 2",
    "checkpoint.threads": "2 of more than 2",
    "checkpoint.list issue-1": "2 of 6",
    "sql 'select * from tasks'": "there are more rows than these 2",
}
OTHERWISE = {
    "board": "every lane has its total, and says how many more there are",
    "talk.list": "`total` counts them, and the text says how many are shown",
    "lanes": "`total` and `idle` count the lanes, and the text says how many are shown",
    "diff": "`more` counts the rows that are not shown",
    "recall": "ranks, and says among how many it searched",
    "checkpoint.diff": "`more` counts the differences that are not shown",
    "journal.moments": "tells the first and the last position that there are",
    "journal.since": "for programs, which go on by the number of the last entry",
}


def test_every_list_that_can_be_cut_is_tried() -> None:
    """Those of rows are one function, of which two stand here."""
    cut = {
        each.name
        for each in OPERATIONS
        if any(parameter.name == "limit" for parameter in parameters_of(each))
    }
    rows = {each.name for each in OPERATIONS if each.code == CRUD_LIST}
    tried = {each.split()[0] for each in LISTS}
    assert cut == tried | rows | OTHERWISE.keys()
    assert len(tried & rows) > 1


@pytest.fixture
def full(keeper: Person, app: Path) -> Path:
    """A repository with three of everything."""
    keeper.registers(app, "otter")
    keeper.runs(app, "hooks", "install", "git")
    for number in range(3):
        keeper.runs(app, "initiative", "add", f"goal {number}")
        keeper.runs(app, "task", "add", f"idea {number}", "--labels", "db")
        keeper.runs(app, "task", "add", f"step {number}", "--initiative", "goal 0")
        keeper.runs(app, "log", "add", f"line {number}", **OTTER)
        keeper.runs(app, "message", "add", "may I?", "--requires-response", **OTTER)
        keeper.runs(app, "message", "add", "well?", "--requires-response", "--to", "otter")
        keeper.runs(app, "activity", "add", f"deed {number}", **OTTER)
        keeper.works(app, f"issue-{number}")
        judged = keeper.commits(app, "otter", f"judged {number}")
        keeper.runs(app, "grade", "otter", judged, "--self", "good", "--user", "good")
        keeper.commits(app, "otter", f"not judged {number}")
    return app


def test_a_list_that_is_cut_says_how_much_there_is(keeper: Person, full: Path) -> None:
    """For people below the list, for programs beside it; a list that is whole says nothing."""
    goal = keeper.asks(full, "initiative", "list")[0]["id"]
    keeper.runs(full, "phase", "add", "first", "--initiative", "goal 0")
    chat = keeper.asks(full, "chat", "add", "phase", "first")["id"]
    for number in range(3):
        keeper.runs(full, "chat", "post", chat, "user", f"{number}")
    silent = []
    for call, footer in LISTS.items():
        named, *more = call.split(maxsplit=1)
        given = " ".join(more).format(chat=chat, goal=goal)
        typed = [given.strip("'")] if given.startswith("'") else given.split()
        words = (*named.replace("task.ready", "ready").split("."), *typed)
        told = keeper.tries(full, *words, "--limit", "2")
        assert told.returncode == 0, (call, told.stderr)
        if not re.search(footer, told.stdout + told.stderr):
            silent.append((call, told.stdout + told.stderr))
        if named in ("journal.list", "sql", "search"):
            continue  # whose JSON says it, or whose every row is a line
        whole = keeper.tries(full, *words, "--limit", "100")
        assert not re.search(r"\d of \d", whole.stdout + whole.stderr), call
        programs = keeper.tries(full, *words, "--limit", "2", "--json")
        if not re.search(footer, programs.stderr):
            silent.append((f"{call} --json", programs.stderr))
    assert "\n".join(map(str, silent)) == ""
