"""`doctor`: runs the table of checks."""

from collections.abc import Callable
from typing import Any, TypeVar

from herdbook.adapters.stores.urls import shown_url
from herdbook.adapters.user_state import flush_notes, spool
from herdbook.domain.clock import is_ahead
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints import tracker_automerge
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.entrypoints.operations.backups.last_backups import last_backups
from herdbook.entrypoints.operations.doctor.answers import (
    CheckResultAnswer,
    DoctorAnswer,
    DoctorDetails,
    MergedDatabase,
    StoreAnswer,
)
from herdbook.entrypoints.operations.doctor.check_result import Health
from herdbook.entrypoints.operations.doctor.checks import run_checks
from herdbook.entrypoints.operations.doctor.installation import Installation
from herdbook.entrypoints.operations.doctor.state_checks import last_log_lines
from herdbook.entrypoints.operations.doctor.store_facts import StoreFacts

R = TypeVar("R")


def doctor(app: AppContext) -> DoctorAnswer:
    """The results of all checks, and what they looked at; `ok` unless there is a problem."""
    app.workspace.disregard_broken_repository()
    there = Installation(app)
    results: list[CheckResultAnswer] = [
        {"check": name, "health": each.health, "says": each.says, "advice": each.advice}
        for name, each in run_checks(there)
    ]
    return {
        "ok": all(each["health"] is not Health.PROBLEM for each in results),
        "checks": results,
        **_details(app, there),
    }


def _details(app: AppContext, there: Installation) -> DoctorDetails:
    """What programs read of the spool and the record, as far as it can be read."""
    record = there.store(Area.RECORD)
    waiting = _read_or(spool.backlog, spool.SpoolBacklog(0, None))
    return {
        "spool": str(spool.folder()),
        "waiting": {
            "events": _read_or(lambda: there.waiting_events, 0),
            "bytes": waiting.size,
            "since": waiting.since,
        },
        "last_failure": _read_or(flush_notes.last_failure, None),
        "store": {
            "url": None if record.place is None else shown_url(record.place.url),
            "trouble": record.trouble,
        },
        # What stands in a line is for the person at the keyboard alone.
        "aside": [
            each if app.is_command else each._replace(line="")
            for each in _read_list(spool.read_rejected)
        ],
        "without_project": [
            each._replace(folder=text_of(each.folder))
            for each in _read_list(flush_notes.list_unlocated)
        ],
        "dropped": [
            each._replace(folder=text_of(each.folder))
            for each in _read_list(flush_notes.list_dropped)
        ],
        "halted": _read_list(lambda: there.halted_agents),
        "enforce_halt": _read_or(lambda: app.workspace.setting("enforce_halt"), None),
        "merged": [
            answer_from(MergedDatabase, each, told=str(each))
            for each in _read_list(tracker_automerge.outcomes)
        ],
        "log": _read_list(last_log_lines),
        "clocks_ahead": [
            {"space": app.workspace.space(each.area), "seconds": _seconds_ahead(each.space)}
            for each in there.stores
            if each.space is not None and is_ahead(each.space.head.clock, each.space.now)
        ],
        "journals": [
            {
                "area": each.area,
                "space": app.workspace.space(each.area),
                "entries": each.space.entries,
                "first": each.space.head.pruned_to + 1,
                "bytes": each.space.bytes,
                "entries_in_a_week": each.space.in_a_week,
                "oldest_cursor": each.space.cursors[0].id if each.space.cursors else None,
            }
            for each in there.stores
            if each.space is not None
        ],
        "backups": _read_or(lambda: last_backups(app), None),
        "stores": [_describe_store(each) for each in there.stores],
        "server": _read_or(lambda: there.server_numbers, None),
    }


def _describe_store(facts: StoreFacts) -> StoreAnswer:
    place, space = facts.place, facts.space
    oldest = space.cursors[0] if space is not None and space.cursors else None
    return answer_from(
        StoreAnswer,
        facts,
        facts.probe,
        engine=None if place is None else place.scheme,
        url=None if place is None else shown_url(place.url),
        head=None if space is None else space.head.seq,
        cursor_behind=None if space is None or oldest is None else space.head.seq - oldest.seq,
    )


def _seconds_ahead(space: Any) -> float:
    return float((space.head.clock.wall - space.now).total_seconds())


def _read_or(read: Callable[[], R], otherwise: R) -> R:
    """What can be read; its check tells why it could not be."""
    try:
        return read()
    except (HerdbookError, OSError, ValueError):
        return otherwise


def _read_list(read: Callable[[], list[R]]) -> list[R]:
    """The list that can be read, or an empty one."""
    return _read_or(read, [])
