"""Who acts is one rule: command line, JSON-RPC and MCP write the same about the same deed."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters.repository_folder import account_name
from herdbook.domain.journal import JournalEntry
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.mcp.tool import tool_parameters
from herdbook.entrypoints.mcp.tools import TOOLS
from herdbook.entrypoints.operations.model import json_name
from herdbook.entrypoints.operations.registry import OPERATIONS
from herdbook.ports.engine.dictionary import SETUP_NOTES
from tests.e2e.conftest import Person
from tests.e2e.deeds import PERSONS, ROWS, STEPS, Step, command_words
from tests.e2e.mcp_desk import Desk, desk
from tests.e2e.rpc_process import Pipes
from tests.e2e.warm_program import WarmProgram

TOOL_OF = {each.operation: each for each in TOOLS}
NO_ACTOR = {
    "agent.crashed": "notes what has happened; test_crashed.py tells of it",
    "check": "repairs what follows from other rows, outside the journal",
    "checkpoint.copy": "checkpoints have no journal",
    "checkpoint.prune": "checkpoints have no journal",
    "checkpoint.rm": "checkpoints have no journal",
    "journal.hold": "a cursor has no journal",
    "journal.release": "a cursor has no journal",
    "flush": "brings in what hooks have told, each event with its own agent",
}
UNJOURNALLED = {"task.heartbeat", "log.add", "log.rm"}
"""What changes rows that have no journal."""
READS = frozenset(
    {
        *("where", "config", "status", "board", "plan", "export.plan", "agent.waiting"),
        *("diff", "waiting", "review.diff", "lanes"),
        "doctor",
        *("journal.since", "journal.row", "journal.cursors", "journal.follow"),
        "history",
        *("conversation.listen", "standing", "advise", "leaderboard", "recall", "prime"),
        *("checkpoint.threads", "checkpoint.diff"),
    }
)


def test_every_operation_with_an_actor_is_tried() -> None:
    """Whoever adds an operation says here what it is called with, or why nobody acts in it."""
    writing = {
        each.name
        for each in OPERATIONS
        if not (each.local or each.reads or each.words[-1] in ("list", "show"))
    }
    tried = {each.operation for each in (*STEPS, *PERSONS)}
    assert tried | NO_ACTOR.keys() | READS == writing
    assert not tried & (NO_ACTOR.keys() | READS)


class _Surface:
    """One way in, to a repository and a record of its own."""

    def __init__(self, person: Person, folder: Path, variables: dict[str, str]) -> None:
        self.person = person
        self.folder = folder
        self.variables = variables
        self.known: dict[str, str] = {}

    def takes(self, operation: str) -> bool:
        """Whether this way in has the operation."""
        return operation in ROWS

    def call(self, operation: str, params: dict[str, Any]) -> Any:
        """Call an operation by the command line."""
        words = command_words(operation, params)
        return self.person.asks(self.folder, *words, **self.variables)

    def entries(self, since: Mapping[Area, int]) -> dict[Area, list[JournalEntry]]:
        """What was written after these numbers."""
        app = self.person.at(self.folder)
        return {
            area: app.read(area, lambda uow, seq=seq: uow.journal.since(seq))
            for area, seq in since.items()
        }


class _RpcSurface(_Surface):
    pipes: Pipes

    def call(self, operation: str, params: dict[str, Any]) -> Any:
        self.pipes.send({"jsonrpc": "2.0", "id": 1, "method": operation, "params": params})
        answer = self.pipes.receive()
        assert "result" in answer, (operation, answer)
        return answer["result"]


class _McpSurface(_Surface):
    desk: Desk

    def takes(self, operation: str) -> bool:
        return operation in TOOL_OF

    def call(self, operation: str, params: dict[str, Any]) -> Any:
        if operation not in TOOL_OF:
            return super().call(operation, params)
        tool = TOOL_OF[operation]
        rows = {name: row for name, (_, row) in tool_parameters(tool).items()}
        given = {name: params.get(json_name(row)) for name, row in rows.items()}
        return self.desk.does(tool.name, **{name: each for name, each in given.items() if each})


def _answer_id(answer: Any) -> str:
    return str(answer["task"]["id"] if "task" in answer else answer["id"])


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return known[value[1:-1]] if value.startswith("{") else value
    if isinstance(value, dict):
        return {name: _filled(each, known) for name, each in value.items()}
    return [_filled(each, known) for each in value] if isinstance(value, list) else value


@contextmanager
def _surfaces(
    tmp_path: Path, warm: WarmProgram | None, variables: dict[str, str], *, with_tools: bool
) -> Iterator[list[_Surface]]:
    """The ways in, each to equal stores of its own: two agents, one of them in a session."""
    with ExitStack() as opened:
        found: list[_Surface] = []
        kinds = (_Surface, _RpcSurface, *([_McpSurface] if with_tools else []))
        for kind in kinds:
            home = tmp_path / kind.__name__
            home.mkdir()
            person = Person(home, warm)
            folder = person.repository(home / "app")
            person.runs(folder, "agent", "add", "otter", "--session", "s-1")
            person.runs(folder, "agent", "add", "lynx")
            surface = kind(person, folder, variables)
            if isinstance(surface, _RpcSurface):
                surface.pipes = opened.enter_context(Pipes(person, folder, **variables))
            if isinstance(surface, _McpSurface):
                surface.desk = opened.enter_context(desk(person, folder, **variables))
            found.append(surface)
        yield found


def _deed(surface: _Surface, step: Step, *, is_agent: bool) -> list[tuple[Any, ...]]:
    """Do one step; what the journals have of it: who, where, and what."""
    app = surface.person.at(surface.folder)
    before = {
        area: app.read(area, lambda uow: uow.journal.last()) for area in (Area.WORK, Area.RECORD)
    }
    params = {name: _filled(value, surface.known) for name, value in step.params.items()}
    if step.by and not is_agent:
        params["agent"] = step.by
    answer = surface.call(step.operation, params)
    if step.name:
        surface.known[step.name] = _answer_id(answer)
    own = app.workspace.worktree_id
    return [
        (
            *(str(area), entry.person, entry.agent, entry.session, entry.worktree == own),
            *(entry.entity, entry.op),
        )
        for area, entries in surface.entries(before).items()
        for entry in entries
        if entry.entity != SETUP_NOTES.name  # of a flush, which is nobody's act
    ]


@pytest.mark.parametrize(
    "variables",
    [
        {"HERDBOOK_AGENT": "otter", "HERDBOOK_SESSION": "s-1"},
        {"HERDBOOK_SESSION": "s-1"},
        {"CLAUDE_CODE_SESSION_ID": "s-1"},
        {},
    ],
    ids=["name", "session", "session of the host", "person"],
)
def test_the_journal_has_the_same_actor_for_the_same_deed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    warm: WarmProgram | None,
    variables: dict[str, str],
) -> None:
    """By every way in, for every operation: the person, the agent, the session, the worktree."""
    is_agent = bool(variables)
    with _surfaces(tmp_path, warm, variables, with_tools=is_agent) as surfaces:
        for step in (*STEPS, *(() if is_agent else PERSONS)):
            found = {}
            for each in surfaces:
                monkeypatch.setenv("HOME", str(each.person.home))
                written = _deed(each, step, is_agent=is_agent)
                if each.takes(step.operation):
                    found[type(each).__name__] = written
            acting = "otter" if is_agent or step.by else None
            session = "s-1" if is_agent else None
            for written in found.values():
                assert written == found["_Surface"], (step, found)
                for entry in written:
                    assert entry[1:5] == (account_name(), acting, session, True), (step, entry)
            assert found["_Surface"] or step.operation in UNJOURNALLED
