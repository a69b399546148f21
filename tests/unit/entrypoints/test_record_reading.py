"""`advise` and `recall` as commands: what they take for granted, and what people are shown."""

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Grade
from herdbook.domain.location.areas import Area
from herdbook.domain.record.model import Activity, Commit, Retrospective
from herdbook.domain.record.standing import EntryContext, commit_entry
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.advice import handlers as commands
from herdbook.entrypoints.operations.advice import views as screens
from herdbook.entrypoints.operations.advice.leaderboard import leaderboard as leaderboard_of
from herdbook.entrypoints.operations.serialize import to_data
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MANY = 60
HOSTILE = "a note\x1b[31m\nof two lines"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with one file of Rust, not committed yet."""
    git = shutil.which("git")
    assert git is not None
    made = tmp_path / "app"
    subprocess.run([git, "init", "-q", made], check=True)
    (made / "src").mkdir()
    (made / "src" / "main.rs").write_text("fn main() {}\n")
    subprocess.run([git, "-C", made, "add", "."], check=True)
    return made


@pytest.fixture
def app(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppContext:
    """That repository as Herdbook sees it, with a record of its own."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "USER": "somebody"}
    return AppContext.at(folder, variables, {"record": f"lmdb://{tmp_path / 'record'}"})


def fill(uow: UnitOfWork, project: str, grades: dict[str, Grade], count: int = MANY) -> None:
    """Let each model make graded commits."""
    for model, grade in grades.items():
        for number in range(count):
            at = START + timedelta(minutes=number)
            on = EntryContext(model, at, provider="claude", model=model)
            uow.ledger.add(commit_entry(on))
            key = {"agent": model, "project": project, "commit_hash": f"{number}", "at": at}
            uow.commits.add(Commit(**key, task=f"matter {number}", experience_gained=5))
            uow.retrospectives.add(
                Retrospective(
                    **key,
                    task=f"matter {number}",
                    agent_grade=grade,
                    user_grade=grade,
                    score_before=60,
                    score_after=64,
                    user_note=HOSTILE,
                )
            )


def models(answer: dict[str, Any]) -> list[str]:
    """Give the models in the order they are ranked."""
    return [each["model"] for each in answer["setups"]]


def test_advice_of_an_empty_record_says_so(app: AppContext) -> None:
    """Where there is no record yet, none is made, and the words are plain."""
    answer = to_data(commands.advise(app, goal="all"))
    assert (answer["setups"], answer["verdict"]) == ([], "too_little_data")
    assert screens.advise(answer) == (
        "by all projects\nnot enough data: the record holds no work of any setup yet\n"
        "what would change it: 10 commits each of two setups would make a comparison possible"
    )


def test_advice_without_a_goal_is_for_the_project_one_is_in(app: AppContext) -> None:
    """Where that has enough, others do not count."""
    names = {"fine": Grade.EXCELLENCE, "poor": Grade.BAD}
    app.run(Area.RECORD, fill, "lib", names)
    app.run(Area.RECORD, fill, app.workspace.repository_id, {"good": Grade.GOOD, "bad": Grade.BAD})
    answer = to_data(commands.advise(app, goal=None))
    assert models(answer) == ["good", "bad"]
    assert answer["scope"] == f"project {app.workspace.repository_id}"
    assert sorted(models(to_data(commands.advise(app, goal="all")))) == [
        "bad",
        "fine",
        "good",
        "poor",
    ]


