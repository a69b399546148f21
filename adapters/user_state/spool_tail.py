"""Reads what hooks append to the spool, as it comes, and changes nothing there."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from herdbook.adapters.hosts import parse_event
from herdbook.adapters.hosts.payload import tool_name
from herdbook.adapters.user_state import spool
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.record.events import HookEvent

MOST_BYTES: Final = 4 << 20
"""How much of a file is read at once; what is older than that is no news and is left out."""


class LiveSpool:
    """The port `SpoolTail`: the events since this object was made.

    A flush renames the file that hooks append to, and may remove it later. So files are known by
    their numbers, and each is read on from where it was read to.
    """

    def __init__(self) -> None:
        self._offsets: dict[int, int] = {}
        for path in spool.event_files():
            status = _regular(path)
            if status is not None:
                self._offsets[status.st_ino] = status.st_size

    def take(self) -> list[tuple[HookEvent, str | None]]:
        """The events since the last call, each with the name of its tool.

        Raises StoreUnavailable if the spool cannot be read.
        """
        offsets, events = self._offsets, []
        self._offsets = {}
        try:
            for path in spool.event_files():
                status = _regular(path)
                if status is not None:
                    begin = offsets.get(status.st_ino, 0)
                    begin = 0 if begin > status.st_size else begin  # another file by now
                    lines, end = _read_lines(path, begin, status.st_size)
                    self._offsets[status.st_ino] = end
                    events += list(_parse(lines))
        except OSError as error:
            self._offsets = offsets
            raise StoreUnavailable(str(spool.folder()), str(error.strerror)) from error
        return events


def _regular(path: Path) -> os.stat_result | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None  # a flush was quicker
    return status if stat.S_ISREG(status.st_mode) else None


def _read_lines(path: Path, begin: int, size: int) -> tuple[list[bytes], int]:
    """The whole lines from an offset on, and where they end; only the last ones if it is much."""
    if size <= begin:
        return [], begin
    is_cut = size - begin > MOST_BYTES
    begin = size - MOST_BYTES if is_cut else begin
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return [], begin
    with os.fdopen(descriptor, "rb") as file:
        file.seek(begin)
        data = file.read(MOST_BYTES)
    end = data.rfind(b"\n") + 1
    lines = data[:end].split(b"\n")
    return lines[1:] if is_cut else lines, begin + end


def _parse(lines: list[bytes]) -> Iterator[tuple[HookEvent, str | None]]:
    """The events of lines; a line that is none is left to the flush, which sets it aside."""
    for line in lines:
        if line.strip():
            try:
                found = spool.parse_line(line)
            except ValueError:
                continue
            yield parse_event(*found), tool_name(found.raw)
