"""One thread for what takes a while: each errand once, however often it is asked for meanwhile."""

import threading
from collections.abc import Callable
from typing import Any

Errand = Callable[[], None]
PATIENCE = 10.0
"""So many seconds an errand may take when all is over."""


class Errands:
    """Runs errands one after the other, in the order in which they were first asked for."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._wanted: dict[Any, Errand] = {}
        self._news = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="herdbook-editor", daemon=True)
        self._thread.start()

    def want(self, key: Any, errand: Errand) -> None:
        """Let an errand be run; one with the same key that has not begun is the same."""
        with self._news:
            self._wanted.setdefault(key, errand)
            self._news.notify()

    def close(self) -> None:
        """Begin nothing more, and wait for what was begun; not for ever, should nobody listen."""
        with self._news:
            self._over = True
            self._news.notify()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._wanted and not self._over:
                    self._news.wait()
                if self._over:
                    return
                errand = self._wanted.pop(next(iter(self._wanted)))
            try:
                errand()
            except Exception as error:  # noqa: BLE001 - whatever it is, the editor goes on
                self._failed(error)
