"""`restore`: fill an empty store from backups."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from attrs import asdict

from herdbook.adapters import open_store
from herdbook.adapters.user_state import backup_schedule
from herdbook.adapters.user_state.backup_files import (
    BackupFolder,
    automatic_folder,
    list_folders,
    name_of,
)
from herdbook.adapters.user_state.dirs import expand_home
from herdbook.domain.errors import (
    BackupDamaged,
    InvalidValue,
    NotFound,
    StoreDamaged,
    StoreGone,
)
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import GIB, Area
from herdbook.domain.location.resolve import StoreLocation
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.backups.last_backups import find_space_folders
from herdbook.ports.engine.store import Store
from herdbook.services.backups import restore as restoring
from herdbook.services.backups.chains import BackupChain, choose_chain, find_chains
from herdbook.services.backups.line_format import BackupReader

SCRATCH_SIZE = 256 * GIB
"""How large the store may grow in which a backup is put together; it takes what it needs."""


class RestoreAnswer(TypedDict):
    """The store that was filled, and its spaces as in `restore.AssembledSpace`."""

    target: str
    spaces: list[dict[str, Any]]
    ok: bool


def restore(
    app: AppContext,
    *,
    backup: str,
    to: str,
    at: Position | None,
    salvage: str | None,
    with_flaws: bool,
) -> RestoreAnswer:
    """Restore the spaces of a backup into an empty store, up to a position.

    Raises SpaceRefused if the store has something in it, BackupDamaged if a file is damaged,
    InvalidValue if the position cannot be reached, and NotFound if there is no such backup.
    """
    chains = _find_chains(app, backup, at)
    if len(chains) > 1 and (isinstance(at, int) or salvage is not None):
        names = ", ".join(str(files.folder) for files, _ in chains)
        raise InvalidValue("backup", f"holds {len(chains)} spaces; name the folder of one: {names}")
    place = app.workspace.locate_named(to)
    if place.scheme == "memory":
        raise InvalidValue("to", "a store in memory would be gone with this command")
    if _is_there(app, place):
        with app.stores.open_at(place) as target:
            restoring.refuse_used(target)
    rules = app.workspace.experience
    with _scratch_store() as scratch:
        assembled = []
        for files, chain in chains:
            with _damaged_store(app, salvage) as damaged:
                each = restoring.assemble(
                    chain,
                    files,
                    scratch,
                    at=at,
                    damaged=damaged,
                    with_flaws=with_flaws,
                    experience=rules,
                )
            assembled.append(each)
        if not _is_there(app, place):
            app.workspace.forget_use(place)  # what was there is restored now
        with app.stores.open_at(place, create=True) as target:
            restoring.refuse_used(target)
            delivered = [
                restoring.deliver(each, scratch, target, experience=rules, progress=app.progress)
                for each in assembled
            ]
            url = target.url
    for area in Area:
        if place.url == app.workspace.locate(area).url:
            backup_schedule.forget_start(app.workspace, area)  # it is another store now
    if place.url == app.workspace.locate(Area.RECORD).url:
        from herdbook.entrypoints.hooks import spool_flush  # noqa: PLC0415 - only for a record

        spool_flush.mark_halted(app)
    return {
        "target": url,
        "spaces": [asdict(each) for each in delivered],
        "ok": not any(each.flaws for each in delivered),
    }


def _find_chains(
    app: AppContext, value: str, at: Position | None
) -> list[tuple[BackupFolder, BackupChain]]:
    """The files to restore from: of an area, of a folder, or one file with what leads to it."""
    if value in set(Area):
        space = app.workspace.space(Area(value))
        folders = find_space_folders(space)
        if not folders:
            hint = f"`herdbook backup list` shows what is in {automatic_folder()}"
            raise NotFound("backup", space, hint)
        return [(folders[-1], _choose(folders[-1], at))]
    path = Path(os.path.realpath(expand_home(value)))
    name = name_of(path)
    if name is not None:
        files = BackupFolder(path.parent)
        return [(files, _chain_of(files, name, at))]
    folders = [BackupFolder(each) for each in list_folders(path)]
    if not folders:
        raise NotFound("backup", str(path))
    return [(each, _choose(each, at)) for each in folders]


def _choose(files: BackupFolder, at: Position | None) -> BackupChain:
    chains = find_chains(files)
    if not chains:
        raise BackupDamaged(str(files.folder), "no copy in it has a header that can be read")
    return chains[-1] if at is None else choose_chain(chains, at)


def _chain_of(files: BackupFolder, name: str, at: Position | None) -> BackupChain:
    """The chain of a file: what follows a copy, or what leads to a segment."""
    for chain in find_chains(files):
        if name in chain.names:
            known = chain if name == chain.names[0] else chain.through(name)
            return known if at is None else choose_chain([known], at)
    BackupReader(files.place(name), files.read(name))  # raises if it is missing or no backup
    raise BackupDamaged(files.place(name), "the files that it follows are missing")


def _is_there(app: AppContext, place: StoreLocation) -> bool:
    try:
        return app.workspace.store_exists(place)
    except StoreGone:
        return False


@contextmanager
def _scratch_store() -> Iterator[Store]:
    with (
        tempfile.TemporaryDirectory(prefix="herdbook-restore-") as folder,
        open_store(f"lmdb://{folder}/scratch", size_limit=SCRATCH_SIZE) as store,
    ):
        yield store


@contextmanager
def _damaged_store(app: AppContext, value: str | None) -> Iterator[Store | None]:
    """The store to salvage from; raises InvalidValue if nothing can be read from it safely."""
    if value is None:
        yield None
        return
    try:
        with app.stores.open_at(app.workspace.locate_named(value)) as store:
            yield store
    except BackupDamaged:
        raise
    except StoreDamaged as error:
        reason = f"nothing can be read from it safely ({error.reason})"
        advice = "without --salvage, what is in the backup is restored. Nothing was written"
        raise InvalidValue("salvage", f"{reason}; {advice}") from error
