"""What a unit of work keeps when it writes, behind one door.

A reader needs none of it and does not wait for it to be loaded.
"""

from herdbook.ports.repositories.journal import write_down
from herdbook.ports.unit_of_work.cycles import KINDS, refuse_cycles
from herdbook.ports.unit_of_work.integrity import check_references, check_uniques, to_remove
from herdbook.ports.unit_of_work.projections import derive
from herdbook.ports.unit_of_work.reactions import Reactions
from herdbook.ports.unit_of_work.verbatim_insert import check_adopted

__all__ = [
    "KINDS",
    "Reactions",
    "check_adopted",
    "check_references",
    "check_uniques",
    "derive",
    "refuse_cycles",
    "to_remove",
    "write_down",
]
