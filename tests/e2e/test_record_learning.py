"""What follows from the record, by the installed program: advice, prior art, others' records."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from herdbook.adapters.agent_tracker import locate
from tests.e2e.conftest import Files, Person

TRACKER = Path(__file__).parents[1] / "fixtures" / "agent-tracker" / "tracker.lmdb"
ENGINES = ("lmdb", "duckdb", "postgres")


def graded(person: Person, folder: Path, agent: str, task: str, *judged: str) -> None:
    """Let an agent make a commit, and both parties judge it."""
    person.git(folder, "commit", "--quiet", "--allow-empty", f"--message={task}")
    grade, note = judged
    person.registers(folder, agent)
    words = ("--self", grade, "--user", grade, "--user-note", note)
    person.runs(folder, "grade", agent, "HEAD", *words)


def left_by_opencode(person: Person) -> Path:
    """A database of the agent-tracker where OpenCode leaves it."""
    place = person.home / locate.DATABASE
    place.parent.mkdir(parents=True)
    shutil.copy(TRACKER, place)
    return place


WATCHED = """
import json, os, sys
touched = {"stat": [], "open": [], "list": []}
def watched(call):
    def wrapper(path, *args, **kwargs):
        touched["stat"].append(os.fsdecode(path) if not isinstance(path, int) else "")
        return call(path, *args, **kwargs)
    return wrapper
os.stat, os.lstat = watched(os.stat), watched(os.lstat)
kinds = {"open": "open", "os.listdir": "list", "os.scandir": "list"}
def audit(event, arguments):
    if event in kinds and isinstance(arguments[0], (str, bytes, os.PathLike)):
        touched[kinds[event]].append(os.fsdecode(arguments[0]))
