"""The program of `test_record_commands.py` that flushes and is killed at a given step.

Run as `python -m tests.e2e.flush_killed <folder> <step>`: a step is whatever Python tells of that
touches a file of Herdbook's state or of the record, before it does so.
"""

import os
import signal
import sys
from pathlib import Path

from herdbook.adapters.user_state.dirs import data_folder, state_folder
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.hooks.spool_flush import flush

TOUCHES = {"open", "os.rename", "os.remove", "os.mkdir", "os.listdir", "os.scandir", "os.truncate"}


def main(folder: str, steps: int) -> None:
    """Flush, or die on the way as by `kill -9`."""
    left = steps
    places = (str(state_folder()), str(data_folder()))

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        path = arguments[0] if event in TOUCHES and arguments else None
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(places):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    flush(AppContext.at(Path(folder), os.environ))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
