"""The spool's reading side: nothing is lost, whatever was cut off, killed or written late."""

import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters.user_state import spool
from herdbook.adapters.user_state.halt_markers import folder as halted_folder
from herdbook.adapters.user_state.halt_markers import marker_name, set_halts
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.retention import HOOK_LOG_BYTES
from herdbook.entrypoints.hooks import hook


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "herdbook"


def leave(*words: str, given: bytes = b"{}") -> None:
    """Do what a hook does."""
    read = hook.CappedInput()
    for start in range(0, len(given), 1 << 16):
        read.add(given[start : start + (1 << 16)])
    hook.append(str(spool.folder()), hook.line(list(words), read.spool_text()))


def write(name: str, data: bytes) -> Path:
    """Append bytes to a file of the spool, as whoever holds it open would."""
    spool.folder().mkdir(parents=True, exist_ok=True)
    path = spool.folder() / name
    with path.open("ab") as file:
        file.write(data)
    return path


def ids(taken: spool.SpoolBatch) -> list[str]:
    return [each.id for each in taken]


def test_what_a_hook_was_told_is_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its event, place, agent and session, in the order it was written."""
    monkeypatch.setenv("HERDBOOK_AGENT", 'brisk "otter"\n')
    monkeypatch.setenv("HERDBOOK_SESSION", "s\\1")
    leave("PostToolUse", given=b'{"a":\r\n "\xc3\xa9"}\n')
    leave("pre-push", given=b"refs/heads/x 1\nrefs/heads/y \xff\n")
    leave("post-rewrite", "amend", given=b"old new\n")
    one, two, three = spool.take_batch()
    assert (one.event, one.raw, one.cwd) == ("PostToolUse", {"a": "é"}, str(Path.cwd()))
    assert one.env == {"HERDBOOK_AGENT": 'brisk "otter"\n', "HERDBOOK_SESSION": "s\\1"}
    assert one.at <= two.at <= three.at
    assert two.raw == "refs/heads/x 1\nrefs/heads/y \\xff\n"
    assert three.raw == {"arguments": ["amend"], "input": "old new\n"}


def test_what_is_not_confirmed_is_read_again() -> None:
    """A flush that was killed loses nothing: the next one gets the same ids."""
    leave("Stop")
    first = ids(spool.take_batch())
    leave("Stop")
    again = ids(spool.take_batch())
    assert again[:1] == first
    assert len(again) == 2


def test_what_is_confirmed_is_read_once() -> None:
    """Though its file stays until nobody can be writing to it any more."""
    leave("Stop")
    spool.take_batch().confirm()
    assert list(spool.folder().glob("taken-*.jsonl"))
    assert ids(spool.take_batch()) == []
    assert spool.backlog() == spool.SpoolBacklog(0, None)


def test_a_line_that_comes_late_is_read() -> None:
    """A hook may have opened the file before it was taken away."""
    leave("Stop")
    spool.take_batch().confirm()
    (taken,) = spool.folder().glob("taken-*.jsonl")
    write(taken.name, hook.line(["SessionEnd"], b"{}"))
    late = spool.take_batch()
    assert [each.event for each in late] == ["SessionEnd"]


def test_a_quiet_file_goes_when_it_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of it stays."""
    leave("Stop")
    spool.take_batch().confirm()
    monkeypatch.setattr(spool, "QUIET_SECONDS", -1.0)
    spool.take_batch().confirm()
    assert list(spool.folder().iterdir()) == []


def test_a_line_written_just_before_its_file_goes_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that comes between the last look and the unlinking sees the seal."""
    leave("Stop")
    monkeypatch.setattr(spool, "QUIET_SECONDS", -1.0)
    taken = spool.take_batch()
    (path,) = spool.folder().glob("taken-*.jsonl")
    early = [os.open(path, os.O_WRONLY | os.O_APPEND)]
    unlink, opened = Path.unlink, hook._open_file

    def late(self: Path, *, missing_ok: bool = False) -> None:
        if self == path:
            leave("SessionEnd")
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(hook, "_open_file", lambda *where: early.pop() if early else opened(*where))
    monkeypatch.setattr(Path, "unlink", late)
    taken.confirm()
    assert early == []
    assert [each.event for each in spool.take_batch()] == ["SessionEnd"]


def test_a_hook_whose_file_was_taken_away_for_good_writes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It sees that its line went into a file that has no name any more."""
    leave("Stop")
    real = os.write
    gone: list[Path] = []

    def write_late(descriptor: int, data: bytes) -> int:
        if not gone:
            gone.append(spool.folder() / spool.EVENTS)
            gone[0].unlink()
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write_late)
    leave("SessionEnd")
    assert [each.event for each in spool.take_batch()] == ["SessionEnd"]


