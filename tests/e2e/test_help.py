"""Help of a screen: what `herdbook` alone, `--help` and `help COMMAND` say."""

import json
from pathlib import Path

import pytest

from herdbook.entrypoints.operations.model import option_name, parameters_of
from herdbook.entrypoints.operations.registry import OPERATIONS
from tests.e2e.conftest import Person


def test_the_help_is_one_screen_with_the_daily_commands_first(
    person: Person, tmp_path: Path
) -> None:
    """At most 45 lines of at most 100 columns; every first word of a command is on it."""
    text = person.runs(tmp_path)
    assert person.runs(tmp_path, "--help") == text
    lines = text.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    for word in ("board", "status", "ready", "claim", "done", "task add", "undo", "search"):
        assert any(line.startswith(f"  {word} ") for line in lines[:20]), word
    words = text.replace(",", " ").split()
    assert {each.words[0] for each in OPERATIONS} <= set(words)


def test_every_command_is_listed_on_request(person: Person, tmp_path: Path) -> None:
    """With `--help --all` and `help --all`; those of a group by its name."""
    text = person.runs(tmp_path, "--help", "--all")
    assert person.runs(tmp_path, "help", "--all") == text
    assert all(" ".join(each.words) in text for each in OPERATIONS)
    group = person.runs(tmp_path, "help", "worktree")
    assert person.runs(tmp_path, "worktree") == group
    assert "worktree add" in group
    assert "status" not in group


@pytest.mark.parametrize("words", [["task", "add"], ["claim"], ["task", "claim"], ["epic", "add"]])
def test_help_of_a_command_is_its_own(person: Person, tmp_path: Path, words: list[str]) -> None:
    """The same with `help` before it and `--help` after it."""
    text = person.runs(tmp_path, "help", *words)
    assert text == person.runs(tmp_path, *words, "--help")
    assert "example: herdbook" in text


def test_help_of_what_does_not_exist_is_a_hint(person: Person, tmp_path: Path) -> None:
    """As for the command itself."""
    for words in (["help", "ls"], ["ls", "--help"]):
        told = person.tries(tmp_path, *words)
        assert told.returncode == 2
        assert "did you mean `herdbook task list`?" in told.stderr


def test_the_help_of_every_option_says_something() -> None:
    """More than its own name; and articles fit their nouns."""
    for operation in OPERATIONS:
        for parameter in parameters_of(operation):
            bare = parameter.help.partition(";")[0].partition(",")[0].strip()
            own = {parameter.name.replace("_", " "), option_name(parameter).replace("-", " ")}
            assert bare not in own, (operation.name, parameter.name)
            assert " a initiative" not in parameter.help
            assert " a agent" not in parameter.help


@pytest.mark.parametrize(
    "words", [["task", "add"], ["task", "set", "x", "--priority", "foo"], ["where", "--nonsense"]]
)
def test_a_wrong_command_line_is_json_for_programs(
    person: Person, tmp_path: Path, words: list[str]
) -> None:
    """One object on standard error; one sentence for people."""
    told = person.tries(tmp_path, *words, "--json")
    assert told.returncode == 2
    assert json.loads(told.stderr)["error"]["type"] == "InvalidValue"
    told = person.tries(tmp_path, *words)
    assert told.returncode == 2
    assert len(told.stderr.splitlines()) == 1
