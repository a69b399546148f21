"""What a unit of work keeps when it writes, behind one door.

A reader needs none of it and does not wait for it to be loaded.
"""

from herdbook.ports.adopting import check_adopted
from herdbook.ports.derive import derive
from herdbook.ports.journal import write_down
from herdbook.ports.references import check_references, check_uniques, to_remove
from herdbook.ports.waits_for import KINDS, refuse_cycles

__all__ = [
    "KINDS",
    "check_adopted",
    "check_references",
    "check_uniques",
    "derive",
    "refuse_cycles",
    "to_remove",
    "write_down",
]
