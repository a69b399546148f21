"""The node id of a store in files."""

from herdbook.adapters.git.machine_id import machine_id
from herdbook.ports.engine.node import derive_node


def file_node(uuid: str, inode: int) -> str:
    """The node of a store by its machine and the number of the file that holds its rows.

    A copied or restored file is another file. A moved one is not, and neither is one that is
    reached by another path, as from a container: so the path does not count.
    """
    return derive_node(uuid, machine_id(), inode)
