"""The hook as its host starts it: it spools, answers, imports nothing, and never fails."""

import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters.user_state import dirs, spool
from herdbook.adapters.user_state.halt_markers import set_halts
from herdbook.entrypoints.hooks import hook
from tests.unit.entrypoints.records import OUT_OF_REACH

HOOK = Path(hook.__file__).resolve()
QUICK = [sys.executable, "-I", "-S", str(HOOK)]
ALLOWED = {"os", "stat", "_stat", "posixpath", "genericpath", "_collections_abc", "errno"}
Told = subprocess.CompletedProcess[bytes]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in hook.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HERDBOOK_RECORD", OUT_OF_REACH)
    return tmp_path / "state" / "herdbook"


def start(*words: str, given: bytes = b"{}", **kwargs: Any) -> Told:
    """Run the hook to its end."""
    command = kwargs.pop("command", QUICK)
    return subprocess.run(
        [*command, *words], input=given, capture_output=True, check=False, **kwargs
    )


def silent(told: Told) -> bool:
    return (told.returncode, told.stdout, told.stderr) == (0, b"", b"")


def test_an_event_is_spooled_without_a_word() -> None:
    """And can be read as what was given."""
    assert silent(start("PostToolUse", given=b'{"tool_name": "Bash",\n "x": [1]}\n'))
    (event,) = spool.take_batch()
    assert (event.event, event.raw) == ("PostToolUse", {"tool_name": "Bash", "x": [1]})
    assert len(event.id) == 32


def test_the_spool_is_for_its_user_alone(state: Path) -> None:
    """Folders 0700 and file 0600, whatever the umask."""
    assert silent(start("Stop", umask=0))
    for path, mode in [(state, 0o700), (state / "spool", 0o700)]:
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE((state / "spool" / "events.jsonl").stat().st_mode) == 0o600


def test_nothing_is_imported_that_costs() -> None:
    """Beyond what a bare interpreter has, os with its parts, and time."""

    def imported(words: list[str]) -> set[str]:
        told = subprocess.run(
            [sys.executable, "-I", "-S", "-X", "importtime", *words],
            input=b"{}",
            capture_output=True,
            check=True,
        )
        return {line.split(b"|")[-1].strip().decode() for line in told.stderr.splitlines()}

    assert imported([str(HOOK), "PreToolUse"]) - imported(["-c", "pass"]) <= ALLOWED | {"time"}
    assert [each.event for each in spool.take_batch()] == ["PreToolUse"]


@pytest.mark.parametrize(
    "given",
    [b"", b"\n", b"null", b"{", b"}", b"[1]", b"no json \x00 \xff", b'"text"', "\ufeff{}".encode()],
)
def test_what_is_no_object_is_kept_as_text(given: bytes) -> None:
    """Nothing that a host sends is an error."""
    assert silent(start("Unheard/Of", given=given))
    (event,) = spool.take_batch()
    assert event.raw == given.decode("utf-8", "backslashreplace")
    assert event.event == "Unheard/Of"


def test_an_object_that_is_none_is_set_aside_and_not_lost() -> None:
    """It looks like one, and the hook does not parse."""
    assert silent(start("Stop", given=b"{a} and {b}"))
    assert silent(start("Stop"))
    taken = spool.take_batch()
    assert len(taken.events) == len(taken.aside) == 1
    assert "{a} and {b}" in taken.aside[0].line


def test_without_an_event_it_is_spooled_under_no_name() -> None:
    """Which is no reason to fail."""
    assert silent(start())
    assert [each.event for each in spool.take_batch()] == [""]


def test_a_place_whose_name_is_no_text_is_told_exactly(tmp_path: Path) -> None:
    """So that it can be found again."""
    odd = os.fsencode(tmp_path) + b'/\xff"\\'
    Path(os.fsdecode(odd)).mkdir()
    assert silent(start("Stop", cwd=os.fsdecode(odd)))
    (event,) = spool.take_batch()
    assert os.fsencode(event.cwd) == odd


def test_a_place_that_is_gone_is_no_place(tmp_path: Path) -> None:
    """The event is kept all the same."""
    gone = tmp_path / "gone"
    gone.mkdir()
    shell = ["sh", "-c", 'rmdir "$0" && exec "$@"', str(gone), *QUICK]
    assert silent(start("Stop", cwd=gone, command=shell))
    assert [each.cwd for each in spool.take_batch()] == [""]


