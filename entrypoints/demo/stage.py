"""Where the demo takes place: a folder of its own, with a home and a repository in it."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from herdbook.adapters.git.git_process import raise_complaint, run_git
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.user_state import known_stores
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo.plot import MAIN, WORKTREES
from herdbook.entrypoints.operations.worktrees import handlers as worktrees_handlers

PERSON = "you"
_OF_THE_USER = ("GIT_", "HERDBOOK_", "XDG_")
"""What variables begin with that would lead us to the user's own stores and settings."""


def variables_in(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of the demo: the user's, without what leads out of the folder."""
    kept = {name: value for name, value in given.items() if not name.startswith(_OF_THE_USER)}
    return {
        **kept,
        "HOME": str(folder / "home"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **author(PERSON),
    }


def author(name: str) -> dict[str, str]:
    """What tells git who commits."""
    return {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", f"{name}@example.com"))
    }


@contextmanager
def built(*, keep: bool) -> Iterator[Path]:
    """A new folder with a home in it; it goes at the end, unless somebody wants to look at it.

    Meanwhile this process lives in that home: nothing of the user's is read or written.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="herdbook-demo-")).resolve()
    except OSError as error:
        raise StoreUnavailable(tempfile.gettempdir(), error.strerror or str(error)) from error
    before = dict(os.environ)
    try:
        (folder / "home").mkdir()
        (folder / "said").mkdir()
        os.environ.clear()
        os.environ.update(variables_in(folder, before))
        with _interrupted_by(signal.SIGTERM):
            yield folder
    finally:
        os.environ.clear()
        os.environ.update(before)
        if keep:
            _hand_over(folder)
        else:
            shutil.rmtree(folder)


def _hand_over(folder: Path) -> None:
    """Let the store that the demo made in its own home count as made by this user."""
    place = AppContext.at(folder / "app", os.environ).workspace.locate(Area.WORK)
    identity = known_stores.identity_of(place.scheme, path_of(place.url))
    if identity is not None:
        known_stores.add_own(identity, place.url)


@contextmanager
def _interrupted_by(number: signal.Signals) -> Iterator[None]:
    """Let a signal end this process as Ctrl-C does, with everything put away."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


def set_up(folder: Path) -> dict[str, Path]:
    """A repository with a commit, and two worktrees beside it; their folders by their branches."""
    app = folder / "app"
    git(folder, "init", "--quiet", f"--initial-branch={MAIN}", str(app))
    (app / "README.md").write_text("An app that people sign in to.\n")
    git(app, "add", "README.md")
    git(app, "commit", "--quiet", "--message=begin")
    here = AppContext.at(app, os.environ)
    added = {
        name: Path(
            worktrees_handlers.add(here, name=name, branch=None, base=MAIN, path=None)["path"]
        )
        for name in WORKTREES
    }
    return {MAIN: app, **added}


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and read what it prints; InvalidValue if it complains."""
    status, told, complaint = run_git(["-C", str(folder), *words], os.environ)
    if status != 0:
        raise_complaint("git", status, complaint)
    return os.fsdecode(told)
