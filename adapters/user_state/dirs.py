"""Where this user's own files are, by the platform's conventions.

On Linux these are the XDG folders, read here: platformdirs, which knows all platforms, costs a
tenth of what `herdbook where` may take. A test holds the two together.
"""

import os
import sys
from pathlib import Path

NAME = "herdbook"
_XDG = {"config": ".config", "data": ".local/share", "state": ".local/state"}


def config_file() -> Path:
    """The user's settings."""
    return _folder("config") / "config.toml"


def data_folder() -> Path:
    """The stores of scope `global`."""
    return Path(os.path.realpath(_folder("data")))


def state_folder() -> Path:
    """What Herdbook remembers between two commands."""
    return Path(os.path.realpath(_folder("state")))


def _folder(kind: str) -> Path:
    if sys.platform != "linux":
        import platformdirs  # noqa: PLC0415

        folder: Path = getattr(platformdirs, f"user_{kind}_path")(NAME)
        return folder
    chosen = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
    return Path(chosen if chosen.startswith("/") else Path.home() / _XDG[kind], NAME)


def make_private(folder: Path) -> None:
    """Make a folder, and what it stands in, for this user alone; one that is there is left so."""
    for each in (*reversed(folder.parents), folder):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, text: str) -> None:
    """Put a text in the place of a file at once, for this user alone, whoever else does the same.

    The draft stands beside the folder's files, hidden, under a name that no other has.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        fresh.touch(mode=0o600)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def add_gitignore(folder: Path) -> None:
    """Keep a folder out of git's sight without a word in the repository's own files."""
    mark = folder / ".gitignore"
    if mark.exists():
        return
    write_private(mark, "*\n")
