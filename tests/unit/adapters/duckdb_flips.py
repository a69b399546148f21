"""A process that reads a DuckDB store with one byte flipped after the other.

`python duckdb_flips.py STORE WHICH SEED COUNT` flips a byte of the file (`file`) or of its log
(`log`), reads everything as a command would, says what came of it, and puts the byte back. Each
line is the place of the byte and the outcome. It is the test that looks how this process ends.
"""

import json
import logging
import os
import random
import sys
from pathlib import Path

from herdbook.adapters import open_store
from herdbook.domain.errors import StoreDamaged, StoreUnavailable
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store

WRONG = "wrong"
"""The outcome of a store that answers otherwise than it did."""


def read_all(store: Store) -> str:
    """All rows of all spaces, as text that can be compared."""
    found = []
    for space in store.spaces():
        with store.transaction(space, write=False) as session:
            found += [sorted(map(repr, session.select(find(kind)))) for kind in store.dictionary]
    return json.dumps(found)


def outcome(url: str, whole: str) -> str:
    """What a visitor finds: the whole store, an error of ours, or what must not be."""
    try:
        with open_store(url, create=False, patience=20) as store:
            return "whole" if read_all(store) == whole else WRONG
    except (StoreDamaged, StoreUnavailable) as error:
        return type(error).__name__


def places(content: bytes, chance: random.Random) -> int:
    """A byte to flip: half of the time among the first, where headers and catalogs are."""
    end = len(content) if chance.random() < 0.5 else min(len(content), 12_288 + 40 * 4_096)
    return chance.randrange(end)


def main(path: Path, which: str, seed: int, count: int) -> None:
    """Flip and read."""
    logging.disable(logging.CRITICAL)
    url = f"duckdb://{path}"
    target = path if which == "file" else Path(f"{path}.wal")
    with open_store(url, create=False) as store:
        whole = read_all(store)
    beside = {each: each.read_bytes() for each in (path, Path(f"{path}.wal")) if each.exists()}
    chance = random.Random(seed)
    for _ in range(count):
        content = bytearray(beside[target])
        at = places(content, chance)
        before = content[at]
        content[at] ^= chance.choice([1 << chance.randrange(8), chance.randrange(1, 256)])
        sys.stdout.write(f"{at} {before:02x}->{content[at]:02x} ")
        sys.stdout.flush()
        _write(target, bytes(content))
        sys.stdout.write(f"{outcome(url, whole)}\n")
        for each, kept in beside.items():
            _write(each, kept)


def _write(path: Path, content: bytes) -> None:
    """Put it there in place: the note of the last commit is about this file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.ftruncate(descriptor, len(content))
        os.pwrite(descriptor, content, 0)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
