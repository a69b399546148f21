"""`doctor`: runs the table of checks."""

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

from herdbook.adapters.stores.urls import shown_url
from herdbook.adapters.user_state import spool
from herdbook.domain.clock import is_ahead
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.operations.backups.last_backups import last_backups
from herdbook.entrypoints.operations.doctor.check_result import Health
from herdbook.entrypoints.operations.doctor.checks import run_checks
from herdbook.entrypoints.operations.doctor.installation import Installation
from herdbook.entrypoints.operations.doctor.state_checks import hook_log

R = TypeVar("R")

LAST_LINES = 5
"""How many lines of the hooks' log are given."""


class CheckResultAnswer(TypedDict):
    """What one check found: `ok`, `warning` or `problem`, a sentence, and what to do."""

    check: str
    health: Health
    says: str
    advice: str | None


def doctor(app: AppContext) -> dict[str, Any]:
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


def _details(app: AppContext, there: Installation) -> dict[str, Any]:
    """What programs read of the spool and the record, as far as it can be read."""
    record = there.store(Area.RECORD)
    waiting = _read_or(lambda: there.waiting, spool.SpoolBacklog(0, None))
    return {
        "spool": str(spool.folder()),
        "waiting": {
            "events": _read_or(lambda: there.waiting_events, 0),
            "bytes": waiting.size,
            "since": waiting.since,
        },
        "last_failure": _read_or(lambda: there.last_failure, None),
        "store": {
            "url": None if record.place is None else shown_url(record.place.url),
            "trouble": record.trouble,
        },
        "aside": [each._asdict() for each in _read_list(lambda: there.aside)],
        "without_project": [
            {**each._asdict(), "folder": text_of(each.folder)}
            for each in _read_list(lambda: there.unlocated_notes)
        ],
        "dropped": [
            {**each._asdict(), "folder": text_of(each.folder)}
            for each in _read_list(lambda: there.dropped_notes)
        ],
        "halted": _read_list(lambda: there.halted_agents),
        "enforce_halt": _read_or(lambda: app.workspace.setting("enforce_halt"), None),
        "merged": [
            {**each._asdict(), "told": str(each)}
            for each in _read_list(lambda: there.merge_outcomes)
        ],
        "log": _read_list(_log),
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
    }


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


def _log() -> list[str]:
    try:
        text = hook_log().read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return text.splitlines()[-LAST_LINES:]
