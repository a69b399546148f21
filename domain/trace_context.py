"""The trace that a program was started in, as the W3C trace context names it."""

import re
from typing import Final

TRACEPARENT: Final = "TRACEPARENT"
"""The environment variable by which a traced program passes its trace on."""
_HEADER: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_NO_TRACE: Final = "0" * 32


def trace_id_of(traceparent: str | None) -> str | None:
    """The id of the trace in a `traceparent`; None if it names none."""
    match = _HEADER.fullmatch(traceparent or "")
    return match[1] if match and match[1] != _NO_TRACE else None
