"""Removes the folders of a demo whose process was killed: `python cleanup.py`, with a pipe to it.

Each line of standard input is a folder. The pipe ends with the process that holds its other end,
however that ends; then the folders are removed, and those that their file `ELSEWHERE` names. It
imports nothing of ours: it waits all the time.
"""

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ELSEWHERE = "elsewhere"
"""The file in a folder of a demo that names the folders it has outside of it, one per line."""
ATTEMPTS = 100
PAUSE = 0.2
"""Processes of the demo may write for a moment yet: they notice within a second that it ended."""


def remove_folders(folders: Sequence[str]) -> None:
    """Remove folders, and again as long as somebody writes into them."""
    named = [Path(folder, ELSEWHERE) for folder in folders]
    others = [line for file in named if file.exists() for line in file.read_text().splitlines()]
    for _ in range(ATTEMPTS):
        for folder in (*folders, *others):
            shutil.rmtree(folder, ignore_errors=True)
        if not any(Path(folder).exists() for folder in (*folders, *others)):
            return
        time.sleep(PAUSE)


if __name__ == "__main__":
    remove_folders([line.rstrip("\n") for line in sys.stdin])
