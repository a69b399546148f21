"""Messages between the querying process and the sandbox: a size, then that many bytes."""

import os
import struct

_SIZE = struct.Struct("<Q")
LARGEST = 256 * 2**20
"""The size of the longest message: a longer answer would not fit into the caller's memory."""


class Closed(Exception):
    """The other end is gone, or sends what it never should."""


def send(descriptor: int, message: bytes) -> None:
    """Write one message. Raises Closed."""
    view = memoryview(_SIZE.pack(len(message)) + message)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise Closed(str(error)) from error


def receive(descriptor: int) -> bytes:
    """Wait for one message. Raises Closed."""
    (size,) = _SIZE.unpack(_read(descriptor, _SIZE.size))
    if size > LARGEST:
        raise Closed(f"a message of {size} bytes")
    return _read(descriptor, size)


def _read(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        try:
            part = os.read(descriptor, min(size, 1 << 20))
        except OSError as error:
            raise Closed(str(error)) from error
        if not part:
            raise Closed("the end of it")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
