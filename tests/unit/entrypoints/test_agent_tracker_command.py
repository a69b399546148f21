"""`import agent-tracker` on real folders: the file, its word list and the projects it names."""

import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters.agent_tracker import locate
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints import tracker_automerge
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.record.import_agent_tracker import _projects, read
from herdbook.ports.world.agent_tracker import TrackedKind, TrackerContents, TrackerRecord
from herdbook.services.record import grading
from tests.unit.adapters.git_repositories import ORIGIN, git, settle

FIXTURES = Path(__file__).parents[2] / "fixtures" / "agent-tracker"


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AppContext:
    settle(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return AppContext.at(tmp_path, dict(os.environ))


def _ask(app: AppContext) -> list[Any]:
    return app.read(Area.RECORD, lambda uow: uow.standings.page())


def test_a_file_is_imported_once(app: AppContext) -> None:
    """The second time all is kept, and what could not come is told both times."""
    first = read(app, file=str(FIXTURES / "tracker.lmdb"))
    again = read(app, file=str(FIXTURES / "tracker.lmdb"))
    assert (first["added"] > 400, again["added"], first["ok"]) == (True, 0, False)
    assert [each["key"] for each in again["failed"]] == [each["key"] for each in first["failed"]]
    assert sorted(each.agent for each in _ask(app)) == ["brisk-otter", "grey-heron"]


def test_a_word_list_can_be_named(app: AppContext) -> None:
    """Long values come with it that did not come without."""
    source = str(FIXTURES / "dictionary.lmdb")
    assert len(read(app, file=source)["failed"]) == 2
    found = read(app, file=source, words=str(FIXTURES / "words.txt"))
    assert (found["added"], found["ok"]) == (2, True)


def test_a_file_that_cannot_be_read_changes_nothing(app: AppContext, tmp_path: Path) -> None:
    """No store is made for it."""
    (tmp_path / "broken").write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidValue):
        read(app, file="broken")
    assert not (tmp_path / "data").exists()


def test_projects_go_by_their_repositories(app: AppContext, tmp_path: Path) -> None:
    """Where the path still leads to one; a hook's own repository is not taken for it."""
    shop, plain = tmp_path / "shop", tmp_path / "plain"
    plain.mkdir()
    git(tmp_path, "init", "-q", shop)
    git(shop, "remote", "add", "origin", ORIGIN)
    paths = [str(shop), str(plain), str(tmp_path / "gone"), "relative", 7]
    tracker = TrackerContents(
        tuple(TrackerRecord(TrackedKind.COMMIT, "x", {"project_path": path}) for path in paths)
    )
    inside = AppContext.at(
        tmp_path, {**app.workspace.variables, "GIT_DIR": str(tmp_path / "elsewhere")}
    )
    found = _projects(inside, tracker)
    assert found == {
        str(shop): AppContext.at(shop, app.workspace.variables).workspace.repository_id,
        str(plain): str(plain),
    }
    assert found[str(shop)] != str(shop)


def test_what_needs_a_word_list_comes_once_that_is_there(
    app: AppContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next write tries again; until then it costs no more than a look for the list."""
    place = tmp_path / "home" / locate.DATABASE
    place.parent.mkdir(parents=True)
    shutil.copy(FIXTURES / "dictionary.lmdb", place)
    said: list[str] = []
    app = AppContext.at(tmp_path, dict(os.environ), warn=said.append)

    def write() -> int:
        app.run(Area.RECORD, grading.add_activity, "otter", "work")
        return len(app.read(Area.RECORD, lambda uow: uow.activities.page()))

    assert [write(), write()] == [1, 2]
    assert [each.needs_words for each in tracker_automerge.outcomes()] == [True]
    words = (FIXTURES / "words.txt").read_bytes()
    monkeypatch.setattr(locate, "KNOWN_WORDS", sha256(words).hexdigest())
    listed = place.parent / locate.WORD_LIST
    listed.parent.mkdir(parents=True)
    listed.write_bytes(words)
    assert [write(), write()] == [5, 6]
    assert [each.is_open for each in tracker_automerge.outcomes()] == [False]
    assert ["could not come" in each for each in said] == [True, False]
