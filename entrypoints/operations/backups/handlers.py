"""Backups: `backup` and `backup list`."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, cast

from attrs import asdict

from herdbook.adapters.stores.registry import spec_of_scheme
from herdbook.adapters.user_state import backup_schedule
from herdbook.adapters.user_state.backup_files import (
    BackupFolder,
    automatic_folder,
    list_folders,
    space_folder,
)
from herdbook.adapters.user_state.dirs import expand_home
from herdbook.domain.errors import (
    HerdbookError,
    InvalidValue,
    StoreBusy,
)
from herdbook.domain.location.areas import Area, area_of
from herdbook.domain.location.settings import MOST_COPIES, OFF
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.services.backups import write_backup
from herdbook.services.backups.line_format import BackupReader
from herdbook.services.backups.write_backup import WrittenBackup


class WrittenAnswer(TypedDict):
    """A file that was written, and the older ones that were removed after it was read back."""

    space: str
    path: str
    type: str
    seq: int
    rows: int
    bytes: int
    digest: str | None
    removed: list[str]


class FailedAnswer(TypedDict):
    """A space that was not backed up, and why."""

    space: str
    reason: str


class BackupAnswer(TypedDict):
    """What was backed up and what was not."""

    written: list[WrittenAnswer]
    failed: list[FailedAnswer]
    ok: bool


class ListedBackup(TypedDict):
    """A file, what it holds, and whether it is whole."""

    path: str
    bytes: int
    space: str | None
    type: str | None
    taken_at: str | None
    seq: int | None
    url: str | None
    secrets: bool | None
    digest: str | None
    ok: bool
    problem: str | None


class ListAnswer(TypedDict):
    """The backups in a folder."""

    folder: str
    backups: list[ListedBackup]
    ok: bool


def backup(
    app: AppContext,
    *,
    area: list[str] | None,
    to: str | None,
    keep: int,
    with_secrets: bool,
    automatic: bool,
) -> BackupAnswer:
    """Copy all spaces of the areas' stores, each in one snapshot; or do what is due by itself.

    A space that cannot be backed up is listed in `failed` and does not stop the others. Raises
    InvalidValue for a number of copies that nobody can keep.
    """
    if not 1 <= keep <= MOST_COPIES:
        raise InvalidValue("keep", f"must be from 1 to {MOST_COPIES}")
    areas = [Area(each) for each in area or Area]
    if automatic:
        if to is not None or with_secrets:
            raise InvalidValue("automatic", "the settings say where and how; leave the rest out")
        return _backup_automatically(app, areas)
    parent = automatic_folder() if to is None else Path(os.path.realpath(expand_home(to)))
    answer: BackupAnswer = {"written": [], "failed": [], "ok": True}
    for place in {
        app.workspace.locate(each).url: app.workspace.locate(each) for each in areas
    }.values():
        if not app.workspace.store_exists(place):
            continue
        with app.stores.open_at(place) as store:
            for space in [each for each in store.spaces() if area_of(each) in areas]:
                files = BackupFolder(space_folder(parent, space, store.node))
                with _reporting(answer, space), _hold_lock(files):
                    written = write_backup.write_copy(
                        store,
                        space,
                        files,
                        secrets=with_secrets,
                        keep=keep,
                        progress=app.progress,
                    )
                    _add(answer, files, written)
    return answer


def _backup_automatically(app: AppContext, areas: list[Area]) -> BackupAnswer:
    """Back up this folder's own spaces if the settings want it; another process may be at it."""
    answer: BackupAnswer = {"written": [], "failed": [], "ok": True}
    if app.workspace.setting("backup") == OFF:
        return answer
    os.nice(10)  # agents and people come first
    begun = time.monotonic()
    for area in areas:
        space, failed = app.workspace.space(area), len(answer["failed"])
        with _reporting(answer, space):
            place = app.workspace.locate(area)
            if not app.workspace.store_exists(place):
                continue
            with app.stores.open(area) as store:
                most_bytes = app.workspace.setting("backup_size")
                folder = space_folder(automatic_folder(), space, store.node)
                # Commands wait for DuckDB's readers: a long one would make them give up.
                blocks = spec_of_scheme(place.scheme).readers_block_writers
                most_seconds = store.patience / 2 if blocks else None
                files = BackupFolder(folder, most_bytes=most_bytes, most_seconds=most_seconds)
                with files.lock() as is_ours:
                    if not is_ours:
                        continue
                    written = write_backup.write_automatic(
                        store,
                        space,
                        files,
                        keep=app.workspace.setting("backup_keep"),
                        most_bytes=most_bytes,
                        now=datetime.now(UTC),
                    )
                    _add(answer, files, written)
        reason = next((each["reason"] for each in answer["failed"][failed:]), None)
        backup_schedule.note_failure(app.workspace, area, reason)
    backup_schedule.note_duration(app.workspace, areas, time.monotonic() - begun)
    return answer


@contextmanager
def _reporting(answer: BackupAnswer, space: str) -> Iterator[None]:
    try:
        yield
    except HerdbookError as error:
        answer["failed"].append({"space": space, "reason": str(error)})
        answer["ok"] = False


@contextmanager
def _hold_lock(files: BackupFolder) -> Iterator[None]:
    with files.lock() as is_ours:
        if not is_ours:
            raise StoreBusy(str(files.folder), 0, "another backup")
        yield


def _add(answer: BackupAnswer, files: BackupFolder, written: WrittenBackup | None) -> None:
    if written is not None:
        path = files.place(written.name)
        answer["written"].append(answer_from(WrittenAnswer, written, written.header, path=path))


def list_(app: AppContext, *, folder: str | None) -> ListAnswer:
    """The backups in a folder, oldest first in each space; every one of them is read."""
    del app
    parent = automatic_folder() if folder is None else Path(os.path.realpath(expand_home(folder)))
    found = [
        _look_at(files, name)
        for files in map(BackupFolder, list_folders(parent))
        for name in files.names()
    ]
    return {"folder": str(parent), "backups": found, "ok": all(each["ok"] for each in found)}


def _look_at(files: BackupFolder, name: str) -> ListedBackup:
    found: dict[str, Any] = dict.fromkeys(ListedBackup.__annotations__)
    found |= {"path": files.place(name), "bytes": files.size(name), "ok": False}
    try:
        reader = BackupReader(files.place(name), files.read(name))
        found |= {key: each for key, each in asdict(reader.header).items() if key in found}
        reader.verify(DICTIONARY)
        digest = reader.footer.digest if reader.footer else None
        found |= {"digest": None if digest is None else digest.whole, "ok": True}
    except HerdbookError as error:
        found["problem"] = getattr(error, "reason", None) or str(error)
    return cast("ListedBackup", found)
