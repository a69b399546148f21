"""How long a change takes from the beginning of its commit until readers of the feed parsed it.

The installed `herdbook serve` runs in a real repository on LMDB; another process holds 1, 20 and
150 connections to its feed, and this one writes. What is measured begins when every reader has
parsed a first change: until then, the server is busy with connecting them. All read the machine's
monotonic clock. A line of calibration says how quick the machine is at the moment. Run with
`make bench`.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.commands import repository
from benchmarks.machine import StolenTime, calibrate, percentile
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.context import AppContext
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

READERS = (1, 20, 150)
CHANGES, PACE = 60, 0.05
FIRST = "first"
BAR = 100.0
"""Milliseconds in which 99 of 100 readers have parsed a change."""


async def read_feed(netloc: str, token: str, number: int) -> list[list[float]]:
    """Hold so many connections; the milliseconds that each change took to each of them."""
    host, port = netloc.split(":")
    head = f"GET /feed HTTP/1.1\r\nHost: {netloc}\r\nAuthorization: Bearer {token}\r\n\r\n"

    async def read() -> list[float]:
        incoming, outgoing = await asyncio.open_connection(host, int(port))
        outgoing.write(head.encode())
        delays: list[float] = []
        while len(delays) < CHANGES:
            line = await incoming.readline()
            if line.startswith(b"event: spaces"):
                tell("connected")
            if line.startswith(b'data: {"space"'):
                for entry in json.loads(line[6:])["entries"]:
                    name = (entry["after"] or {}).get("name", "")
                    if name == FIRST:
                        tell(FIRST)
                    if name.startswith("begun "):
                        delays.append((time.monotonic() - float(name[6:])) * 1e3)
        outgoing.close()
        return delays

    told: Counter[str] = Counter()

    def tell(what: str) -> None:
        told[what] += 1
        if told[what] == number:
            print(what, flush=True)

    return await asyncio.gather(*(read() for _ in range(number)))


def measure_feed(app: AppContext, url: str, token: Path, number: int) -> list[list[float]]:
    """Write changes while so many readers follow; what each took to each of them."""
    words = [sys.executable, "-m", "benchmarks.feed", urlsplit(url).netloc, str(token), str(number)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as readers:
        assert readers.stdout is not None
        assert readers.stdout.readline() == "connected\n"
        app.run(Area.WORK, _add, FIRST)
        assert readers.stdout.readline() == f"{FIRST}\n"
        for _ in range(CHANGES):
            app.run(Area.WORK, _add, f"begun {time.monotonic()!r}")
            time.sleep(PACE)
        delays: list[list[float]] = json.loads(readers.stdout.readline())
    return delays


def _add(uow: UnitOfWork, name: str) -> None:
    uow.tasks.add(Task(name=name))


def main() -> None:
    """Print the table."""
    program = shutil.which("herdbook", path=str(Path(sys.executable).parent)) or "herdbook"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        variables = {**os.environ, "USER": "somebody", "HERDBOOK_BACKUP": "off"}
        root = repository(Path(folder), variables)
        print(calibrate(root))
        with subprocess.Popen(
            [program, "serve", "--no-open", "--json"],
            cwd=root,
            env=variables,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            (token,) = Path(folder).rglob("serve/token")
            print("commit begins → parsed by a reader of the feed over HTTP, on LMDB")
            print(" readers   p50 ms   p99 ms  last p50  last p99  stolen")
            app = AppContext.at(root, variables)
            with app.stores.hold():
                for number in READERS:
                    stolen = StolenTime()
                    delays = measure_feed(app, url, token, number)
                    all_of = [each for one in delays for each in one]
                    last = [max(each) for each in zip(*delays, strict=True)]
                    figures = [
                        percentile(values, s) for values in (all_of, last) for s in (0.5, 0.99)
                    ]
                    p50, p99, last50, last99 = figures
                    mark = "" if p99 < BAR else f"  above the bar of {BAR:.0f} ms"
                    row = f"{number:8} {p50:8.1f} {p99:8.1f} {last50:9.1f} {last99:9.1f}"
                    print(f"{row} {stolen.share():>7.0%}{mark}")
            server.terminate()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(
            json.dumps(
                asyncio.run(read_feed(sys.argv[1], Path(sys.argv[2]).read_text(), int(sys.argv[3])))
            )
        )
    else:
        main()
