"""Checks of what the user has besides stores: spool, halts, trust, bounds, backups, a server."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from herdbook.adapters.user_state import dirs, flush_notes, halt_markers, spool
from herdbook.domain import retention
from herdbook.domain.location.areas import Area
from herdbook.domain.location.settings import OFF
from herdbook.entrypoints import tracker_automerge
from herdbook.entrypoints.cli.text import duration, plural, size
from herdbook.entrypoints.context import text_of
from herdbook.entrypoints.operations.backups.last_backups import SpaceBackups, last_backups
from herdbook.entrypoints.operations.doctor.check_result import CheckResult, ok, problem, warning
from herdbook.entrypoints.operations.doctor.installation import Installation
from herdbook.entrypoints.server_numbers import ServerNumbers

FAR_BEHIND = 100
"""From how many entries on that nobody was told of the feed is late."""
SLOW = 128
"""From how many waiting events on a reader of the feed is about to be disconnected."""
LONG_WAIT = 86_400.0
"""After how many seconds waiting events are worth a warning."""
NEARLY = 0.9
_MARKS = {
    "stores": "stores that were used",
    "backups": "backups that were begun",
    "reminded": "sessions that were reminded",
    "tracker-checks": "checks of other programs",
    "legacy": "other programs' databases",
    "made-stores": "stores made here",
    "trusted-stores": "trusted stores",
    "trusted": "trusted settings files",
    "hooks": "originals of settings files",
}
"""The folders of marks in the state folder, and what each is of."""
LAST_LINES = 5
"""How many lines of the hooks' log are told."""
SHOWN = 3
"""How many lines that were set aside are shown; `--json` has all."""


def check_repository(there: Installation) -> Iterator[CheckResult]:
    """Whether this folder's repository is used, and its settings file is trusted."""
    workspace = there.app.workspace
    if workspace.repository_problem is not None:
        yield warning(f"the repository here is not used: {workspace.repository_problem}")
    elif workspace.facts is None:
        yield ok("this folder is in no repository")
    files = workspace.settings_files
    if not files and workspace.facts is not None:
        yield ok("this repository brings no settings file")
    for file in files:
        if workspace.is_trusted(file):
            yield ok(f"{file} is trusted")
            continue
        yield warning(
            f"{file} is not trusted: where it says stores are does not count",
            "a person who has read it may trust it with `herdbook trust`",
        )


def check_spool(there: Installation) -> Iterator[CheckResult]:
    """What waits in the spool, what was set aside, and why the last flush failed."""
    size_, since = spool.backlog()
    age = "" if since is None else f" since {datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M}Z"
    says = f"{there.waiting_events} events wait in {spool.folder()}, {size(size_)}{age}"
    if since is not None and there.now - since > LONG_WAIT:
        yield warning(says, "`herdbook flush` writes them into the record")
    else:
        yield ok(says)
    if failure := flush_notes.last_failure():
        advice = (
            "the events are safe in the spool; once the record can be written, `herdbook flush`"
        )
        yield problem(f"the last flush did not work: {failure}", advice)
    yield from _aside()
    for each in flush_notes.list_unlocated():
        yield problem(
            f"{each.events} events in {text_of(each.folder)} are recorded without their project: "
            f"{each.reason}",
            "once git can read that folder as you, later events have their project",
        )
    for note in flush_notes.list_dropped():
        yield warning(
            f"{note.commits} commits in {text_of(note.folder)} are counted for nobody: "
            f"{note.reason}",
            "`herdbook agent add` in a session, or HERDBOOK_AGENT, says whose commits they are",
        )
    for line in last_log_lines():
        advice = "`herdbook hooks install` writes the hooks of this version; older lines stay here"
        yield warning(f"hook.log: {line}", advice)


def _aside() -> Iterator[CheckResult]:
    aside = spool.read_rejected()
    for each in aside[-SHOWN:]:
        advice = "it is kept as it came: `herdbook doctor --json` shows it; all others were counted"
        yield warning(f"set aside {each.place}: {each.reason}", advice)
    if len(aside) > SHOWN:
        yield warning(f"{len(aside)} lines were set aside; `--json` has them all")
    if lost := spool.dropped_lines():
        yield warning(f"{lost} older lines that were set aside are no longer kept")


def last_log_lines() -> list[str]:
    """The last lines of the hooks' log."""
    try:
        text = hook_log().read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return text.splitlines()[-LAST_LINES:]


def hook_log() -> Path:
    """The file in which hooks tell their trouble."""
    return dirs.state_folder() / "hook.log"


def check_halts(there: Installation) -> Iterator[CheckResult]:
    """The agents that are halted."""
    if not there.halted_agents:
        yield ok("no agent is halted")
        return
    enforced = there.app.workspace.setting("enforce_halt")
    kept = "kept from tools" if enforced else "not kept from tools"
    advice = "a person may reinstate one: `herdbook reinstate AGENT`"
    yield warning(f"halted, {kept}: {', '.join(there.halted_agents)}", advice)


