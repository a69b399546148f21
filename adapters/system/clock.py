"""The machine's clock."""

from datetime import UTC, datetime

from herdbook.domain.errors import StoreUnavailable


def system_clock() -> datetime:
    """What time it is, in UTC.

    Raises StoreUnavailable where the machine's clock shows a time that Python cannot tell.
    """
    try:
        return datetime.now(UTC)
    except (OverflowError, ValueError, OSError) as error:
        reason = f"it shows a time that cannot be told ({error}). Nothing was written; set it"
        raise StoreUnavailable("the clock of this machine", reason) from error
