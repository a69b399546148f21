"""Leader/followers: the reader answers inline; after 5 ms a follower takes over reading.

Most requests take less time than handing them to another thread would. So the thread that reads a
request (the leader) answers it too. If that is not done in a few milliseconds, the follower becomes
the leader, with a new follower, and no request waits for a slower one. When too many threads are
busy, the leader only reads and puts requests into a queue; when the queue is full, the client
waits. A request that waits (for an answer, a question) has a thread of its own.
"""

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from herdbook.entrypoints.rpc import internal_errors, messages
from herdbook.entrypoints.rpc.dispatcher import AcceptedMessage, Dispatcher
from herdbook.entrypoints.rpc.framing import Fault, Frame, Framer
from herdbook.entrypoints.rpc.messages import INVALID_REQUEST, PARSE_ERROR, Batch, RpcError
from herdbook.entrypoints.rpc.writer import MessageWriter

MOST_BUSY = 32
QUEUE = 64
PATIENCE = 0.005
"""Seconds after which an answer counts as slow; it may take twice as long to notice."""
MOST_WAITING = 256
CHUNK = 65_536
Job = Callable[[], object]


class Server:
    """Serves one client, from its first byte to its last answer."""

    def __init__(
        self, service: Dispatcher, writer: MessageWriter, incoming: int, *, limit: int
    ) -> None:
        self._service = service
        self._writer = writer
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
        writer.when_gone = self._end
        service.when_over = self._stop_reading

    def run(self) -> int:
        """Serve until the client ends; returns the exit code of the program."""
        _start_thread(self._follow)
        _start_thread(self._lead)
        self._over.wait()
        self._service.stop()
        with self._mutex:
            self._news.wait_for(
                lambda: not (self._queue or self._busy or self._waiting) or self._writer.gone
            )
        self._service.close()
        return self._service.exit_code

    def _end(self) -> None:
        """Accept nothing more."""
        self._over.set()
        self._wake.set()
        with self._mutex:
            self._news.notify_all()

    def _stop_reading(self) -> None:
        """Read nothing after the current message; called by the leader."""
        self._at_end = True
        self._frames.clear()

    def _lead(self) -> None:
        """Lead: read and answer until the end, or until the follower has taken over."""
        try:
            self._read_on()
        except BaseException as error:
            # Nobody would read on, so end in a way that the client sees.
            internal_errors.report_defect(error)
            self._end()
            raise

    def _read_on(self) -> None:
        while (frame := self._next_frame()) is not None:
            job = self._job_for(frame)
            if job is None or self._is_queued(job):
                continue
            turn = self._begin_turn()
            job()
            if not self._end_turn(turn):
                self._drain_queue()
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
        """Whether this thread is still the leader."""
        with self._mutex:
            if self._turn != turn:
                return False
            self._answers = False
            return True

    def _follow(self) -> None:
        """Follow: take over reading when an answer takes long, sleep while nothing is asked."""
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
        _start_thread(self._follow)
        self._lead()

    def _drain_queue(self) -> None:
        """Run queued jobs as one of the busy threads."""
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
        """Put a job into the queue if too many threads are busy; whether that was done."""
        if self._busy < MOST_BUSY:  # other threads only lower it
            return False
        with self._mutex:
            self._news.wait_for(lambda: len(self._queue) < QUEUE or self._writer.gone)
            if not self._busy:
                return False
            self._queue.append(job)
            return True

    def _next_frame(self) -> Frame | None:
        while not self._frames:
            if self._at_end or self._over.is_set():
                return None
            data = self._read_bytes()
            if data:
                self._frames.extend(self._framer.feed(data))
            else:
                self._at_end = True
                self._frames.extend(self._framer.end())
            self._writer.headers = bool(self._framer.headers)
        return self._frames.popleft()

    def _read_bytes(self) -> bytes:
        while True:
            try:
                return os.read(self._incoming, CHUNK)
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._incoming, select.POLLIN)
                poll.poll()
            except OSError:
                return b""

    def _job_for(self, frame: Frame) -> Job | None:
        """The job for a frame; None if nothing is left to do."""
        if isinstance(frame, Fault):
            code = INVALID_REQUEST if frame.too_large else PARSE_ERROR
            response = messages.error_response(None, RpcError(code, frame.reason))
            return lambda: self._writer.send(response)
        message = messages.parse_message(frame)
        if not isinstance(message, Batch):
            entry = self._service.accept(message)
            if entry is None:
                return None
            one = partial(self._answer_one, entry)
            return self._run_apart(one, [entry]) if entry.waits else one
        accepted = [self._service.accept(each) for each in message.messages]
        entries = [each for each in accepted if each is not None]
        if not entries:
            return None
        whole = partial(self._answer_all, entries)
        return self._run_apart(whole, entries) if any(each.waits for each in entries) else whole

    def _run_apart(self, job: Job, entries: list[AcceptedMessage]) -> Job | None:
        """Start a waiting job in its own thread; the job itself if too many wait already."""
        with self._mutex:
            if self._waiting >= MOST_WAITING:
                for each in entries:
                    each.refuse_waiting(MOST_WAITING)
                return job
            self._waiting += 1
        _start_thread(partial(self._wait, job))
        return None

    def _wait(self, job: Job) -> None:
        try:
            job()
        finally:
            with self._mutex:
                self._waiting -= 1
                self._news.notify_all()

    def _answer_one(self, entry: AcceptedMessage) -> None:
        answer = entry.answer()
        if answer is not None:
            self._writer.send(answer)
        entry.after_answer()

    def _answer_all(self, entries: list[AcceptedMessage]) -> None:
        answers = [each.answer() for each in sorted(entries, key=lambda each: each.comes_last)]
        responses = [each for each in answers if each is not None]
        if responses:
            self._writer.send(responses)
        for each in entries:
            each.after_answer()


def _start_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="herdbook-rpc", daemon=True).start()
