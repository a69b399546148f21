"""Archives whose git files claim folders that are not theirs: what they say reaches no further."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import Person


def archive(person: Person, folder: Path, worktree: str, *, linked: bool) -> Path:
    """An unpacked archive whose git directory calls another folder its worktree."""
    repository = person.repository(folder / "source", origin="https://example.com/a.git")
    if not linked:
        person.git(repository, "config", "core.worktree", worktree)
        return repository
    person.git(repository, "worktree", "add", "--quiet", str(folder / "work"))
    (repository / ".git").rename(folder / "g")
    person.git(folder, "config", "--file", "g/config", "core.bare", "false")
    person.git(folder, "config", "--file", "g/config", "core.worktree", worktree)
    (folder / "work" / ".git").write_text("gitdir: ../g/worktrees/work\n")
    return folder / "work"


@pytest.mark.parametrize("linked", [False, True], ids=["main", "linked"])
@pytest.mark.parametrize("worktree", ["/", "{tmp}", "{tmp}/home"])
@pytest.mark.parametrize("area", ["work", "record", "store"])
def test_settings_of_an_archive_stay_inside_it(
    area: str, worktree: str, linked: bool, person: Person, tmp_path: Path
) -> None:
    """Whatever its config calls its worktree, nothing is kept where only that would allow it."""
    named = worktree.format(tmp=tmp_path)
    folder = archive(person, tmp_path / "unpacked", named, linked=linked)
    elsewhere = person.home / "elsewhere"
    (folder / "herdbook.toml").write_text(f'{area} = "{elsewhere}/{area}.lmdb"\n')
    for words in (("where",), ("task", "add", "x"), ("status",), ("standing",), ("flush",)):
        told = person.tries(folder, *words)
        assert "Traceback" not in told.stderr
    assert not elsewhere.exists()
    places = person.asks(folder, "where")["areas"]
    inside = (f"lmdb://{tmp_path / 'unpacked'}/", f"lmdb://{person.data}/")
    assert all(each["url"].startswith(inside) for each in places.values())


def test_what_is_not_believed_is_said(person: Person, tmp_path: Path) -> None:
    """`where` names the folder that is claimed, and that nothing there leads back."""
    folder = archive(person, tmp_path / "unpacked", "/", linked=False)
    answer = person.asks(folder, "where")
    assert answer["repository_id"] is not None
    assert answer["worktree_id"] is None
    assert answer["doubt"].startswith("the repository's config names / as its worktree")
    assert "none: the repository's config names / as its worktree" in person.runs(folder, "where")


def test_a_folder_that_names_another_repository_chooses_nothing_there(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """A `.git` file of an archive can name any git directory, and its settings count in none."""
    evil = tmp_path / "unpacked"
    evil.mkdir()
    (evil / ".git").write_text(f"gitdir: {app / '.git'}\n")
    (evil / "herdbook.toml").write_text(f'work = "{app}/src/work.lmdb"\n')
    person.runs(evil, "task", "add", "x")
    assert not (app / "src").exists()
    person.runs(app, "worktree", "add", "side")
    shutil.copy(tmp_path / "app.worktrees" / "side" / ".git", evil / ".git")
    person.runs(evil, "task", "add", "x")
    assert not (app / "src").exists()
