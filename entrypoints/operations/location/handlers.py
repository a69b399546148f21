"""Locations of the stores, settings and trust: `where`, `config`, `trust`."""

from collections.abc import Iterator
from typing import Any, NotRequired, TypedDict

from herdbook.adapters.stores.registry import is_in_files
from herdbook.adapters.stores.urls import path_of, shown_url
from herdbook.adapters.user_state import known_stores
from herdbook.adapters.user_state import trust as trusting
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import StoreLocation
from herdbook.domain.location.settings import (
    DEFAULT,
    DEFAULTS,
    KEYS,
    WORKFLOW_VARIABLE,
    Scope,
    effective_setting,
    is_url,
)
from herdbook.entrypoints.context import AppContext


class AreaAnswer(TypedDict):
    """Where the store of an area is, which rule decided it, and what is there."""

    url: str
    scope: Scope | None
    decided_by: str
    exists: bool | None
    bytes: int | None
    schema_version: int | None
    space: str
    notes: list[str]


class WhereAnswer(TypedDict):
    """The identities of a folder, and its areas by name."""

    repository_id: str | None
    worktree_id: str | None
    branch: str | None
    doubt: str | None
    areas: dict[str, AreaAnswer]


class SettingAnswer(TypedDict):
    """The value of a setting, where it is set, and whether that is trusted."""

    value: Any
    origin: str
    trusted: bool
    notes: NotRequired[list[str]]


def where(app: AppContext) -> WhereAnswer:
    """The location of each area, and the rule that decided it; creates nothing."""
    return {
        "repository_id": app.workspace.repository_id,
        "worktree_id": app.workspace.worktree_id,
        "branch": app.workspace.facts.branch if app.workspace.facts else None,
        "doubt": app.workspace.repository_problem,
        "areas": {str(area): _area(app, area) for area in Area},
    }


def _area(app: AppContext, area: Area) -> AreaAnswer:
    place = app.workspace.locate(area)
    sight = app.workspace.probe(place)
    notes = list(place.notes)
    if place.backend_by is not None:
        notes.append(f"its engine was chosen by {place.backend_by}")
    notes += [note for _, note in _unused_limits(app, area)]
    if sight.problem is not None:
        notes.append(sight.problem)
    file = app.workspace.workflow_file if area is Area.CHECKPOINTS else None
    if file is not None:
        notes.append(
            f"a thread that is not here yet is read from {file} ({WORKFLOW_VARIABLE}), which is "
            "never written, and goes on here"
        )
    return {
        "url": shown_url(place.url),
        "scope": place.scope,
        "decided_by": str(place.decided_by),
        "exists": sight.exists,
        "bytes": sight.bytes,
        "schema_version": sight.schema_version,
        "space": app.workspace.space(area),
        "notes": notes,
    }


def config(app: AppContext) -> dict[str, SettingAnswer]:
    """The effective value of every setting, and where it is set."""
    answer: dict[str, SettingAnswer] = {}
    for key in KEYS:
        found = effective_setting(app.workspace.layers, key)
        value = DEFAULTS.get(key) if found is None else found.value
        answer[key] = {
            "value": shown_url(value) if isinstance(value, str) and is_url(value) else value,
            "origin": str(DEFAULT if found is None else found.origin),
            "trusted": True if found is None else found.trusted,
        }
    for key, note in (*_unused_limits(app, *Area), *app.workspace.ignored_settings.items()):
        answer[key].setdefault("notes", []).append(note)
    return answer


def _unused_limits(app: AppContext, *areas: Area) -> Iterator[tuple[str, str]]:
    """The size limits that are set for engines that keep none, each with a sentence about it."""
    for area in areas:
        found = app.workspace.unused_size_limit(area)
        if found is not None:
            engine = app.workspace.locate(area).scheme
            note = (
                f"{found.key} has no effect on {area}: a {engine} store grows while there is room"
            )
            yield found.key, note


def trust(app: AppContext, *, store: str | None, new: bool, revoke: bool) -> dict[str, Any]:
    """Trust the repository's settings file and its briefing with their present content, or a store.

    `new` accepts that a store is gone on purpose: an empty one may take its place. Raises
    InvalidValue for an agent, because only a person may trust.
    """
    app.require_person("trust", "give")
    if store is not None:
        return _trust_store(app, app.workspace.locate_named(store), new=new, revoke=revoke)
    if new:
        raise InvalidValue("new", "name the store that is gone")
    files, facts = app.workspace.settings_files, app.workspace.facts
    files += [each for each in (app.workspace.prime_file,) if each]
    if not files or facts is None:
        raise NotFound("settings file", "herdbook.toml or [tool.herdbook] of a repository")
    settings = {
        key: shown_url(each.value) if is_url(str(each.value)) else each.value
        for layer in app.workspace.layers
        for key, each in layer.items()
        if each.of_repository
    }
    for file in files:
        (trusting.revoke if revoke else trusting.trust)(file, facts.common_dir)
    answer = {"file": str(files[0]), "trusted": not revoke, "settings": settings}
    if files[1:]:
        answer["also"] = [str(each) for each in files[1:]]
    return answer


def _trust_store(
    app: AppContext, place: StoreLocation, *, new: bool, revoke: bool
) -> dict[str, Any]:
    if new:
        if app.workspace.probe(place).exists:
            raise InvalidValue("new", f"there is a store at {shown_url(place.url)}")
        app.workspace.forget_use(place)
    elif not is_in_files(place.url):
        raise InvalidValue("store", "only stores in files are trusted; a server says who may enter")
    else:
        path = path_of(place.url)
        if not known_stores.data_file(place.scheme, path).exists():
            raise NotFound("store", str(path))
        identity = known_stores.reserve(place.scheme, path)
        if revoke:
            known_stores.remove_trusted(identity)
            known_stores.forget_made(place.scheme, path)
        else:
            known_stores.add_trusted(identity, place.url)
    return {"store": shown_url(place.url), "trusted": not revoke, "new": new}
