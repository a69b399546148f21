"""Who held which task from when to when, read from the journal: the spans and marks of lanes.

A task is held while it is in progress, or while somebody reviews it. One claim is one or more
spans: it is split where its holder began or ceased to wait for a person.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import Any

from attrs import evolve, field, frozen, mutable

from herdbook.domain.agents.model import AgentStatus
from herdbook.domain.clock import Stamp
from herdbook.domain.conversation import asks_person
from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.plan.model import TaskStatus
from herdbook.domain.rewind import Values, redo_entry, undo_entry

TASK, AGENT, QUESTION, MESSAGE = "tasks", "agents", "conversations", "messages"
TRACED = frozenset({TASK, AGENT, QUESTION, MESSAGE})
"""The kinds of rows whose changes tell what lanes show."""
LONGEST_TEXT = 200
"""How much of a question a mark tells."""

ClaimKey = tuple[str | None, str | None, datetime]
"""What the spans of one claim have in common: the task, the agent, and when it began."""
KeyedRows = dict[str, dict[str, Values]]
"""Rows as the journal writes them, by kind and key."""


class LaneState(StrEnum):
    """What the holder of a task is doing with it."""

    HELD = "held"
    ASKING = "waiting_for_input"
    REVIEW = "review"


class ClaimEnd(StrEnum):
    """How a claim ended."""

    COMPLETED = "completed"
    HANDED_IN = "handed_in"
    FAILED = "failed"
    RELEASED = "released"
    TAKEN_OVER = "taken_over"
    REMOVED = "removed"


class MarkKind(StrEnum):
    ASKED = "asked"
    ANSWERED = "answered"
    COMMIT = "commit"


@frozen
class LaneSpan:
    """A time in which an agent held a task in one state, or waited for a person without a task.

    `claimed_at` is when the claim began that it is a part of, and `end` how that claim ended, None
    while it lasts. The agent is None if it was removed while it held the task, or is not known.
    """

    task_id: str | None
    agent_id: str | None
    worktree_id: str | None
    state: LaneState
    since: datetime
    until: datetime | None
    claimed_at: datetime
    end: ClaimEnd | None = None

    @property
    def claim(self) -> ClaimKey:
        """What the spans of one claim have in common."""
        return self.task_id, self.agent_id, self.claimed_at


@frozen
class LaneMark:
    """A moment on the lane of an agent: a question, its answer, or a commit.

    `subject` is the id of the row or the hash of the commit that it is about.
    """

    kind: MarkKind
    at: datetime
    agent_id: str | None
    agent: str | None
    task_id: str | None
    subject: str
    text: str


def rows_before(now: Mapping[str, Mapping[str, Values]], entries: list[JournalEntry]) -> KeyedRows:
    """The rows as they were before some entries, in order, from what they are after them.

    `now` has every row that an entry is about and that is still there. Raises what `undo_entry`
    raises.
    """
    rows = {kind: dict(now.get(kind, {})) for kind in TRACED}
    for entry in reversed(entries):
        _put(rows[entry.entity], entry.key, undo_entry(entry, rows[entry.entity].get(entry.key)))
    return rows


def _put(rows: dict[str, Values], key: str, values: Values | None) -> None:
    if values is None:
        rows.pop(key, None)
    else:
        rows[key] = values


@mutable
class _OpenClaim:
    """A claim that lasts: the span it is in, and those before that."""

    span: LaneSpan
    is_review: bool
    earlier: list[LaneSpan] = field(factory=list)

    def move(self, state: LaneState, at: datetime) -> None:
        """Go on in another state."""
        at = max(at, self.span.since)
        self.earlier.append(evolve(self.span, until=at))
        self.span = evolve(self.span, state=state, since=at)

    def close(self, at: datetime, end: ClaimEnd | None) -> list[LaneSpan]:
        """All spans of the claim, which ends here."""
        last = evolve(self.span, until=max(at, self.span.since))
        return [evolve(each, end=end) for each in (*self.earlier, last)]


def trace_spans(
    rows: KeyedRows,
    entries: Iterable[JournalEntry],
    begin: datetime,
    reviewers: Mapping[str, str | None] | None = None,
) -> list[LaneSpan]:
    """The spans of all claims that lasted at `begin` or began since, in the order of their begin.

    `rows` are those before the entries, and `entries` those since, in order. `reviewers` has who
    reviewed a task at the begin, as far as that is known. A span that lasts has no `until`. Those
    of one task do not overlap.
    """
    tracer = _Tracer(rows, dict(reviewers or {}))
    tracer.begin(begin)
    for _, group in groupby(entries, key=lambda each: each.tx):
        tracer.apply(list(group))
    return tracer.spans()


class _Tracer:
    """Follows the rows from transaction to transaction: nobody ever saw half of one."""

    def __init__(self, rows: KeyedRows, reviewers: dict[str, str | None]) -> None:
        self._tasks = dict(rows.get(TASK, {}))
        self._agents = dict(rows.get(AGENT, {}))
        self._messages = dict(rows.get(MESSAGE, {}))
        self._unanswered: dict[str, set[str]] = {}
        for key in self._messages:
            self._note_message(key)
        self._reviewers = reviewers
        self._open: dict[str, _OpenClaim] = {}
        self._asking: dict[str, _OpenClaim] = {}
        self._ended: list[LaneSpan] = []
        self._last_end: dict[str, datetime] = {}

    def begin(self, at: datetime) -> None:
        for task_id, task in self._tasks.items():
            holder = self._holder(task_id)
            if holder is not None:
                agent_id, is_review = holder
                since = min(at, _claim_time(task) or at)
                self._start(task_id, agent_id, since, is_review=is_review)
                if self._is_asking(agent_id):
                    asked = self._asked_at(str(agent_id), at)
                    self._open[task_id].move(LaneState.ASKING, max(since, asked))
        for agent_id in self._agents:
            self._follow_agent(agent_id, self._asked_at(agent_id, at))

    def _asked_at(self, agent_id: str, at: datetime) -> datetime:
        """Since when an agent waits for a person, if it does so at this time."""
        agent = self._agents[agent_id]
        asked = self._unanswered.get(agent_id, ())
        times = [_time(self._messages[key].get("created_at")) for key in asked]
        if agent.get("status") == AgentStatus.WAITING_FOR_INPUT or not times:
            times.append(_time(agent.get("updated_at")))
        return min([at, *(each for each in times if each is not None)])

    def apply(self, entries: list[JournalEntry]) -> None:
        """Apply the entries of one transaction."""
        before: dict[str, Values | None] = {}
        touched: set[str] = set()
        for entry in entries:
            if entry.entity == TASK:
                before.setdefault(entry.key, self._tasks.get(entry.key))
                _put(self._tasks, entry.key, redo_entry(entry, self._tasks.get(entry.key)))
            elif entry.entity == AGENT:
                touched.add(entry.key)
                _put(self._agents, entry.key, redo_entry(entry, self._agents.get(entry.key)))
            elif entry.entity == MESSAGE:
                touched |= self._apply_message(entry)
        self._find_reviewers(entries, before)
        at = entries[-1].time
        worktree = entries[-1].worktree
        for task_id, was in before.items():
            holders = [self._open.get(task_id)]
            self._follow_task(task_id, was, at, worktree)
            holders.append(self._open.get(task_id))
            touched |= {each.span.agent_id for each in holders if each and each.span.agent_id}
        for agent_id in sorted(touched):
            self._follow_agent(agent_id, at)

    def _apply_message(self, entry: JournalEntry) -> set[str]:
        """Apply the entry of a message; the agents that may wait or go on because of it."""
        before = self._messages.get(entry.key, {})
        _put(self._messages, entry.key, redo_entry(entry, self._messages.get(entry.key)))
        if asks_person(before):
            self._unanswered[before["sender_id"]].discard(entry.key)
        self._note_message(entry.key)
        senders = (before, self._messages.get(entry.key, {}))
        return {each["sender_id"] for each in senders if each.get("sender_id")}

    def _note_message(self, key: str) -> None:
        """Note that an agent waits for the answer to a message, if it does."""
        message = self._messages.get(key, {})
        if asks_person(message):
            self._unanswered.setdefault(message["sender_id"], set()).add(key)

    def spans(self) -> list[LaneSpan]:
        """All spans, those that last too."""
        lasting = [
            span
            for claim in (*self._open.values(), *self._asking.values())
            for span in (*claim.earlier, claim.span)
        ]
        order = lambda each: (each.since, each.task_id or "", each.agent_id or "")  # noqa: E731
        return sorted([*self._ended, *lasting], key=order)

    def _find_reviewers(
        self, entries: list[JournalEntry], before: Mapping[str, Values | None]
    ) -> None:
        """Note who claimed reviews in a transaction."""
        for task_id, was in before.items():
            task = self._tasks.get(task_id)
            if task is None or not is_reviewed(task):
                self._reviewers.pop(task_id, None)
            elif was is None or was.get("claim_stamp") != task.get("claim_stamp"):
                found = find_reviewer(task_id, entries, self._agents)
                again = was is not None and is_reviewed(was)
                self._reviewers[task_id] = found or (self._reviewers[task_id] if again else None)

    def _holder(self, task_id: str) -> tuple[str | None, bool] | None:
        """Who holds a task, and whether for a review; None if nobody does."""
        task = self._tasks.get(task_id)
        if task is None:
            return None
        if task.get("status") == TaskStatus.IN_PROGRESS:
            return task.get("assignee_id"), False
        return (self._reviewers.get(task_id), True) if is_reviewed(task) else None

    def _is_asking(self, agent_id: str | None) -> bool:
        agent = self._agents.get(agent_id or "", {})
        return waits_for_person(agent, asks=bool(self._unanswered.get(agent_id or "")))

    def _start(
        self,
        task_id: str,
        agent_id: str | None,
        at: datetime,
        *,
        is_review: bool,
        worktree: str | None = None,
    ) -> None:
        at = max(at, self._last_end.get(task_id, at))
        state = LaneState.REVIEW if is_review else LaneState.HELD
        own = self._agents.get(agent_id or "", {}).get("worktree_id")
        span = LaneSpan(task_id, agent_id, worktree or own, state, at, None, at)
        self._open[task_id] = _OpenClaim(span, is_review)

    def _follow_task(
        self, task_id: str, before: Values | None, at: datetime, worktree: str | None
    ) -> None:
        claim, holder = self._open.get(task_id), self._holder(task_id)
        if claim is not None and holder != (claim.span.agent_id, claim.is_review):
            end = _find_end(before, self._tasks.get(task_id), holder)
            closed = claim.close(at, end)
            self._last_end[task_id] = closed[-1].until or at
            self._ended += closed
            del self._open[task_id]
            claim = None
        if claim is None and holder is not None:
            self._start(task_id, holder[0], at, is_review=holder[1], worktree=worktree)
            if self._is_asking(holder[0]):
                started = self._open[task_id]
                started.span = evolve(started.span, state=LaneState.ASKING)

    def _follow_agent(self, agent_id: str, at: datetime) -> None:
        """Let the spans of an agent follow whether it waits for a person."""
        asks = self._is_asking(agent_id)
        own = [each for each in self._open.values() if each.span.agent_id == agent_id]
        for claim in own:
            plain = LaneState.REVIEW if claim.is_review else LaneState.HELD
            state = LaneState.ASKING if asks else plain
            if claim.span.state is not state:
                claim.move(state, at)
        alone = self._asking.get(agent_id)
        if alone is not None and (own or not asks):
            self._ended += alone.close(at, None)
            self._last_end[agent_id] = max(at, alone.span.since)
            del self._asking[agent_id]
        elif alone is None and asks and not own:
            at = max(at, self._last_end.get(agent_id, at))
            worktree = self._agents[agent_id].get("worktree_id")
            span = LaneSpan(None, agent_id, worktree, LaneState.ASKING, at, None, at)
            self._asking[agent_id] = _OpenClaim(span, is_review=False)


def waits_for_person(agent: Values, *, asks: bool) -> bool:
    """Whether an agent waits for a person; `asks` tells whether a message of it is unanswered.

    An agent that has stopped, or has crashed and was dismissed, waits for nobody.
    """
    status = agent.get("status")
    if status in {None, AgentStatus.STOPPED}:
        return False
    if status == AgentStatus.CRASHED and agent.get("user_dismissed_at") is not None:
        return False
    return asks or status == AgentStatus.WAITING_FOR_INPUT


def is_reviewed(task: Values) -> bool:
    """Whether somebody reviews a task: a claim of its review has a stamp."""
    is_open = task.get("status") == TaskStatus.QUALITY_REVIEW
    return is_open and task.get("claim_stamp") is not None


def find_reviewer(
    task_id: str, entries: Iterable[JournalEntry], agents: Mapping[str, Values]
) -> str | None:
    """Who claimed the review of a task in a transaction; None if nobody can say.

    It is the agent that has moved to the task there, or, if it was there before, that acted.
    """
    acted: str | None = None
    for entry in entries:
        if entry.entity == AGENT and (entry.after or {}).get("task_id") == task_id:
            return entry.key
        if entry.entity == TASK and entry.key == task_id:
            acted = entry.agent
    named = (key for key, each in agents.items() if each.get("name") == acted)
    return next(named, None) if acted else None


def _find_end(
    before: Values | None, after: Values | None, holder: tuple[str | None, bool] | None
) -> ClaimEnd:
    """How a claim ended, from the task before and after."""
    if after is None:
        return ClaimEnd.REMOVED
    status = after.get("status")
    if status == TaskStatus.COMPLETED:
        return ClaimEnd.COMPLETED
    was = (before or {}).get("status")
    if status == TaskStatus.QUALITY_REVIEW and was == TaskStatus.IN_PROGRESS:
        return ClaimEnd.HANDED_IN
    if holder is not None:
        return ClaimEnd.TAKEN_OVER
    more = after.get("retry_count", 0) > (before or {}).get("retry_count", 0)
    return ClaimEnd.FAILED if more else ClaimEnd.RELEASED


def find_marks(rows: KeyedRows, entries: Iterable[JournalEntry]) -> list[LaneMark]:
    """The questions that agents asked, and when they were answered.

    That is what they wait for a person with, what they ask each other, and messages that need a
    response. Arguments are as for `trace_spans`.
    """
    known = {kind: dict(each) for kind, each in rows.items()}
    found: list[LaneMark] = []
    for entry in entries:
        there = known.setdefault(entry.entity, {})
        before = there.get(entry.key)
        after = redo_entry(entry, before)
        _put(there, entry.key, after)
        if after is not None and entry.entity != TASK:
            found += _MARKS[entry.entity](entry, before or {}, after)
    return found


def _agent_marks(entry: JournalEntry, before: Values, after: Values) -> Iterator[LaneMark]:
    was, asks = (each.get("status") == AgentStatus.WAITING_FOR_INPUT for each in (before, after))
    if was == asks:
        return
    kind = MarkKind.ASKED if asks else MarkKind.ANSWERED
    questions = (after if asks else before).get("pending_questions")
    text = "\n".join(_texts(questions)) or "it waits for a person"
    task = (after if asks else before).get("task_id")
    yield _mark(kind, entry, entry.key, text, task)


def _question_marks(entry: JournalEntry, before: Values, after: Values) -> Iterator[LaneMark]:
    asker, task = after.get("from_agent_id"), after.get("task_id")
    if entry.op is Op.ADD:
        yield _mark(MarkKind.ASKED, entry, asker, after.get("question", ""), task)
    if after.get("answer") is not None and before.get("answer") is None:
        yield _mark(MarkKind.ANSWERED, entry, asker, after["answer"], task)


def _message_marks(entry: JournalEntry, before: Values, after: Values) -> Iterator[LaneMark]:
    sender = after.get("sender_id")
    if sender is None or not after.get("requires_response"):
        return
    if entry.op is Op.ADD:
        yield _mark(MarkKind.ASKED, entry, sender, after.get("content", ""))
    if after.get("status") == "responded" != before.get("status"):
        yield _mark(MarkKind.ANSWERED, entry, sender, after.get("content", ""))


_MARKS = {AGENT: _agent_marks, QUESTION: _question_marks, MESSAGE: _message_marks}


def _mark(
    kind: MarkKind, entry: JournalEntry, agent_id: str | None, text: str, task: str | None = None
) -> LaneMark:
    return LaneMark(kind, entry.time, agent_id, None, task, entry.key, text[:LONGEST_TEXT])


def _texts(questions: object) -> Iterator[str]:
    """The texts of what an agent waits with, which is any JSON."""
    for each in questions if isinstance(questions, list) else [questions]:
        text: Any = each.get("question") or each.get("text") if isinstance(each, dict) else each
        if text:
            yield str(text)


def _claim_time(task: Values) -> datetime | None:
    """When the claim of a held task was made."""
    stamp = task.get("claim_stamp")
    return Stamp.parse(stamp).wall if stamp else _time(task.get("updated_at"))


def _time(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None


LEAST_SHARE = 12
"""A time in which nothing happens is left out if it is longer than this part of the window."""
LEAST_GAP = timedelta(minutes=2)


def find_tracks(spans: Sequence[LaneSpan]) -> tuple[list[int], int]:
    """The track of each span, from 0 on, and how many there are: no two claims stand in one place.

    The spans of one claim share a track. Spans are in the order of their begin.
    """
    ends = {span.claim: span.until for span in spans}  # the last of a claim is the one that counts
    tracks: dict[ClaimKey, int] = {}
    free: list[datetime | None] = []
    for span in spans:
        if span.claim in tracks:
            continue
        at = next((n for n, end in enumerate(free) if end is not None and end <= span.since), None)
        if at is None:
            at = len(free)
            free.append(None)
        free[at] = ends[span.claim]
        tracks[span.claim] = at
    return [tracks[span.claim] for span in spans], len(free)


def idle_gaps(
    spans: Iterable[LaneSpan],
    marks: Iterable[LaneMark],
    begin: datetime,
    end: datetime,
    now: datetime,
) -> list[tuple[datetime, datetime]]:
    """The long times of a window in which nobody held anything and nothing was asked.

    What lasts, lasts until `now`. What comes after it is no gap.
    """
    least = max(LEAST_GAP, (end - begin) / LEAST_SHARE)
    busy = sorted(
        [
            *((span.since, span.until or now) for span in spans),
            *((mark.at, mark.at) for mark in marks),
            (min(now, end), end),
        ]
    )
    gaps, reached = [], begin
    for since, until in busy:
        if since - reached > least:
            gaps.append((reached, min(since, end)))
        reached = max(reached, until)
    return gaps
