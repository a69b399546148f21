"""`serve --demo`: a herd at work, in a folder of its own, for whoever wants to look."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo import sandbox
from herdbook.entrypoints.demo.past_day import make_past
from herdbook.entrypoints.demo.scenario import MAIN

PACE = "1"
"""How slow the herd is: all its times are multiplied by this."""


@contextmanager
def herd_at_work() -> Iterator[tuple[AppContext, Mapping[str, str]]]:
    """A repository in which a herd works, and the variables of the user; all of it ends with this.

    Within it, this process lives in a home of its own. StoreUnavailable if there is no room.
    """
    outside = dict(os.environ)
    with sandbox.sandbox(keep=False) as folder:
        folders = sandbox.make_repository(folder)
        there = AppContext.at(folders[MAIN], os.environ)
        sandbox.note_elsewhere(there, folder)
        make_past(folders)
        herd = _start(folders[MAIN])
        try:
            yield there, outside
        finally:
            herd.communicate()


def _start(folder: Path) -> subprocess.Popen[bytes]:
    """The process that keeps the herd at work until its standard input is closed."""
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-m", "herdbook.entrypoints.demo.herd", PACE],
        cwd=folder,
        env=dict(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C reaches the server alone, which ends this one
    )
