"""Starts automatic backups: by a process of its own, at most every so often, and never by a reader.

A mark in the state folder says when a backup of a space was last started. Whoever has written finds
the mark old and starts a detached process; nobody waits for it, and trouble with it is the trouble
of that process alone. A server also starts one after its last write, because no other write may
come that would.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from herdbook.adapters.stores.registry import is_in_memory
from herdbook.adapters.stores.urls import shown_url
from herdbook.adapters.user_state.dirs import (
    keep_newest,
    read_note,
    state_folder,
    write_note,
    write_private,
)
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.domain.location.settings import OFF
from herdbook.domain.retention import MOST_MARKS

if TYPE_CHECKING:
    from herdbook.adapters.workspace import Workspace

SHARE = 20
"""A backup that took a second is followed by the next after this many seconds, at the earliest."""
SHORT = 5.0
"""After a backup of so many seconds or less, the next one does not wait longer than is set."""
LONGEST_PAUSE = 6 * 3_600.0

_started: list[int] = []
"""The processes that this one has started and not waited for."""


def areas_in_use(workspace: "Workspace") -> list[Area]:
    """The areas of a workspace that were backed up before, for who comes by and is awake anyway."""
    with suppress(HerdbookError, OSError):
        return [area for area in Area if _mark(workspace, area).exists()]
    return []


def start_if_due(workspace: "Workspace", areas: Iterable[Area]) -> None:
    """Start a backup of those areas whose last one is old; trouble with it stops nobody."""
    with suppress(HerdbookError, OSError):  # a full disk, a setting that is wrong: said elsewhere
        due = [area for area in areas if seconds_until_due(workspace, area) <= 0]
        if due:
            start(workspace, due)


def seconds_until_due(workspace: "Workspace", area: Area) -> float:
    """How long the last backup of an area is young enough; infinite where none is wanted."""
    if workspace.setting("backup") == OFF or is_in_memory(workspace.locate(area).url):
        return float("inf")
    try:
        started = _mark(workspace, area).stat().st_mtime
    except FileNotFoundError:
        return 0.0
    age = time.time() - started
    every = float(workspace.setting("backup_every"))
    return every - age if age > -LONGEST_PAUSE else 0.0  # else the clock was set back


def note_duration(workspace: "Workspace", areas: Iterable[Area], seconds: float) -> None:
    """Let the next backup wait longer after a long one: a twentieth of the time is theirs."""
    more = min(seconds * SHARE - float(workspace.setting("backup_every")), LONGEST_PAUSE)
    if seconds > SHORT and more > 0:
        later = time.time() + more
        for area in areas:
            with suppress(FileNotFoundError):
                os.utime(_mark(workspace, area), (later, later))


def start(workspace: "Workspace", areas: Iterable[Area]) -> None:
    """Start a process that backs up these areas, and mark that it was started.

    A program in which Python is embedded cannot be started as Python, and starts none.
    """
    if not os.path.basename(sys.executable or "").startswith("python"):  # noqa: PTH119
        return
    wanted = sorted(areas)
    for area in wanted:
        mark = _mark(workspace, area)
        write_private(mark, "")
        keep_newest(mark.parent, MOST_MARKS)
    places = [f"--{key}={value}" for key, value in workspace.arguments.items() if value]
    words = ["backup", *wanted, "--automatic", "-C", os.path.realpath(workspace.folder), *places]
    command = [sys.executable, "-I", "-m", "herdbook.entrypoints", *words]
    nowhere = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)]
    _reap()
    _started.append(
        os.posix_spawn(
            sys.executable, command, workspace.variables, file_actions=nowhere, setsid=True
        )
    )


def forget_start(workspace: "Workspace", area: Area) -> None:
    """Let the next write to an area start a backup, whenever the last one was started."""
    _mark(workspace, area).unlink(missing_ok=True)


def _reap() -> None:
    """Let processes that have ended go; in a server they would stay as zombies."""
    for pid in list(_started):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _started.remove(pid)


def _mark(workspace: "Workspace", area: Area) -> Path:
    text = f"{shown_url(workspace.locate(area).url)} {workspace.space(area)}"
    return state_folder() / "backups" / sha256(text.encode()).hexdigest()[:32]


def note_failure(workspace: "Workspace", area: Area, reason: str | None) -> None:
    """Store the reason why the last automatic backup of a space failed; None if it succeeded."""
    write_note(_failure_file(workspace, area), reason)


def last_failure(workspace: "Workspace", area: Area) -> str | None:
    """The reason why the last automatic backup of a space failed; None if it succeeded."""
    return read_note(_failure_file(workspace, area))


def _failure_file(workspace: "Workspace", area: Area) -> Path:
    mark = _mark(workspace, area)
    return mark.with_name(f"{mark.name}.failed")


class BackupTimer:
    """Starts the backups of a server: when one is due after a write, and at the server's end."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: dict[tuple[str, Area], tuple[threading.Timer, Workspace, Area]] = {}

    def after_write(self, workspace: "Workspace", area: Area) -> None:
        """Start a backup of what was written, now or as soon as one is due."""
        key = str(workspace.folder), area
        if key in self._waiting:
            return
        with suppress(HerdbookError, OSError):
            left = seconds_until_due(workspace, area)
            if left <= 0:
                start(workspace, [area])
            elif left < float("inf"):
                self._schedule(workspace, area, left)

    def _schedule(self, workspace: "Workspace", area: Area, left: float) -> None:
        key = str(workspace.folder), area
        with self._mutex:
            if key not in self._waiting:
                timer = threading.Timer(left, self._due, (key,))
                timer.daemon = True
                self._waiting[key] = timer, workspace, area
                timer.start()

    def _due(self, key: tuple[str, Area]) -> None:
        with self._mutex:
            entry = self._waiting.pop(key, None)
        if entry is not None:
            with suppress(HerdbookError, OSError):
                start(entry[1], [entry[2]])

    def close(self) -> None:
        """Start at once what was to start later."""
        for key in list(self._waiting):
            self._waiting[key][0].cancel()
            self._due(key)