def test_advice_is_told_with_numbers_and_quotes(app: AppContext) -> None:
    """The verdict, a row for each setup, the words on it in one line, and how to read it."""
    app.run(Area.RECORD, fill, "lib", {"fine": Grade.EXCELLENCE, "poor": Grade.BAD})
    answer = to_data(commands.advise(app, goal="all"))
    assert (answer["verdict"], models(answer)) == ("better", ["fine", "poor"])
    assert [each["is_leader"] for each in answer["setups"]] == [True, False]
    assert answer["setups"][0]["bug_rate"]["estimate"] == 0
    lines = screens.advise(answer).splitlines()
    assert lines[0] == (
        "by all projects: claude fine is better than the other 1, by 120 observations"
    )
    titles = [line.partition(":")[0] for line in lines[1:4]]
    assert titles == ["why", "how sure", "what would change it"]
    assert lines[1].endswith(answer["reasons"]["why"])
    assert answer["reasons"]["lead"]["low"] > 0
    (needed,) = answer["reasons"]["needed"]
    assert (needed["provider"], needed["model"], needed["mode"]) == ("claude", "poor", None)
    assert lines[3].startswith(f"what would change it: {needed['commits']} more commits of claude")
    assert lines[6].split()[:5] == ["1*", "claude", "fine", "60", "0"]
    quotes = [line for line in lines if HOSTILE[:6] in line]
    assert quotes == [
        '  for: "a note\\x1b[31m of two lines" (grade 5, lib, 2026-03-01)',
        '  against: "a note\\x1b[31m of two lines" (grade -1, lib, 2026-03-01)',
    ]
    assert lines[-1] == answer["explanation"]


def test_advice_for_a_folder_is_from_its_project(app: AppContext) -> None:
    """A folder or a file of it names the project, whose files tell its language."""
    assert app.workspace.repository_id is not None
    app.run(Area.RECORD, fill, "lib", {"a": Grade.BAD, "b": Grade.EXCELLENCE})
    answer = to_data(commands.advise(app, goal="src"))
    assert models(answer) == ["b", "a"]
    assert [each.partition(":")[0] for each in answer["passed_over"]] == [
        f"project {app.workspace.repository_id}",
        "projects in rust",
    ]
    assert "\nnot by projects in rust: not enough data" in screens.advise(answer)
    ours = {"c": Grade.EXCELLENCE, "d": Grade.BAD}
    app.run(Area.RECORD, fill, app.workspace.repository_id, ours)
    for asked in (".", "src", "src/main.rs"):
        answer = to_data(commands.advise(app, goal=asked))
        assert (models(answer), answer["passed_over"]) == (["c", "d"], [])


def test_advice_for_a_language_counts_this_project_by_its_files(app: AppContext) -> None:
    """Its record need not speak of the language."""
    assert app.workspace.repository_id is not None
    app.run(Area.RECORD, fill, "lib", {"a": Grade.BAD, "b": Grade.EXCELLENCE})
    app.run(Area.RECORD, fill, app.workspace.repository_id, {"c": Grade.EXCELLENCE, "d": Grade.BAD})
    answer = to_data(commands.advise(app, goal="Rust"))
    assert (models(answer), answer["scope"]) == (["c", "d"], "projects in rust")