def test_a_line_that_grew_since_it_was_read_keeps_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What came between the reading and the confirming is for the next reading."""
    leave("Stop")
    monkeypatch.setattr(spool, "QUIET_SECONDS", -1.0)
    taken = spool.take_batch()
    (path,) = spool.folder().glob("taken-*.jsonl")
    write(path.name, hook.line(["SessionEnd"], b"{}"))
    taken.confirm()
    assert "SessionEnd" in [each.event for each in spool.take_batch()]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "1", "at": 1, "ev', "was cut off"),
        (b'{"raw": {]}', "is not JSON"),
        (b'{"raw": "\xff"}', "is not text in UTF-8"),
        (b"[]", "fields of an event"),
        (b'{"id": "1"}', "fields of an event"),
        (b'{"id":"1","at":"x","event":"","cwd":"","env":{},"raw":1}', "at is not of its kind"),
        (b'{"id":"","at":1,"event":"","cwd":"","env":{},"raw":1}', "id or env"),
        (b'{"id":"1","at":1,"event":"","cwd":"","env":{"a":1},"raw":1}', "id or env"),
        (b'{"raw": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "is nested too deeply"),
    ],
    ids=["cut", "json", "utf-8", "list", "fields", "at", "id", "env", "deep"],
)
def test_a_bad_line_is_set_aside_with_its_reason_and_stops_nothing(
    line: bytes, reason: str
) -> None:
    """The lines before and behind it are read; it is told once, however often it is read."""
    leave("Stop")
    write(spool.EVENTS, line)
    leave("SessionEnd")
    spool.take_batch()
    taken = spool.take_batch()
    assert [each.event for each in taken] == ["Stop", "SessionEnd"]
    taken.confirm()
    taken.confirm()
    (aside,) = spool.read_rejected()
    assert reason in aside.reason
    assert aside.line.encode("latin-1", "replace")[:8] == line[:8]
    assert spool.take_batch().aside == []


def test_a_last_line_without_an_end_waits_until_all_is_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be still being written; later it is cut off."""
    leave("Stop")
    write(spool.EVENTS, b'\n{"id": "half')
    taken = spool.take_batch()
    assert (len(taken.events), taken.aside) == (1, [])
    taken.confirm()
    assert spool.read_rejected() == []
    monkeypatch.setattr(spool, "QUIET_SECONDS", -1.0)
    spool.take_batch().confirm()
    assert [each.reason for each in spool.read_rejected()] == ["was cut off"]
    assert list(spool.folder().glob("taken-*")) == []


def test_what_waits_can_be_read_without_being_taken() -> None:
    """So that a standing can count it."""
    leave("Stop")
    before = sorted(spool.folder().iterdir())
    assert [each.event for each in spool.read_buffered()] == ["Stop"]
    assert sorted(spool.folder().iterdir()) == before
    waiting = spool.backlog()
    assert waiting.size == before[0].stat().st_size
    assert waiting.since is not None


def test_where_no_hook_was_there_is_nothing_to_read(state: Path) -> None:
    """And nothing is made by reading."""
    taken = spool.take_batch()
    taken.confirm()
    assert taken.events == []
    assert spool.read_rejected() == []
    assert not state.exists()


def test_two_flushes_at_once_take_nothing_from_each_other() -> None:
    """Both see all events; whoever confirms second finds nothing to do."""
    leave("Stop")
    one, two = spool.take_batch(), spool.take_batch()
    assert ids(one) == ids(two)
    one.confirm()
    two.confirm()
    assert ids(spool.take_batch()) == []


