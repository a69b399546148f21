"""The Chromium that tests, benchmarks and pictures use: an installed one, never downloaded."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str:
    """What HERDBOOK_TEST_CHROMIUM names or the PATH has; SystemExit if there is none."""
    named = os.environ.get("HERDBOOK_TEST_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise SystemExit("this needs Chromium: install it, or name it by HERDBOOK_TEST_CHROMIUM")
    return found


@contextmanager
def launch_chromium() -> Iterator[Browser]:
    """A browser without a window."""
    # Root has no sandbox to give up; a container's /dev/shm is often too small.
    words = ["--disable-gpu", "--disable-dev-shm-usage"]
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        path = find_chromium()
        browser = playwright.chromium.launch(executable_path=path, args=[*words, *sandbox])
        yield browser
        browser.close()
