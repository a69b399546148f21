"""The folders of this user's own files, by the platform's conventions.

On Linux these are the XDG folders, computed here: platformdirs, which knows all platforms, costs a
tenth of the time that `herdbook where` may take. A test compares both.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

NAME = "herdbook"
_XDG = {"config": ".config", "data": ".local/share", "state": ".local/state"}


def config_file() -> Path:
    """The file with the user's settings."""
    return _folder("config") / "config.toml"


def data_folder() -> Path:
    """The folder for stores of scope `global`."""
    return Path(os.path.realpath(_folder("data")))


def state_folder() -> Path:
    """The folder for what Herdbook remembers between commands."""
    return Path(os.path.realpath(_folder("state")))


def expand_home(path: str) -> str:
    """A path whose beginning `~` or `~user` is expanded; `./~` is a folder of that name.

    Raises RuntimeError for a user that is not known. `Path` alone would take the `./` away first.
    """
    return str(Path(path).expanduser()) if path.startswith("~") else path


def _folder(kind: str) -> Path:
    if sys.platform != "linux":
        import platformdirs  # noqa: PLC0415

        folder: Path = getattr(platformdirs, f"user_{kind}_path")(NAME)
        return folder
    chosen = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
    return Path(chosen if chosen.startswith("/") else Path.home() / _XDG[kind], NAME)


def make_private(folder: Path) -> None:
    """Create a folder and its parents with mode 0700; existing ones are not changed."""
    for each in (*reversed(folder.parents), folder):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically with mode 0600; safe with concurrent writers."""
    replace_file(path, text.encode(), 0o600)


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Replace a file atomically; a new one has this mode, less what the umask takes away.

    The temporary file is in the same folder, hidden, under a unique name. A folder that does not
    exist is made.
    """
    make_private(path.parent)
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        fresh.touch(mode=mode)
        fresh.write_bytes(data)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write_note(file: Path, text: str | None) -> None:
    """Keep a note for people, or remove it; that a full disk refuses it too is no error."""
    if text is None:
        file.unlink(missing_ok=True)
        return
    with suppress(OSError):
        write_private(file, text)


def read_note(file: Path) -> str | None:
    """The note that was kept in a file; None if there is none."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def keep_newest(folder: Path, most: int) -> None:
    """Remove the files of a folder of marks that were not touched for longest, down to so many."""
    marks = [each for each in os.scandir(folder) if not each.name.startswith(".")]
    if len(marks) > most:
        with suppress(FileNotFoundError):  # another process does the same
            marks.sort(key=lambda each: each.stat(follow_symlinks=False).st_mtime_ns)
            for each in marks[: len(marks) - most]:
                Path(each.path).unlink(missing_ok=True)


def add_gitignore(folder: Path) -> None:
    """Let git ignore a folder, without a change to the repository's own files."""
    mark = folder / ".gitignore"
    if mark.exists():
        return
    write_private(mark, "*\n")