def test_a_spool_that_cannot_be_read_says_that_its_events_are_safe(state: Path) -> None:
    """As an error of ours."""
    (state / "spool" / spool.EVENTS).mkdir(parents=True)
    with pytest.raises(StoreUnavailable, match="is safe"):
        spool.take_batch()


def test_a_huge_event_is_one_line() -> None:
    """Of any size, in one write."""
    big: dict[str, Any] = {"session_id": "s-1", "text": "é\n" * 2_000_000, "deep": [{"ok": 1}]}
    given = json.dumps(big, ensure_ascii=False).encode()
    leave("PostToolUse", given=given)
    (event,) = spool.take_batch()
    assert {**event.raw, "text": ""} == {
        "session_id": "s-1",
        "text": "",
        "deep": [{"ok": 1}],
        "herdbook_cut": {"size": len(given), "blake2b": blake2b(given).hexdigest()},
    }
    assert big["text"].startswith(event.raw["text"][:-1])
    assert len(event.raw["text"]) > 2_000


@pytest.mark.parametrize(
    "given",
    [
        b"\0" * 900_000,
        b"\xff" * 3_000_000,
        b"{" * 3_000_000,
        b"[" + b"1," * 9_000_000 + b"1]",
        b'{"a": "' + b"x" * 20_000_000 + b'"}',
        json.dumps({"many": [{"key": "x" * 100}] * 200_000}).encode(),
    ],
    ids=["zeros", "bytes", "cut", "list", "huge", "many"],
)
def test_whatever_a_hook_is_given_the_spool_grows_by_a_bound(given: bytes) -> None:
    """A megabyte of it is kept, with the size and digest of the whole."""
    leave("PostToolUse", given=given)
    (path,) = spool.folder().iterdir()
    assert 1 << 17 < path.stat().st_size < 2 << 20
    (event,) = spool.take_batch()
    cut = event.raw["herdbook_cut"]
    assert (cut["size"], cut["blake2b"]) == (len(given), blake2b(given).hexdigest())


@pytest.mark.parametrize("session", ["plain-1_a", "a/b.. %é\n", "x" * 300, "."])
def test_the_hook_looks_for_the_marker_that_is_written(session: str) -> None:
    """Both name it alike, inside one folder."""
    set_halts("r1", {session: "no skill points left"})
    assert marker_name(session) == hook.marker(session)
    text = (halted_folder() / hook.marker(session)).read_text()
    assert text.splitlines() == ["no skill points left", "record r1"]


def test_only_those_are_halted_who_are_named_last() -> None:
    """The markers of others go."""
    set_halts("r1", {"one": "a", "two": "b"})
    set_halts("r1", {"two": "c"})
    assert [each.name for each in halted_folder().iterdir()] == ["two"]
    set_halts("r1", {})
    assert list(halted_folder().iterdir()) == []


def test_only_the_record_that_set_a_marker_lifts_it() -> None:
    """Another record, wherever it comes from, knows nothing of the halts of this one."""
    set_halts("mine", {"one": "a"}, {"otter": "b"})
    set_halts("other", {"two": "c"})
    set_halts("other", {})
    assert {each.name for each in halted_folder().iterdir()} == {"one", "agent=otter"}
    set_halts("mine", {}, {"otter": "b"})
    assert {each.name for each in halted_folder().iterdir()} == {"agent=otter"}


def test_lines_set_aside_are_kept_in_files_of_a_bounded_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full file is kept as an earlier one; what the oldest held is counted when it goes."""
    monkeypatch.setattr(spool, "ASIDE_FILE_BYTES", 1)
    monkeypatch.setattr(spool, "ASIDE_FILES", 2)
    for number in range(5):
        write("events.jsonl", f"line {number}\n".encode())
        spool.take_batch().confirm()
    assert [each.line for each in spool.read_rejected()] == ["line 2", "line 3", "line 4"]
    assert spool.dropped_lines() == 2
    assert spool.aside_size() > 0
    assert len(list(spool.folder().glob("aside*.jsonl"))) == 3


def test_the_log_of_the_hooks_has_the_bound_that_is_told() -> None:
    """The hook imports nothing of ours."""
    assert hook._LOG_LIMIT == HOOK_LOG_BYTES