sys.addaudithook(audit)
from herdbook.entrypoints.main import main
ended = main()
print(json.dumps(touched))
sys.exit(ended)
"""


def paths_touched(person: Person, folder: Path, *words: str) -> dict[str, list[str]]:
    """Run a command in a folder and read which paths it stats, opens and lists."""
    told = subprocess.run(
        [sys.executable, "-c", WATCHED, *words],
        cwd=folder,
        env=person.variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    touched: dict[str, list[str]] = json.loads(told.stdout.splitlines()[-1])
    return touched


def test_the_record_teaches_what_to_use_and_what_was_done(keeper: Person, app: Path) -> None:
    """Advice for this project with plain words about how little is known, good and bad apart."""
    graded(keeper, app, "otter", "retry the claim of a lease", "excellence", "small and clear")
    graded(keeper, app, "heron", "retry the claim for ever", "bad", "it loops for ever")
    advice = keeper.asks(app, "advise")
    assert advice["setups"]
    assert "not enough data" in keeper.runs(app, "advise")
    found = keeper.asks(app, "recall", "retry a claim")
    assert [each["agent"] for each in found["good"]] == ["otter"]
    assert [each["agent"] for each in found["mistakes"]] == ["heron"]
    shown = keeper.runs(app, "recall", "retry a claim")
    assert shown.index("small and clear") < shown.index("it loops for ever")
    assert keeper.tries(app, "advise", "--for", "klingon").returncode == 2


def test_what_hooks_left_is_learned_from_at_once(person: Person, app: Path) -> None:
    """Nobody has to flush before; a record that cannot be written is one warning."""
    person.git(app, "commit", "--quiet", "--allow-empty", "--message=sort the herd by name")
    _hooked(person, app, "post-commit")
    bad = person.tries(app, "recall", "sort the herd", HERDBOOK_RECORD="lmdb:///dev/null/x")
    assert "waits in the spool" in bad.stderr
    (found,) = person.asks(app, "recall", "sort the herd")["unjudged"]
    assert found["agent"] == "otter"
    assert person.asks(app, "doctor")["waiting"]["events"] == 0


def test_an_agent_tracker_is_imported_once(keeper: Person, app: Path) -> None:
    """What came the first time is kept the second; the file stays as it is."""
    before = TRACKER.read_bytes()
    first = keeper.tries(app, "import", "agent-tracker", str(TRACKER), "--json", "--full")
    again = keeper.tries(app, "import", "agent-tracker", str(TRACKER), "--json", "--full")
    assert json.loads(first.stdout)["added"] > 400
    assert json.loads(again.stdout)["added"] == 0
    agents = [each["agent"] for each in keeper.asks(app, "standing")]
    assert sorted(agents) == ["brisk-otter", "grey-heron"]
    assert TRACKER.read_bytes() == before
    assert keeper.tries(app, "import", "agent-tracker", "nowhere").returncode == 5


def test_what_opencode_left_comes_by_itself_and_once(
    keeper: Person, app: Path, everything_in: Callable[[Path], Files]
) -> None:
    """One line says how many entries came, when the record is first written, and not before."""
    left_by_opencode(keeper)
    before = everything_in(keeper.home / ".config" / "opencode")
    assert keeper.asks(app, "standing") == []
    keeper.registers(app, "otter")
    first = keeper.tries(app, "activity", "add", "begin", "--agent", "otter")
    assert first.returncode == 0
    (line,) = first.stderr.splitlines()
    assert "entries were merged into the record" in line
    assert len(keeper.asks(app, "standing")) == 2
    assert keeper.tries(app, "activity", "add", "go on", "--agent", "otter").stderr == ""
    assert everything_in(keeper.home / ".config" / "opencode") == before
    assert "merged into the record" in keeper.runs(app, "doctor")


def test_later_writes_touch_no_path_of_the_tracker(person: Person, app: Path) -> None:
    """The first write looks for databases; the second costs one stat, of a mark."""
    left_by_opencode(person)
    person.registers(app, "otter")
    first = paths_touched(person, app, "bug", "otter")
    assert [path for path in first["open"] if str(locate.DATABASE) in path]
    again = paths_touched(person, app, "bug", "otter")
    every = [path for paths in again.values() for path in paths]
    assert every
    assert [path for path in every if ".config/opencode" in path or "/~" in path] == []
    assert sum("tracker-checks" in path for path in again["stat"]) == 1
    assert [path for path in again["open"] + again["list"] if "tracker-checks" in path] == []
    assert [path for path in every if "legacy" in path] == []
    (app / "deep").mkdir()
    deep = paths_touched(person, app / "deep", "bug", "otter")
    assert [path for path in deep["open"] if str(locate.DATABASE) in path] == []
    (standing,) = person.asks(app, "standing", "otter")
    assert standing["bugs"] == 3


def test_what_the_plugins_defect_left_in_a_project_comes_too(person: Person, app: Path) -> None:
    """Below a folder called `~`; also from a folder inside the project."""
    place = app / "~" / locate.DATABASE
    place.parent.mkdir(parents=True)
    shutil.copy(TRACKER, place)
    (app / "deep").mkdir()
    person.registers(app, "otter")
    told = person.tries(app / "deep", "bug", "otter")
    assert "entries were merged into the record" in told.stderr
    assert len(person.asks(app, "standing")) == 3


def test_a_broken_legacy_database_stops_nothing(person: Person, app: Path) -> None:
    """It is told once, again when the file has changed, and `doctor` knows."""
    place = person.home / locate.DATABASE
    place.parent.mkdir(parents=True)
    place.write_bytes(b"no such database" * 1000)
    person.registers(app, "otter")
    first = person.tries(app, "bug", "otter")
    assert first.returncode == 0
    assert "was not merged into the record" in first.stderr
    assert person.tries(app, "bug", "otter").stderr == ""
    told = person.tries(app, "doctor")
    assert told.returncode == 1
    assert "was not merged" in told.stdout
    shutil.copy(TRACKER, place)
    assert "entries were merged" in person.tries(app, "bug", "otter").stderr
    assert person.asks(app, "doctor")["ok"] is True


def test_who_comes_halted_is_denied_its_tools_at_once(person: Person, app: Path) -> None:
    """By the automatic merge, by an import and by a merge of records; nobody has to flush."""
    place = left_by_opencode(person)
    records = [{"XDG_STATE_HOME": str(person.home / name)} for name in ("a", "b", "c")]
    other = {"HERDBOOK_RECORD": f"lmdb://{person.home}/other.lmdb"}
    person.registers(app, "otter")
    person.runs(app, "activity", "add", "begin", "--agent", "otter", **records[0])
    assert "halted" in denied(person, app, "grey-heron", **records[0])
    assert denied(person, app, "brisk-otter", **records[0]) == ""
    away = place.rename(person.home / "tracker.lmdb")
    imported = person.tries(app, "import", "agent-tracker", str(away), **records[1], **other)
    assert imported.returncode == 1, "two of its records are no records"
    assert "halted" in denied(person, app, "grey-heron", **records[1])
    third = {**records[2], "XDG_DATA_HOME": str(person.home / "data")}
    person.runs(app, "merge", other["HERDBOOK_RECORD"], "record", **third)
    assert "halted" in denied(person, app, "grey-heron", **third)


def denied(person: Person, folder: Path, agent: str, **variables: str) -> str:
    """What the hook answers when an agent wants to use a tool."""
    given = json.dumps({"session_id": "s9", "tool_name": "Bash"})
    words = ("hook", "PreToolUse")
    return person.tries(folder, *words, stdin=given, HERDBOOK_AGENT=agent, **variables).stdout


def test_a_folder_called_tilde_can_be_named(person: Person, app: Path) -> None:
    """`./~` is that folder, and `~` the home directory."""
    (app / "~").mkdir()
    shutil.copy(TRACKER, app / "~" / "x.lmdb")
    shutil.copy(TRACKER, person.home / "x.lmdb")
    for path, source in (
        ("./~/x.lmdb", app / "~" / "x.lmdb"),
        ("~/x.lmdb", person.home / "x.lmdb"),
    ):
        told = person.tries(app, "import", "agent-tracker", path, "--json", "--full")
        assert json.loads(told.stdout)["source"] == str(source)


def test_what_could_not_come_is_told_with_its_reason_and_can_be_brought(
    person: Person, app: Path
) -> None:
    """In the line of the merge and by `doctor`, until the word list has been named."""
    place = person.home / locate.DATABASE
    place.parent.mkdir(parents=True)
    shutil.copy(TRACKER.with_name("dictionary.lmdb"), place)
    person.registers(app, "otter")
    first = person.tries(app, "activity", "add", "begin", "--agent", "otter")
    assert "2 could not come: it is compressed with the word list" in first.stderr
    assert f"`herdbook import agent-tracker {place} --words FILE` brings them" in first.stderr
    assert person.tries(app, "activity", "add", "on", "--agent", "otter").stderr == ""
    doctor = person.tries(app, "doctor")
    assert doctor.returncode == 1
    assert "--words FILE" in doctor.stdout
    words = str(TRACKER.with_name("words.txt"))
    person.runs(app, "import", "agent-tracker", str(place), "--words", words)
    told = person.asks(app, "doctor")
    assert (told["ok"], told["merged"][0]["added"], told["merged"][0]["failed"]) == (True, 2, 0)


def test_the_user_can_keep_legacy_databases_out(person: Person, app: Path) -> None:
    """By a setting; a repository's word does not count."""
    left_by_opencode(person)
    person.registers(app, "otter")
    person.chooses("lmdb", "merge_legacy = false")
    (app / "herdbook.toml").write_text("merge_legacy = true\n")
    told = person.tries(app, "bug", "otter").stderr
    (note,) = told.splitlines()
    assert note.startswith("herdbook: herdbook.toml, line 1 sets merge_legacy, which is ignored")
    assert [each["agent"] for each in person.asks(app, "standing")] == ["otter"]


