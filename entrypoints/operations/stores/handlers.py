"""Stores as a whole: `copy`, `merge` and `check`."""

from typing import Any, TypedDict

from attrs import asdict

from herdbook.adapters.stores.urls import shown_url
from herdbook.adapters.user_state import known_stores
from herdbook.domain.errors import InvalidValue, SettingUntrusted
from herdbook.domain.location.areas import Area, area_of
from herdbook.domain.location.resolve import StoreLocation
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.engine.store import Store
from herdbook.services.agents import accounts
from herdbook.services.stores import copy_spaces, merge_spaces, store_check
from herdbook.services.stores.store_check import Flaw


class CopyAnswer(TypedDict):
    """The stores of a copy, and what was copied by space, as in `copy_spaces.CopiedSpace`."""

    source: str
    target: str
    spaces: list[dict[str, Any]]


class MergeAnswer(TypedDict):
    """The stores of a merge, and its result, as in `merge_spaces.MergeReport`."""

    source: str
    target: str
    added: int
    kept: int
    failed: list[dict[str, Any]]
    ok: bool


class RepairedRows(TypedDict):
    """How many derived rows and lookup entries were rebuilt."""

    derived: int
    lookups: int


class StoreCheck(TypedDict):
    """What was repaired in a store, and what is wrong in it."""

    url: str
    exists: bool
    repaired: RepairedRows | None
    flaws: list[Flaw]


class CheckAnswer(TypedDict):
    """The stores that were checked, and whether nothing is wrong in any."""

    stores: list[StoreCheck]
    ok: bool


def copy(app: AppContext, *, source: str, target: str) -> CopyAnswer:
    """Copy a store with its journal; raises CopyDiffers if both are not equal in the end.

    Into the area `checkpoints`, another worktree's checkpoints become those of this one. Raises
    InvalidValue if those of several would.
    """
    to = _writable_location(app, target)
    with (
        app.stores.open_at(app.workspace.locate_named(source, "source")) as one,
        app.stores.open_at(to, create=True) as other,
    ):
        into = _checkpoint_spaces(app, one, target)
        if len(into) > 1 and app.workspace.space(Area.CHECKPOINTS) not in into:
            raise InvalidValue(
                "source",
                f"has the checkpoints of {len(into)} worktrees, which cannot all become those of "
                "this one; `merge` brings their threads",
            )
        report = copy_spaces.copy(
            one, other, into=into if len(into) == 1 else None, progress=app.progress
        )
        if to.url == app.workspace.locate(to.area).url:  # else it is a copy that nobody works on
            for each in report.spaces:
                known_stores.note_use(shown_url(to.url), each.space)
        spaces = [asdict(each) for each in report.spaces]
        return {"source": one.url, "target": other.url, "spaces": spaces}


def merge(app: AppContext, *, source: str, target: str) -> MergeAnswer:
    """Copy missing rows from one store into another; rows that are there are not changed.

    Into the area `checkpoints`, the threads of all worktrees become threads of this one.
    """
    to = _writable_location(app, target)
    with (
        app.stores.open_at(app.workspace.locate_named(source, "source")) as one,
        app.stores.open_at(to, create=True) as other,
    ):
        report = merge_spaces.merge(
            one,
            other,
            # Its own threads first: of several threads with one name the first comes.
            sorted(one.spaces(), key=lambda each: each != app.workspace.space(Area.CHECKPOINTS)),
            into=_checkpoint_spaces(app, one, target),
            actor=app.actor,
            experience=app.workspace.experience,
            progress=app.progress,
        )
        answer: MergeAnswer = {
            "source": one.url,
            "target": other.url,
            "added": report.added,
            "kept": report.kept,
            "failed": [asdict(each) for each in report.failed],
            "ok": not report.failed,
        }
    if to.url == app.workspace.locate(Area.RECORD).url:
        from herdbook.entrypoints.hooks import spool_flush  # noqa: PLC0415 - only for a record

        spool_flush.mark_halted(app)
    return answer


def _checkpoint_spaces(app: AppContext, source: Store, target: str) -> dict[str, str]:
    """The spaces of checkpoints that are brought to this worktree, and its own for each.

    They keep their names, and belong to whom they belong, unless the target is the area's name.
    """
    if target != Area.CHECKPOINTS:
        return {}
    here = app.workspace.space(Area.CHECKPOINTS)
    return {each: here for each in source.spaces() if area_of(each) is Area.CHECKPOINTS}


def check(app: AppContext, *, area: str | None, repair: bool) -> CheckAnswer:
    """Verify the integrity of the stores; `repair` first rebuilds derived rows and lookups."""
    areas = [Area(area)] if area is not None else list(Area)
    stores: list[StoreCheck] = []
    for url, place in {
        app.workspace.locate(each).url: app.workspace.locate(each) for each in areas
    }.items():
        if not app.workspace.store_exists(place):
            stores.append({"url": shown_url(url), "exists": False, "repaired": None, "flaws": []})
        else:
            stores.append(_check_store(app, place, repair=repair))
    if Area.WORK in areas:
        _check_accounts(app, stores, repair=repair)
    return {"stores": stores, "ok": not any(each["flaws"] for each in stores)}


def _check_accounts(app: AppContext, stores: list[StoreCheck], *, repair: bool) -> None:
    """Report agents that run on an account which the record no longer has; `repair` empties it."""
    record = app.read(Area.RECORD, lambda uow: {each.id for each in uow.accounts.page()})
    lost = app.read(Area.WORK, accounts.agents_on_others, record)
    if lost and repair:
        app.run(Area.WORK, accounts.clear_from_agents, {str(each.account_id) for each in lost})
        return
    url = shown_url(app.workspace.locate(Area.WORK).url)
    for store in stores:
        if shown_url(store["url"]) == url:
            store["flaws"] += [
                Flaw(
                    app.workspace.space(Area.WORK),
                    AGENTS.name,
                    each.id,
                    f"the record has no account {each.account_id}; "
                    "`herdbook check --repair` empties the field",
                )
                for each in lost
            ]


def _check_store(app: AppContext, place: StoreLocation, *, repair: bool) -> StoreCheck:
    with app.stores.open_at(place, verify=True) as store:
        repaired: RepairedRows | None = None
        if repair:
            rebuilt = store_check.repair(store, experience=app.workspace.experience)
            repaired = answer_from(RepairedRows, rebuilt)
        flaws = store_check.check(store, experience=app.workspace.experience, progress=app.progress)
        return {
            "url": store.url,
            "exists": True,
            "repaired": repaired,
            "flaws": list(flaws),
        }


def _writable_location(app: AppContext, value: str) -> StoreLocation:
    place = app.workspace.locate_named(value, "target")
    if place.scheme == "memory":
        raise InvalidValue("target", "a store in memory would be gone with this command")
    if place.untrusted is not None:
        raise SettingUntrusted(*place.untrusted)
    return place