def check_imports(_: Installation) -> Iterator[CheckResult]:
    """What came of other programs' databases."""
    for each in tracker_automerge.outcomes():
        yield problem(str(each)) if each.is_open else ok(str(each))


def check_bounds(there: Installation) -> Iterator[CheckResult]:
    """Everything that would grow for ever: how much there is, and its bound."""
    for facts in there.stores:
        if facts.space is None:
            continue
        area, space = facts.area, facts.space
        yield ok(
            f"{area}: {space.operations} results and marks of operations, kept for "
            f"{retention.OPERATIONS_KEPT.days} days"
        )
        yield _compare_bound(f"{area}: cursors", len(space.cursors), retention.MOST_CURSORS)
        if area is Area.WORK:
            session = size(retention.SESSION_LOG_BYTES)
            yield _compare_bound(
                f"{area}: logs of agents, {space.log_chunks} pieces (of {session} in a session, "
                f"{retention.AGENT_LOG_SESSIONS} sessions of an agent)",
                space.log_bytes,
                retention.SPACE_LOG_BYTES,
                is_size=True,
            )
    aside = (retention.ASIDE_FILES + 1) * retention.ASIDE_FILE_BYTES
    yield _compare_bound("lines set aside", spool.aside_size(), aside, is_size=True)
    log = hook_log()
    log_size = log.stat().st_size if log.exists() else 0
    yield _compare_bound("hook.log", log_size, retention.HOOK_LOG_BYTES, is_size=True)
    notes = max(len(flush_notes.list_unlocated()), len(flush_notes.list_dropped()))
    # Full notes are usual: the oldest made room.
    yield ok(f"notes about flushes: {notes} of at most {retention.MOST_NOTES}")
    yield _compare_bound("halt markers", _count(halt_markers.folder()), retention.MANY_MARKERS)
    for name, what in _MARKS.items():
        yield _compare_bound(what, _count(dirs.state_folder() / name), retention.MOST_MARKS)


def _compare_bound(what: str, present: int, most: int, *, is_size: bool = False) -> CheckResult:
    shown = [size(each) if is_size else str(each) for each in (present, most)]
    says = f"{what}: {shown[0]} of at most {shown[1]}"
    return warning(says) if present >= NEARLY * most else ok(says)


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0


def check_backups(there: Installation) -> Iterator[CheckResult]:
    """When each space of this folder was last backed up, and why that failed last."""
    state = last_backups(there.app)
    for space, reason in state["failures"].items():
        advice = "`herdbook backup --automatic` tries it again; earlier backups are as they were"
        yield problem(f"the last backup of {space} did not work: {reason}", advice)
    if state["setting"] == OFF:
        advice = 'backup = "daily" in your own settings has each space copied once a day'
        yield ok("no backups are made by themselves (backup = off)", advice)
    for each in state["spaces"]:
        yield ok(_describe_backups(each))
    if not state["spaces"] and state["setting"] != OFF:
        yield ok("no backup yet: the next write starts one")


def _describe_backups(each: SpaceBackups) -> str:
    age = datetime.now(UTC) - datetime.fromisoformat(each["last_at"])
    return (
        f"{each['space']}: last backup {duration(age.total_seconds())} ago, up to #{each['seq']}; "
        f"{plural(each['copies'], 'daily file')}, {size(each['bytes'])}"
    )


def check_server(there: Installation) -> Iterator[CheckResult]:
    """What the server has answered, and whether all who follow it are up to date."""
    numbers = there.server_numbers
    if numbers is None:
        return
    yield ok(
        f"process {numbers.pid} serves since {duration(numbers.seconds)}, with "
        f"{size(numbers.memory)} of memory and {plural(numbers.open_files, 'open file')}"
    )
    yield ok(
        f"{plural(numbers.requests, 'request')} answered, {numbers.waiting_calls} wait; "
        f"{plural(numbers.refused_calls, 'call')} refused with a reason"
    )
    yield _feed(numbers)
    faults = numbers.defects + numbers.failed_requests
    if faults:
        yield warning(
            f"{plural(faults, 'call')} ended by a fault of the program",
            "`HERDBOOK_DEBUG=1 herdbook serve` prints where it was; please report that",
        )


def _feed(numbers: ServerNumbers) -> CheckResult:
    lost = numbers.feed_overflows
    came_back = f"; {lost} did not keep up and were sent back for what they missed" if lost else ""
    says = f"{plural(numbers.feed_readers, 'connection')} to the feed{came_back}"
    if numbers.feed_behind >= FAR_BEHIND:
        return warning(
            f"{says}; {plural(numbers.feed_behind, 'change')} not told yet",
            "it catches up by itself; if not, start `herdbook serve` again: nothing is lost",
        )
    if numbers.most_queued >= SLOW:
        return warning(
            f"{says}; {plural(numbers.most_queued, 'event')} wait for the slowest",
            "a window that sleeps is told what it missed when it wakes",
        )
    return ok(f"{says}, all told of every change")
