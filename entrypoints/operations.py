"""Every operation of Herdbook, once: its name, its code, its parameters, its help.

The command line is made from this table, and so is whatever else lets people and programs in. A new
operation is one row. Rows name their code as `module:function`, so that only the chosen one is
imported: the table itself must cost nothing.

A function is called with what is known of the place (`bootstrap.Here`) and its parameters by name,
and returns what goes into JSON as it is. An answer that says `"ok": false` makes the command end
with 1. A `screen` turns the answer into what a person reads.
"""

from herdbook.entrypoints.operation import Operation
from herdbook.entrypoints.table import (
    checkpoints,
    crew,
    demo,
    hooks,
    places,
    plan,
    programs,
    record,
    talk,
)

OPERATIONS: tuple[Operation, ...] = (
    *places.ROWS,
    *plan.ROWS,
    *crew.ROWS,
    *talk.ROWS,
    *record.ROWS,
    *checkpoints.ROWS,
    *hooks.ROWS,
    *programs.ROWS,
    *demo.ROWS,
)
