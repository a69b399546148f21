"""The processes of the demo's agents: started, asked how they are, and ended by their own ids."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from herdbook.entrypoints.demo.plot import CAST, Member
from herdbook.entrypoints.demo.stage import author

Troupe = Mapping[str, subprocess.Popen[bytes]]
"""The processes, by the names of their agents."""


@contextmanager
def started(folder: Path, places: Mapping[str, Path], pace: str) -> Iterator[Troupe]:
    """A process for every agent; those that still run at the end are ended."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for member in CAST:
            said = said_by(folder, member.name)
            processes[member.name] = _start(member, places[member.worktree], pace, said)
        yield processes
    finally:
        for process in processes.values():
            _end(process)


def said_by(folder: Path, name: str) -> Path:
    """The file with what an agent's process complained of."""
    return folder / "said" / f"{name}.txt"


def _start(member: Member, folder: Path, pace: str, said: Path) -> subprocess.Popen[bytes]:
    module = "herdbook.entrypoints.demo.agent"
    words = [sys.executable, "-P", "-m", module, member.name, pace, str(os.getpid())]
    with said.open("wb") as file:
        return subprocess.Popen(  # noqa: S603 - our own module, and names of the plot
            words,
            cwd=folder,
            env={**os.environ, "HERDBOOK_AGENT": member.name, **author(member.name)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            # Ctrl-C is for whoever directs: it ends the agents itself, with the git they started.
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # The process leads a group of its own, and has not been waited for: the number is its own.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def has_ended(troupe: Troupe) -> bool:
    """Whether all of them are gone."""
    return all(process.poll() is not None for process in troupe.values())


def unexpected_end(troupe: Troupe, folder: Path, killed: str | None) -> str | None:
    """A sentence about a process that ended and should not have; None if there is none."""
    for name, process in troupe.items():
        code = process.poll()
        if code and name != killed:
            said = said_by(folder, name).read_text(errors="replace").strip().splitlines()
            last = said[-1] if said else "nothing"
            return f"the process of {name} ended with {code}, unasked; the last it said: {last}"
    return None
