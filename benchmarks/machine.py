"""How quick the machine is at the moment, so that the figures of two runs can be compared."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ECHO = "import os\nwhile told := os.read(0, 1): os.write(1, told)"
_STAT = Path("/proc/stat")
_STOLEN_AT = 7
"""The place of the time that the host gave to others among the times of all processors."""


class StolenTime:
    """How much of the processors' time the host of this machine has given to others.

    Where a fifth is stolen, a 99th percentile tells about the host.
    """

    def __init__(self) -> None:
        self._begun = _processor_times()

    def share(self) -> float:
        """The share since this was made; 0 where no system tells it."""
        spent = [now - then for now, then in zip(_processor_times(), self._begun, strict=True)]
        return spent[_STOLEN_AT] / sum(spent) if any(spent) else 0.0


def _processor_times() -> list[int]:
    """The time spent in each state by all processors together: none of it twice."""
    if not _STAT.exists():
        return []
    return [int(each) for each in _STAT.read_text().split("\n", 1)[0].split()[1:9]]


def percentile(values: list[float], share: float) -> float:
    """The value that so large a share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _wait_late() -> float:
    """How much longer than a millisecond a wait of a millisecond takes, in milliseconds."""
    start = time.perf_counter()
    time.sleep(0.001)
    return (time.perf_counter() - start) * 1e3 - 1.0


def calibrate(folder: Path) -> str:
    """What the machine takes for a bare interpreter, one sync and one switch, in milliseconds.

    And how late one of a hundred short waits ends: so much of a 99th percentile may be the host's.
    """

    def measure(work: object) -> float:
        taken = []
        for _ in range(20):
            start = time.perf_counter()
            work()  # type: ignore[operator]
            taken.append((time.perf_counter() - start) * 1e3)
        return statistics.median(taken)

    file = os.open(folder / "sync", os.O_WRONLY | os.O_CREAT)

    def sync() -> None:
        os.write(file, b"x")
        os.fsync(file)

    reading, writing = os.pipe()
    child = subprocess.Popen([sys.executable, "-c", ECHO], stdin=reading, stdout=subprocess.PIPE)
    assert child.stdout is not None

    def switch() -> None:
        os.write(writing, b"x")
        os.read(child.stdout.fileno(), 1)  # type: ignore[union-attr]

    switch()
    bare = measure(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    line = (
        f"bare Python {bare:.0f} ms, fsync {measure(sync):.2f} ms, switch {measure(switch):.3f} ms,"
        f" waits end {percentile([_wait_late() for _ in range(1_000)], 0.99):.1f} ms late (p99)"
    )
    child.kill()
    child.wait()
    return line
