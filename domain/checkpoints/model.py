"""Checkpoints of workflows: the state of a graph after each step, and its pending writes.

A thread is one run of a workflow, or a conversation. It has lanes, one per namespace (the graph's
own namespace is the empty one, each sub-graph has a named one), and a lane has checkpoints. The
values of a checkpoint's channels are stored in pieces that checkpoints share: each step adds a
piece with what it changed, and a checkpoint records which parts of which pieces make up its values.
Writes are what tasks have written since a checkpoint and no later checkpoint contains yet.

Ids of threads, namespaces, tasks and channels may be any text of any length, including NUL and lone
surrogates: rows are looked up by digests of the ids and store the text itself as bytes. Values are
opaque here: a tag and bytes.
"""

from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from herdbook.domain.entity import NEVER, entity
from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import LONGEST_ID, Id, Key, Name

DIGEST_SIZE = 16


class TaggedBytes(NamedTuple):
    """A serialized value: a tag that names the serialization, and the bytes."""

    tag: str
    data: bytes


@entity
class CheckpointLane:
    """One namespace of a thread, with the names that its digests stand for."""

    id: Key = ""
    thread: Id
    thread_id: bytes
    namespace: bytes


@entity
class Checkpoint:
    """The state of a graph after a step.

    `place` is its own id, encoded so that rows sort by it and it contains no NUL; `parent` is the
    parent's id in the same encoding. `state` and `metadata` are serialized by the writer;
    `state_packed` is set when `state` is compressed. `channels` says which values the checkpoint
    has and where they are stored.
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
    """Bytes that values are made of, written once; `packed` is set when they are compressed."""

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


def encode_text(text: str) -> bytes:
    """Encode any text as bytes, including lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """Decode what `encode_text` encoded."""
    return data.decode("utf-8", "surrogatepass")


def digest_texts(*parts: str) -> str:
    """A short key for texts of any length; different texts have different keys."""
    from hashlib import blake2b  # noqa: PLC0415 - only checkpoints need it

    data = [encode_text(part) for part in parts]
    sizes = ",".join([str(len(each)) for each in data])
    return blake2b(b"".join([sizes.encode(), b":", *data]), digest_size=DIGEST_SIZE).hexdigest()


@lru_cache(maxsize=256)
def thread_key(thread_id: str) -> str:
    """The key of a thread."""
    return digest_texts("thread", thread_id)


@lru_cache(maxsize=256)
def lane_key(thread_id: str, namespace: str) -> str:
    """The key of a lane."""
    return digest_texts("lane", thread_id, namespace)


def run_key(run_id: str) -> str:
    """The key of a run."""
    return digest_texts("run", run_id)


def checkpoint_key(lane: str, checkpoint_id: str) -> str:
    """The key of a checkpoint in a lane."""
    return digest_texts("checkpoint", lane, checkpoint_id)


def write_key(checkpoint: str, task_id: str, number: int) -> str:
    """The key of a task's write."""
    return digest_texts("write", checkpoint, task_id, str(number))


def encode_checkpoint_id(checkpoint_id: str) -> str:
    """Encode a checkpoint's id as text without NUL that sorts as the ids do.

    `decode_checkpoint_id` reverses it. Raises InvalidValue for ids that no graph makes: empty ones,
    ones longer than an id may be, and ones that are not Unicode.
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


def decode_checkpoint_id(place: str) -> str:
    """Decode what `encode_checkpoint_id` encoded."""
    if "\1" not in place:
        return place
    return place.replace("\1\1", "\0").replace("\1\2", "\1")
