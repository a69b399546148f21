"""Git worktrees that share the repository's stores: `worktree add|list|remove|prune`."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from herdbook.adapters import git
from herdbook.adapters.git import worktrees as git_worktrees
from herdbook.adapters.stores.registry import is_in_files
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.user_state.dirs import make_private
from herdbook.adapters.workspace import link_privately
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.domain.location.areas import Area
from herdbook.domain.location.identity import GitFacts
from herdbook.domain.location.resolve import LINKS_FOLDER, StoreLocation, file_url
from herdbook.domain.location.settings import Scope
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.git import GitWorktree
from herdbook.services.agents import worktree_changes, worktrees
from herdbook.services.agents.worktrees import WorktreeOccupants
from herdbook.services.stores.copy_spaces import copy

_NAME = re.compile(r"[^\x00-\x1f\x7f/.-][^\x00-\x1f\x7f/]*")
ARCHIVE = "archive"


class WorktreeAnswer(TypedDict):
    """A worktree of git, or one that is gone and has a history."""

    worktree_id: str | None
    path: str
    branch: str | None
    is_main: bool
    state: str


class WorktreesAnswer(TypedDict):
    """The worktrees of a repository."""

    worktrees: list[WorktreeAnswer]


def add(
    app: AppContext, *, name: str, branch: str | None, base: str | None, path: str | None
) -> dict[str, Any]:
    """Create a git worktree, link the repository's stores into it and record it."""
    facts = _facts(app)
    app.require_registered()
    if not _NAME.fullmatch(name):
        raise InvalidValue("name", "must be one word that can be a folder's name")
    folder = app.workspace.folder / path if path else _parent_folder(app) / name
    with app.open(Area.WORK, create=True) as store:
        space = app.workspace.space(Area.WORK)
        known = read(store, space, worktree_changes.known_ids)
        made = worktree_changes.add(
            git, git_worktrees, facts, folder, branch=branch or name, base=base, known=known
        )
        workspace = app.workspace
        there = AppContext.at(
            Path(made.top_level or folder), workspace.variables, workspace.arguments
        )
        links = _link_stores(there)

        def see_both(uow: UnitOfWork) -> None:
            for each in (app, there):
                each.record_worktree(uow)

        run(store, space, see_both, actor=app.actor)
    return {
        "worktree_id": there.workspace.worktree_id,
        "path": text_of(there.workspace.folder),
        "branch": made.branch,
        "links": [{"link": text_of(link), "target": text_of(to)} for link, to in links],
    }


def list_(app: AppContext, *, all: bool) -> WorktreesAnswer:  # noqa: A002 - the option's name
    """List the worktrees of git; with `all`, also removed ones that have a history."""
    there = git_worktrees.list_worktrees(_facts(app))
    rows = [_worktree_data(app, each) for each in there if not each.is_bare]
    if all:
        known = {row["worktree_id"] for row in rows}
        rows += [
            answer_from(WorktreeAnswer, each, worktree_id=each.id, state="gone")
            for each in _read_work(app, lambda uow: uow.worktrees.page()) or []
            if each.id not in known
        ]
    return {"worktrees": rows}


def remove(app: AppContext, *, worktree: str, force: bool) -> dict[str, Any]:
    """Remove a worktree; its history is kept, and its own stores are archived first."""
    facts = _facts(app)
    app.require_registered()
    asked = str((app.workspace.folder / worktree).resolve())
    chosen = worktree_changes.choose(git_worktrees.list_worktrees(facts), worktree, asked)
    within = _occupants(app, chosen.worktree_id)
    there = AppContext.at(Path(chosen.path), app.workspace.variables, app.workspace.arguments)
    archived = worktree_changes.remove(
        git_worktrees,
        facts,
        chosen,
        within,
        lambda: _archive(app, there, chosen.worktree_id or ""),
        cwd=app.workspace.folder.resolve(),
        display_path=text_of(chosen.path),
        force=force,
    )
    return {
        **_removal_data(chosen.worktree_id, chosen.path, chosen.branch, within),
        "archived": archived,
    }


