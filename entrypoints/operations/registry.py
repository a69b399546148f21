"""The table of operations: name, handler, parameters and help of each.

The command line, JSON-RPC and MCP are made from this table. A new operation is one row. Rows name
their handler as `module:function`, or have the one of their last word in their area (`rows_of`), so
that only the chosen one is imported: the table itself must cost nothing.

A handler is called with the context of the call (`context.AppContext`) and its parameters by name,
and returns a typed value or data of JSON; the wire serializes it. An answer with `"ok": false`
makes the command end with 1. A `view` turns the serialized answer into text for people.
"""

from herdbook.entrypoints.operations.advice import rows as advice_rows
from herdbook.entrypoints.operations.agents import rows as agents_rows
from herdbook.entrypoints.operations.backups import rows as backups_rows
from herdbook.entrypoints.operations.board import rows as board_rows
from herdbook.entrypoints.operations.checkpoints import rows as checkpoints_rows
from herdbook.entrypoints.operations.completion import rows as completion_rows
from herdbook.entrypoints.operations.conversation import rows as conversation_rows
from herdbook.entrypoints.operations.demo import rows as demo_rows
from herdbook.entrypoints.operations.doctor import rows as doctor_rows
from herdbook.entrypoints.operations.hooks import rows as hooks_rows
from herdbook.entrypoints.operations.journal import rows as journal_rows
from herdbook.entrypoints.operations.location import rows as location_rows
from herdbook.entrypoints.operations.model import Operation
from herdbook.entrypoints.operations.plan import rows as plan_rows
from herdbook.entrypoints.operations.plan_text import rows as plan_text_rows
from herdbook.entrypoints.operations.prime import rows as prime_rows
from herdbook.entrypoints.operations.record import rows as record_rows
from herdbook.entrypoints.operations.review import rows as review_rows
from herdbook.entrypoints.operations.servers import rows as servers_rows
from herdbook.entrypoints.operations.setup import rows as setup_rows
from herdbook.entrypoints.operations.share import rows as share_rows
from herdbook.entrypoints.operations.sql import rows as sql_rows
from herdbook.entrypoints.operations.status import rows as status_rows
from herdbook.entrypoints.operations.stores import rows as stores_rows
from herdbook.entrypoints.operations.worktrees import rows as worktrees_rows

OPERATIONS: tuple[Operation, ...] = (
    *location_rows.ROWS,
    *status_rows.ROWS,
    *prime_rows.ROWS,
    *worktrees_rows.ROWS,
    *sql_rows.ROWS,
    *stores_rows.ROWS,
    *backups_rows.ROWS,
    *completion_rows.ROWS,
    *board_rows.ROWS,
    *plan_rows.ROWS,
    *review_rows.ROWS,
    *plan_text_rows.ROWS,
    *agents_rows.ROWS,
    *journal_rows.ROWS,
    *conversation_rows.ROWS,
    *record_rows.ROWS,
    *doctor_rows.ROWS,
    *advice_rows.ROWS,
    *record_rows.IMPORT_ROWS,
    *checkpoints_rows.ROWS,
    *hooks_rows.ROWS,
    *servers_rows.ROWS,
    *share_rows.ROWS,
    *setup_rows.ROWS,
    *demo_rows.ROWS,
)
