"""One thread for jobs that take long; a job that is submitted again before it starts runs once."""

import threading
from collections.abc import Callable
from typing import Any

Job = Callable[[], None]
CLOSE_TIMEOUT = 10.0
"""Seconds that `close` waits for the running job."""


class BackgroundJobs:
    """Runs jobs one after the other, in the order in which they were first submitted."""

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._on_error = on_error
        self._pending: dict[Any, Job] = {}
        self._condition = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="herdbook-editor", daemon=True)
        self._thread.start()

    def submit(self, key: Any, job: Job) -> None:
        """Queue a job, unless one with the same key is queued and has not started."""
        with self._condition:
            self._pending.setdefault(key, job)
            self._condition.notify()

    def close(self) -> None:
        """Start no more jobs and wait for the running one; not for ever: nobody may be reading."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join(CLOSE_TIMEOUT)

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._pending and not self._closed:
                    self._condition.wait()
                if self._closed:
                    return
                job = self._pending.pop(next(iter(self._pending)))
            try:
                job()
            except Exception as error:  # noqa: BLE001 - the editor goes on after any error
                self._on_error(error)
