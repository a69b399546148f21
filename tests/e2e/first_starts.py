"""The first command of each kind in a run, which CI leaves to the installed program.

What only the start of the program shows, such as a module that is missing on the path of a command,
is the same each time; `make soak` starts it for every command.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from herdbook.entrypoints.operations.registry import OPERATIONS

COMMANDS = {each.words for each in OPERATIONS} | {(each.alias,) for each in OPERATIONS}


class FirstStarts:
    """Tells which commands are the first of their kind, in all workers of a run together.

    Commands are of one kind if they call the same operation with the same options on the same
    engine.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def is_first(self, words: Sequence[str], engine: str) -> bool:
        """Whether no command of this kind has been seen; from now on one has."""
        kind = json.dumps([*_kind(words), engine])
        try:
            (self._folder / sha256(kind.encode()).hexdigest()).mkdir()
        except FileExistsError:
            return False
        return True


def _kind(words: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """The words that name the operation, and the options, without what they are given."""
    spoken = tuple(word for word in words if not word.startswith("-"))
    names = [spoken[:length] for length in (3, 2, 1) if spoken[:length] in COMMANDS]
    options = {word.partition("=")[0] for word in words if word.startswith("-")}
    return (names or [spoken[:2]])[0], sorted(options)
