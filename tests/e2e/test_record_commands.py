"""Grades, bugs, standings and flushes by the installed program, fed by hooks as real processes."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.location.areas import Area
from herdbook.entrypoints.hooks import hook
from tests.e2e import conftest
from tests.e2e.conftest import Person

HOOK = Path(hook.__file__).resolve()
REPOSITORY = Path(__file__).parents[2]
OTTER = {"HERDBOOK_AGENT": "otter"}


def hooked(person: Person, folder: Path, event: str, *, agent: str = "otter", **told: Any) -> str:
    """Let an agent's hook run in a folder as its host does; what it answers."""
    return subprocess.run(
        [sys.executable, "-I", "-S", HOOK, event],
        cwd=folder,
        env={**person.variables, "HERDBOOK_AGENT": agent},
        input=json.dumps({"session_id": "s1", "hook_event_name": event, **told}),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def commits(person: Person, folder: Path, *subjects: str) -> list[str]:
    """Make commits, each followed by git's hook; their hashes."""
    hashes = []
    for subject in subjects:
        person.git(folder, "commit", "--quiet", "--allow-empty", f"--message={subject}")
        hooked(person, folder, "post-commit")
        hashes.append(person.git(folder, "rev-parse", "HEAD").strip())
    return hashes


def standing(person: Person, folder: Path, agent: str = "otter") -> dict[str, Any]:
    """Where an agent stands."""
    (found,) = person.asks(folder, "standing", agent)
    answer: dict[str, Any] = found
    return answer


def test_what_hooks_left_is_seen_before_it_is_flushed_and_once_after(
    person: Person, app: Path
) -> None:
    """A second flush finds nothing new."""
    for _ in range(3):
        hooked(person, app, "PostToolUse", tool_name="Read")
    before = standing(person, app)
    assert before["experience_points"] == 3
    assert person.asks(app, "flush")["applied"] == 3
    assert person.asks(app, "flush")["applied"] == 0
    assert standing(person, app) == before
    assert "otter" in person.runs(app, "standing")


def test_every_commit_is_known_by_its_hash_and_its_subject(person: Person, app: Path) -> None:
    """Also of several in one second, and when the branch has changed since."""
    made = commits(person, app, "one", "two", "three")
    person.git(app, "switch", "--quiet", "--create", "other", "HEAD~2")
    assert person.asks(app, "flush")["applied"] == 3
    assert standing(person, app)["commits"] == 3
    for commit, subject in zip(made, ("one", "two", "three"), strict=True):
        words = ("grade", "otter", commit, "--self", "1", "--user", "1")
        assert person.asks(app, *words)["retrospective"]["task"] == subject
    (app / "deep").mkdir()
    assert len(person.asks(app / "deep", "retro", "list")) == 3


def test_a_commit_is_graded_by_both_parties_once(person: Person, app: Path) -> None:
    """By labels or numbers, under any name that git knows for it."""
    person.registers(app, "otter", "heron")
    words = ("grade", "otter", "HEAD", "--self", "good", "--user", "5", "--user-note", "neat")
    retro = person.asks(app, *words)["retrospective"]
    assert (retro["score_before"], retro["score_after"], retro["user_note"]) == (60, 67, "neat")
    again = person.tries(app, "grade", "otter", retro["commit_hash"][:9], *words[3:])
    assert again.returncode != 0
    assert "already" in again.stderr
    assert "neat" in person.runs(app, "retro", "list", "--agent", "otter")
    for bad in ("4", "great"):
        assert person.tries(app, "grade", "heron", "HEAD", "--user", bad).returncode == 2
    assert person.tries(app, "grade", "heron", "no-such", "--user", "good").returncode == 2


def test_one_party_alone_gives_a_communication_score(person: Person, app: Path) -> None:
    """And no retrospective."""
    person.registers(app, "otter")
    answer = person.asks(app, "grade", "otter", "HEAD", "--user", "bad")
    assert answer["retrospective"] is None
    assert answer["standing"]["communication_score"] == 59
    assert person.asks(app, "retro", "list") == []


def test_on_a_terminal_grade_asks_for_what_is_missing(person: Person, app: Path) -> None:
    """Again where the answer is no grade; an empty answer gives none."""
    person.registers(app, "otter")
    screen, line = pty.openpty()
    process = subprocess.Popen(
        [conftest.PROGRAM, "grade", "otter", "HEAD", "--self", "good"],
        cwd=app,
        env={**person.variables, "TERM": "dumb"},
        stdin=line,
        stdout=line,
        stderr=line,
        start_new_session=True,
    )
    os.close(line)
    os.write(screen, b"superb\nexcellence\n\nwell done\n")
    shown = ""
    with suppress(OSError):  # the terminal is gone when its last program is
        while told := os.read(screen, 65_536):
            shown += told.decode()
    assert process.wait(300) == 0, shown
    os.close(screen)
    assert "'superb' is not one of" in shown
    (retro,) = person.asks(app, "retro", "list")
    assert (retro["agent_grade"], retro["user_grade"]) == (2, 5)
    assert (retro["agent_note"], retro["user_note"]) == ("", "well done")


def test_a_halted_agent_is_denied_its_tools_until_it_is_reinstated(
    person: Person, app: Path
) -> None:
    """Its sessions are known from what its hooks left, flushed or not."""
    hooked(person, app, "SessionStart")
    assert person.asks(app, "bug", "otter", "--note", "lost a row")["active"] is False
    denied = json.loads(hooked(person, app, "PreToolUse", tool_name="Bash"))
    assert denied["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "reinstate" in denied["hookSpecificOutput"]["permissionDecisionReason"]
    person.runs(app, "flush")
    assert hooked(person, app, "PreToolUse", tool_name="Bash")
    assert person.asks(app, "doctor")["halted"] == ["otter"]
    assert person.asks(app, "reinstate", "otter")["active"] is True
    assert hooked(person, app, "PreToolUse", tool_name="Bash") == ""


def test_a_halted_agent_is_denied_its_tools_in_a_session_that_is_new(
    person: Person, app: Path
) -> None:
    """No hook has told of that one yet."""
    person.registers(app, "otter")
    person.runs(app, "bug", "otter")
    assert "otter" in hooked(person, app, "PreToolUse", session_id="s2")
    person.runs(app, "reinstate", "otter")
    assert hooked(person, app, "PreToolUse", session_id="s3") == ""


def test_the_user_and_no_repository_says_whether_halts_are_enforced(
    person: Person, app: Path
) -> None:
    """A repository's file cannot switch it off, the user's own can."""
    hooked(person, app, "PostToolUse")
    (app / "herdbook.toml").write_text("enforce_halt = false\n")
    person.runs(app, "bug", "otter")
    assert hooked(person, app, "PreToolUse")
    person.config.parent.mkdir(parents=True)
    person.config.write_text("enforce_halt = false\n")
    person.runs(app, "flush")
    assert hooked(person, app, "PreToolUse") == ""


def fill(person: Person, record: str) -> None:
    """Write into a record, more and more finely, until not a word fits."""
    person.registers(person.home, "heron")
    for size in (100_000, 1_000, 1):
        words = ("activity", "add", "x" * size, "--agent", "heron")
        told = person.tries(person.home, *words, HERDBOOK_RECORD=record)
        while told.returncode == 0:
            told = person.tries(person.home, *words, HERDBOOK_RECORD=record)
        assert "is full" in told.stderr


def in_the_way(person: Person, trouble: str) -> str:
    """A record that cannot be written, for one reason or another; its URL."""
    place = person.home / "record"
    match trouble:
        case "corrupt":
            place.mkdir()
            (place / "data.mdb").write_bytes(b"no store" * 1000)
        case "full":
            person.chooses("lmdb", "record_size_limit = 1048576")
            fill(person, f"lmdb://{place}")
        case "no folder":
            return "lmdb:///dev/null/record"
        case "read-only":
            return "duckdb:///proc/record"
        case "no server":
            person.chooses("lmdb", "patience = 1")
            return "postgresql://somebody:hidden@127.0.0.1:1/record"
    return f"lmdb://{place}"


TROUBLES = ("corrupt", "full", "no folder", "read-only", "no server")


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_record_in_trouble_never_harms_a_session(person: Person, app: Path, trouble: str) -> None:
    """For a hook it ends well with one warning; `doctor` tells, and the next flush has it all."""
    bad = {"HERDBOOK_RECORD": in_the_way(person, trouble)}
    person.variables |= bad
    hooked(person, app, "PostToolUse")
    failed = person.tries(app, "flush")
    assert failed.returncode not in (0, 70)
    gently = person.tries(app, "flush", "--gently")
    assert gently.returncode == 0
    assert gently.stderr.count("herdbook:") == 1
    assert "waits in the spool" in gently.stderr
    doctor = person.tries(app, "doctor", "--json", "--full")
    told = json.loads(doctor.stdout)
    assert told["waiting"]["events"] == 1
    assert "1 events wait" in told["last_failure"]
    assert doctor.returncode == 1
    assert "hidden" not in failed.stderr + gently.stderr + doctor.stdout
    del person.variables["HERDBOOK_RECORD"]
    person.config.unlink(missing_ok=True)
    assert person.asks(app, "flush")["applied"] == 1
    assert person.asks(app, "doctor")["ok"] is True


def test_halt_markers_that_cannot_be_written_are_told(person: Person, app: Path) -> None:
    """The command says which folder is in trouble, and the next one sets the marker."""
    person.registers(app, "heron")
    markers = person.home / ".local" / "state" / "herdbook" / "halted"
    markers.parent.mkdir(parents=True, exist_ok=True)
    markers.write_text("no folder\n")
    told = person.tries(app, "bug", "heron")
    assert told.returncode == 5, told.stderr
    assert str(markers.parent) in told.stderr
    markers.unlink()
    person.runs(app, "flush")
    assert [each.name for each in markers.iterdir()] == ["agent=heron"]


def test_a_record_that_others_hold_keeps_nobody_waiting_for_ever(person: Person, app: Path) -> None:
    """A hook asks no store at all, and a flush gives up in time."""
    person.chooses("duckdb", "patience = 0.2")
    hooked(person, app, "PostToolUse")
    person.runs(app, "flush")
    with person.at(app).open(Area.RECORD) as store, store.transaction("record/x", write=True):
        hooked(person, app, "PostToolUse")
        gently = person.tries(app, "flush", "--gently")
        assert gently.returncode == 0
        assert gently.stderr.count("herdbook:") == 1
        assert person.tries(app, "doctor").returncode == 1
    assert person.asks(app, "flush")["applied"] == 1


def test_what_is_unknown_is_set_aside_raw_and_shown(person: Person, app: Path) -> None:
    """It holds up nothing, and no word of it is lost."""
    hooked(person, app, "Unheard", colour="red")
    hooked(person, app, "PostToolUse")
    answer = person.asks(app, "flush")
    assert (answer["applied"], len(answer["aside"])) == (1, 1)
    (aside,) = person.asks(app, "doctor")["aside"]
    assert json.loads(aside["line"])["raw"]["colour"] == "red"
    assert "Unheard" in person.runs(app, "doctor")


def test_a_flush_that_is_not_due_waits(person: Person, app: Path) -> None:
    """Until the spool is larger than the setting, or older."""
    hooked(person, app, "PostToolUse")
    assert person.asks(app, "flush", "--if-due")["applied"] == 0
    person.config.parent.mkdir(parents=True)
    person.config.write_text("flush_size = 10\n")
    assert person.asks(app, "flush", "--if-due")["applied"] == 1


def test_activities_are_written_down_for_whoever_acts(person: Person, app: Path) -> None:
    """By name, or as the environment says."""
    person.registers(app, "otter", "heron")
    words = ("activity", "add", "parse", "--outcome", "it works")
    assert person.tries(app, *words).returncode == 2
    assert person.asks(app, *words, **OTTER)["agent"] == "otter"
    person.runs(app, *words, "--agent", "heron")
    assert [each["agent"] for each in person.asks(app, "activity", "list")] == ["heron", "otter"]
    assert "it works" in person.runs(app, "activity", "list", "--agent", "otter")


def test_exports_are_written_at_a_flush_when_they_are_wanted(person: Person, app: Path) -> None:
    """From the store alone: what somebody wrote into them is gone with the next one."""
    (commit,) = commits(person, app, "fix the clock")
    person.runs(app, "flush")
    assert not (app / ".agent").exists()
    (app / "herdbook.toml").write_text("exports = true\n")
    person.runs(app, "grade", "otter", commit, "--self", "good", "--user", "good")
    other = person.repository(app.parent / "other")
    person.registers(other, "elsewhere")
    person.runs(other, "bug", "elsewhere")
    hooked(person, app, "PostToolUse", agent="heron")
    assert len(person.asks(app, "flush")["exported"]) >= 3
    status = json.loads((app / ".agent" / "status.json").read_text())
    assert [each["agent"] for each in status["agents"]] == ["heron", "otter"]
    talk = app / ".journal" / "communication.json"
    assert json.loads(talk.read_text())["retrospectives"][0]["commit_hash"] == commit
    (day, *_) = sorted((app / ".journal").glob("????-??-??.md"))
    assert "fix the clock" in day.read_text()
    before = talk.read_text()
    talk.write_text("[]")
    assert person.asks(app, "flush")["exported"] == [str(talk)]
    assert talk.read_text() == before
    assert all(path.suffix in {".json", ".md"} for path in talk.parent.iterdir())


def killed_at(person: Person, app: Path, steps: int) -> bool:
    """Flush in a program that is killed when it comes to this step; whether it was."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.e2e.flush_killed", app, str(steps)],
        cwd=REPOSITORY,
        env=person.variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode != 0


def test_a_flush_killed_at_any_step_loses_nothing_and_counts_nothing_twice(
    person: Person, app: Path
) -> None:
    """From the first look into the spool to the last mark that it is done with."""
    steps, died = 0, True
    while died:
        steps += 1
        person.variables["XDG_STATE_HOME"] = str(person.home / f"state-{steps}")
        hooked(person, app, "PostToolUse")
        died = killed_at(person, app, steps)
        hooked(person, app, "PostToolUse")
        assert standing(person, app)["experience_points"] == 2 * steps
        person.runs(app, "flush")
        assert person.asks(app, "flush")["applied"] == 0
        assert standing(person, app)["experience_points"] == 2 * steps
    assert steps > len(("taking", "reading", "writing", "marking"))


@pytest.mark.parametrize("name", [".agent", ".journal"])
def test_exports_go_through_no_link(person: Person, app: Path, name: str) -> None:
    """A repository cannot lead them out of itself."""
    (app / "herdbook.toml").write_text("exports = true\n")
    outside = person.home / "outside"
    outside.mkdir()
    (app / name).symlink_to(outside)
    assert person.tries(app, "flush").returncode != 0
    assert list(outside.iterdir()) == []
