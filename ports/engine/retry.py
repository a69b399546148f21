"""Pauses between retries: exponential backoff with jitter, until the patience has passed."""

import time

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5


class Retry:
    """The pauses between attempts at something that failed transiently.

    Patience is counted from the first failure: an attempt that worked for long before it failed
    leaves as much time for the next one as an attempt that failed at once.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._pause = FIRST_PAUSE
        self._deadline: float | None = None

    def pause(self, at_most: float | None = None) -> bool:
        """Sleep before the next attempt; return False, at once, when the patience has passed.

        `at_most` replaces the patience where this failure deserves less of it.
        """
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._patience
        deadline = self._deadline
        if at_most is not None:
            deadline -= max(self._patience - at_most, 0.0)
        if now >= deadline:
            return False
        import random  # noqa: PLC0415 - seldom needed

        pause = self._pause * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
        time.sleep(min(pause, deadline - now))
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return True
