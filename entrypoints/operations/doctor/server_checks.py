"""Checks of the server that answers, where a server does."""

from collections.abc import Iterator

from herdbook.entrypoints.cli.text import duration, plural, size
from herdbook.entrypoints.operations.doctor.check_result import CheckResult, ok, warning
from herdbook.entrypoints.operations.doctor.installation import Installation
from herdbook.entrypoints.server_numbers import ServerNumbers

FAR_BEHIND = 100
"""From how many entries on that nobody was told of the feed is late."""
SLOW = 128
"""From how many waiting events on a reader of the feed is about to be disconnected."""


def check_server(there: Installation) -> Iterator[CheckResult]:
    """What the server has answered, and whether all who follow it are up to date."""
    numbers = there.server_numbers
    if numbers is None:
        return
    yield ok(
        f"process {numbers.pid} serves since {duration(numbers.seconds)}, with "
        f"{size(numbers.memory)} of memory and {plural(numbers.open_files, 'open file')}"
    )
    yield ok(
        f"{plural(numbers.requests, 'request')} answered, {numbers.waiting_calls} wait; "
        f"{plural(numbers.refused_calls, 'call')} refused with a reason"
    )
    yield _feed(numbers)
    faults = numbers.defects + numbers.failed_requests
    if faults:
        yield warning(
            f"{plural(faults, 'call')} ended by a fault of the program",
            "`HERDBOOK_DEBUG=1 herdbook serve` prints where it was; please report that",
        )


def _feed(numbers: ServerNumbers) -> CheckResult:
    lost = numbers.feed_overflows
    came_back = f"; {lost} did not keep up and were sent back for what they missed" if lost else ""
    says = f"{plural(numbers.feed_readers, 'connection')} to the feed{came_back}"
    if numbers.feed_behind >= FAR_BEHIND:
        return warning(
            f"{says}; {plural(numbers.feed_behind, 'change')} not told yet",
            "it catches up by itself; if not, start `herdbook serve` again: nothing is lost",
        )
    if numbers.most_queued >= SLOW:
        return warning(
            f"{says}; {plural(numbers.most_queued, 'event')} wait for the slowest",
            "a window that sleeps is told what it missed when it wakes",
        )
    return ok(f"{says}, all told of every change")
