"""Brokers for the DuckDB files that are served: the server keeps them open for everybody."""

import threading
from contextlib import ExitStack
from typing import Any

from herdbook.adapters.stores.engine_spec import load
from herdbook.adapters.stores.probe import is_missing
from herdbook.adapters.stores.registry import find_spec
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.http.served_folders import ServedFolders

LOOK_SECONDS = 1.0


class Brokers:
    """Starts a broker for each served file that has none, in a thread that looks for new ones.

    A file that another process is the broker of is left to it.
    """

    def __init__(self, folders: ServedFolders) -> None:
        self._folders = folders
        self._running: dict[str, tuple[Any, ExitStack]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="herdbook-brokers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all brokers; what they have accepted is written."""
        self._over.set()
        self._thread.join()
        for _, stack in self._running.values():
            stack.close()

    def _run(self) -> None:
        while not self._over.is_set():
            for folder in self._folders.roots():
                for area in Area:
                    self._start_if_needed(folder, area)
            self._over.wait(LOOK_SECONDS)

    def _start_if_needed(self, folder: str, area: Area) -> None:
        try:
            app = self._folders.find(folder)[1].call()
            url = app.workspace.locate(area).url
            spec = find_spec(url)
            if spec is None or not spec.broker or is_missing(url) or self._is_running(url):
                return
            with ExitStack() as stack:
                store = stack.enter_context(app.open(area))
                broker = stack.enter_context(load(spec.broker)(store))
                self._running[url] = broker, stack.pop_all()
        except HerdbookError:
            return  # it is looked for again; whoever uses the store is told what is wrong

    def _is_running(self, url: str) -> bool:
        if url not in self._running:
            return False
        broker, stack = self._running[url]
        if broker.is_running():
            return True
        del self._running[url]
        stack.close()
        return False
