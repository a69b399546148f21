"""What can be done from an editor: to remarks at a line, and by commands.

A command is an operation of the table under the name that editors know; it takes the operation's
parameters, by their names in one object or by their places.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.lsp.comment_positions import Mark
from herdbook.entrypoints.lsp.lenses import SHOW, short
from herdbook.entrypoints.operations.serialize import to_data
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.agents.editor_comments import PhaseThread, agent_assignments

QUICK_FIX = "quickfix"
RESOLVE, UNRESOLVE, REPLY = "herdbook.resolve", "herdbook.unresolve", "herdbook.reply"
DISMISS = "herdbook.dismiss"
OPERATIONS: Mapping[str, str] = {
    "herdbook.claim": "task.claim",
    "herdbook.complete": "task.done",
    "herdbook.grade": "grade",
    RESOLVE: "review.resolve",
    UNRESOLVE: "review.unresolve",
}
COMMANDS = (*OPERATIONS, DISMISS, REPLY, SHOW)


def actions(
    pairs: Iterable[tuple[PhaseThread, Mark]], first: int, last: int, context: Any
) -> list[dict[str, Any]]:
    """What can be done to the remarks at some lines, as far as the editor asks for such things."""
    only = context.get("only") if isinstance(context, dict) else None
    if isinstance(only, list) and not any(_covers(kind) for kind in only):
        return []
    shown = context.get("diagnostics") if isinstance(context, dict) else None
    shown = shown if isinstance(shown, list) else []
    found = []
    for remark, mark in pairs:
        if first <= mark.line <= last:
            said = [each for each in shown if isinstance(each, dict)]
            about = [each for each in said if each.get("code") == remark.thread.first.id]
            found += _of_thread(remark, about)
    return found


def _covers(kind: Any) -> bool:
    return isinstance(kind, str) and (kind in ("", QUICK_FIX))


def _of_thread(remark: PhaseThread, about: list[Any]) -> list[dict[str, Any]]:
    first = remark.thread.first
    what = f"{first.author}: {short(first.body, 40)}"
    words = {UNRESOLVE: "Unresolve"} if first.resolved else {RESOLVE: "Resolve", REPLY: "Reply to"}
    made = []
    for command, word in words.items():
        title = f"{word} {what}"
        action: dict[str, Any] = {
            "title": title,
            "kind": QUICK_FIX,
            "command": {"title": title, "command": command, "arguments": [first.id]},
        }
        if about:
            action["diagnostics"] = about
        if command == RESOLVE:
            action["isPreferred"] = True
        made.append(action)
    return made


def execute(here: AppContext, command: str, arguments: Any) -> tuple[Any, str | None]:
    """Do what a command says; its answer, and a sentence for whoever called it."""
    params = _params(arguments)
    if command == REPLY:
        return _reply(here, params), None
    if command == SHOW:
        return _about(here, params)
    name = _dismissal(params) if command == DISMISS else OPERATIONS.get(command)
    if name is None:
        raise InvalidValue("command", f"{command!r} is not one of {', '.join(COMMANDS)}")
    answer = _operation(name)(here, params)
    tell = _SENTENCES.get(name)
    return answer, None if tell is None else tell(answer)


def _operation(name: str) -> Callable[[AppContext, Any], Any]:
    from herdbook.entrypoints.rpc.methods import methods  # noqa: PLC0415 - brings the table

    return methods()[name]


def _params(arguments: Any) -> Any:
    """One object with names, or parameters by their places."""
    if arguments is None:
        return None
    if not isinstance(arguments, list):
        raise InvalidValue("arguments", "must be an array")
    if len(arguments) == 1 and isinstance(arguments[0], dict):
        return arguments[0]
    return arguments


def _given(params: Any, *names: str) -> list[Any]:
    """Some parameters, however they were given; None for those that were not."""
    if isinstance(params, dict):
        unknown = sorted(set(params) - set(names))
        if unknown:
            raise InvalidValue(unknown[0], f"is not known; it takes {', '.join(names)}")
        return [params.get(name) for name in names]
    given = list(params or ())
    if len(given) > len(names):
        raise InvalidValue("arguments", f"takes {', '.join(names)}, not {len(given)} values")
    return [*given, *[None] * (len(names) - len(given))]


def _reply(here: AppContext, params: Any) -> Any:
    """Reply in the name of the agent that acts here, else of the person."""
    comment, body, author = _given(params, "comment_id", "body", "author")
    if not isinstance(comment, str):
        raise InvalidValue("comment_id", "is needed")
    if not isinstance(body, str) or not body.strip():
        reason = (
            "is needed, and this editor did not ask for it; type: herdbook review reply "
            f"{comment} 'your reply', or set up its Herdbook client as docs/editors.md says"
        )
        raise InvalidValue("body", reason)
    given = {"comment_id": comment, "body": body}
    author = author or here.read(Area.WORK, lambda uow: _name(here, uow))
    return _operation("review.reply")(
        here, given if author is None else {**given, "author": author}
    )


def _name(here: AppContext, uow: UnitOfWork) -> str | None:
    agent = here.identity.agent(uow)
    return None if agent is None else agent.name


def _dismissal(params: Any) -> str:
    """Which of the two things that can be dismissed is meant: an agent, or what one proposed."""
    if isinstance(params, dict):
        return "agent.dismiss" if "agent_id" in params or "agent" in params else "proposal.dismiss"
    named = params[0] if params else None
    of_agent = isinstance(named, str) and named.startswith(f"{AGENTS.prefix}_")
    return "agent.dismiss" if of_agent else "proposal.dismiss"


def _about(here: AppContext, params: Any) -> tuple[Any, str]:
    """An agent and its tasks, to be read."""
    (named,) = _given(params, "agent")
    if not isinstance(named, str):
        raise InvalidValue("agent", "is needed")

    def look(uow: UnitOfWork) -> tuple[Any, list[Any]]:
        agent = crud.find_row(uow, AGENTS, named)
        held = [
            task for hand in agent_assignments(uow) if hand.agent == agent for task in hand.tasks
        ]
        return agent, held

    agent, tasks = here.read(Area.WORK, look)
    at = "; ".join(f"{short(task.name)} ({task.id})" for task in tasks) or "no task"
    answer = {"agent": to_data(agent), "tasks": to_data(tasks)}
    return answer, f"{agent.name} ({agent.status}): {at}"


_SENTENCES: Mapping[str, Callable[[Any], str]] = {
    "task.claim": lambda it: f"claimed: {short(it['task']['name'])} ({it['task']['id']})",
    "task.done": lambda it: f"{it['status']}: {short(it['name'])} ({it['id']})",
    "grade": lambda _: "the grade is written down",
    "proposal.dismiss": lambda it: f"dismissed: {short(it['title'])}",
    "agent.dismiss": lambda it: f"{it['name']} is no longer shown",
}
