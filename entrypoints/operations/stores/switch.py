"""`use`: switch the engine of a repository's stores, and bring their content along.

The setting is written last, after every copy was verified by its digest; until then nothing refers
to the new stores, and a run that was killed is repeated from where it was.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from attrs import asdict

from herdbook.adapters.git import worktrees as git_worktrees
from herdbook.adapters.stores.registry import engine_schemes
from herdbook.adapters.stores.urls import shown_url
from herdbook.adapters.user_state import known_stores
from herdbook.adapters.user_state import trust as trusting
from herdbook.adapters.user_state.dirs import make_private, write_private
from herdbook.adapters.workspace import Workspace
from herdbook.domain.errors import InvalidValue, SpaceRefused
from herdbook.domain.location.areas import Area, area_of, space_of
from herdbook.domain.location.resolve import StoreLocation
from herdbook.domain.location.settings import Origin, Scope, check_setting
from herdbook.entrypoints.context import AppContext
from herdbook.ports.engine.store import Store
from herdbook.services.stores import copy_spaces

_MOVED = (Area.WORK, Area.CHECKPOINTS)
"""The areas of a repository; the record is the user's, and no repository's setting moves it."""
_BACKEND = re.compile(r"\s*backend\s*=")
_TABLE = re.compile(r"\s*\[")


class MovedStore(TypedDict):
    """A store that was copied, and what was copied by space, as in `copy_spaces.CopiedSpace`."""

    area: str
    source: str
    target: str
    spaces: list[dict[str, Any]]


class UseAnswer(TypedDict):
    """The engine that is used now, the file that says so, and the stores that were copied."""

    backend: str
    file: str
    changed: bool
    stores: list[MovedStore]


class _Move(NamedTuple):
    """A store of this repository, where it goes, and the spaces that go along."""

    source: StoreLocation
    target: StoreLocation
    spaces: list[str]


def use(app: AppContext, *, backend: str) -> UseAnswer:
    """Use another engine for this repository: copy its stores, verify them, write the setting.

    Raises InvalidValue for an agent, outside a repository, and if another setting decides where a
    store is; SpaceRefused if a target has a history of its own or a source was written to
    meanwhile, and StoreBusy if a writer holds it. Then everything is as it was.
    """
    app.require_person("use", "decide")
    workspace, file = app.workspace, app.workspace.clone_file
    if file is None or workspace.facts is None:
        reason = "is switched for a repository, and this is none; see `herdbook config`"
        raise InvalidValue("backend", reason)
    workspace.require_trusted(Area.WORK)
    workspace.pin()
    after = _workspace_with(workspace, file, backend)
    moves = _moves(app, after)
    is_set = all(workspace.locate(each).url == after.locate(each).url for each in _MOVED)
    stores: list[MovedStore] = []
    if not is_set:
        with ExitStack() as opened:
            pairs = [(each, *_open_both(app, each, opened)) for each in moves]
            stores = [_copy(app, *pair) for pair in pairs]
            with ExitStack() as held:
                _hold_unchanged(pairs, held)
                _write_setting(file, backend)
                trusting.trust(file, workspace.facts.common_dir)
            for each in moves:
                for space in each.spaces:
                    known_stores.note_use(shown_url(each.target.url), space)
                    known_stores.forget_use(shown_url(each.source.url), space)
    return {
        "backend": shown_url(backend),
        "file": str(file),
        "changed": not is_set,
        "stores": stores,
    }


def _workspace_with(workspace: Workspace, file: Path, backend: str) -> Workspace:
    """The same workspace as it will be with the setting; InvalidValue for what is no engine."""
    origin = Origin(str(file))
    try:
        setting = check_setting("backend", backend, origin, engines=engine_schemes())
    except InvalidValue as error:
        raise InvalidValue("backend", error.reason) from None
    after = Workspace(workspace.folder, workspace.variables, workspace.arguments)
    *earlier, own = workspace.user_layers
    others = [layer for layer in workspace.layers if layer not in workspace.user_layers]
    layer = {"backend": setting._replace(of_repository=True)}
    after.__dict__["layers"] = [*earlier, layer, *others, own]
    place = after.locate(Area.WORK)
    if origin not in (place.backend_by, place.decided_by):
        reason = f"has no effect: {place.decided_by} says that work is in {shown_url(place.url)}"
        raise InvalidValue("backend", reason)
    return after


def _moves(app: AppContext, after: Workspace) -> list[_Move]:
    """The stores that exist and have to go elsewhere, with the spaces of this repository."""
    own = app.workspace.space(Area.WORK)
    wanted = [(app.workspace.locate(Area.WORK), after.locate(Area.WORK), [own])]
    wanted += _checkpoint_stores(app, after)
    found = []
    for source, target, names in wanted:
        if source.url == target.url or not app.workspace.store_exists(source):
            continue
        with app.stores.open_at(source) as store:
            spaces = [each for each in store.spaces() if each in names or _is_file(source, each)]
        if spaces:
            found.append(_Move(source, target, spaces))
    return found


def _is_file(source: StoreLocation, space: str) -> bool:
    """Whether a space is of the checkpoints in a file, which holds those of one worktree only."""
    is_checkpoints = source.area is area_of(space) is Area.CHECKPOINTS
    return is_checkpoints and source.scope is Scope.WORKTREE


def _checkpoint_stores(
    app: AppContext, after: Workspace
) -> Iterator[tuple[StoreLocation, StoreLocation, list[str]]]:
    """The checkpoints of every worktree: their store, where it goes, and their space.

    A workflow leaves no trace in the plan, so git is asked for worktrees as well.
    """
    workspace = app.workspace
    own, to = workspace.locate(Area.CHECKPOINTS), after.locate(Area.CHECKPOINTS)
    here = str(workspace.worktree_id)
    known = app.read(Area.WORK, lambda uow: [each.id for each in uow.worktrees.page()])
    if workspace.facts is not None:
        there = git_worktrees.list_worktrees(workspace.facts)
        known += [each.worktree_id for each in there if each.worktree_id]
    for worktree in dict.fromkeys([here, *known]):
        space = workspace.space(Area.CHECKPOINTS)
        if worktree != here:
            space = space_of(Area.CHECKPOINTS, worktree)
        yield _of_worktree(own, here, worktree), _of_worktree(to, here, worktree), [space]


def _of_worktree(place: StoreLocation, here: str, worktree: str) -> StoreLocation:
    """The location of another worktree's store, beside that of this one."""
    if place.scope is not Scope.WORKTREE:
        return place
    return place._replace(url=place.url.replace(f"/{here}/", f"/{worktree}/"))


