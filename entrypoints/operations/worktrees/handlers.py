"""Git worktrees that share the repository's stores: `worktree add|list|remove|prune`."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from herdbook.adapters.git import pin
from herdbook.adapters.git import worktrees as git
from herdbook.adapters.stores.registry import is_in_files
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.user_state.dirs import make_private
from herdbook.adapters.workspace import link_privately
from herdbook.domain.errors import InvalidValue, NotFound, WorktreeInUse
from herdbook.domain.location.areas import Area
from herdbook.domain.location.identity import GitFacts, repository_id, worktree_id
from herdbook.domain.location.resolve import LINKS_FOLDER, StoreLocation, file_url
from herdbook.domain.location.settings import Scope
from herdbook.entrypoints.bootstrap import Here, text_of
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.world.git import GitWorktree
from herdbook.services.agents import worktrees
from herdbook.services.agents.worktrees import WorktreeOccupants
from herdbook.services.stores.copy_spaces import copy

_NAME = re.compile(r"[^\x00-\x1f\x7f/.-][^\x00-\x1f\x7f/]*")
ARCHIVE = "archive"


def add(
    here: Here, *, name: str, branch: str | None, base: str | None, path: str | None
) -> dict[str, Any]:
    """Make a git worktree, link the repository's stores into it and write it down."""
    facts = _facts(here)
    if not _NAME.fullmatch(name):
        raise InvalidValue("name", "must be one word that can be a folder's name")
    folder = here.folder / path if path else _home_of(here) / name
    with here.opened(Area.WORK, create=True) as store:
        made = git.add(facts, folder, branch or name, base)
        pin(made, repository_id(made), _unused_id(store, here.space(Area.WORK), made))
        there = Here(Path(made.top_level or folder), here.variables, here.arguments)
        links = _link_stores(there)
        for place in (here, there):
            place.see(store)
    return {
        "worktree_id": there.worktree_id,
        "path": text_of(there.folder),
        "branch": made.branch,
        "links": [{"link": text_of(link), "target": text_of(to)} for link, to in links],
    }


def list_(here: Here, *, all: bool) -> dict[str, Any]:  # noqa: A002 - the option's name
    """List the worktrees git knows, and with `all` those that only the journal still knows."""
    there = git.list_worktrees(_facts(here))
    rows = [_listed(here, each) for each in there if not each.is_bare]
    if all:
        known = {row["worktree_id"] for row in rows}
        rows += [
            {
                "worktree_id": each.id,
                "path": each.path,
                "branch": each.branch,
                "is_main": each.is_main,
                "state": "gone",
            }
            for each in _asked(here, lambda uow: uow.worktrees.page()) or []
            if each.id not in known
        ]
    return {"worktrees": rows}


def remove(here: Here, *, worktree: str, force: bool) -> dict[str, Any]:
    """Take a worktree down; its history stays, and what it kept of its own is archived first."""
    facts = _facts(here)
    chosen = _chosen(here, worktree, git.list_worktrees(facts))
    path = Path(chosen.path)
    if chosen.is_main or chosen.is_bare:
        raise InvalidValue("worktree", "the main worktree is the repository's own and stays")
    if chosen.prunable is not None:
        raise InvalidValue("worktree", f"{chosen.prunable}; `herdbook worktree prune` forgets it")
    if here.folder.resolve().is_relative_to(path):
        raise InvalidValue("worktree", "you are inside it; call this from another folder")
    within = _inhabitants(here, chosen.worktree_id)
    if not force:
        if within.at_work:
            names = ", ".join(agent.name for agent in within.at_work)
            raise WorktreeInUse(text_of(path), f"agents are at work in it: {names}")
        if not git.is_clean(path):
            raise WorktreeInUse(text_of(path), "it holds changes that are not committed")
    archived = _archive(here, Here(path, here.variables, here.arguments), chosen.worktree_id or "")
    git.remove(facts, path, force=force)
    return {**_gone(chosen.worktree_id, chosen.path, chosen.branch, within), "archived": archived}


def prune(here: Here) -> dict[str, Any]:
    """Let git forget worktrees whose folders are gone; says who was in them."""
    facts = _facts(here)
    before = {each.path: each for each in git.list_worktrees(facts)}
    pruned = []
    for path in git.prune(facts):
        known = before.get(path)
        identity = known.worktree_id if known else None
        branch = known.branch if known else None
        pruned.append(_gone(identity, path, branch, _inhabitants(here, identity)))
    return {"pruned": pruned}