def test_a_projects_own_record_merges_into_the_users(keeper: Person, app: Path) -> None:
    """Additive, and the second time nothing is added."""
    own = {"HERDBOOK_RECORD": f"lmdb://{keeper.home}/own.lmdb"}
    keeper.registers(app, "otter")
    keeper.runs(app, "bug", "otter", **own)
    keeper.runs(app, "bug", "otter")
    first = keeper.asks(app, "merge", own["HERDBOOK_RECORD"], "record")
    again = keeper.asks(app, "merge", own["HERDBOOK_RECORD"], "record")
    assert (first["added"], again["added"]) == (1, 0)
    (standing,) = keeper.asks(app, "standing")
    assert standing["bugs"] == 2


def test_successes_are_worth_what_the_user_says(person: Person, app: Path) -> None:
    """A repository has no say in it; standings can be counted anew after a change."""
    (app / "herdbook.toml").write_text("experience_tool = 1000\n")
    person.chooses("lmdb", "experience_tool = 7", "experience_per_skill_point = 10")
    for _ in range(3):
        _hooked(person, app, "PostToolUse")
    buffered = person.asks(app, "standing", "otter")
    person.runs(app, "flush")
    assert person.asks(app, "standing", "otter") == buffered
    assert (buffered[0]["skill_points"], buffered[0]["experience_points"]) == (2, 7)
    person.config.write_text("experience_per_skill_point = 100\n")
    assert person.tries(app, "check", "--area", "record").returncode == 1
    person.runs(app, "check", "--area", "record", "--repair")
    (counted,) = person.asks(app, "standing", "otter")
    assert (counted["skill_points"], counted["experience_points"]) == (1, 21)


def _hooked(person: Person, folder: Path, event: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "herdbook.entrypoints.hooks.hook", event],
        cwd=folder,
        env={**person.variables, "HERDBOOK_AGENT": "otter"},
        input=json.dumps({"session_id": "s1", "hook_event_name": event}),
        text=True,
        check=True,
    )
