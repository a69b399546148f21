"""The machine's clock."""

from datetime import UTC, datetime

from herdbook.domain.errors import StoreUnavailable


def system_clock() -> datetime:
    """The current time in UTC.

    Raises StoreUnavailable if the machine's clock shows a time that Python cannot represent.
    """
    try:
        return datetime.now(UTC)
    except (OverflowError, ValueError, OSError) as error:
        reason = f"its time cannot be represented ({error}). Nothing was written; set it"
        raise StoreUnavailable("the clock of this machine", reason) from error
