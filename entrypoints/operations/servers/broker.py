"""`broker`: keep DuckDB stores open and serve them to other processes."""

import signal
import sys
import threading
from contextlib import ExitStack
from typing import Any

from herdbook.adapters.stores.engine_spec import load
from herdbook.adapters.stores.probe import is_missing
from herdbook.adapters.stores.registry import find_spec
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext


def serve_files(app: AppContext) -> dict[str, Any]:
    """Serve the stores of this repository that are in DuckDB files, until SIGINT or SIGTERM.

    Raises StoreUnavailable if there is none, or if another process serves one of them already.
    """
    ended = threading.Event()
    with ExitStack() as stack:
        brokers = {}
        for area in Area:
            url = app.workspace.locate(area).url
            spec = find_spec(url)
            if url in brokers or spec is None or not spec.broker or is_missing(url):
                continue
            store = stack.enter_context(app.open(area))
            brokers[url] = stack.enter_context(load(spec.broker)(store))
            print(f"serving {url}", file=sys.stderr, flush=True)
        if not brokers:
            reason = "no store of this folder is a DuckDB file; other engines need no broker"
            raise StoreUnavailable("broker", reason)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        while not ended.wait(1.0):
            for url, each in brokers.items():
                if not each.is_running():
                    reason = "it was removed or replaced, or its broker failed and the log says why"
                    raise StoreUnavailable(url, f"{reason}. `herdbook broker` begins anew")
    return {"served": sorted(brokers)}
