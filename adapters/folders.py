"""Where this user's own files are, by the platform's conventions."""

import os
from pathlib import Path

import platformdirs

NAME = "herdbook"


def config_file() -> Path:
    """The user's settings."""
    return Path(platformdirs.user_config_dir(NAME), "config.toml")


def data_folder() -> Path:
    """The stores of scope `global`."""
    return _real(platformdirs.user_data_dir(NAME))


def state_folder() -> Path:
    """What Herdbook remembers between two commands."""
    return _real(platformdirs.user_state_dir(NAME))


def make_private(folder: Path) -> None:
    """Make a folder, and what it stands in, for this user alone; one that is there is left so."""
    for each in (*reversed(folder.parents), folder):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)


def _real(folder: str) -> Path:
    return Path(os.path.realpath(folder))


def ignore_itself(folder: Path) -> None:
    """Keep a folder out of git's sight without a word in the repository's own files."""
    mark = folder / ".gitignore"
    if mark.exists():
        return
    fresh = folder / f".gitignore.{os.getpid()}"
    fresh.touch(mode=0o600)
    fresh.write_text("*\n")
    fresh.rename(mark)