def _open_both(app: AppContext, move: _Move, opened: ExitStack) -> tuple[Store, Store]:
    return (
        opened.enter_context(app.stores.open_at(move.source)),
        opened.enter_context(app.stores.open_at(move.target, create=True)),
    )


def _copy(app: AppContext, move: _Move, source: Store, target: Store) -> MovedStore:
    report = copy_spaces.copy(source, target, move.spaces, progress=app.progress)
    return {
        "area": str(move.source.area),
        "source": source.url,
        "target": target.url,
        "spaces": [asdict(each) for each in report.spaces],
    }


def _hold_unchanged(pairs: list[tuple[_Move, Store, Store]], held: ExitStack) -> None:
    """Keep writers out of the plan, and check that nothing was written since it was copied."""
    for move, source, target in pairs:
        for space in move.spaces:
            if move.source.area is Area.WORK:
                head = held.enter_context(source.transaction(space, write=True)).head
            else:
                with source.transaction(space, write=False) as theirs:
                    head = theirs.head
            with target.transaction(space, write=False) as ours:
                if ours.head != head:
                    reason = (
                        "was written to while it was copied. Nothing was switched; stop the "
                        "agents that work here, and do this again"
                    )
                    raise SpaceRefused(source.url, space, reason)


def _write_setting(file: Path, backend: str) -> None:
    """Write the one setting; the other lines of the file stay as they are."""
    import json  # noqa: PLC0415 - its text of a string is also TOML

    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    end = next((at for at, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    kept = [line for line in lines[:end] if not _BACKEND.match(line)]
    setting = f"backend = {json.dumps(backend, ensure_ascii=False)}"
    make_private(file.parent)
    write_private(file, "\n".join([setting, *kept, *lines[end:], ""]))
