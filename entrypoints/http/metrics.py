"""Numbers about the server for Prometheus, as text; nothing in them is anybody's text."""

import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from herdbook.entrypoints.rpc.messages import INTERNAL_ERROR
from herdbook.entrypoints.server_numbers import ServerNumbers

ROUTES = frozenset({"/", "/rpc", "/feed", "/mcp", "/session", "/spaces", "/healthz", "/metrics"})
_CLIENT_ERROR = 400
_SERVER_ERROR = 500
Samples = list[tuple[dict[str, str], float]]


class Metrics:
    """Counts what happens from the start of the server on."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rpc_errors: Counter[int] = Counter()
        self.overflows = 0
        self._started = time.time()

    def count(self, path: str, status: int) -> None:
        """Count an answer; paths of no route count as one, so that nobody can add names."""
        self.requests[path if path in ROUTES else "other", status] += 1

    def count_rpc_error(self, code: int) -> None:
        """Count an error of a method."""
        self.rpc_errors[code] += 1

    def describe(
        self, *, readers: int, waiting: int, behind: int, most_queued: int
    ) -> ServerNumbers:
        """What people are told of it."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        answers = list(self.requests.items())
        codes = list(self.rpc_errors.items())
        return ServerNumbers(
            pid=os.getpid(),
            seconds=time.time() - self._started,
            requests=sum(number for _, number in answers),
            failed_requests=sum(
                number for (_, status), number in answers if status >= _SERVER_ERROR
            ),
            refused_calls=sum(number for code, number in codes if code != INTERNAL_ERROR),
            defects=sum(number for code, number in codes if code == INTERNAL_ERROR),
            waiting_calls=waiting,
            feed_readers=readers,
            feed_overflows=self.overflows,
            feed_behind=behind,
            most_queued=most_queued,
            memory=_resident(used.ru_maxrss),
            open_files=_open_descriptors(),
        )

    def render(
        self, readers: int, waiting: int, behind: int, positions: Iterable[tuple[str, int]]
    ) -> str:
        """Everything, in the text format that Prometheus reads."""
        answered: Samples = [
            ({"route": route, "status": str(status)}, number)
            for (route, status), number in sorted(self.requests.items())
        ]
        failed = Counter[str]()
        for (route, status), number in self.requests.items():
            failed[route] += number if status >= _CLIENT_ERROR else 0
        codes: Samples = [
            ({"code": str(code)}, number) for code, number in sorted(self.rpc_errors.items())
        ]
        spaces: Samples = [({"space": space}, seq) for space, seq in positions]
        refused: Samples = [({"route": route}, number) for route, number in sorted(failed.items())]
        used = resource.getrusage(resource.RUSAGE_SELF)
        tables: list[tuple[str, str, str, Samples]] = [
            ("herdbook_requests_total", "counter", "answers by route and status", answered),
            ("herdbook_request_errors_total", "counter", "answers from status 400 on", refused),
            ("herdbook_rpc_errors_total", "counter", "errors of methods by code", codes),
            ("herdbook_rpc_waiting", "gauge", "methods that wait", [({}, waiting)]),
            ("herdbook_feed_clients", "gauge", "connections to the feed", [({}, readers)]),
            ("herdbook_feed_behind", "gauge", "entries not told to the feed", [({}, behind)]),
            ("herdbook_feed_overflows_total", "counter", "full queues", [({}, self.overflows)]),
            ("herdbook_journal_position", "gauge", "last entry by space", spaces),
            ("process_start_time_seconds", "gauge", "start", [({}, self._started)]),
            ("process_cpu_seconds_total", "counter", "time", [({}, used.ru_utime + used.ru_stime)]),
            ("process_resident_memory_bytes", "gauge", "memory", [({}, _resident(used.ru_maxrss))]),
            ("process_open_fds", "gauge", "open descriptors", [({}, _open_descriptors())]),
        ]
        return "".join(
            f"# HELP {name} {help_}\n# TYPE {name} {kind}\n"
            + "".join(f"{name}{_labels(labels)} {number:.15g}\n" for labels, number in samples)
            for name, kind, help_, samples in tables
        )


def _labels(labels: dict[str, str]) -> str:
    pairs = (f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}" if labels else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _resident(most: int) -> int:
    """Bytes of memory now; where that cannot be read, the most that were used."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return most if sys.platform == "darwin" else most * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def _open_descriptors() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        if Path(folder).is_dir():
            return len(os.listdir(folder))  # noqa: PTH208 - a number is all that is wanted
    return 0
