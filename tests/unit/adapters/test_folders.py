"""The user's own folders are where their platform says."""

import os
import stat
from pathlib import Path

import platformdirs
import pytest

from herdbook.adapters.user_state import dirs

VARIABLES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@pytest.mark.parametrize("value", [None, "", "  ", "/elsewhere", "relative"])
def test_they_are_where_platformdirs_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    """With each variable unset, empty and set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert dirs.config_file() == platformdirs.user_config_path("herdbook") / "config.toml"
    assert dirs.data_folder() == platformdirs.user_data_path("herdbook").resolve()
    assert dirs.state_folder() == platformdirs.user_state_path("herdbook").resolve()


def test_a_private_folder_is_this_users_alone(tmp_path: Path) -> None:
    """So is what it stands in, as far as that was not there before."""
    tmp_path.chmod(0o755)
    dirs.make_private(tmp_path / "a" / "b")
    dirs.make_private(tmp_path / "a" / "b")
    modes = [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in (".", "a", "a/b")]
    assert modes == [0o755, 0o700, 0o700]


def test_a_folder_hides_itself_from_git_once(tmp_path: Path) -> None:
    """What somebody wrote into its .gitignore stays."""
    dirs.add_gitignore(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "*\n"
    (tmp_path / ".gitignore").write_text("mine\n")
    dirs.add_gitignore(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert [each.name for each in tmp_path.iterdir()] == [".gitignore"]


def test_of_too_many_marks_those_go_that_were_not_touched_for_longest(tmp_path: Path) -> None:
    """Temporary files of other writers do not count."""
    for number in (3, 1, 2, 4):
        (tmp_path / f"{number}").touch()
        os.utime(tmp_path / f"{number}", (number, number))
    (tmp_path / ".5").touch()
    dirs.keep_newest(tmp_path, 4)
    assert len(list(tmp_path.iterdir())) == 5
    dirs.keep_newest(tmp_path, 2)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".5", "3", "4"]
