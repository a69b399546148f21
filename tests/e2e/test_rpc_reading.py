"""Every method that reads answers as the command line does, and as `rpc.discover` says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from herdbook.entrypoints.cli import run_command
from herdbook.entrypoints.client import Client
from herdbook.entrypoints.operations.model import json_name
from herdbook.entrypoints.rpc.methods import methods
from tests.e2e.conftest import Person

OTHERS = {
    "where",
    "config",
    "status",
    "board",
    "plan",
    "check",
    "export.plan",
    "agent.waiting",
    "journal.since",
    "standing",
    "advise",
    "leaderboard",
    "recall",
    "checkpoint.threads",
    "checkpoint.diff",
}
READING = [
    each
    for name, each in methods().items()
    if name in OTHERS or each.operation.reads or each.operation.words[-1] in ("list", "show")
]
OF_WORKFLOWS = "checkpoint."
"""What a workflow writes, and no method: not to be had in the memory of a server."""
PASSING = {"now", "seconds", "lease_seconds", "bytes"}
"""What is another moment's when it is asked for again."""


def filled(herd: Client) -> dict[str, Any]:
    """One row of everything that can be read; the ids by what they are called as parameters."""

    def added(noun: str, **values: Any) -> str:
        return str(herd.call(f"{noun}.add", **values)["id"])

    agent, lynx = added("agent", name="otter"), added("agent", name="lynx")
    initiative = added("initiative", name="greet", execution_mode="yolo")
    phase = added("phase", name="words", initiative=initiative)
    task = added("task", name="write", phase=phase, initiative=initiative)
    later = added("task", name="read", phase=phase, initiative=initiative)
    herd.call("task.after", task=later, others=[task])
    last = added("task", name="send", phase=phase, initiative=initiative)
    herd.call("task.after", task=last, others=[later])
    before = added("phase", name="plan", initiative=initiative, status="completed")
    herd.call("phase.after", phase=phase, others=[before])
    after = added("phase", name="screens", initiative=initiative)
    herd.call("phase.after", phase=after, others=[phase])
    project = added("project", name="app", url="https://example.com/app.git")
    herd.call("initiative.set-projects", initiative=initiative, project_ids=[project])
    about = {"target_type": "task", "summary": "s", "content": "- [ ] c", "initiative": initiative}
    proposal = added("proposal", title="t", agent=agent, target_id=task, **about)
    accepted = added("proposal", title="u", agent=agent, **{**about, "target_type": "page"})
    herd.call("agent.wait", agent=agent, questions=["which port?"])
    herd.call("bug", agent="otter", note="loses the last line")
    remark = {"phase": phase, "file_path": "a.py", "line_number": 1, "line_type": "added"}
    chat = added("chat", target_type="task", target_id=task)
    reviewed = added("errand", description="e", branch="c", project=project)
    for status in ("active", "pending_review"):
        herd.call("errand.move", errand=reviewed, status=status)
    herd.call("chat.post", chat_session=chat, role="user", content="shorter")
    return {
        "initiative": initiative,
        "phase": phase,
        "task": later,
        "agent": agent,
        "agent_ids": [agent, lynx],
        "account": added("account", email="me@example.com", credentials="S3CRET"),
        "page": added("page", title="notes", initiative=initiative),
        "project": project,
        "errand": added("errand", description="d", branch="b", project=project),
        "proposal": proposal,
        "change-set": herd.call("proposal.accept", proposal=accepted)["id"],
        "review": added("review", body="why?", **remark),
        "log": added("log", content="all tests pass", agent=agent),
        "message": added("message", content="may I?", agent=agent, requires_response=True),
        "conversation": added("conversation", question="?", to=lynx, agent=agent),
        "chat": chat,
        "chat_session": chat,
        "activity": added("activity", task="parse the dates", agent="otter", outcome="fine"),
    }


def worked(person: Person, folder: Path) -> str:
    """Let a workflow run in a folder; the thread of its checkpoints."""
    person.works(folder, "issue-17")
    return "issue-17"


def parameters(name: str, ids: dict[str, Any]) -> dict[str, Any]:
    """What a method needs to be given."""
    special = {
        "recall": {"text": "parse"},
        "search": {"text": "write"},
        "journal.since": {"seq": 3, "limit": 5},
        "journal.row": {"id": ids["task"]},
        "talk.show": {"id": ids["message"]},
        "progress": {"at": 20},  # what is measured until now ends at another moment each time
    }
    if name in special:
        return special[name]
    needed = [json_name(each) for each in methods()[name].parameters if each.required]
    return {each: ids[name.partition(".")[0] if each == "id" else each] for each in needed}


def typed(name: str, params: dict[str, Any]) -> list[str]:
    """The same call on the command line."""
    operation = methods()[name].operation
    words = [*operation.words]
    for each in methods()[name].parameters:
        if (value := params.get(json_name(each))) is not None:
            option = [] if each.positional else [f"--{json_name(each).replace('_', '-')}"]
            words += [*option, *map(str, value if each.many else [value])]
    return [*words, "--json", "--full"]


def lasting(answer: Any) -> Any:
    """An answer without what passes."""
    if isinstance(answer, dict):
        return {key: lasting(each) for key, each in answer.items() if key not in PASSING}
    return [lasting(each) for each in answer] if isinstance(answer, list) else answer


@pytest.fixture
def at_home(app: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository, for commands that this process runs as the person."""
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.setenv("HERDBOOK_BACKUP", "off")
    monkeypatch.delenv("LOGNAME", raising=False)
    monkeypatch.chdir(app)
    return app


def fits(document: dict[str, Any], name: str, answer: Any) -> Iterator[str]:
    """What in an answer is not as the document says."""
    (described,) = [each for each in document["methods"] if each["name"] == name]
    schema = {**described["result"]["schema"], "components": document["components"]}
    if "$ref" in schema:  # beside which nothing else counts
        schema = {"allOf": [described["result"]["schema"]], "components": document["components"]}
    return (f"{name}: {each.message}" for each in Draft7Validator(schema).iter_errors(answer))


@pytest.mark.parametrize("store", ["", "memory://"], ids=["lmdb", "memory"])
def test_every_method_that_reads_answers_as_it_should(
    person: Person, at_home: Path, capsys: pytest.CaptureFixture[str], store: str
) -> None:
    """As described, and, where others see the store, as the command line answers."""
    variables = {**person.variables, **({"HERDBOOK_STORE": store} if store else {})}
    with Client.spawn(at_home, variables=variables) as herd:
        ids = filled(herd)
        if not store:
            ids["thread"] = worked(person, at_home)
        document = herd.call("rpc.discover")
        empty = set()
        for method in READING:
            if store and method.name.startswith(OF_WORKFLOWS):
                continue
            params = parameters(method.name, ids)
            answer = herd.call(method.name, **params)
            assert list(fits(document, method.name, answer)) == []
            if answer in ([], None):
                empty.add(method.name)
            if not store:
                assert run_command.main(typed(method.name, params)) == 0, method.name
                told = capsys.readouterr().out
                if method.operation.follows:
                    told = f"[{','.join(told.splitlines())}]"
                assert lasting(answer) == lasting(json.loads(told)), method.name
    assert empty == {"retro.list"}
