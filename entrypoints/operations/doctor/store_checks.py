"""Checks of the stores: reachable, whole, of this version, and how their journals grow."""

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta

from herdbook.adapters.stores.registry import is_in_files, is_in_memory
from herdbook.adapters.stores.urls import path_of, shown_url
from herdbook.adapters.user_state import dirs
from herdbook.domain.clock import is_ahead
from herdbook.domain.journal import JournalCursor
from herdbook.entrypoints.cli.text import duration, size
from herdbook.entrypoints.operations.doctor.check_result import CheckResult, ok, problem, warning
from herdbook.entrypoints.operations.doctor.installation import Installation
from herdbook.entrypoints.operations.doctor.store_facts import (
    SpaceFacts,
    StoreFacts,
    nearest_folder,
)
from herdbook.ports.engine.dictionary import VERSION

LARGE_JOURNAL = 2**30
"""From how many bytes on a journal is worth folding."""
IDLE_CURSOR = timedelta(days=30)
_OTHER_PLACE = "let your account write there, or name another place"
LITTLE_ROOM, SOME_ROOM = 200 * 2**20, 2**30
"""Free bytes of a disk below which something fails soon, or some day."""


def check_stores(there: Installation) -> Iterator[CheckResult]:
    """Each area's store: where it is, how large, of which schema version."""
    for facts in there.stores:
        yield _store_result(facts)


def _store_result(facts: StoreFacts) -> CheckResult:
    where = f"{facts.area}: {shown_url(facts.place.url) if facts.place else ''}"
    if facts.place is None and facts.trouble is not None:
        again = "correct that, and run `herdbook doctor` again"
        return problem(f"{facts.area}: {facts.trouble}", again)
    if facts.trouble is not None:
        advice = "`herdbook where` shows which rule decided its place; what it holds is left alone"
        is_named = facts.place is not None and shown_url(facts.place.url) in facts.trouble
        return problem(f"{facts.area if is_named else where}: {facts.trouble}", advice)
    if facts.probe is None or not facts.probe.exists:
        return _missing_store(facts, where)
    bytes_, version = facts.probe.bytes, facts.probe.schema_version
    told = "" if bytes_ is None else f", {size(bytes_)}"
    if version is None or version == VERSION:
        return ok(f"{where}{told}, schema {VERSION}")
    if version < VERSION:
        return ok(
            f"{where}{told}, schema {version}; the next command that opens it makes it {VERSION}"
        )
    known = f"schema {version}, and this program knows up to {VERSION}"
    return problem(f"{where}{told}, {known}", "use the newer Herdbook")


def _missing_store(facts: StoreFacts, where: str) -> CheckResult:
    url = facts.place.url if facts.place is not None else ""
    if is_in_memory(url):
        return warning(f"{where} is in memory: what is written there ends with each command")
    if is_in_files(url):
        found = nearest_folder(path_of(url))
        if not _is_writable(found):
            return problem(f"{where}: no store can be made in {found}", _OTHER_PLACE)
    return ok(f"{where}: no store yet; the first write makes it")


def check_journals(there: Installation) -> Iterator[CheckResult]:
    """The size of each journal, its growth, and who has read least of it."""
    for facts in there.stores:
        if facts.space is not None and facts.space.head.seq:
            yield _journal_result(facts, facts.space)


def _journal_result(facts: StoreFacts, space: SpaceFacts) -> CheckResult:
    folded = f" (begins at #{space.head.pruned_to + 1})" if space.head.pruned_to else ""
    oldest = space.cursors[0] if space.cursors else None
    says = (
        f"{facts.area}: {space.entries} entries{folded}, about {size(space.bytes)}, "
        f"{space.in_a_week} in the last 7 days, {_cursor_text(oldest, space)}"
    )
    if oldest is not None and oldest.seq < space.head.seq:
        idle = space.now - oldest.updated_at
        if idle > IDLE_CURSOR:
            says += f", which has not moved for {idle.days} days"
            return warning(says, "ask its holder; `herdbook journal cursors` lists them all")
    if space.bytes > LARGE_JOURNAL:
        return warning(
            says, "`herdbook journal prune --keep 90d --preview` tells what folding does"
        )
    return ok(says)


def _cursor_text(oldest: JournalCursor | None, space: SpaceFacts) -> str:
    over = f" ({space.cursors_over} have expired)" if space.cursors_over else ""
    if oldest is None:
        return f"no cursors{over}"
    behind = space.head.seq - oldest.seq
    held = f"oldest cursor {oldest.id!r} ({oldest.holder}) at #{oldest.seq}, {behind} behind{over}"
    followers = sum(each.is_follower for each in space.cursors)
    return f"{held}, {followers} held by followers" if followers else held


def check_clock(there: Installation) -> Iterator[CheckResult]:
    """Whether a journal is ahead of this machine's clock."""
    for facts in there.stores:
        if facts.space is None or facts.space.head.clock is None:
            continue
        clock, now = facts.space.head.clock, facts.space.now
        if is_ahead(clock, now):
            ahead = duration((clock.wall - now).total_seconds())
            yield problem(
                f"the journal of {there.app.workspace.space(facts.area)} is {ahead} ahead of this "
                "machine's clock: one of its writers had a wrong time. Order holds, and new "
                "entries tell the right time",
                "compare the clocks of the machines that write here",
            )
        else:
            ago = duration(max(0.0, (now - clock.wall).total_seconds()))
            yield ok(f"{facts.area}: the newest stamp is {ago} old")


def check_folders(there: Installation) -> Iterator[CheckResult]:
    """Whether the user's own folders can be written."""
    folders = {
        "data": dirs.data_folder(),
        "state": dirs.state_folder(),
        "settings": dirs.config_file().parent,
    }
    for name, folder in folders.items():
        found = nearest_folder(folder)
        if _is_writable(found):
            yield ok(f"{name}: {folder}")
        else:
            yield problem(f"{name}: {found} is no folder that this account may write", _OTHER_PLACE)
    del there


def _is_writable(folder: str) -> bool:
    is_folder = os.path.isdir(folder)  # noqa: PTH112
    return is_folder and os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def check_disk(there: Installation) -> Iterator[CheckResult]:
    """The room on the disks of the stores in files and of the user's folders."""
    places = [each.place.url for each in there.stores if each.place is not None]
    stores = [path_of(url) for url in places if is_in_files(url)]
    folders = [dirs.data_folder(), dirs.state_folder(), *stores]
    seen = set()
    for folder in map(nearest_folder, folders):
        device = os.stat(folder).st_dev  # noqa: PTH116
        if device in seen:
            continue
        seen.add(device)
        free = shutil.disk_usage(folder).free
        says = f"{size(free)} are free on the disk of {folder}"
        if free < LITTLE_ROOM:
            yield problem(says, "make room there; a full disk stops every write")
        elif free < SOME_ROOM:
            yield warning(says, "make room there before it is full")
        else:
            yield ok(says)
