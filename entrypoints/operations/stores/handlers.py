"""Stores as a whole: `copy`, `merge` and `check`."""

from typing import Any

from attrs import asdict

from herdbook.adapters.stores.urls import shown_url
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import StoreLocation
from herdbook.entrypoints.context import AppContext
from herdbook.services.stores import copy_spaces, merge_spaces, store_check


def copy(app: AppContext, *, source: str, target: str) -> dict[str, Any]:
    """Copy a store with its journal; raises CopyDiffers if both are not equal in the end."""
    to = _writable_location(app, target)
    with (
        app.stores.open_at(app.workspace.locate_named(source)) as one,
        app.stores.open_at(to, create=True) as other,
    ):
        report = copy_spaces.copy(one, other, progress=app.progress)
        spaces = [asdict(each) for each in report.spaces]
        return {"source": one.url, "target": other.url, "spaces": spaces}


def merge(app: AppContext, *, source: str, target: str) -> dict[str, Any]:
    """Copy missing rows from one store into another; rows that are there are not changed."""
    to = _writable_location(app, target)
    with (
        app.stores.open_at(app.workspace.locate_named(source)) as one,
        app.stores.open_at(to, create=True) as other,
    ):
        report = merge_spaces.merge(
            one,
            other,
            actor=app.actor,
            experience=app.workspace.experience,
            progress=app.progress,
        )
        return {
            "source": one.url,
            "target": other.url,
            "added": report.added,
            "kept": report.kept,
            "failed": [asdict(each) for each in report.failed],
            "ok": not report.failed,
        }


def check(app: AppContext, *, area: str | None, repair: bool) -> dict[str, Any]:
    """Verify the integrity of the stores; `repair` first rebuilds derived rows and lookups."""
    areas = [Area(area)] if area is not None else list(Area)
    stores = []
    for url, place in {
        app.workspace.locate(each).url: app.workspace.locate(each) for each in areas
    }.items():
        if not app.workspace.store_exists(place):
            stores.append({"url": shown_url(url), "exists": False, "repaired": None, "flaws": []})
        else:
            stores.append(_check_store(app, place, repair=repair))
    return {"stores": stores, "ok": not any(each["flaws"] for each in stores)}


def _check_store(app: AppContext, place: StoreLocation, *, repair: bool) -> dict[str, Any]:
    with app.stores.open_at(place, verify=True) as store:
        repaired = None
        if repair:
            rebuilt = store_check.repair(store, experience=app.workspace.experience)
            repaired = {"derived": rebuilt.derived, "lookups": rebuilt.lookups}
        flaws = store_check.check(store, experience=app.workspace.experience, progress=app.progress)
        return {
            "url": store.url,
            "exists": True,
            "repaired": repaired,
            "flaws": [asdict(flaw) for flaw in flaws],
        }


def _writable_location(app: AppContext, value: str) -> StoreLocation:
    place = app.workspace.locate_named(value)
    if place.scheme == "memory":
        raise InvalidValue("target", "a store in memory would be gone with this command")
    return place