def test_advice_for_a_folder_outside_any_repository_goes_by_its_files(
    app: AppContext, tmp_path: Path
) -> None:
    """The names of what lies in it tell the language."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "main.zig").touch()
    answer = to_data(commands.advise(app, goal=str(other)))
    assert [each.partition(":")[0] for each in answer["passed_over"]] == [
        f"project {other.resolve()}",
        "projects in zig",
    ]


@pytest.mark.parametrize("asked", ["cobol", "~nobody", "x" * 5_000, "a\0b"])
def test_advice_for_nothing_known_is_refused(app: AppContext, asked: str) -> None:
    """What is neither a folder nor a language is named, with the languages there are."""
    with pytest.raises(InvalidValue, match="is no folder that can be read here.*python") as refusal:
        commands.advise(app, goal=asked)
    assert repr(asked) in str(refusal.value)


def test_prior_art_is_shown_apart_with_its_reasons(app: AppContext) -> None:
    """This project first, each with its score, its terms and its text, in lines of their own."""
    app.run(Area.RECORD, fill, "lib", {"a": Grade.EXCELLENCE}, 1)
    app.run(
        Area.RECORD, fill, app.workspace.repository_id, {"b": Grade.EXCELLENCE, "c": Grade.BAD}, 1
    )
    at = START + timedelta(days=1)
    done = Activity(agent="d", task="Matters", actions="", outcome="", decisions="", at=at)
    app.run(Area.RECORD, lambda uow: uow.activities.add(done))
    answer = to_data(commands.recall(app, text="what matters", project=None, limit=5))
    assert answer["project"] == app.workspace.repository_id
    assert [each["agent"] for each in answer["good"]] == ["b", "a"]
    assert [each["agent"] for each in answer["mistakes"]] == ["c"]
    assert [each["agent"] for each in answer["unjudged"]] == ["d"]
    lines = screens.recall(answer).splitlines()
    assert [line for line in lines if line.endswith(":")] == [
        "went well:",
        "were mistakes:",
        "not judged:",
    ]
    assert lines[2].endswith("matter 0")
    assert lines[3:6] == [
        "       retrospective of b, this project, 2026-03-01, commit 0",
        "       graded excellent by the user, excellent by the agent; shares matter",
        "       a note\\x1b[31m / of two lines",
    ]
    assert lines[-1] == "searched 7 entries of the record"


def test_another_project_can_be_put_first(app: AppContext) -> None:
    """By the name the record knows it by."""
    app.run(Area.RECORD, fill, "lib", {"a": Grade.EXCELLENCE}, 1)
    app.run(Area.RECORD, fill, app.workspace.repository_id, {"b": Grade.EXCELLENCE}, 1)
    answer = to_data(commands.recall(app, text="matter", project="lib", limit=5))
    assert [each["agent"] for each in answer["good"]] == ["a", "b"]


def test_nothing_similar_is_said_in_words(app: AppContext) -> None:
    """With how much was searched."""
    answer = to_data(commands.recall(app, text="matter", project=None, limit=5))
    assert screens.recall(answer) == "nothing resembles it among 0 entries of the record"


def test_setups_are_listed_with_what_their_place_tells(app: AppContext) -> None:
    """The person's grades and the weeks, and what the list can be narrowed to."""
    app.run(Area.RECORD, fill, "lib", {"fine": Grade.EXCELLENCE, "poor": Grade.BAD})
    app.run(Area.RECORD, fill, "site", {"new": Grade.GOOD}, 3)
    asked = {"language": None, "project": None, "weeks": 12}
    answer = to_data(leaderboard_of(app, **asked))
    assert (answer["verdict"], models(answer)) == ("better", ["fine", "poor", "new"])
    assert [each["tells"] for each in answer["setups"]] == [
        "better than the others",
        "behind the first",
        "too little to tell: 3 of 10 commits",
    ]
    assert answer["setups"][0]["grade_mix"] == {"bad": 0, "neutral": 0, "good": 0, "excellent": 60}
    assert all(len(each["weeks"]) == 12 for each in answer["setups"])
    shown = screens.leaderboard(answer)
    assert "0 0 0 60" in shown
    assert "too little to tell: 3 of 10 commits" in shown
    assert shown.endswith("projects (--project): lib (120), site (3)")
    narrow = to_data(leaderboard_of(app, **{**asked, "project": "site"}))
    assert (narrow["scope"], models(narrow)) == ("project site", ["new"])


@pytest.mark.parametrize("wrong", [{"language": "klingon"}, {"weeks": 0}, {"weeks": 53}])
def test_a_list_of_setups_refuses_what_means_nothing(
    app: AppContext, wrong: dict[str, Any]
) -> None:
    """Before the record is opened."""
    with pytest.raises(InvalidValue):
        leaderboard_of(app, **{"language": None, "project": None, "weeks": 12, **wrong})


def test_an_empty_record_has_no_setups(app: AppContext) -> None:
    """And says so in plain words."""
    answer = to_data(leaderboard_of(app, language=None, project=None, weeks=12))
    assert (answer["setups"], answer["projects"], answer["languages"]) == ([], [], [])
    assert screens.leaderboard(answer) == (
        "by all projects: the record holds no work of any setup yet"
    )
