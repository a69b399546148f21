"""The folder of the demo, with a home and a repository apart from the user's own."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from herdbook.adapters.git.git_process import raise_complaint, run_git
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.user_state import known_stores
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo.scenario import MAIN, WORKTREES
from herdbook.entrypoints.hooks import git_hooks
from herdbook.entrypoints.hooks.file_changes import apply_plan
from herdbook.entrypoints.operations.worktrees import handlers as worktrees_handlers

LEADING_OUT: Final = ("GIT_", "HERDBOOK_", "XDG_")
"""Prefixes of the variables that would lead to the user's own stores and settings."""


@contextmanager
def sandbox(*, keep: bool) -> Iterator[Path]:
    """Make a folder with a home in it, and remove it at the end unless it is to be kept.

    Meanwhile this process lives in that home, so nothing of the user's is read or written, and
    SIGTERM ends it as Ctrl-C does. StoreUnavailable if the folder cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="herdbook-demo-")).resolve()
    except OSError as error:
        raise StoreUnavailable(tempfile.gettempdir(), error.strerror or str(error)) from error
    variables = dict(os.environ)
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        (folder / "home").mkdir()
        for name in [name for name in os.environ if name.startswith(LEADING_OUT)]:
            del os.environ[name]
        os.environ.update(author_variables("you"), HOME=str(folder / "home"))
        os.environ.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1")
        os.environ["HERDBOOK_BACKUP"] = "off"  # its folder is gone before a backup would be made
        yield folder
    finally:
        signal.signal(signal.SIGTERM, handler)
        os.environ.clear()
        os.environ.update(variables)
        if keep:
            _register_store(folder, variables)
        else:
            shutil.rmtree(folder)


def _register_store(folder: Path, variables: Mapping[str, str]) -> None:
    """Let the store that the demo made in its own home count as made by this user."""
    place = AppContext.at(folder / "app", variables).workspace.locate(Area.WORK)
    path = path_of(place.url)
    if known_stores.identity_of(place.scheme, path) is not None:
        known_stores.mark_made(place.scheme, path)


def make_repository(folder: Path) -> dict[str, Path]:
    """Make a repository with a commit and two more worktrees; their folders by their branches."""
    repository = folder / "app"
    git(folder, "init", "--quiet", f"--initial-branch={MAIN}", str(repository))
    (repository / "README.md").write_text("An app that people sign in to.\n")
    git(repository, "add", "README.md")
    git(repository, "commit", "--quiet", "--message=begin")
    apply_plan(git_hooks.install(repository, os.environ))  # so that commits reach the record
    app = AppContext.at(repository, os.environ)
    folders = {MAIN: repository}
    for name in WORKTREES:
        added = worktrees_handlers.add(app, name=name, branch=None, base=MAIN, path=None)
        folders[name] = Path(added["path"])
    return folders


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and return its output; InvalidValue if it fails."""
    status, output, complaint = run_git(["-C", str(folder), *words], os.environ)
    if status != 0:
        raise_complaint("git", status, complaint)
    return os.fsdecode(output)


def author_variables(name: str) -> dict[str, str]:
    """The variables that tell git who commits."""
    return {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", f"{name}@example.com"))
    }