def _facts(here: Here) -> GitFacts:
    if here.facts is None:
        if here.doubt is not None:
            raise InvalidValue("repository", here.doubt)
        raise NotFound("git repository", text_of(here.folder.resolve()))
    return here.facts


def _home_of(here: Here) -> Path:
    """The folder beside the repository in which its worktrees are put."""
    root = Path(here.ground.repository or here.folder)
    if root.name in (".git", ".bare"):
        return root.parent
    return root.with_name(f"{root.name.removesuffix('.git')}.worktrees")


def _unused_id(store: Store, space: str, made: GitFacts) -> str:
    """The identity of a new worktree: git uses a name again, but its history is another one's."""
    known = read(store, space, lambda uow: {each.id for each in uow.worktrees.page()})
    identity = worktree_id(made)
    while identity in known:
        identity = worktree_id(made._replace(machine_id=f"{made.machine_id} {identity}"))
    return identity


def _link_stores(there: Here) -> list[tuple[Path, Path]]:
    """Link each file of scope `repo` into the worktree's own folder, for whoever looks there."""
    links = []
    for area in Area:
        place = there.place(area)
        if place.scope is not Scope.REPO or there.ground.worktree is None:
            continue
        target = path_of(place.url)
        folder = Path(there.ground.worktree, LINKS_FOLDER)
        link_privately(folder, target)
        if (folder / target.name).is_symlink():
            links.append((folder / target.name, target))
    return links


def _chosen(here: Here, asked: str, listed: list[GitWorktree]) -> GitWorktree:
    path = str((here.folder / asked).resolve())
    for matches in (
        lambda each: each.worktree_id == asked,
        lambda each: each.path == path,
        lambda each: each.branch == asked,
        lambda each: Path(each.path).name == asked,
    ):
        found = [each for each in listed if matches(each)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(each.worktree_id or each.path for each in found)
            raise InvalidValue("worktree", f"{asked!r} could be any of {ids}")
    raise NotFound("worktree", asked)


def _listed(here: Here, each: GitWorktree) -> dict[str, Any]:
    state = "here" if each.path == here.ground.worktree else "there"
    if each.locked is not None:
        state = "locked"
    if each.prunable is not None:
        state = "folder is gone"
    return {
        "worktree_id": each.worktree_id,
        "path": text_of(each.path),
        "branch": each.branch,
        "is_main": each.is_main,
        "state": state,
    }


def _asked(here: Here, question: Any) -> Any:
    """What the work store answers; None where there is none yet."""
    place = here.place(Area.WORK)
    if not here.is_there(place):
        return None
    with here.opened_at(place) as store:
        return read(store, here.space(Area.WORK), question)


def _inhabitants(here: Here, identity: str | None) -> WorktreeOccupants:
    if identity is None:
        return WorktreeOccupants((), ())
    found = _asked(here, lambda uow: worktrees.worktree_occupants(uow, identity))
    return found if found is not None else WorktreeOccupants((), ())


def _archive(here: Here, there: Here, identity: str) -> list[dict[str, Any]]:
    """Where what the worktree keeps of its own is from now on.

    What lies in its folder is copied to where it outlives that; what lies below the git directory
    stays there.
    """
    archived: list[dict[str, Any]] = []
    for area in Area:
        place = there.place(area)
        if not is_in_files(place.url) or not there.is_there(place):
            continue
        if not path_of(place.url).is_relative_to(there.ground.worktree or there.folder):
            if place.scope is Scope.WORKTREE:
                archived.append({"area": area, "url": place.url, "rows": None})
            continue
        target = _archive_place(here, place, identity)
        with there.opened_at(place) as source, here.opened_at(target, create=True) as kept:
            report = copy(source, kept, progress=here.progress)
        rows = sum(space.rows for space in report.spaces)
        archived.append({"area": area, "url": target.url, "rows": rows})
    return archived


def _archive_place(here: Here, place: StoreLocation, identity: str) -> StoreLocation:
    root = here.ground.state or here.ground.data
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    name = f"{place.area}-{identity}-{stamp}.{place.scheme}"
    path = Path(root, ARCHIVE, name)
    make_private(path.parent)
    return place._replace(url=file_url(place.scheme, str(path)), scope=None)


def _gone(
    identity: str | None, path: str, branch: str | None, within: WorktreeOccupants
) -> dict[str, Any]:
    return {
        "worktree_id": identity,
        "path": text_of(path),
        "branch": branch,
        "agents": [
            {"id": agent.id, "name": agent.name, "status": agent.status} for agent in within.agents
        ],
        "tasks": [
            {"id": task.id, "name": task.name, "status": task.status} for task in within.tasks
        ],
    }
