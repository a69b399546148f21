"""The journal: pages, the history of a row, following, cursors and folding."""

from collections.abc import Iterator
from contextlib import closing, nullcontext
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import TypedDict

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import FOLLOWER, JournalCursor, JournalEntry, Op, Position
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext, describe_process
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.entrypoints.operations.parameter_converter import parse_duration
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.journal import history as told
from herdbook.services.journal import prune as folding
from herdbook.services.journal import watch
from herdbook.services.journal.differences import Differences, differences
from herdbook.services.journal.follower_cursor import FollowerCursor

SHOWN = 100
"""How many of the last entries are shown by default."""


class PruneAnswer(TypedDict):
    """What was folded, or would be; `digest` is that of all other rows, before and after alike."""

    space: str
    preview: bool
    folded: int
    batches: int
    first: int
    last: int
    since: datetime | None
    digest: str | None
    oldest_cursor: str | None


class CursorAnswer(TypedDict):
    """A cursor, how many entries it has not read, and whether it still holds any."""

    cursor: str
    seq: int
    behind: int
    holder: str
    updated_at: datetime
    expires_at: datetime | None
    live: bool


class ReleaseAnswer(TypedDict):
    """Whether there was such a cursor."""

    cursor: str
    released: bool


def list_(
    app: AppContext,
    *,
    after: int | None,
    before: int | None,
    since: int | None,
    follow: bool,
    limit: int | None,
) -> Iterator[JournalEntry]:
    """A page of the journal, the newest by default, or the journal as it is written.

    If not all of what was asked for is on it, its place in the journal is told.
    """
    if after is not None and since is not None:
        raise InvalidValue("since", "is the same as after, which is given too")
    after = since if after is None else after
    if follow and before is not None:
        raise InvalidValue("before", "cannot be combined with follow")
    if follow:
        yield from _follow(app, after, limit)
        return
    if not app.workspace.store_exists(app.workspace.locate(Area.WORK)):
        return
    limit = SHOWN if limit is None else limit
    with app.open(Area.WORK) as store:
        space = app.workspace.space(Area.WORK)
        folded, last = read(store, space, _bounds, after)
        end = last if before is None else min(last, before - 1)
        begin = max(folded, end - limit) if after is None else after
        wanted, end = end, min(end, max(begin, 0) + limit)
        left_out = []
        if after is None and begin > folded:
            left_out.append(f"--before {begin + 1} lists earlier ones")
        if end < wanted:
            left_out.append(f"--after {end} lists later ones")
        if app.is_command and left_out:
            begins = [f"the journal begins at #{folded + 1}"] if folded else []
            shown = f"{end - max(begin, 0)} of {last - folded} entries"
            app.warn("; ".join([shown, *left_out, *begins]))
        if begin < end or after is not None:
            found = watch.follow_journal(store, space, begin, stop=lambda: True)
            yield from takewhile(lambda entry: entry.seq <= end, found)


def _bounds(uow: UnitOfWork, after: int | None = None) -> tuple[int, int]:
    """The numbers of the last folded entry and of the last; JournalPruned if `after` is folded."""
    if after is not None:
        uow.journal.require(after)
    return uow.journal.pruned_to(), uow.journal.last()


def _follow(app: AppContext, after: int | None, limit: int | None) -> Iterator[JournalEntry]:
    with app.open(Area.WORK, create=True) as store:
        space = app.workspace.space(Area.WORK)
        if after is None:
            folded, last = read(store, space, _bounds)
            after = max(folded, last - (SHOWN if limit is None else limit))
        holder = describe_process(app, "journal follow")
        cursor = FollowerCursor(lambda: nullcontext(store), space, holder)
        with closing(watch.follow_holding(store, space, after, cursor)) as entries:
            yield from islice(entries, limit)


def since(
    app: AppContext, *, seq: int, limit: int, at: Position | None = None
) -> list[JournalEntry]:
    """A page of the journal, after a number; JournalPruned if the next entry was folded."""

    def inside(uow: UnitOfWork) -> list[JournalEntry]:
        return uow.journal.since(seq, limit=limit)

    return app.read(Area.WORK, inside, at=at)


def history(
    app: AppContext, *, before: int | None, limit: int, at: Position | None = None
) -> told.History:
    """The last transactions in words, newest first."""
    found: told.History = app.read(Area.WORK, told.list_history, before=before, limit=limit, at=at)
    steps = found["steps"]
    if app.is_command and steps and steps[-1]["entries"][0]["seq"] > found["first"]:
        shown = sum(len(each["entries"]) for each in steps)
        left = f"--before {steps[-1]['entries'][0]['seq']} shows earlier ones"
        app.warn(f"{shown} of {found['last'] - found['first'] + 1} changes; {left}")
    return found


