"""The mark that an LMDB store leaves beside its data, when many threads of a process leave it."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from herdbook.adapters.lmdb.files import write_sentinel

THREADS = 8


def test_threads_that_open_a_new_store_at_once_leave_one_mark(tmp_path: Path) -> None:
    """None of them is in another's way, and nothing but the mark is left."""
    barrier = threading.Barrier(THREADS)

    def leave(folder: Path) -> None:
        barrier.wait()
        write_sentinel(folder, "a1b2")

    with ThreadPoolExecutor(THREADS) as pool:
        for number in range(20):
            folder = tmp_path / str(number)
            folder.mkdir()
            for done in [pool.submit(leave, folder) for _ in range(THREADS)]:
                done.result()
            (mark,) = folder.iterdir()
            assert json.loads(mark.read_text())["uuid"] == "a1b2"
