"""The machine's clock."""

from datetime import UTC, datetime


def system_clock() -> datetime:
    """What time it is, in UTC."""
    return datetime.now(UTC)
