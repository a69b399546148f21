"""A simulated fortnight: three hosts, five setups, real repositories, and what is true of it."""

import json
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.conftest import PROGRAM, Person
from tests.e2e.test_true_record import PATH, SETTINGS

SEED = 14
DAYS, REPOSITORIES = 14, 2
QUICK, WHOLE = 60, 400
"""How many commits are made in a quick run, and in a whole one."""
GRADES = {"bad": -1, "neutral": 1, "good": 2, "excellence": 5}
Setup = tuple[str, str | None, str | None]


class Session(NamedTuple):
    """One session of an agent, on a host, with a model and a mode."""

    agent: str
    host: str
    session: str
    model: str
    mode: str

    @property
    def setup(self) -> Setup:
        """What the record should have for it."""
        provider = "claude" if self.host == "claude-code" else self.host
        return provider, self.model, "plan" if self.mode == "plan" else "execute"


CREW = (
    Session("otter", "claude-code", "11111111-c1", "opus", "default"),
    Session("otter", "claude-code", "22222222-c2", "sonnet", "acceptEdits"),
    Session("heron", "claude-code", "33333333-c3", "opus", "plan"),
    Session("mole", "codex", "01a1e345-78a1-7c82-8746-9bda1e5f360b", "gpt-5-codex", "default"),
    Session("newt", "opencode", "ses_e1cb86dd5ffeVvQf5VhypOXGeE", "kimi", "build"),
)
"""Five setups; one agent has two sessions at once."""


class Made(NamedTuple):
    """A commit that exists in the end, and whose it is."""

    by: Session
    repository: Path


