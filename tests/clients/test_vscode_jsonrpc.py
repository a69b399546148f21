"""vscode-jsonrpc, the library that VS Code's own clients are built on, against `herdbook rpc`."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import Reviewed

SCRIPT = Path(__file__).with_name("vscode_jsonrpc.cjs")
Plays = Callable[[str], dict[str, Any]]


@pytest.fixture
def plays(
    reviewed: Reviewed, node_modules: Path, program: Callable[[str], str], herdbook: str
) -> Plays:
    """Runs a scene of the script in the repository; the facts it found."""

    def play(scene: str) -> dict[str, Any]:
        told = subprocess.run(
            [program("node"), SCRIPT, scene, herdbook, node_modules],
            cwd=reviewed.folder,
            env=reviewed.person.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert told.returncode == 0, told.stderr
        assert told.stderr == ""
        facts: dict[str, Any] = json.loads(told.stdout)
        return facts

    return play


def test_a_request_is_answered_as_on_the_command_line(plays: Plays, reviewed: Reviewed) -> None:
    """What a method answers by name or by place is what the command line prints, in any script."""
    listed = reviewed.asks("task", "list", "--limit", "1")
    facts = plays("requests")
    assert facts["byName"] == listed
    assert facts["byPlace"] == reviewed.asks("task", "show", reviewed.task)
    assert facts["name"] == facts["echoed"] == 'größer 🐄 \u2028 "quoted"'
    assert facts["code"] == 0


def test_a_message_may_come_in_any_pieces(plays: Plays) -> None:
    """A message byte by byte, two in one piece and one with a second header are all answered."""
    facts = plays("framing")
    assert facts["answers"] == [1, 1, 1]
    assert facts["large"] == "ü" * 400 + "🐄"
    assert facts["code"] == 0


def test_an_error_has_its_code_and_its_data(plays: Plays) -> None:
    """Every kind of error reaches the library with its code and data, and the server goes on."""
    facts = plays("errors")
    assert facts["unknown"]["code"] == -32601
    assert "task.list" in facts["unknown"]["message"]
    assert facts["invalid"]["code"] == -32602
    assert facts["invalid"]["data"]["field"] == "limit"
    assert facts["missing"]["code"] == 3001
    assert facts["missing"]["data"] == {"type": "NotFound", "entity": "task", "key": "tsk_0000"}
    assert facts["unreadable"]["error"]["code"] == -32700
    assert facts["refused"]["error"]["code"] == -32600
    assert facts["after"] == 1
    assert facts["code"] == 0


def test_notifications_go_both_ways(plays: Plays) -> None:
    """What a client tells is done without an answer, and the journal tells of every process."""
    facts = plays("notifications")
    assert [(each["op"], each["after"]["name"]) for each in facts["own"]] == [
        ("add", "told, not asked")
    ]
    assert [each["key"] for each in facts["others"]] == [facts["other"]]
    assert facts["stopped"] is True
    assert facts["code"] == 0


def test_a_batch_is_answered_as_one(plays: Plays, reviewed: Reviewed) -> None:
    """A batch between the library's own requests gets one array, without its notifications."""
    facts = plays("batches")
    mixed = {each["id"]: each for each in facts["mixed"]}
    assert len(facts["mixed"]) == 3
    assert len(mixed["one"]["result"]) in (1, 2)
    assert mixed["two"]["error"]["code"] == -32601
    assert mixed[None]["error"]["code"] == -32600
    assert facts["empty"]["error"]["code"] == -32600
    assert [each["id"] for each in facts["next"]] == [3]
    assert facts["between"] is True
    assert facts["code"] == 0
    names = {each["name"] for each in reviewed.asks("task", "list")}
    assert names == {"greet in Danish", "from a batch", "unanswered"}


def test_a_cancelled_request_is_answered_so(plays: Plays) -> None:
    """A request that waits ends with RequestCancelled when its token is cancelled."""
    facts = plays("cancellation")
    assert facts["cancelled"]["code"] == -32800
    assert facts["meanwhile"] == facts["after"] == 1
    assert facts["code"] == 0


def test_two_hundred_requests_overtake_one_that_waits(plays: Plays) -> None:
    """Requests sent at once are all answered while a slow one is still under way."""
    facts = plays("crowd")
    assert facts["answers"] == 200
    assert facts["same"] is True
    assert facts["code"] == 0


def test_a_server_that_was_shut_down_takes_nothing_new(plays: Plays) -> None:
    """Shutdown is answered with null, what comes after it is refused, and exit ends with 0."""
    facts = plays("shutdown")
    assert facts["result"] is None
    assert facts["refused"]["code"] == -32600
    assert facts["code"] == 0
