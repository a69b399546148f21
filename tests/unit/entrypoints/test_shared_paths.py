"""Shared pages name no path of the machine they were made on."""

from herdbook.entrypoints.operations.share.paths import shorten_paths
from tests.cases import for_each

PLACES = {"/home/me": "~", "/home/me/code/app": "app", "/": "root", ".": "here"}
CASES = {
    "data: /home/me/.local/share/herdbook": "data: ~/.local/share/herdbook",
    "work: lmdb:///home/me/code/app/.git/w.lmdb, 3 KiB": "work: lmdb://app/.git/w.lmdb, 3 KiB",
    "record: lmdb:///srv/records/a.lmdb": "record: lmdb://…/a.lmdb",
    "add /opt/tools/bin to the PATH": "add …/bin to the PATH",
    "`/home/melissa/x` and '/home/me'": "`…/x` and '~'",
    "postgres://db.example/herd and/or 1 / 2": "postgres://db.example/herd and/or 1 / 2",
    "PATH=/usr/bin:/opt/bin": "PATH=…/bin:…/bin",
    "/home/me/code/app-2/x": "~/code/app-2/x",
    "It is gone. Bring it back from /home/me.": "It is gone. Bring it back from ~.",
}


@for_each("text, told", CASES.items())
def test_paths_are_told_by_their_names(text: str, told: str) -> None:
    """Those of the home and of the repository by theirs, of others the last name."""
    assert shorten_paths(text, PLACES) == told
