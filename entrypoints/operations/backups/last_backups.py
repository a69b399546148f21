"""When this folder's spaces were last backed up, for `doctor`."""

from typing import TypedDict

from herdbook.adapters.user_state import backup_schedule
from herdbook.adapters.user_state.backup_files import (
    BackupFolder,
    automatic_folder,
    list_folders,
)
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.services.backups.chains import find_chains, newest_chain


class SpaceBackups(TypedDict):
    """The backups of one space: when its newest copy and file were taken, and their position."""

    space: str
    copies: int
    bytes: int
    copied_at: str
    last_at: str
    seq: int


class BackupState(TypedDict):
    """Whether spaces are backed up by themselves, which failed last and why, and what there is."""

    setting: str
    failures: dict[str, str]
    spaces: list[SpaceBackups]


def last_backups(app: AppContext) -> BackupState:
    """The backups of this folder's spaces; one that cannot be read is left out."""
    spaces: list[SpaceBackups] = []
    failures: dict[str, str] = {}
    for area in Area:
        try:
            space = app.workspace.space(area)
            failure = backup_schedule.last_failure(app.workspace, area)
            failures |= {space: failure} if failure else {}
            folders = find_space_folders(space)
        except HerdbookError:
            continue  # reported elsewhere
        if folders:
            files = folders[-1]
            chains = find_chains(files)
            first, last = chains[-1].headers[0], chains[-1].headers[-1]
            spaces.append(
                {
                    "space": space,
                    "copies": len(chains),
                    "bytes": sum(map(files.size, files.names())),
                    "copied_at": first.taken_at,
                    "last_at": last.taken_at,
                    "seq": last.seq,
                }
            )
    return {
        "setting": app.workspace.setting("backup"),
        "failures": failures,
        "spaces": spaces,
    }


def find_space_folders(space: str) -> list[BackupFolder]:
    """The folders with backups of a space, the one with the newest file last."""
    found = []
    for each in map(BackupFolder, list_folders(automatic_folder())):
        chain = newest_chain(each)
        if chain is not None and chain.headers[0].space == space:
            found.append((chain.headers[-1].taken_at, each))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]
