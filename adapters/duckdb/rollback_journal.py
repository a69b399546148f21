"""A copy of the blocks that a checkpoint overwrites, so that a torn checkpoint can be undone.

DuckDB 2.0 writes a checkpoint into free blocks, syncs them, and then switches over with a header of
4 KiB. Its metadata blocks are the exception: 256 KiB each, shared by the state before and the state
after, and rewritten in place. If the power fails in the middle of that write, the block fits
neither state and the file cannot be opened, although the log with all commits is beside it.

So the headers and the metadata blocks are copied to `<db>.rollback` and synced before a checkpoint
begins. If a later open finds the headers unchanged and a block torn, it writes the copies back: the
file is then as it was before the checkpoint, and the log is replayed as after every crash. A
finished checkpoint leaves another header than the copy has, and is never undone.

The file consists of a mark, a digest of the rest, the size of the rest, the headers, the blocks'
offsets and the blocks. A file that was not written completely has no valid digest, and counts as
none.
"""

import logging
import os
import shutil
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Self

from attrs import frozen

from herdbook.adapters.duckdb import file_checks

_LOG = logging.getLogger(__name__)

BLOCK = 262_144
"""The size of a block in bytes; `DatabaseInstance` attaches no file with another."""
HEADER = 4_096
HEADERS = 3 * HEADER
"""One for the file and two for the database, which checkpoints write in turn."""

_MARK = b"herdbook undo 1\n"
_DIGEST = 32
_FRONT = struct.Struct(f"<{len(_MARK)}s{_DIGEST}sQ")
_COUNT = struct.Struct("<Q")
_sync_data = getattr(os, "fdatasync", os.fsync)
_MOST = 4_096
"""The largest number of blocks in a copy of ours: a gigabyte of metadata."""


@frozen
class BlockCopy:
    """The headers of a database, and some of its blocks by their offset in the file."""

    headers: bytes
    blocks: dict[int, bytes]

    @classmethod
    def of_database(cls, descriptor: int, numbers: Sequence[int]) -> Self:
        """Copy the headers and these blocks of an open database."""
        places = [HEADERS + BLOCK * number for number in numbers]
        blocks = {at: os.pread(descriptor, BLOCK, at) for at in places}
        return cls(os.pread(descriptor, HEADERS, 0), blocks)

    def is_torn_checkpoint(self, descriptor: int) -> bool:
        """Whether the database was left in the middle of the checkpoint of this copy.

        A block that was rewritten completely does no harm: what the old headers lead to is still in
        its place in it. Only a block that is neither the old nor the new one is torn.
        """
        headers = os.pread(descriptor, HEADERS, 0)
        if headers != self.headers:
            # The checkpoint got as far as its header. Everything else had been synced before.
            return len(headers) == HEADERS and any(
                _is_torn(headers[at : at + HEADER], self.headers[at : at + HEADER])
                for at in range(0, HEADERS, HEADER)
            )
        return any(_is_torn(os.pread(descriptor, BLOCK, at), b) for at, b in self.blocks.items())

    def put_back(self, descriptor: int) -> None:
        """Restore the database as it was when this copy was made. May be repeated."""
        for at, block in self.blocks.items():
            _write(descriptor, block, at)
        os.fsync(descriptor)
        _write(descriptor, self.headers, 0)
        os.fsync(descriptor)

    def to_bytes(self) -> bytes:
        """Encode the copy, with a digest at its front."""
        body = b"".join(
            [
                self.headers,
                _COUNT.pack(len(self.blocks)),
                *map(_COUNT.pack, self.blocks),
                *self.blocks.values(),
            ]
        )
        return _FRONT.pack(_MARK, _digest(body), len(body)) + body

    @classmethod
    def read(cls, descriptor: int) -> Self | None:
        """Decode the copy in a file; None if there is no complete one."""
        front = os.pread(descriptor, _FRONT.size, 0)
        if len(front) < _FRONT.size:
            return None
        mark, digest, size = _FRONT.unpack(front)
        if mark != _MARK or size > HEADERS + _COUNT.size + _MOST * (_COUNT.size + BLOCK):
            return None
        body = os.pread(descriptor, size, _FRONT.size)
        if not HEADERS + _COUNT.size <= len(body) == size or _digest(body) != digest:
            return None
        (count,) = _COUNT.unpack_from(body, HEADERS)
        start = HEADERS + _COUNT.size * (1 + count)
        if len(body) != start + BLOCK * count:
            return None
        places = struct.unpack_from(f"<{count}Q", body, HEADERS + _COUNT.size)
        blocks = {at: body[start + BLOCK * n :][:BLOCK] for n, at in enumerate(places)}
        return cls(body[:HEADERS], blocks)


