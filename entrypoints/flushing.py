"""From the spool into the record: what waits there, found in its place, flushed and confirmed.

A flush that fails leaves the spool as it is and writes down why, for `herdbook doctor`.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from herdbook.adapters import folders, halted, spool
from herdbook.adapters.git import history
from herdbook.adapters.git.program import elsewhere
from herdbook.domain.errors import HerdbookError
from herdbook.domain.events import Event, is_commit, told_hash
from herdbook.domain.places import Area
from herdbook.entrypoints.bootstrap import Here
from herdbook.ports.unit_of_work import UnitOfWork
from herdbook.services import tracking
from herdbook.services.tracking import FlushReport

REASON = "this agent is halted: it has no skill points left. A person may reinstate it"


def buffered(here: Here) -> list[Event]:
    """What waits to be flushed; it stays where it is."""
    return located(here, spool.buffered().events)


def flush(here: Here) -> FlushReport:
    """Write what waits into the record and let it go; where that fails, it goes on waiting."""
    taken = spool.taken()
    events = located(here, taken.events)
    try:
        report = here.run(Area.RECORD, tracking.flush, events) if events else EMPTY
    except HerdbookError as error:
        _note_failure(f"{len(events)} events wait: {error}")
        raise
    lines = {each.id: each for each in taken}
    for event_id, reason in report.aside:
        line = json.dumps(lines[event_id]._asdict(), ensure_ascii=False)
        taken.aside.append(spool.Aside(event_id, line, reason))
    mark_halted(here, report.sessions.items())
    taken.confirm()
    _note_failure(None)
    aside = [(each.place, each.reason) for each in taken.aside]
    return report._replace(aside=aside)


EMPTY = FlushReport(0, 0, 0, [], {})


def is_due(here: Here) -> bool:
    """Whether the spool is larger or older than the settings allow."""
    waiting = spool.waiting()
    if waiting.since is None:
        return False
    age = time.time() - waiting.since
    return bool(age >= here.setting("flush_after") or waiting.size >= here.setting("flush_size"))


def flush_if_due(here: Here) -> None:
    """Flush what has waited for too long; trouble with it is a warning and stops nobody."""
    if is_due(here):
        flush_gently(here)


def flush_if_any(here: Here) -> None:
    """Flush whatever waits, for who is about to learn from the whole record."""
    if spool.waiting().since is not None:
        flush_gently(here)


def flush_gently(here: Here) -> None:
    """Flush; trouble with it is a warning and stops nobody."""
    try:
        flush(here)
    except HerdbookError as error:
        here.warn(f"{error}. What the hooks left is safe and waits in the spool")


def mark_halted(here: Here, sessions: Iterable[tuple[str, str]] = ()) -> None:
    """Keep a marker for every halted agent and its sessions, if halts are to be enforced."""
    if not here.setting("enforce_halt"):
        halted.halt_only({})
        return

    def question(uow: UnitOfWork) -> tuple[dict[str, str], list[str]]:
        agents = [each.agent for each in tracking.standing_with(uow) if not each.active]
        return tracking.halted_sessions(uow, list(sessions)), agents

    found, agents = here.read(Area.RECORD, question)
    halted.halt_only(
        {session: f"{agent}: {REASON}" for session, agent in found.items()},
        {agent: f"{agent}: {REASON}" for agent in agents},
    )


def located(here: Here, events: Sequence[spool.Event]) -> list[Event]:
    """The events with what git knows of the places where they happened."""
    variables = elsewhere(here.variables)
    there = {each.cwd for each in events if each.cwd and Path(each.cwd).is_dir()}
    places = {folder: Here(Path(folder), variables) for folder in there}
    found = [
        each._replace(project=places[each.cwd].repository_id) if each.cwd in places else each
        for each in (Event(*each) for each in events)
    ]
    waiting: dict[str, list[int]] = defaultdict(list)
    for number, event in enumerate(found):
        if is_commit(event) and event.project is not None:
            known = told_hash(event)
            if known is None:
                waiting[places[event.cwd].ground.worktree or event.cwd].append(number)
                continue
            found[number] = _of(event, history.named(event.cwd, known, variables))
    for root, numbers in waiting.items():
        numbers.sort(key=lambda number: found[number].at)
        seconds = [found[number].at // 1_000_000 for number in numbers]
        revisions = history.told_of(history.moves(root, variables), seconds)
        for number, revision in zip(numbers, revisions, strict=True):
            found[number] = _of(found[number], revision)
    return found


def _of(event: Event, revision: history.Revision | None) -> Event:
    if revision is None:
        return event
    return event._replace(commit_hash=revision.commit_hash, subject=revision.subject)


def last_failure() -> str | None:
    """Why the last flush did not work; None if it did."""
    try:
        return _failure_file().read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def as_answer(report: FlushReport) -> dict[str, Any]:
    """What a flush did, as it goes into JSON."""
    return {
        "applied": report.applied,
        "doubled": report.doubled,
        "uncounted": report.uncounted,
        "aside": [{"event": place, "reason": reason} for place, reason in report.aside],
    }


def _failure_file() -> Path:
    return folders.state_folder() / "flush-failed"


def _note_failure(reason: str | None) -> None:
    file = _failure_file()
    if reason is None:
        file.unlink(missing_ok=True)
        return
    try:
        folders.make_private(file.parent)
        folders.write_private(file, reason)
    except OSError:  # where the disk is full it cannot be noted either, and must not hide why
        return
