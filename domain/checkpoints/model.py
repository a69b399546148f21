"""Checkpoints of workflows: what a graph knew after each step, and what it was about to do.

A thread is one run of a workflow, or a conversation; it has lanes, one per namespace (a graph's own
is the empty one, each sub-graph's has a name), and a lane has checkpoints. The values of a
checkpoint's channels lie in pieces that checkpoints share: each step adds a piece with what it
changed, and a checkpoint says which parts of which pieces make up its values. Writes are what tasks
have done since a checkpoint and no later one holds yet.

Ids of threads, namespaces, tasks and channels are any text whatever, of any length, NUL and half
surrogate pairs included: rows are found by digests of them and keep the text itself as bytes. What
a value is, nobody here knows: a tag and bytes.
"""

from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from herdbook.domain.entity import NEVER, entity
from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import LONGEST_ID, Id, Key, Name

DIGEST = 16


class Typed(NamedTuple):
    """A value as it is kept: the word for how it was written, and the bytes."""

    tag: str
    data: bytes


@entity
class Lane:
    """One namespace of a thread: the names behind the digests."""

    id: Key = ""
    thread: Id
    thread_id: bytes
    namespace: bytes


@entity
class Checkpoint:
    """What a graph knew after a step.

    `place` is its own id, written so that rows sort by it and no NUL is in it; `parent` is its
    parent's. `state` and `metadata` are written by whoever keeps it, `state_packed` when that is
    kept compressed; `channels` says which values it has and where they lie.
    """

    id: Key = ""
    thread: Id
    lane: Id
    place: Id
    parent: Id | None = None
    run: Id | None = None
    created_at: datetime = NEVER
    metadata_tag: Name
    metadata: bytes
    state_tag: Name
    state: bytes
    state_packed: bool = False
    channels: bytes


@entity
class Piece:
    """Bytes that values are made of, written once; `packed` when they are kept compressed."""

    id: Key = ""
    thread: Id
    size: int
    packed: bool = False
    data: bytes


@entity
class Write:
    """What a task wrote to a channel since a checkpoint."""

    id: Key = ""
    thread: Id
    checkpoint: Id
    number: int
    task_id: bytes
    task_path: bytes
    channel: bytes
    tag: Name
    packed: bool = False
    data: bytes


def kept(text: str) -> bytes:
    """Any text as bytes, half surrogate pairs too."""
    return text.encode("utf-8", "surrogatepass")


def told(data: bytes) -> str:
    """The text behind `kept`."""
    return data.decode("utf-8", "surrogatepass")


def digest_of(*parts: str) -> str:
    """A short key for some texts, however long; different texts have different ones."""
    from hashlib import blake2b  # noqa: PLC0415 - only who works with checkpoints needs it

    data = [kept(part) for part in parts]
    sizes = ",".join([str(len(each)) for each in data])
    return blake2b(b"".join([sizes.encode(), b":", *data]), digest_size=DIGEST).hexdigest()


@lru_cache(maxsize=256)
def thread_key(thread_id: str) -> str:
    """Under which a thread is known."""
    return digest_of("thread", thread_id)


@lru_cache(maxsize=256)
def lane_key(thread_id: str, namespace: str) -> str:
    """Under which a lane is kept."""
    return digest_of("lane", thread_id, namespace)


def run_key(run_id: str) -> str:
    """Under which a run is known."""
    return digest_of("run", run_id)


def checkpoint_key(lane: str, checkpoint_id: str) -> str:
    """Under which a checkpoint of a lane is kept."""
    return digest_of("checkpoint", lane, checkpoint_id)


def write_key(checkpoint: str, task_id: str, number: int) -> str:
    """Under which a task's write is kept."""
    return digest_of("write", checkpoint, task_id, str(number))


def place_of(checkpoint_id: str) -> str:
    """A checkpoint's id as text without NUL that sorts as the ids do; `id_at` gives it back.

    InvalidValue for what no graph makes: an id that is empty, long or not Unicode.
    """
    place = checkpoint_id
    if "\0" in place or "\1" in place:
        place = place.replace("\1", "\1\2").replace("\0", "\1\1")
    try:
        size = len(place.encode())
    except UnicodeEncodeError as error:
        reason = f"has half a surrogate pair at position {error.start}"
        raise InvalidValue("checkpoint_id", reason) from error
    if not 0 < size <= LONGEST_ID:
        raise InvalidValue("checkpoint_id", f"must have 1 to {LONGEST_ID} bytes, has {size}")
    return place


def id_at(place: str) -> str:
    """The checkpoint's id behind a place."""
    if "\1" not in place:
        return place
    return place.replace("\1\1", "\0").replace("\1\2", "\1")