def has_valid_checksum(block: bytes) -> bool:
    """Whether a block or a header of DuckDB matches the checksum at its front."""
    checksum, *words = struct.unpack(f"<{len(block) // 8}Q", block)
    found = 5_381
    for word in words:
        found ^= word * 0xBF58_476D_1CE4_E5B9
    return bool(found & 0xFFFF_FFFF_FFFF_FFFF == checksum)


def save_blocks(path: Path, descriptor: int, numbers: Sequence[int]) -> None:
    """Copy the headers and these blocks of a database to disk, before a checkpoint of it.

    The descriptor must be one of the database that is closed only after DuckDB has closed it:
    closing any would drop DuckDB's own lock. Raises OSError.
    """
    beside = file_checks.rollback_path(path)
    copied = BlockCopy.of_database(descriptor, numbers).to_bytes()
    is_new = not beside.exists()
    file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _write(file, copied, 0)
        _sync_data(file)
    finally:
        os.close(file)
    if is_new:
        file_checks.sync_to_disk(path.parent)


def discard(path: Path) -> None:
    """Invalidate the copy after the checkpoint, so that nobody needs to check whether it fits."""
    try:
        file = os.open(file_checks.rollback_path(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _write(file, bytes(len(_MARK)), 0)
        finally:
            os.close(file)
    except OSError as error:
        _LOG.debug("the copy beside %s is still there: %s", path, error)


def is_needed(path: Path) -> bool:
    """Whether a checkpoint of this database was cut off so that DuckDB cannot read it any more.

    Only while it is not attached, under the lock. Raises OSError.
    """
    copy = _read_copy(path)
    if copy is None:
        return False
    with _open_file(path, os.O_RDONLY) as database:
        return copy.is_torn_checkpoint(database)


def restore(path: Path) -> None:
    """Undo a checkpoint that was cut off; keep the damaged file under another name.

    Only while it is not attached, under the exclusive lock. Raises OSError.
    """
    copy = _read_copy(path)
    if copy is None:
        return
    with _open_file(path, os.O_RDWR) as database:
        if not copy.is_torn_checkpoint(database):
            return
        aside = _set_aside(path)
        copy.put_back(database)
    _LOG.warning(
        "%s was damaged when its last checkpoint was cut off. It has been repaired from the copy "
        "beside it, and no commit is lost; the damaged file is kept as %s",
        path,
        aside,
    )


@contextmanager
def _open_file(path: Path, mode: int) -> Iterator[int]:
    descriptor = os.open(path, mode | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_copy(path: Path) -> BlockCopy | None:
    try:
        with _open_file(file_checks.rollback_path(path), os.O_RDONLY) as beside:
            return BlockCopy.read(beside)
    except FileNotFoundError:
        return None


def _set_aside(path: Path) -> Path:
    """Copy a damaged database and its log to a path that nobody opens, and sync them."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{token_hex(4)}"
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    for source, target in (
        (path, aside),
        (file_checks.wal_path(path), file_checks.wal_path(aside)),
    ):
        if source.exists():
            file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with source.open("rb") as damaged, os.fdopen(file, "wb") as kept:
                shutil.copyfileobj(damaged, kept, 1 << 20)
                kept.flush()
                os.fsync(file)
    file_checks.sync_to_disk(path.parent)
    return aside


def _is_torn(found: bytes, before: bytes) -> bool:
    """Whether this is neither what was there before nor something that was written completely.

    If not even the old one has the checksum that we compute, DuckDB computes it in another way than
    2.0.0 does: then everything that differs is undone.
    """
    if len(found) < len(before):
        return False  # truncated later, by something else
    return found != before and not (has_valid_checksum(found) and has_valid_checksum(before))


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST).digest()


def _write(descriptor: int, data: bytes, at: int) -> None:
    """Write all of the data, however many calls that takes."""
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, at)
        view, at = view[done:], at + done