def prune(app: AppContext) -> dict[str, Any]:
    """Remove git's entries of worktrees whose folders are gone; returns who was in them."""
    facts = _facts(app)
    app.require_registered()
    before = {each.path: each for each in git_worktrees.list_worktrees(facts)}
    pruned = []
    for path in git_worktrees.prune(facts):
        known = before.get(path)
        identity = known.worktree_id if known else None
        branch = known.branch if known else None
        pruned.append(_removal_data(identity, path, branch, _occupants(app, identity)))
    return {"pruned": pruned}


def _facts(app: AppContext) -> GitFacts:
    if app.workspace.facts is None:
        if app.workspace.repository_problem is not None:
            raise InvalidValue("repository", app.workspace.repository_problem)
        raise NotFound("git repository", text_of(app.workspace.folder.resolve()))
    return app.workspace.facts


def _parent_folder(app: AppContext) -> Path:
    """The folder beside the repository for its worktrees."""
    root = Path(app.workspace.paths.repository or app.workspace.folder)
    if root.name in (".git", ".bare"):
        return root.parent
    return root.with_name(f"{root.name.removesuffix('.git')}.worktrees")


def _link_stores(there: AppContext) -> list[tuple[Path, Path]]:
    """Link each store file of scope `repo` into the worktree's folder, where people look for it."""
    links = []
    for area in Area:
        place = there.workspace.locate(area)
        if place.scope is not Scope.REPO or there.workspace.paths.worktree is None:
            continue
        target = path_of(place.url)
        folder = Path(there.workspace.paths.worktree, LINKS_FOLDER)
        link_privately(folder, target)
        if (folder / target.name).is_symlink():
            links.append((folder / target.name, target))
    return links


def _worktree_data(app: AppContext, each: GitWorktree) -> WorktreeAnswer:
    state = "here" if each.path == app.workspace.paths.worktree else "there"
    if each.locked is not None:
        state = "locked"
    if each.prunable is not None:
        state = "folder is gone"
    return answer_from(WorktreeAnswer, each, path=text_of(each.path), state=state)


def _read_work(app: AppContext, question: Any) -> Any:
    """The result of a query to the work store; None if there is no store yet."""
    place = app.workspace.locate(Area.WORK)
    if not app.workspace.store_exists(place):
        return None
    with app.stores.open_at(place) as store:
        return read(store, app.workspace.space(Area.WORK), question)


def _occupants(app: AppContext, identity: str | None) -> WorktreeOccupants:
    if identity is None:
        return WorktreeOccupants((), ())
    found = _read_work(app, lambda uow: worktrees.worktree_occupants(uow, identity))
    return found if found is not None else WorktreeOccupants((), ())


def _archive(app: AppContext, there: AppContext, identity: str) -> list[dict[str, Any]]:
    """Archive the stores of a worktree; returns where each is from now on.

    Stores in its folder are copied to a place outside it; those below the git directory stay there.
    """
    archived: list[dict[str, Any]] = []
    for area in Area:
        place = there.workspace.locate(area)
        if not is_in_files(place.url) or not there.workspace.store_exists(place):
            continue
        if not path_of(place.url).is_relative_to(
            there.workspace.paths.worktree or there.workspace.folder
        ):
            if place.scope is Scope.WORKTREE:
                archived.append({"area": area, "url": place.url, "rows": None})
            continue
        target = _archive_place(app, place, identity)
        with (
            there.stores.open_at(place) as source,
            app.stores.open_at(target, create=True) as kept,
        ):
            report = copy(source, kept, progress=app.progress)
        rows = sum(space.rows for space in report.spaces)
        archived.append({"area": area, "url": target.url, "rows": rows})
    return archived


def _archive_place(app: AppContext, place: StoreLocation, identity: str) -> StoreLocation:
    root = app.workspace.paths.state or app.workspace.paths.data
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    name = f"{place.area}-{identity}-{stamp}.{place.scheme}"
    path = Path(root, ARCHIVE, name)
    make_private(path.parent)
    return place._replace(url=file_url(place.scheme, str(path)), scope=None)


def _removal_data(
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
