"""The folder of a demo, with a home and a repository apart from the user's own, and its agents."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from herdbook.adapters.git.git_process import raise_complaint, run_git
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.user_state import known_stores
from herdbook.adapters.wakeups.socket_folder import socket_folder
from herdbook.domain.agents.host_sessions import SESSION_VARIABLES
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.journal import JournalEntry
from herdbook.domain.location.areas import Area
from herdbook.domain.trace_context import TRACEPARENT
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo import cleanup
from herdbook.entrypoints.demo.scenario import MAIN, TRAILER, WORKTREES
from herdbook.entrypoints.hooks import git_hooks
from herdbook.entrypoints.hooks.file_changes import apply_plan
from herdbook.entrypoints.operations.worktrees import handlers as worktrees_handlers
from herdbook.entrypoints.rpc.methods import methods

LEADING_OUT: Final = ("GIT_", "HERDBOOK_", "XDG_", *SESSION_VARIABLES, TRACEPARENT)
"""Prefixes of the variables that would lead to the user's own stores, settings and session."""


@contextmanager
def sandbox(*, keep: bool) -> Iterator[Path]:
    """Make a folder with a home in it, and remove it at the end unless it is to be kept.

    Meanwhile this process lives in that home, so nothing of the user's is read or written, and
    SIGTERM ends it as Ctrl-C does. If it is killed, another process removes the folder.
    StoreUnavailable if the folder cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="herdbook-demo-")).resolve()
    except OSError as error:
        raise StoreUnavailable(tempfile.gettempdir(), error.strerror or str(error)) from error
    variables = dict(os.environ)
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    cleaner = None if keep else _start_cleaner(folder)
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
        elif cleaner is not None:
            cleaner.communicate()
            if folder.exists():
                shutil.rmtree(folder)  # says why


def _start_cleaner(folder: Path) -> subprocess.Popen[bytes]:
    """The process that removes a folder when this one has ended without doing it."""
    cleaner = subprocess.Popen(  # noqa: S603 - our own file
        [sys.executable, "-I", "-S", cleanup.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # neither Ctrl-C nor the end of the terminal reaches it
    )
    if cleaner.stdin is not None:
        cleaner.stdin.write(f"{folder}\n".encode())
        cleaner.stdin.flush()
    return cleaner


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


def note_elsewhere(app: AppContext, folder: Path) -> None:
    """Note which folders the stores of a demo have outside of it: those of their wake-ups."""
    found = []
    for area in (Area.WORK, Area.RECORD):
        with app.open(area, create=True) as store:
            found.append(socket_folder(store.uuid))
    (folder / cleanup.ELSEWHERE).write_text("".join(f"{each}\n" for each in found if each))


def git(folder: Path, *words: str, reads: BinaryIO | None = None) -> str:
    """Run git in a folder, with a file as its input, and return its output.

    Raises InvalidValue if it fails.
    """
    status, output, complaint = run_git(["-C", str(folder), *words], os.environ, reads=reads)
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


class Crew:
    """The processes of the agents, and how much of the journal was seen."""

    def __init__(self, app: AppContext, module: str, pace: str, errors: int) -> None:
        self.app, self.pace = app, pace
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.seen = 0
        self._module, self._errors = module, errors

    def call(self, method: str, /, **parameters: Any) -> Any:
        """Call an operation as the person."""
        return methods()[method](self.app, parameters)

    def start(self, name: str, folder: Path) -> None:
        """Start the process of an agent in its worktree."""
        module = f"{__package__}.{self._module}"
        self.processes[name] = subprocess.Popen(  # noqa: S603 - our own module, and names of ours
            [sys.executable, "-P", "-m", module, name, self.pace, str(os.getpid())],
            cwd=folder,
            env={**os.environ, "HERDBOOK_AGENT": name, **author_variables(name)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            # Ctrl-C reaches this process only: it ends the agents, and the git they started.
            start_new_session=True,
        )

    def end_processes(self) -> None:
        """End the processes that still run, each with the git that it started."""
        for process in self.processes.values():
            if process.poll() is None:
                # It has not been waited for, so the number is still its own.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def read_journal(self) -> Iterator[JournalEntry]:
        """The entries that were not seen yet."""
        while entries := self.app.read(Area.WORK, lambda uow: uow.journal.since(self.seen)):
            for entry in entries:
                self.seen = entry.seq
                yield entry

    def find_commits(self, task_id: str) -> list[str]:
        """The hashes of the commits that were made for a task, the newest first."""
        log = ("log", "--all", "--format=%H", f"--grep={TRAILER}: {task_id}")
        return git(self.app.workspace.folder, *log).split()
