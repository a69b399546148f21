"""The server: one thread reads and answers, and another is there for when that takes long.

Most requests take less than handing them to another thread would. So whoever reads a request
answers it too; if it is not done in a few milliseconds, its deputy reads on in its place, with a
deputy of its own, and no request waits for a slower one. When too many are busy, the one who reads
only reads, and what it reads waits in a queue; when that is full too, the client waits. What is
told to wait has a thread of its own.
"""

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from herdbook.entrypoints.rpc import internal_errors, messages
from herdbook.entrypoints.rpc.dispatcher import Entry, Service
from herdbook.entrypoints.rpc.framing import Fault, Frame, Framer
from herdbook.entrypoints.rpc.messages import INVALID_REQUEST, PARSE_ERROR, Batch, RpcError
from herdbook.entrypoints.rpc.writer import Outlet

MOST_BUSY = 32
QUEUE = 64
PATIENCE = 0.005
"""After so many seconds, or twice as many, an answer counts as slow."""
MOST_WAITING = 256
CHUNK = 65_536
Job = Callable[[], object]


class Server:
    """Serves one client, from its first byte to its last answer."""

    def __init__(self, service: Service, outlet: Outlet, incoming: int, *, limit: int) -> None:
        self._service = service
        self._outlet = outlet
        self._incoming = incoming
        self._framer = Framer(limit)
        self._frames: deque[Frame] = deque()
        self._at_end = False
        self._mutex = threading.RLock()
        self._news = threading.Condition(self._mutex)
        self._queue: deque[Job] = deque()
        self._turn = 0
        self._answers = False
        self._busy = 0
        self._waiting = 0
        self._wake = threading.Event()
        self._over = threading.Event()
        outlet.when_gone = self._end
        service.when_over = self._leave_the_rest

    def run(self) -> int:
        """Serve until the client has had enough; the exit code of the program."""
        _begin(self._watch)
        _begin(self._lead)
        self._over.wait()
        self._service.stop()
        with self._mutex:
            self._news.wait_for(
                lambda: not (self._queue or self._busy or self._waiting) or self._outlet.gone
            )
        self._service.close()
        return self._service.exit_code

    def _end(self) -> None:
        """Take nothing more in."""
        self._over.set()
        self._wake.set()
        with self._mutex:
            self._news.notify_all()

    def _leave_the_rest(self) -> None:
        """Read no more, behind what is being read; called by the one who reads."""
        self._at_end = True
        self._frames.clear()

    def _lead(self) -> None:
        """Read and answer, until the end, or until the deputy has taken over."""
        try:
            self._read_on()
        except BaseException as error:
            # Nobody would read on: better an end that the client sees.
            internal_errors.noted(error)
            self._end()
            raise

    def _read_on(self) -> None:
        while (frame := self._next_frame()) is not None:
            job = self._taken(frame)
            if job is None or self._is_queued(job):
                continue
            turn = self._begin_turn()
            job()
            if not self._end_turn(turn):
                self._help_out()
                return
        self._end()

    def _begin_turn(self) -> int:
        with self._mutex:
            self._turn += 1
            self._answers = True
            turn = self._turn
        if not self._wake.is_set():
            self._wake.set()
        return turn

    def _end_turn(self, turn: int) -> bool:
        """Whether this thread reads on."""
        with self._mutex:
            if self._turn != turn:
                return False
            self._answers = False
            return True

    def _watch(self) -> None:
        """Be the deputy: take over when an answer takes long, sleep while nothing is asked."""
        seen = 0
        while not self._over.is_set():
            self._wake.wait()
            if self._over.wait(PATIENCE):
                return
            with self._mutex:
                if self._answers and self._turn == seen:
                    self._turn += 1
                    self._answers = False
                    self._busy += 1
                    break
                if not self._answers and self._turn == seen:
                    self._wake.clear()
                seen = self._turn
        else:
            return
        _begin(self._watch)
        self._lead()

    def _help_out(self) -> None:
        """Do what has queued up, being one of those who are busy."""
        while True:
            with self._mutex:
                if not self._queue:
                    self._busy -= 1
                    self._news.notify_all()
                    return
                job = self._queue.popleft()
                self._news.notify_all()
            job()

    def _is_queued(self, job: Job) -> bool:
        """Whether others will do it: those who are busy, when there are too many of them."""
        if self._busy < MOST_BUSY:  # whoever else changes it makes it less
            return False
        with self._mutex:
            self._news.wait_for(lambda: len(self._queue) < QUEUE or self._outlet.gone)
            if not self._busy:
                return False
            self._queue.append(job)
            return True

    def _next_frame(self) -> Frame | None:
        while not self._frames:
            if self._at_end or self._over.is_set():
                return None
            data = self._received()
            if data:
                self._frames.extend(self._framer.feed(data))
            else:
                self._at_end = True
                self._frames.extend(self._framer.end())
            self._outlet.headers = bool(self._framer.headers)
        return self._frames.popleft()

    def _received(self) -> bytes:
        while True:
            try:
                return os.read(self._incoming, CHUNK)
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._incoming, select.POLLIN)
                poll.poll()
            except OSError:
                return b""

    def _taken(self, frame: Frame) -> Job | None:
        """What is to be done about something that came; what is quick is done at once."""
        if isinstance(frame, Fault):
            code = INVALID_REQUEST if frame.too_large else PARSE_ERROR
            refused = messages.failure(None, RpcError(code, frame.reason))
            return lambda: self._outlet.send(refused)
        message = messages.read(frame)
        if not isinstance(message, Batch):
            entry = self._service.accept(message)
            if entry is None:
                return None
            one = partial(self._answer_one, entry)
            return self._apart(one, [entry]) if entry.waits else one
        accepted = [self._service.accept(each) for each in message.messages]
        entries = [each for each in accepted if each is not None]
        if not entries:
            return None
        whole = partial(self._answer_all, entries)
        return self._apart(whole, entries) if any(each.waits for each in entries) else whole

    def _apart(self, job: Job, entries: list[Entry]) -> Job | None:
        """Let a job wait in a thread of its own; the job itself where too many do."""
        with self._mutex:
            if self._waiting >= MOST_WAITING:
                for each in entries:
                    each.refuse_waiting(MOST_WAITING)
                return job
            self._waiting += 1
        _begin(partial(self._wait, job))
        return None

    def _wait(self, job: Job) -> None:
        try:
            job()
        finally:
            with self._mutex:
                self._waiting -= 1
                self._news.notify_all()

    def _answer_one(self, entry: Entry) -> None:
        answer = entry.answer()
        if answer is not None:
            self._outlet.send(answer)
        entry.answered()

    def _answer_all(self, entries: list[Entry]) -> None:
        answers = [each.answer() for each in sorted(entries, key=lambda each: each.comes_last)]
        told = [each for each in answers if each is not None]
        if told:
            self._outlet.send(told)
        for each in entries:
            each.answered()


def _begin(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="herdbook-rpc", daemon=True).start()
