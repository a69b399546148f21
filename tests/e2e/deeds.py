"""Every operation in which somebody acts, with parameters it can be called with."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from herdbook.entrypoints.operations.model import json_name, option_name, parameters_of
from herdbook.entrypoints.operations.registry import OPERATIONS

ROWS = {each.name: each for each in OPERATIONS}
LINE = {"file_path": "a.py", "line_number": 7, "line_type": "added"}
IDEA = {"initiative": "{goal}", "target_type": "task", "summary": "s", "content": "c"}


class Step(NamedTuple):
    """An operation with its parameters; `{name}` stands for the id of an earlier answer."""

    operation: str
    params: Mapping[str, Any] = MappingProxyType({})
    name: str = ""
    by: str = ""
    """Who the call names, for what only an agent can do and a person does for it."""


def _added(noun: str, name: str, /, **params: Any) -> Step:
    return Step(f"{noun}.add", params, name)


STEPS = (
    Step("agent.add", {"name": "otter", "session": "s-1"}, "otter"),
    _added("initiative", "goal", name="goal", execution_mode="yolo"),
    Step("initiative.set", {"id": "{goal}", "name": "the goal"}),
    _added("project", "project", name="app", url="https://example.com/app"),
    Step("project.set", {"id": "{project}", "default_branch": "trunk"}),
    Step("project.fetched", {"project": "{project}"}),
    Step("initiative.set-projects", {"initiative": "{goal}", "project_ids": ["{project}"]}),
    _added("phase", "phase", name="one", initiative="{goal}"),
    _added("phase", "later", name="two", initiative="{goal}"),
    Step("phase.set", {"id": "{later}", "content": "text"}),
    Step("phase.approve", {"phase_ids": ["{later}"]}),
    Step("phase.after", {"phase": "{later}", "others": ["{phase}"]}),
    Step("phase.not-after", {"phase": "{later}", "others": ["{phase}"]}),
    _added("task", "task", name="first", phase="{phase}", priority="high"),
    _added("task", "second", name="second", phase="{phase}"),
    Step("task.set", {"id": "{task}", "description": "text"}),
    Step("undo"),
    Step("task.after", {"task": "{second}", "others": ["{task}"]}),
    Step("task.not-after", {"task": "{second}", "others": ["{task}"]}),
    Step("task.claim", {}, "", "otter"),
    Step("task.heartbeat", {}, "", "otter"),
    Step("task.release", {}, "", "otter"),
    Step("task.claim", {}, "", "otter"),
    Step("task.fail", {}, "", "otter"),
    Step("task.claim", {}, "", "otter"),
    Step("task.done", {"summary": "done"}, "", "otter"),
    Step("task.set", {"id": "{second}", "status": "blocked"}),
    Step("task.retry", {"task": "{second}"}),
    _added("page", "page", title="notes", initiative="{goal}"),
    Step("page.set", {"id": "{page}", "content": "text"}),
    Step("page.rm", {"ids": ["{page}"], "yes": True}),
    Step("page.root", {"initiative": "{goal}"}),
    _added("errand", "errand", description="typo", branch="typo", project="{project}"),
    Step("errand.set", {"id": "{errand}", "description": "the typo"}),
    Step("errand.move", {"errand": "{errand}", "status": "pending_review"}),
    Step("errand.rm", {"ids": ["{errand}"], "yes": True}),
    Step("proposal.add", {**IDEA, "title": "a"}, "idea", "otter"),
    Step("proposal.set", {"id": "{idea}", "title": "b"}),
    Step("proposal.accept", {"proposal": "{idea}"}, "change"),
    Step("change-set.set", {"id": "{change}", "summary": "other words"}),
    Step("change-set.revert", {"change_set": "{change}"}),
    Step("change-set.rm", {"ids": ["{change}"], "yes": True}),
    Step("proposal.add", {**IDEA, "title": "c"}, "idea", "otter"),
    Step("proposal.dismiss", {"proposal": "{idea}"}),
    Step("proposal.rm", {"ids": ["{idea}"], "yes": True}),
    Step("proposal.add", {**IDEA, "title": "d"}, "idea", "otter"),
    Step("proposal.accept-all", {"proposal_ids": ["{idea}"]}),
    Step("proposal.add", {**IDEA, "title": "e"}, "idea", "otter"),
    Step("proposal.dismiss-all", {"proposal_ids": ["{idea}"]}),
    _added("review", "comment", phase="{phase}", body="why?", **LINE),
    Step("review.set", {"id": "{comment}", "body": "why so?"}),
    Step("review.reply", {"comment": "{comment}", "body": "because"}),
    Step(
        "review.submit",
        {"subject": "{phase}", "comments": [{"reply_to": "{comment}", "body": "and now?"}]},
    ),
    Step("review.resolve", {"comment": "{comment}"}),
    Step("review.unresolve", {"comment": "{comment}"}),
    Step("review.rm", {"ids": ["{comment}"], "yes": True}),
    Step("message.add", {"content": "hello", "to": "lynx"}, "message"),
    Step("message.set", {"id": "{message}", "content": "hello!"}),
    Step("message.read", {"message": "{message}"}),
    Step("message.reply", {"message": "{message}", "content": "more"}),
    Step("message.rm", {"ids": ["{message}"], "yes": True}),
    Step("message.add", {"content": "a note", "to": "otter"}, "note"),
    Step("talk.read", {"message": "{note}"}, "", "otter"),
    Step("message.broadcast", {"content": "freeze"}),
    Step("conversation.add", {"question": "which port?", "to": "lynx"}, "question", "otter"),
    Step("conversation.set", {"id": "{question}", "question": "which?"}),
    Step("conversation.answer", {"conversation": "{question}", "text": "8080"}),
    Step("conversation.rm", {"ids": ["{question}"], "yes": True}),
    _added("chat", "chat", target_type="phase", target_id="{phase}"),
    Step("chat.set", {"id": "{chat}", "agent": "lynx"}),
    Step("chat.post", {"chat_session": "{chat}", "role": "user", "content": "shorter"}),
    Step("chat.close", {"chat_session": "{chat}"}),
    Step("chat.rm", {"ids": ["{chat}"], "yes": True}),
    Step("log.add", {"content": "all pass"}, "", "otter"),
    Step("log.rm", {"agent": "otter"}),
    Step("agent.wait", {"questions": ["which?"]}, "", "otter"),
    Step("agent.resume", {}, "", "otter"),
    Step("agent.set", {"id": "{otter}", "model": "opus"}),
    Step("agent.stop", {"name": "lynx"}),
    Step("agent.resume", {"name": "lynx"}),
    Step("agent.dismiss", {"agent": "lynx"}),
    Step("agent.rm", {"ids": ["lynx"], "yes": True}),
    Step("account.add", {"email": "me@example.com"}, "account"),
    Step("account.set", {"id": "{account}", "sort_order": 2}),
    Step("account.take", {"provider": "claude"}),
    Step("account.exhaust", {"account": "{account}", "until": "2000-01-01T00:00Z"}),
    Step("account.free-expired"),
    Step("account.exhaust", {"account": "{account}", "until": "2000-01-01T00:00Z"}),
    Step("account.free", {"account": "{account}"}),
    Step("account.rm", {"ids": ["{account}"], "yes": True}),
    Step("grade", {"agent": "otter", "commit": "HEAD", "self": "good"}),
    Step("activity.add", {"task": "parse"}, "", "otter"),
    Step("bug", {"agent": "otter", "note": "loses a line"}),
    Step("phase.rm", {"ids": ["{later}"], "yes": True}),
    Step("task.rm", {"ids": ["{second}"], "yes": True}),
    Step("project.rm", {"ids": ["{project}"], "yes": True}),
    Step("initiative.rm", {"ids": ["{goal}"], "yes": True}),
)
PERSONS = (
    Step("reinstate", {"agent": "otter"}),
    _added("task", "by hand", name="by hand"),
    Step("task.move", {"task": "{by hand}", "state": "blocked"}),
    Step("agent.wait", {"questions": ["which?"]}, "", "otter"),
    Step("agent.answer", {"agent": "otter", "content": "the first"}),
)
"""What only a person may do, and what makes it possible; a bug before has halted the agent."""


def command_words(operation: str, params: Mapping[str, Any]) -> list[str]:
    """The words that call an operation with parameters on the command line."""
    words: list[str] = []
    options: list[str] = []
    for each in parameters_of(ROWS[operation]):
        if (value := params.get(json_name(each))) is None:
            continue
        if each.kind == "flag":
            options.append(f"--{option_name(each)}")
            continue
        texts = value if isinstance(value, list) and each.many else [value]
        said = [each if isinstance(each, str) else json.dumps(each) for each in texts]
        if each.positional:
            words += said
        else:
            options += [f"--{option_name(each)}", *said]
    if "agent" in params and "--agent" not in options and params["agent"] not in words:
        options += ["--agent", params["agent"]]
    return [*ROWS[operation].words, *words, *options]
