"""Moving house on the command line: copy, merge, check."""

from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.run import read, run
from tests.e2e.conftest import Person, at_work


def names(person: Person, app: Path, **variables: str) -> list[str]:
    """The names of the tasks that a command run here finds."""
    query = "SELECT name FROM tasks ORDER BY name"
    rows: list[list[str]] = person.asks(app, "sql", query, **variables)["rows"]
    return [name for (name,) in rows]


def test_a_copy_is_a_store_to_work_with(person: Person, app: Path, tmp_path: Path) -> None:
    """On another engine, with the same digest; copied again, nothing is written."""
    at_work(person, app, "otter")
    there = f"duckdb://{tmp_path}/moved/work.duckdb"
    first = person.asks(app, "copy", "work", there)
    (space,) = first["spaces"]
    assert space["written"] > 0
    (again,) = person.asks(app, "copy", "work", there)["spaces"]
    assert (again["written"], again["digest"]) == (0, space["digest"])
    assert names(person, app, HERDBOOK_WORK=there) == names(person, app) == ["the task of otter"]
    assert (
        person.asks(app, "status", HERDBOOK_WORK=there)["spaces"][0]["rows"][0]["agent"] == "otter"
    )
    assert len(person.asks(app, "status", "--all")["spaces"]) == 1


def test_a_target_with_a_history_of_its_own_is_refused(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """With exit code 4, and nothing in it is changed."""
    at_work(person, app, "otter")
    here = person.at(app)
    with open_store(f"lmdb://{tmp_path}/other") as store:
        run(store, here.workspace.space(Area.WORK), lambda uow: uow.tasks.add(Task(name="theirs")))
    told = person.tries(app, "copy", "work", str(tmp_path / "other"))
    assert told.returncode == 4
    assert "`merge` adds what it lacks" in told.stderr
    assert names(person, app, HERDBOOK_WORK=str(tmp_path / "other")) == ["theirs"]


def test_merging_adds_what_is_missing_and_says_what_cannot_come(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Added, kept and failed are counted, and a failure is exit code 1."""
    at_work(person, app, "otter")
    here = person.at(app)
    with open_store(f"lmdb://{tmp_path}/other") as store:
        space = here.workspace.space(Area.WORK)
        run(store, space, lambda uow: uow.tasks.add(Task(name="theirs")))
    answer = person.asks(app, "merge", str(tmp_path / "other"), "work")
    assert (answer["added"], answer["kept"], answer["failed"]) == (1, 0, [])
    answer = person.asks(app, "merge", str(tmp_path / "other"), "work")
    assert (answer["added"], answer["kept"], answer["failed"]) == (0, 1, [])
    with open_store(f"lmdb://{tmp_path}/other") as store:
        run(store, space, lambda uow: uow.agents.add(Agent(name="otter")))
    told = person.tries(app, "merge", str(tmp_path / "other"), "work")
    assert told.returncode == 1
    assert "1 failed" in told.stdout
    assert names(person, app) == ["the task of otter", "theirs"]


def test_nothing_is_made_when_there_is_nothing_to_copy(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """A source that is not there, and a target that is the source."""
    told = person.tries(app, "copy", "work", str(tmp_path / "new"))
    assert told.returncode == 5
    assert "there is no store here" in told.stderr
    assert not (tmp_path / "new").exists()
    at_work(person, app, "otter")
    assert person.tries(app, "copy", "work", "work").returncode == 2
    assert person.tries(app, "copy", "work", "memory://").returncode == 2


def harmed(person: Person, app: Path) -> Any:
    """A store in which a derived row is missing and a task is not what the journal says."""
    at_work(person, app, "otter")
    here = person.at(app)
    with here.open(Area.WORK) as store:
        space = here.workspace.space(Area.WORK)
        (task,) = read(store, space, lambda uow: uow.tasks.page())
        with store.transaction(space, write=True) as session:
            session.delete(store.dictionary.kinds["openings"], [task.id])
            session.commit()
        return task


def test_check_lists_what_is_wrong_and_repair_rebuilds_what_can_be_derived(
    person: Person, app: Path
) -> None:
    """Exit code 1 with a list, 0 when all is well; repair says how much it rebuilt."""
    task = harmed(person, app)
    told = person.tries(app, "check")
    assert told.returncode == 1
    assert task.id in told.stdout
    assert "rebuilt 1 derived rows" in person.runs(app, "check", "--repair")
    assert ": OK" in person.runs(app, "check")


def test_repair_leaves_alone_what_it_cannot_know(person: Person, app: Path) -> None:
    """A row that the journal tells otherwise is listed before and after."""
    at_work(person, app, "otter")
    here = person.at(app)
    with here.open(Area.WORK) as store:
        space = here.workspace.space(Area.WORK)
        with store.transaction(space, write=True) as session:
            (task,) = session.select(find(TASKS))
            session.replace(TASKS, [evolve(task, name="forged")])
            session.commit()
    for words in ([], ["--repair"], []):
        told = person.tries(app, "check", "--area", "work", *words)
        assert told.returncode == 1
        assert task.id in told.stdout
    assert names(person, app) == ["forged"]


@pytest.mark.parametrize("format_", ["table", "csv", "json"])
def test_a_query_is_printed_as_asked(person: Person, app: Path, format_: str) -> None:
    """As a table, CSV or JSON; from standard input too."""
    at_work(person, app, "otter")
    query = "SELECT name, status FROM tasks"
    text = person.runs(app, "sql", query, "--format", format_)
    assert "the task of otter" in text
    assert "in_progress" in text
    assert person.tries(app, "sql", "-", "--format", format_, stdin=query).stdout == text


def test_a_query_only_reads(person: Person, app: Path) -> None:
    """Whatever writes is refused, and so is what is no SQL."""
    at_work(person, app, "otter")
    for query in ("DELETE FROM tasks", "SELECT 1; SELECT 2", "COPY tasks TO '/x'", "SELEC", ""):
        told = person.tries(app, "sql", query)
        assert told.returncode == 2, query
        assert told.stderr.startswith("herdbook: sql: ")
    assert names(person, app) == ["the task of otter"]


def test_the_shell_answers_questions(person: Person, app: Path) -> None:
    """The prompt of a store without SQL of its own reads what is piped into it."""
    at_work(person, app, "otter")
    told = person.tries(app, "shell", stdin="SELECT name FROM tasks;\nSELEC;\nSELECT 41 + 1;\n")
    assert "the task of otter" in told.stdout
    assert "42" in told.stdout
    refused = person.tries(app, "shell", "--write")
    assert refused.returncode == 2
    assert "only reads" in refused.stderr
