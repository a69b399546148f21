"""Node ids: which incarnation of a store made a stamp."""

from hashlib import blake2b

_NODE_BYTES = 16


def derive_node(uuid: str, *place: object) -> str:
    """The node id of a store at a place.

    A store keeps its uuid wherever its files are copied to; two copies would then issue equal
    stamps. So the node follows from the uuid and from where the files lie, as far as the engine can
    tell: a copy elsewhere is another node, without anything being written. Nobody can learn the
    place from it.
    """
    text = "\0".join(map(str, (uuid, *place)))
    return blake2b(text.encode(), digest_size=_NODE_BYTES).hexdigest()
