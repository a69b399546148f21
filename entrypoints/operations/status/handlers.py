"""Who works on what, over all worktrees: `status`."""

import os
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from herdbook.adapters.stores.registry import is_in_files
from herdbook.adapters.stores.urls import path_of, shown_url
from herdbook.adapters.user_state import known_stores
from herdbook.domain.agents.model import Worktree
from herdbook.domain.errors import HerdbookError, InvalidValue, NotFound
from herdbook.domain.journal import JournalEntry, Position
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import StoreLocation
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.operations.past_answer import PastAnswer, PastNote, past_note
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.status import Status, StatusRow, entry_names, status_line
from herdbook.services.plan.status import status as status_of


class RowAnswer(TypedDict):
    """An agent, or a held task, of one worktree."""

    worktree_id: str | None
    branch: str | None
    path: str | None
    agent_id: str | None
    agent: str | None
    session_id: str | None
    status: str | None
    task_id: str | None
    task: str | None
    since: datetime
    seconds: float
    lease_until: datetime | None
    lease_seconds: float | None
    waiting_for: list[str]
    last_entry: dict[str, Any] | None


class TaskCounts(TypedDict):
    """How many tasks are ready, held and waiting."""

    ready: int
    held: int
    waiting: int


class SpaceAnswer(TypedDict):
    """The status of one space."""

    space: str
    url: str
    worktrees: list[dict[str, Any]]
    rows: list[RowAnswer]
    tasks: TaskCounts
    last_entry: dict[str, Any] | None
    noted: list[dict[str, Any]]
    as_of: NotRequired[PastAnswer]


class StatusAnswer(TypedDict):
    """The status of the spaces, and the settings that override the user's own.

    A `line`, if asked for, is all of it in a few words; then there are no spaces.
    """

    spaces: list[SpaceAnswer]
    notes: list[str]
    line: NotRequired[str]


def status(
    app: AppContext,
    *,
    worktree: str | None,
    all: bool,  # noqa: A002 - the option's name
    line: bool = False,
    at: Position | None = None,
) -> StatusAnswer:
    """Which agent works on what in every worktree, since when, and what it waits for."""
    if all and isinstance(at, int):
        raise InvalidValue("all", "needs a time: each repository counts its own changes")
    if line:
        return {"spaces": [], "notes": [], "line": app.read(Area.WORK, status_line, at=at)}
    place, space = app.workspace.locate(Area.WORK), app.workspace.space(Area.WORK)
    for note in place.notes:
        app.warn(note)
    exists = app.workspace.store_exists(place)
    there = place if exists else place._replace(url="memory://")
    with app.stores.open_at(there) as store:
        spaces = [_space(app, store, space, worktree, at)]
        if all:
            others = [each for each in store.spaces() if each.startswith("work/")]
            spaces += [_space(app, store, each, None, at) for each in others if each != space]
    if not exists:
        spaces[0]["url"] = shown_url(place.url)
    if all:
        spaces += _other_spaces(app, {(each["url"], each["space"]) for each in spaces}, at)
    return {"spaces": spaces, "notes": list(app.workspace.overrides)}


def _is_outdated(app: AppContext, found: Status) -> bool:
    """Whether an agent of this host may have crashed, or a lease is over that may be renewed."""
    if any(row.lease_until is not None and row.lease_until <= found.now for row in found.rows):
        return True
    agents = [
        row.agent for row in found.rows if row.agent is not None and row.agent.pid is not None
    ]
    if not agents:
        return False
    from herdbook.adapters.system.processes import process_start  # noqa: PLC0415 - seldom needed
    from herdbook.services.agents.liveness import any_crashed  # noqa: PLC0415

    return any_crashed(agents, app.workspace.host, process_start)


def _other_spaces(
    app: AppContext, seen: set[tuple[str, str]], at: Position | None
) -> list[SpaceAnswer]:
    """The other spaces this user has written to; one that cannot be read is a warning."""
    found = []
    for url, space in known_stores.list_uses():
        if (url, space) in seen or not space.startswith(f"{Area.WORK}/"):
            continue
        try:
            place = app.workspace.locate_named(url)
            if not _is_own(place):
                continue
            with app.stores.open_at(place) as store:
                found.append(_space(app, store, space, None, at))
        except HerdbookError as error:
            app.warn(str(error))
    return found


