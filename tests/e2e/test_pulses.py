"""What a hook tells shows at once: the tail of the spool is read, and nothing is flushed for it."""

import json
import shlex
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from herdbook.adapters.user_state import spool
from herdbook.adapters.user_state.spool_tail import MOST_BYTES, LiveSpool
from herdbook.domain.record.pulses import Pulse, PulseKind
from herdbook.entrypoints.hooks.hosts import local_command
from herdbook.services.record.pulses import publish_pulses, take_pulses
from tests.e2e.conftest import Person

SECRET = "hunter2-hunter2"  # noqa: S105 - nobody's


def _hook(person: Person, event: str, folder: Path, **fields: object) -> None:
    """Run the hook program as an agent does."""
    subprocess.run(
        shlex.split(local_command(event)),
        input=json.dumps({"session_id": "s-1", **fields}).encode(),
        env={**person.variables, "HERDBOOK_AGENT": "otter"},
        cwd=folder,
        check=True,
    )


def test_a_session_shows_from_its_begin_to_its_end(person: Person, tmp_path: Path) -> None:
    """Each event as a pulse, in order and once, and it still waits for the flush."""
    _hook(person, "SessionStart", tmp_path)  # before anybody looked: no news
    tail = LiveSpool()
    assert take_pulses(tail) == []
    _hook(person, "SessionStart", tmp_path)
    _hook(person, "UserPromptSubmit", tmp_path, prompt=SECRET)
    _hook(person, "PreToolUse", tmp_path, tool_name="Bash", tool_input={"command": SECRET})
    _hook(person, "PostToolUse", tmp_path, tool_name="Bash", tool_response=SECRET)
    _hook(person, "Stop", tmp_path)
    _hook(person, "SessionEnd", tmp_path)
    pulses = take_pulses(tail)
    assert [each.kind for each in pulses] == [
        PulseKind.STARTED,
        PulseKind.PROMPTED,
        PulseKind.TOOL_STARTED,
        PulseKind.TOOL_ENDED,
        PulseKind.WAITING,
        PulseKind.ENDED,
    ]
    assert {(each.agent, each.session_id, each.cwd) for each in pulses} == {
        ("otter", "s-1", str(tmp_path))
    }
    assert [each.tool for each in pulses] == [None, None, "Bash", "Bash", None, None]
    assert SECRET not in repr(pulses)
    assert take_pulses(tail) == []
    assert len(spool.read_buffered().events) == 7


def test_a_flush_takes_nothing_from_the_pulses(person: Person, tmp_path: Path) -> None:
    """Files that it renames or lets go are read to their end, and nothing is told twice."""
    tail = LiveSpool()
    told: list[Pulse] = []
    for number in range(6):
        _hook(person, "PostToolUse", tmp_path, tool_name=f"tool {number}")
        if number % 2:
            spool.take_batch().confirm()
        if number % 3 == 2:
            told += take_pulses(tail)
    told += take_pulses(tail)
    assert [each.tool for each in told] == [f"tool {number}" for number in range(6)]


def test_a_thread_publishes_what_comes(person: Person, tmp_path: Path) -> None:
    """Until it is told to stop."""
    stop, heard = threading.Event(), threading.Event()
    told: list[Pulse] = []

    def publish(pulses: Sequence[Pulse]) -> None:
        told.extend(pulses)
        heard.set()

    thread = threading.Thread(target=publish_pulses, args=(LiveSpool(), publish, stop))
    thread.start()
    _hook(person, "SessionStart", tmp_path)
    heard.wait()
    stop.set()
    thread.join()
    assert [each.kind for each in told] == [PulseKind.STARTED]


def test_lines_that_are_no_events_and_a_flood_do_no_harm(person: Person, tmp_path: Path) -> None:
    """The first are left to the flush; of much at once only the newest is told."""
    tail = LiveSpool()
    _hook(person, "Stop", tmp_path)
    events = spool.folder() / spool.EVENTS
    whole = events.read_bytes()
    with events.open("ab") as file:
        file.write(b"\nno event\n" + b'{"id": 1}\n' + whole.strip()[:-9])
    assert len(take_pulses(tail)) == 1
    with events.open("ab") as file:
        file.write(whole.strip()[-9:] + b"\n")
    assert len(take_pulses(tail)) == 1
    with events.open("ab") as file:
        file.write(whole * (2 * MOST_BYTES // len(whole)))
    assert 0 < len(take_pulses(tail)) <= MOST_BYTES // len(whole) + 1
    assert take_pulses(tail) == []