def row_history(
    app: AppContext,
    *,
    id: str,  # noqa: A002 - the parameter's name
    at: Position | None = None,
) -> list[JournalEntry]:
    """The journal of one row, in order; NotFound if there never was one.

    Raises JournalPruned if everything that was known of it was folded; if its beginning was, a
    warning says so.
    """
    prefix = id.partition("_")[0]
    kind = next((each for each in DICTIONARY if each.prefix and each.prefix == prefix), None)
    if kind is None or kind.area is None or not kind.journalled:
        known = ", ".join(each.prefix for each in DICTIONARY if each.prefix and each.journalled)
        raise InvalidValue("id", f"must begin with the prefix of a kind of rows: {known}")

    def find_entries(uow: UnitOfWork) -> list[JournalEntry]:
        found = uow.journal.of_row(kind, id)
        found = found or uow.journal.of_row(kind, crud.key_of(uow, kind, id))
        if uow.journal.pruned_to() and not (found and found[0].op is Op.ADD):
            folded = uow.journal.pruned_error(what=f"what happened to {id!r} earlier is not known")
            if not found:
                raise folded
            app.warn(str(folded))
        return found

    return app.read(kind.area, find_entries, at=at)


def follow(app: AppContext, *, since: int | None) -> Iterator[JournalEntry]:
    """Follow the journal from now on, or from a number on."""
    if since is None:
        since = app.read(Area.WORK, lambda uow: uow.journal.last())
    return _follow(app, since, None)


def prune(
    app: AppContext, *, before: Position | None, keep: str | None, preview: bool, area: str
) -> PruneAnswer:
    """Fold old entries that every cursor has passed; InvalidValue for an agent.

    Only a person may decide that history goes.
    """
    app.require_person("prune", "do")
    of, space = Area(area), app.workspace.space(Area(area))
    with app.open(of) as store:
        plan: folding.PrunePlan = read(store, space, folding.plan_prune, before, _amount(keep))
        _warn_of_backup(app, plan)
        if preview:
            folded, batches, first, stamp, digest = plan.entries, 0, plan.to + 1, None, None
        else:
            report = folding.prune(store, space, plan.to, progress=app.progress)
            folded, batches, first = report.folded, report.batches, report.pruned_to + 1
            stamp, digest = report.since, report.digest
    return {
        "space": space,
        "preview": preview,
        "folded": folded,
        "batches": batches,
        "first": first,
        "last": plan.last,
        "since": stamp,
        "digest": digest,
        "oldest_cursor": plan.cursor.id if plan.cursor else None,
    }


def _warn_of_backup(app: AppContext, plan: folding.PrunePlan) -> None:
    """Warn of entries that are in no backup yet: once folded, nothing can be restored to them."""
    from herdbook.entrypoints.operations.backups import last_backups  # noqa: PLC0415 - only for this

    for each in last_backups.last_backups(app)["spaces"]:
        if each["space"] == plan.space and plan.pruned_to < plan.to > each["seq"]:
            seq = each["seq"]
            app.warn(f"entries after #{seq} are in no backup yet; `herdbook backup` makes one")


def _amount(text: str | None) -> int | timedelta | None:
    """A number of entries, or an age."""
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    age = parse_duration("keep", text)
    assert isinstance(age, timedelta)  # noqa: S101 - it parses nothing else
    return age


def diff(app: AppContext, *, since: Position, until: Position | None, limit: int) -> Differences:
    """What changed between two positions, or from one until now."""
    if isinstance(since, int) and isinstance(until, int) and since > until:
        raise InvalidValue("until", f"#{until} comes before #{since}; name the earlier one first")
    try:
        found = app.read(Area.WORK, differences, since, limit, at=until)
    except InvalidValue as error:
        if error.field != "at":
            raise
        raise InvalidValue("until", error.reason) from None
    app.past_note = ""  # the answer has both positions
    return found


def cursors(app: AppContext, *, area: str) -> list[CursorAnswer]:
    """All cursors of a space, those that have read least first."""

    def question(uow: UnitOfWork) -> list[CursorAnswer]:
        last = uow.journal.last()
        there = sorted(uow.cursors.page(), key=lambda each: (each.seq, each.id))
        return [
            answer_from(
                CursorAnswer,
                each,
                cursor=each.id,
                behind=last - each.seq,
                live=each.is_live(uow.now),
            )
            for each in there
        ]

    return app.read(Area(area), question)


def hold(
    app: AppContext,
    *,
    cursor: str,
    seq: int | None,
    holder: str | None,
    for_: timedelta | None,
    area: str,
) -> JournalCursor:
    """Hold the journal for a reader, or move its cursor."""

    def inside(uow: UnitOfWork) -> JournalCursor:
        if cursor.startswith(FOLLOWER):
            reason = f"must not begin with {FOLLOWER!r}: processes that follow have such cursors"
            raise InvalidValue("cursor", reason)
        who = holder or uow.actor.agent or uow.actor.person or "somebody"
        position = uow.journal.last() if seq is None else seq
        until = None if for_ is None else uow.now + for_
        return uow.cursors.hold(cursor, position, who, expires_at=until)

    return app.run(Area(area), inside)


def release(app: AppContext, *, cursor: str, area: str) -> ReleaseAnswer:
    """Release a cursor."""
    released = app.run(Area(area), lambda uow: uow.cursors.drop(cursor))
    return {"cursor": cursor, "released": released}
