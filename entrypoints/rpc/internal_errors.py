"""Unexpected errors: one sentence for the client, the traceback for a developer."""

import os
import sys

from herdbook.entrypoints.rpc.messages import INTERNAL_ERROR, RpcError


def report_defect(error: BaseException) -> RpcError:
    """The answer to a request that hit a defect; HERDBOOK_DEBUG prints the traceback."""
    if os.environ.get("HERDBOOK_DEBUG"):
        import traceback  # noqa: PLC0415 - only for unexpected errors

        traceback.print_exception(error, file=sys.stderr)
    return RpcError(
        INTERNAL_ERROR,
        f"internal error ({type(error).__name__}). Your data was not changed by it, as far as is "
        "known; a server started with HERDBOOK_DEBUG=1 writes to standard error where it was",
        {"type": "Defect"},
    )
