"""The trace id of a `traceparent`."""

from herdbook.domain.trace_context import trace_id_of
from tests.cases import for_each

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@for_each(
    ("text", "trace_id"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (f"01-{TRACE}-00f067aa0ba902b7-00-more", TRACE),
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-00f067aa0ba902b7-01\n", None),
        (TRACE, None),
        ("", None),
        (None, None),
    ],
)
def test_the_trace_id_is_read_or_there_is_none(text: str | None, trace_id: str | None) -> None:
    """What is not a trace context names no trace."""
    assert trace_id_of(text) == trace_id