class Fortnight:
    """What happens, and what is true of it."""

    def __init__(self, person: Person, folders: list[Path], chance: random.Random) -> None:
        self.person, self.folders, self.chance = person, folders, chance
        self.commits: dict[Path, list[Made]] = defaultdict(list)
        """The commits of each branch `main`, oldest first, that agents made."""
        self.tools: Counter[str] = Counter()
        self.bugs: Counter[str] = Counter()
        self.grades: dict[str, list[int]] = defaultdict(list)
        self._commands: dict[tuple[Path, str], dict[str, str]] = {}
        for folder in folders:
            person.runs(folder, "hooks", "install", "git")
            for kind, file in SETTINGS.items():
                person.runs(folder, "hooks", "install", kind, "--project")
                hooks = json.loads((folder / file).read_text())["hooks"]
                self._commands[folder, kind] = {
                    event: groups[0]["hooks"][0]["command"] for event, groups in hooks.items()
                }

    def run(self, command: list[str], folder: Path, given: str = "", **variables: str) -> str:
        """Run a program as a tool of an agent does."""
        told = subprocess.run(
            command,
            cwd=folder,
            env={**self.person.variables, "PATH": PATH, **variables},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        return told.stdout

    def tells(self, by: Session, folder: Path, event: str, **more: Any) -> None:
        """Let the host of a session run the hook that is installed for an event."""
        if by.host == "opencode":
            raw: dict[str, Any] = {"sessionID": by.session, "agent": by.mode, "model": by.model}
            command = [PROGRAM, "hook", "tool.execute.after"]
        else:
            raw = {"session_id": by.session, "transcript_path": None, "hook_event_name": event}
            command = ["sh", "-c", self._commands[folder, by.host][event]]
        self.run(command, folder, json.dumps({**raw, **more}), HERDBOOK_AGENT=by.agent)

    def begins(self, by: Session, folder: Path) -> None:
        """Start or resume a session."""
        if by.host != "opencode":
            self.tells(by, folder, "SessionStart", source="resume", model=by.model)
            self.tells(by, folder, "UserPromptSubmit", prompt="go", permission_mode=by.mode)

    def uses_tools(self, by: Session, folder: Path) -> None:
        """Use a tool that succeeds."""
        self.tells(by, folder, "PostToolUse", tool_name="Read", permission_mode=by.mode)
        self.tools[by.agent] += 1

    def git(self, by: Session, folder: Path, *words: str, **variables: str) -> str:
        """Run git in a session, which does not always know the agent's name."""
        names = {"codex": "CODEX_THREAD_ID", "opencode": "HERDBOOK_SESSION"}
        known = {names.get(by.host, "CLAUDE_CODE_SESSION_ID"): by.session, **variables}
        if self.chance.random() < 0.5:
            known["HERDBOOK_AGENT"] = by.agent
        return self.run(["git", *words], folder, **known)

    def commit(self, by: Session, folder: Path, number: int) -> None:
        """Make a commit."""
        (folder / f"file{number}").write_text(f"{number}\n")
        self.git(by, folder, "add", ".")
        self.git(by, folder, "commit", "--quiet", f"--message=matter {number}")
        self.commits[folder].append(Made(by, folder))

    def rewrite(self, by: Session, folder: Path) -> None:
        """Amend, rebase, or squash what is at the end of the branch."""
        there = self.commits[folder]
        way = self.chance.choice(["amend", "rebase", "squash"])
        if way == "amend" and there:
            self.git(by, folder, "commit", "--quiet", "--amend", "--message=better")
        elif way == "rebase" and len(there) > 3:
            self.git(by, folder, "rebase", "--quiet", "--force-rebase", "HEAD~3")
        elif way == "squash" and len(there) > 2:
            editor = "sed -i -e '2s/^pick/fixup/'"
            words = ("rebase", "--quiet", "--interactive", "HEAD~2")
            self.git(by, folder, *words, GIT_SEQUENCE_EDITOR=editor)
            there[-2:] = [there[-2]]

    def judge(self, folder: Path) -> None:
        """Grade the last commit, or report a bug in its agent's work."""
        last = self.commits[folder][-1]
        self_grade, user_grade = self.chance.choices(list(GRADES), k=2)
        words = ("grade", last.by.agent, "HEAD", "--self", self_grade, "--user", user_grade)
        if self.person.tries(folder, *words).returncode == 0:
            self.grades[last.by.agent].append(GRADES[self_grade] + GRADES[user_grade])

    def crash(self, folder: Path) -> None:
        """Flush, and be killed at some moment."""
        flush = subprocess.Popen(
            [sys.executable, PROGRAM, "flush"],
            cwd=folder,
            env=self.person.variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            flush.wait(self.chance.uniform(0.05, 0.6))
        except subprocess.TimeoutExpired:
            flush.send_signal(signal.SIGKILL)
            flush.wait()


def live(person: Person, tmp_path: Path, commits: int) -> Fortnight:
    """Let a fortnight pass."""
    chance = random.Random(SEED)
    folders = [person.repository(tmp_path / f"app{number}") for number in range(REPOSITORIES)]
    weeks = Fortnight(person, folders, chance)
    for day in range(DAYS):
        at_work = {each: chance.choice(folders) for each in CREW}
        for by, folder in at_work.items():
            weeks.begins(by, folder)
        for number in range(commits // DAYS + (day < commits % DAYS)):
            by = chance.choice(CREW)
            weeks.uses_tools(by, at_work[by])
            weeks.commit(by, at_work[by], day * 1_000 + number)
            if chance.random() < 0.15:
                weeks.rewrite(chance.choice([by, chance.choice(CREW)]), at_work[by])
            if chance.random() < 0.1:
                weeks.judge(at_work[by])
            if chance.random() < 0.05:
                weeks.crash(at_work[by])
        if chance.random() < 0.5:
            person.runs(chance.choice(folders), "flush")
    return weeks


def check(weeks: Fortnight) -> None:
    """Compare what is told with what is true."""
    person, folder = weeks.person, weeks.folders[0]
    made = [each for there in weeks.commits.values() for each in there]
    by_agent = Counter(each.by.agent for each in made)
    by_setup = Counter(each.by.setup for each in made)
    for _ in range(2):
        standings = {each["agent"]: each for each in person.asks(folder, "standing")}
        assert {name: each["commits"] for name, each in standings.items()} == by_agent
        for name, each in standings.items():
            gained = weeks.tools[name] + 5 * by_agent[name] + len(weeks.grades[name])
            assert each["experience_points"] == gained
            assert each["communication_score"] == 60 + sum(weeks.grades[name])
        setups = person.asks(folder, "advise", "--for", "all")["setups"]
        found = {(each["provider"], each["model"], each["mode"]): each for each in setups}
        assert {setup: each["commits"] for setup, each in found.items()} == by_setup
        person.runs(folder, "flush")
    assert person.asks(folder, "doctor")["dropped"] == []


def test_a_fortnight_is_told_as_it_was(person: Person, tmp_path: Path) -> None:
    """With amends, rebases, squashes, flushes that are killed, and two sessions of one agent."""
    check(live(person, tmp_path, QUICK))


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_a_whole_fortnight_is_told_as_it_was_on_every_engine(
    person: Person, tmp_path: Path, postgres_url: str, engine: str
) -> None:
    """Four hundred commits."""
    person.chooses(postgres_url if engine == "postgres" else engine)
    check(live(person, tmp_path, WHOLE))
