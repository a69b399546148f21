"""What a ring is as a datagram: a space, a number, and possibly the entries that were committed.

A space and the number of its last entry, NUL, the node of the store, NUL, and the entries as JSON.
The first part alone is a ring too, as programs without the others send it and read it.

Entries are believed only if they come from the same incarnation of a store: a copy has the same
identity, so the same listeners, and other entries. What is damaged, or of a version that has other
fields, is no error: whoever is rung reads the store.
"""

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry
from herdbook.ports.engine.codec import decode_row, encode_row
from herdbook.ports.engine.dictionary import JOURNAL
from herdbook.ports.engine.wakeups import Ring

LONGEST_CONTENT = 16_384
"""How many bytes of entries a ring carries: ten rings of each listener may wait in the kernel."""
LONGEST_MESSAGE = LONGEST_CONTENT + 1_024
MOST_ENTRIES = 64
"""More are not even encoded, because they would hardly fit."""
_END = "\0"  # in no space, no node and no JSON

EncodedEntries = tuple[str, ...]


def encode_entries(entries: Sequence[JournalEntry]) -> EncodedEntries:
    """Entries as JSON; none of them if there are too many for a ring."""
    if len(entries) > MOST_ENTRIES:
        return ()
    encoded: list[str] = []
    size = 0
    for entry in entries:
        # JSON of ASCII alone: as many bytes as characters.
        encoded.append(json.dumps(encode_row(JOURNAL, entry, reveal=True), separators=(",", ":")))
        size += len(encoded[-1]) + 1
        if size > LONGEST_CONTENT:
            return ()
    return tuple(encoded)


def limit_entries(entries: EncodedEntries) -> EncodedEntries:
    """As many of the first entries as a ring can carry."""
    sizes = accumulate(len(each) + 1 for each in entries)
    fitting = sum(size <= LONGEST_CONTENT for size in sizes)
    return entries[: min(fitting, MOST_ENTRIES)]


def encode_hint(space: str, seq: int) -> bytes:
    """A ring without entries."""
    return f"{space} {seq}".encode()


def encode_ring(node: str, space: str, seq: int, entries: EncodedEntries) -> bytes:
    """A ring, with entries if there are any."""
    if not entries:
        return encode_hint(space, seq)
    return f"{space} {seq}{_END}{node}{_END}[{','.join(entries)}]".encode()


def decode_ring(message: bytes, node: str) -> Ring | None:
    """A ring, with the entries if they are of this node; None for what is none."""
    try:
        head, _, rest = message.decode().partition(_END)
        space, _, seq = head.rpartition(" ")
        if not space or not (seq.isascii() and seq.isdecimal()):
            return None
        origin, _, content = rest.partition(_END)
        entries = [_decode_entry(row) for row in json.loads(content)] if origin == node else []
        return Ring(space, int(seq), entries)
    except (ValueError, LookupError, TypeError, RecursionError, InvalidValue):
        return None


def _decode_entry(row: Any) -> JournalEntry:
    """An entry whose every value was checked; raises an error for what is none."""
    columns = JOURNAL.columns
    if not isinstance(row, dict) or not row.keys() <= columns.keys():
        raise LookupError("it has fields that an entry has not")
    entry = decode_row(JOURNAL, row)
    values = vars(entry)
    for name, column in columns.items():
        column.check(values[name])
    return entry
