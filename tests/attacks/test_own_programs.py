"""A repository with modules of our names: what we start ourselves in it imports none of them."""

from pathlib import Path

import pytest

from herdbook.entrypoints.client import Client
from herdbook.entrypoints.operations.board.interactive import run_program
from tests.e2e.conftest import Person


@pytest.fixture
def hostile(person: Person, tmp_path: Path) -> Path:
    """A clone that brings modules along, each of which leaves a mark when it is imported."""
    folder = person.repository(tmp_path / "clone")
    mark = tmp_path / "owned"
    for name in ("json.py", "herdbook/__init__.py", "herdbook/entrypoints/__main__.py", "attr.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"open({str(mark)!r}, 'w').close()\n")
    return folder


def test_what_the_board_runs_is_ours(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a key that is pressed in the folder of the clone."""
    monkeypatch.chdir(hostile)
    monkeypatch.setattr("sys.argv", ["herdbook", "board", "--watch"])
    well, said = run_program(["task", "list"])
    assert (well, said) == (True, "there are none")
    assert not (tmp_path / "owned").exists()


def test_the_server_of_the_python_client_is_ours(
    person: Person, hostile: Path, tmp_path: Path
) -> None:
    """It is started in the folder it works for."""
    with Client.spawn(hostile, variables=person.variables) as herd:
        assert herd.call("task.list") == []
    assert not (tmp_path / "owned").exists()
