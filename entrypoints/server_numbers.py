"""What a server tells about itself to those who check whether all is well."""

from typing import NamedTuple


class ServerNumbers(NamedTuple):
    """What a server has done since it started, and what it has now.

    `defects` are calls that ended by an error of the program itself, `feed_behind` is how many
    entries of a journal the readers of the feed have not been told of, in the space where it is
    most, and `most_queued` how many events wait for the slowest of them.
    """

    pid: int
    seconds: float
    requests: int
    failed_requests: int
    refused_calls: int
    defects: int
    waiting_calls: int
    feed_readers: int
    feed_overflows: int
    feed_behind: int
    most_queued: int
    memory: int
    open_files: int
