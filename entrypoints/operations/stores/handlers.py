"""Stores as a whole: `copy`, `merge` and `check`."""

from typing import Any

from attrs import asdict

from herdbook.adapters.stores.urls import shown_url
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import StoreLocation
from herdbook.entrypoints.context import AppContext
from herdbook.services.stores import copy_spaces, merge_spaces, store_check


def copy(here: AppContext, *, source: str, target: str) -> dict[str, Any]:
    """Copy a store with its journal; raises CopyDiffers if both are not equal in the end."""
    to = _writable_location(here, target)
    with (
        here.stores.open_at(here.workspace.locate_named(source)) as one,
        here.stores.open_at(to, create=True) as other,
    ):
        report = copy_spaces.copy(one, other, progress=here.progress)
        spaces = [asdict(each) for each in report.spaces]
        return {"source": one.url, "target": other.url, "spaces": spaces}


def merge(here: AppContext, *, source: str, target: str) -> dict[str, Any]:
    """Copy missing rows from one store into another; rows that are there are not changed."""
    to = _writable_location(here, target)
    with (
        here.stores.open_at(here.workspace.locate_named(source)) as one,
        here.stores.open_at(to, create=True) as other,
    ):
        report = merge_spaces.merge(
            one,
            other,
            actor=here.actor,
            experience=here.workspace.experience,
            progress=here.progress,
        )
        return {
            "source": one.url,
            "target": other.url,
            "added": report.added,
            "kept": report.kept,
            "failed": [asdict(each) for each in report.failed],
            "ok": not report.failed,
        }


def check(here: AppContext, *, area: str | None, repair: bool) -> dict[str, Any]:
    """Verify the integrity of the stores; `repair` first rebuilds derived rows and lookups."""
    areas = [Area(area)] if area is not None else list(Area)
    stores = []
    for url, place in {
        here.workspace.locate(each).url: here.workspace.locate(each) for each in areas
    }.items():
        if not here.workspace.store_exists(place):
            stores.append({"url": shown_url(url), "exists": False, "repaired": None, "flaws": []})
        else:
            stores.append(_check_store(here, place, repair=repair))
    return {"stores": stores, "ok": not any(each["flaws"] for each in stores)}


def _check_store(here: AppContext, place: StoreLocation, *, repair: bool) -> dict[str, Any]:
    with here.stores.open_at(place, verify=True) as store:
        repaired = None
        if repair:
            rebuilt = store_check.repair(store, experience=here.workspace.experience)
            repaired = {"derived": rebuilt.derived, "lookups": rebuilt.lookups}
        flaws = store_check.check(
            store, experience=here.workspace.experience, progress=here.progress
        )
        return {
            "url": store.url,
            "exists": True,
            "repaired": repaired,
            "flaws": [asdict(flaw) for flaw in flaws],
        }


def _writable_location(here: AppContext, value: str) -> StoreLocation:
    place = here.workspace.locate_named(value)
    if place.scheme == "memory":
        raise InvalidValue("target", "a store in memory would be gone with this command")
    return place