def _is_own(place: StoreLocation) -> bool:
    """Whether the store at a location is one that this user created or trusted."""
    if not is_in_files(place.url):
        return True
    path = path_of(place.url)
    return known_stores.was_made_here(place.scheme, path) or known_stores.is_trusted(
        known_stores.identity_of(place.scheme, path)
    )


def _space(
    app: AppContext, store: Store, space: str, worktree: str | None, at: Position | None
) -> SpaceAnswer:
    found, names, note = read(
        store, space, app.note_past(_read_status), at=at, past_cache=app.past_cache
    )
    if at is None and space == app.workspace.space(Area.WORK) and _is_outdated(app, found):
        from herdbook.entrypoints import liveness  # noqa: PLC0415 - seldom needed

        liveness.update(app)
        found, names, note = read(store, space, _read_status)
    worktrees = {each.id: each for each in found.worktrees}
    rows: tuple[StatusRow, ...] = found.rows
    if worktree is not None:
        wanted = _matching_ids(app, worktree, found.worktrees)
        rows = tuple(row for row in rows if row.worktree_id in wanted)
    return {
        "space": space,
        "url": store.url,
        "worktrees": [
            {
                "worktree_id": each.id,
                "path": each.path,
                "branch": each.branch,
                "is_main": each.is_main,
                "last_seen_at": each.last_seen_at,
            }
            for each in found.worktrees
        ],
        "rows": [_row(row, found, worktrees, names) for row in rows],
        "tasks": {"ready": found.ready, "held": found.held, "waiting": found.waiting},
        "last_entry": _entry(found.last_entry, names) if found.last_entry is not None else None,
        "noted": [_entry(each, names) for each in found.noted],
        **note,
    }


def _read_status(uow: UnitOfWork) -> tuple[Status, dict[int, str], PastNote]:
    found = status_of(uow)
    return found, entry_names(uow, found), past_note(uow)


def _matching_ids(app: AppContext, asked: str, worktrees: tuple[Worktree, ...]) -> set[str]:
    """The ids of the worktrees with this id, path or branch; NotFound if there is none."""
    path = _real_path(app, asked)
    found = {
        each.id
        for each in worktrees
        if asked in (each.id, each.branch) or each.path in (asked, path)
    }
    own = app.workspace.worktree_id
    if own is not None and app.workspace.facts is not None:
        top = text_of(app.workspace.facts.top_level or "")
        if asked in (own, app.workspace.facts.branch, top) or path == top:
            found.add(own)
    if not found:
        raise NotFound("worktree", asked)
    return found


def _real_path(app: AppContext, asked: str) -> str | None:
    """The absolute path of a text; None if it cannot be a path."""
    try:
        return text_of(os.path.realpath(app.workspace.folder / asked))
    except ValueError:  # a NUL, or half a character
        return None


def _row(
    row: StatusRow, found: Status, worktrees: dict[str, Worktree], names: dict[int, str]
) -> RowAnswer:
    worktree = worktrees.get(row.worktree_id or "")
    agent, task = row.agent, row.task
    left = row.lease_until - found.now if row.lease_until is not None else None
    return {
        "worktree_id": row.worktree_id,
        "branch": worktree.branch if worktree is not None else None,
        "path": worktree.path if worktree is not None else None,
        "agent_id": agent.id if agent is not None else None,
        "agent": agent.name if agent is not None else None,
        "session_id": agent.session_id if agent is not None else None,
        "status": agent.status if agent is not None else None,
        "task_id": task.id if task is not None else None,
        "task": task.name if task is not None else None,
        "since": row.since,
        "seconds": (found.now - row.since).total_seconds(),
        "lease_until": row.lease_until,
        "lease_seconds": left.total_seconds() if left is not None else None,
        "waiting_for": list(row.waiting_for),
        "last_entry": _entry(row.last_entry, names) if row.last_entry is not None else None,
    }


def _entry(entry: JournalEntry, names: dict[int, str]) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "at": entry.time,
        "op": entry.op,
        "entity": entry.entity,
        "key": entry.key,
        "name": names.get(entry.seq),
        "agent": entry.agent,
        "person": entry.person,
        "worktree_id": entry.worktree,
        "note": entry.note,
    }
