"""Where everything is, and why: `where`, `config`, `trust`."""

from typing import Any

from herdbook.adapters import trust as trusting
from herdbook.adapters.looking import look
from herdbook.adapters.urls import shown_url
from herdbook.domain.errors import NotFound
from herdbook.domain.places import Area
from herdbook.domain.settings import DEFAULT, DEFAULTS, KEYS, chosen, is_url
from herdbook.entrypoints.bootstrap import Here


def where(here: Here) -> dict[str, Any]:
    """Tell for each area where it is, and which rule decided it; nothing is made."""
    return {
        "repository_id": here.repository_id,
        "worktree_id": here.worktree_id,
        "branch": here.facts.branch if here.facts else None,
        "doubt": here.doubt,
        "areas": {str(area): _area(here, area) for area in Area},
    }


def _area(here: Here, area: Area) -> dict[str, Any]:
    place = here.place(area)
    sight = look(place.url)
    notes = list(place.notes)
    if place.backend_by is not None:
        notes.append(f"its engine was chosen by {place.backend_by}")
    if sight.problem is not None:
        notes.append(sight.problem)
    return {
        "url": shown_url(place.url),
        "scope": place.scope,
        "decided_by": str(place.decided_by),
        "exists": sight.exists,
        "bytes": sight.bytes,
        "schema_version": sight.schema_version,
        "space": here.space(area),
        "notes": notes,
    }


def config(here: Here) -> dict[str, Any]:
    """Tell the value of every setting that counts, and where it was made."""
    answer = {}
    for key in KEYS:
        found = chosen(here.layers, key)
        value = DEFAULTS.get(key) if found is None else found.value
        answer[key] = {
            "value": shown_url(value) if isinstance(value, str) and is_url(value) else value,
            "origin": str(DEFAULT if found is None else found.origin),
            "trusted": True if found is None else found.trusted,
        }
    return answer


def trust(here: Here, *, revoke: bool) -> dict[str, Any]:
    """Remember that the user has looked at the repository's settings file and trusts it."""
    file, facts = here.settings_file, here.facts
    if file is None or facts is None:
        raise NotFound("settings file", "herdbook.toml or [tool.herdbook] of a repository")
    reaching = {
        key: shown_url(each.value) if is_url(str(each.value)) else each.value
        for layer in here.layers
        for key, each in layer.items()
        if each.of_repository
    }
    (trusting.revoke if revoke else trusting.trust)(file, facts.common_dir)
    return {"file": str(file), "trusted": not revoke, "settings": reaching}