def test_a_spool_that_cannot_be_made_is_told_in_the_log(state: Path) -> None:
    """The host notices nothing."""
    state.mkdir(parents=True)
    (state / "spool").write_text("in the way")
    assert silent(start("Stop"))
    assert "Stop: NotADirectoryError" in (state / "hook.log").read_text()


def test_where_not_even_a_log_can_be_written_the_host_notices_nothing(state: Path) -> None:
    """There is nowhere left to tell it."""
    state.parent.mkdir()
    state.write_text("in the way")
    assert silent(start("PreToolUse"))


def test_the_log_does_not_grow_for_ever(state: Path) -> None:
    """After a megabyte it says no more."""
    state.mkdir(parents=True)
    (state / "spool").write_text("in the way")
    (state / "hook.log").write_bytes(b"x" * (1 << 20))
    assert silent(start("Stop"))
    assert (state / "hook.log").stat().st_size == 1 << 20


def test_a_line_cut_off_by_a_full_disk_takes_no_other_with_it(state: Path) -> None:
    """The next hook begins a new line; the cut one is set aside."""
    assert silent(start("Stop"))
    room = (state / "spool" / "events.jsonl").stat().st_size + 100

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    assert silent(start("Stop", preexec_fn=little_room))
    assert (state / "spool" / "events.jsonl").stat().st_size == room
    assert "Stop: " in (state / "hook.log").read_text()
    assert silent(start("SessionEnd"))
    taken = spool.take_batch()
    assert [each.event for each in taken] == ["Stop", "SessionEnd"]
    assert [each.reason for each in taken.aside] == ["was cut off"]


def denial(told: Told) -> str | None:
    assert (told.returncode, told.stderr) == (0, b"")
    if not told.stdout:
        return None
    answer = json.loads(told.stdout)["hookSpecificOutput"]
    assert (answer["hookEventName"], answer["permissionDecision"]) == ("PreToolUse", "deny")
    reason: str = answer["permissionDecisionReason"]
    return reason


def test_a_halted_session_is_denied_its_tools_with_the_reason() -> None:
    """By the session of the event; others go on, and other events are never answered."""
    set_halts("r1", {"a/1": 'no "skill" points: é'})
    event = b'{"session_id": "a/1", "tool_input": {"session_id": "b"}}'
    assert denial(start("PreToolUse", given=event)) == 'no "skill" points: é'
    assert silent(start("PostToolUse", given=event))
    other = b'{"tool_input": {"session_id": "a/1"}, "session_id": "b"}'
    assert denial(start("PreToolUse", given=other)) is None
    assert len(spool.take_batch().events) == 3


def test_a_session_named_by_its_variable_is_denied_too() -> None:
    """HERDBOOK_SESSION, whatever the event says."""
    set_halts("r1", {"mine": ""})
    told = start("PreToolUse", given=b"no object", env={**os.environ, "HERDBOOK_SESSION": "mine"})
    assert denial(told) == "this agent is halted"


def test_a_halted_agent_is_denied_its_tools_in_a_new_session_too() -> None:
    """By its variable, HERDBOOK_AGENT; a session that bears its name is not meant."""
    set_halts("r1", {}, {"otter/1": "halted"})
    named = {**os.environ, "HERDBOOK_AGENT": "otter/1"}
    assert denial(start("PreToolUse", given=b'{"session_id": "new"}', env=named)) == "halted"
    assert denial(start("PreToolUse", given=b'{"session_id": "otter/1"}')) is None


def test_a_halt_holds_where_nothing_can_be_spooled(state: Path) -> None:
    """A full disk is no way round it."""
    set_halts("r1", {"a": "halted"})
    (state / "spool").write_text("in the way")
    assert denial(start("PreToolUse", given=b'{"session_id": "a"}')) == "halted"


@pytest.mark.parametrize(
    "variables",
    [
        {"XDG_STATE_HOME": "/some/where"},
        {"XDG_STATE_HOME": "/some/where/"},
        {"XDG_STATE_HOME": "relative"},
        {"XDG_STATE_HOME": ""},
        {"XDG_STATE_HOME": "", "HOME": "/people/somebody/"},
    ],
)
def test_the_hook_and_the_reader_mean_the_same_folder(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the hook finds it without pathlib."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert hook.state_folder(dict(os.environ), sys.platform) == str(dirs._folder("state"))


def test_without_a_home_the_user_still_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system knows it."""
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert hook.state_folder(dict(os.environ), sys.platform) == str(dirs._folder("state"))
