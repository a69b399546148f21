"""What a client of `herdbook mcp` says of itself: where it works, and what the person answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult

from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import desk, told

ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
"""How a client negotiates, and the protocol that it then speaks with our server."""


@pytest.mark.parametrize("mode", ERAS)
def test_a_person_at_the_client_is_asked_at_once(person: Person, app: Path, mode: str) -> None:
    """The answer comes with the message and is recorded as its reply; nothing is asked twice."""
    asked = []

    async def answers(_: object, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "yes, do"})

    with desk(person, app, mode=mode, answers=answers) as sat:
        assert sat.client.protocol_version == ERAS[mode]
        sat.does("introduce", name="otter")
        answer = json.loads(
            told(sat.tries("message", content="may I merge?", requires_response=True))
        )
        assert answer["answer"] == "yes, do"
        sat.does("message", content="just so you know")
    assert asked == ["An agent asks: may I merge?"]
    (reply,) = person.asks(app, "message", "inbox", "--agent", "otter")
    assert (reply["content"], reply["parent_message_id"]) == ("yes, do", answer["id"])
    assert reply["sender_type"] == "user"
    assert person.asks(app, "message", "unanswered") == []


@pytest.mark.parametrize("mode", ERAS)
def test_a_person_who_declines_finds_the_message_in_the_inbox(
    person: Person, app: Path, mode: str
) -> None:
    """As does one whose client cannot ask."""

    async def declines(_: object, __: object) -> ElicitResult:
        return ElicitResult(action="decline")

    for answers in (declines, None):
        with desk(person, app, mode=mode, answers=answers) as sat:
            sat.does("introduce", name="otter")
            answer = told(sat.tries("message", content="may I merge?", requires_response=True))
            assert "answer" not in json.loads(answer)
    assert len(person.asks(app, "message", "unanswered")) == 2


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_names_its_folder_where_it_has_no_roots(
    person: Person, app: Path, mode: str
) -> None:
    """From then on it works there; a folder of another repository is none of its business."""
    person.runs(app, "task", "add", "one")
    other = person.repository(app.parent / "other")
    person.runs(other, "task", "add", "secret")
    side = app.parent / "side"
    person.git(app, "worktree", "add", "--quiet", str(side))
    with desk(person, person.home, mode=mode) as sat:
        assert sat.client.protocol_version == ERAS[mode]
        sat.does("introduce", name="otter", folder=str(app))
        assert sat.does("claim")["task"]["name"] == "one"
    with desk(person, app, mode=mode) as sat:
        for wrong in (str(other), "side", str(app / "nowhere"), "/\0", 7):
            refused = sat.tries("introduce", name="heron", folder=wrong)
            assert refused.is_error, wrong
            assert "folder" in told(refused)
        sat.does("introduce", name="heron", folder=str(side))
        worktree = person.asks(side, "where")["worktree_id"]
        assert person.asks(app, "agent", "show", "heron")["worktree_id"] == worktree
