"""Code actions on review comments, and the commands that an editor can execute.

A command is an operation of the table under the name that editors know. It takes the operation's
parameters, by name in one object or by position.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.lsp.comment_positions import Mark
from herdbook.entrypoints.lsp.lenses import SHOW_AGENT, shorten
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
COMMANDS = (*OPERATIONS, DISMISS, REPLY, SHOW_AGENT)


def code_actions(
    pairs: Iterable[tuple[PhaseThread, Mark]], first: int, last: int, context: Any
) -> list[dict[str, Any]]:
    """The code actions for the comments at some lines; none if the editor asks for other kinds."""
    only = context.get("only") if isinstance(context, dict) else None
    if isinstance(only, list) and not any(_includes_quick_fix(kind) for kind in only):
        return []
    shown = context.get("diagnostics") if isinstance(context, dict) else None
    shown = shown if isinstance(shown, list) else []
    found = []
    for comment, mark in pairs:
        if first <= mark.line <= last:
            diagnostics = [each for each in shown if isinstance(each, dict)]
            own = [each for each in diagnostics if each.get("code") == comment.thread.first.id]
            found += _thread_actions(comment, own)
    return found


def _includes_quick_fix(kind: Any) -> bool:
    return isinstance(kind, str) and (kind in ("", QUICK_FIX))


def _thread_actions(comment: PhaseThread, diagnostics: list[Any]) -> list[dict[str, Any]]:
    first = comment.thread.first
    label = f"{first.author}: {shorten(first.body, 40)}"
    verbs = {UNRESOLVE: "Unresolve"} if first.resolved else {RESOLVE: "Resolve", REPLY: "Reply to"}
    actions = []
    for command, verb in verbs.items():
        title = f"{verb} {label}"
        action: dict[str, Any] = {
            "title": title,
            "kind": QUICK_FIX,
            "command": {"title": title, "command": command, "arguments": [first.id]},
        }
        if diagnostics:
            action["diagnostics"] = diagnostics
        if command == RESOLVE:
            action["isPreferred"] = True
        actions.append(action)
    return actions


def execute(app: AppContext, command: str, arguments: Any) -> tuple[Any, str | None]:
    """Execute a command; returns its answer and, if any, a sentence to show to the user."""
    params = _operation_params(arguments)
    if command == REPLY:
        return _reply(app, params), None
    if command == SHOW_AGENT:
        return _describe_agent(app, params)
    name = _dismiss_operation(params) if command == DISMISS else OPERATIONS.get(command)
    if name is None:
        raise InvalidValue("command", f"{command!r} is not one of {', '.join(COMMANDS)}")
    answer = _operation(name)(app, params)
    sentence = _SENTENCES.get(name)
    return answer, None if sentence is None else sentence(answer)


def _operation(name: str) -> Callable[[AppContext, Any], Any]:
    from herdbook.entrypoints.rpc.methods import methods  # noqa: PLC0415 - imports the table

    return methods()[name]


def _operation_params(arguments: Any) -> Any:
    """The parameters of a command: an object by name, or a list by position."""
    if arguments is None:
        return None
    if not isinstance(arguments, list):
        raise InvalidValue("arguments", "must be an array")
    if len(arguments) == 1 and isinstance(arguments[0], dict):
        return arguments[0]
    return arguments


def _read_params(params: Any, *names: str) -> list[Any]:
    """The values of parameters given by name or by position; None for missing ones.

    Raises InvalidValue for an unknown name or for too many values.
    """
    if isinstance(params, dict):
        unknown = sorted(set(params) - set(names))
        if unknown:
            raise InvalidValue(unknown[0], f"is not known; it takes {', '.join(names)}")
        return [params.get(name) for name in names]
    given = list(params or ())
    if len(given) > len(names):
        raise InvalidValue("arguments", f"takes {', '.join(names)}, not {len(given)} values")
    return [*given, *[None] * (len(names) - len(given))]


def _reply(app: AppContext, params: Any) -> Any:
    """Reply as the acting agent, or as the person if no agent acts."""
    comment, body, author = _read_params(params, "comment_id", "body", "author")
    if not isinstance(comment, str):
        raise InvalidValue("comment_id", "is needed")
    if not isinstance(body, str) or not body.strip():
        reason = (
            "is needed, and this editor did not ask for it; type: herdbook review reply "
            f"{comment} 'your reply', or set up its Herdbook client as docs/editors.md says"
        )
        raise InvalidValue("body", reason)
    given = {"comment_id": comment, "body": body}
    author = author or app.read(Area.WORK, lambda uow: _acting_agent_name(app, uow))
    return _operation("review.reply")(app, given if author is None else {**given, "author": author})


def _acting_agent_name(app: AppContext, uow: UnitOfWork) -> str | None:
    agent = app.identity.agent(uow)
    return None if agent is None else agent.name


def _dismiss_operation(params: Any) -> str:
    """The operation that dismisses what is named: an agent or a proposal."""
    if isinstance(params, dict):
        return "agent.dismiss" if "agent_id" in params or "agent" in params else "proposal.dismiss"
    named = params[0] if params else None
    of_agent = isinstance(named, str) and named.startswith(f"{AGENTS.prefix}_")
    return "agent.dismiss" if of_agent else "proposal.dismiss"


def _describe_agent(app: AppContext, params: Any) -> tuple[Any, str]:
    """An agent with its tasks, and a sentence about it."""
    (named,) = _read_params(params, "agent")
    if not isinstance(named, str):
        raise InvalidValue("agent", "is needed")

    def question(uow: UnitOfWork) -> tuple[Any, list[Any]]:
        agent = crud.find_row(uow, AGENTS, named)
        tasks = [
            task
            for assignment in agent_assignments(uow)
            if assignment.agent == agent
            for task in assignment.tasks
        ]
        return agent, tasks

    agent, tasks = app.read(Area.WORK, question)
    held = "; ".join(f"{shorten(task.name)} ({task.id})" for task in tasks) or "no task"
    answer = {"agent": to_data(agent), "tasks": to_data(tasks)}
    return answer, f"{agent.name} ({agent.status}): {held}"


_SENTENCES: Mapping[str, Callable[[Any], str]] = {
    "task.claim": lambda it: (
        f"claimed: {shorten(it['task']['name'])} ({it['task']['id']})"
        if it["task"]
        else it["reason"]
    ),
    "task.done": lambda it: f"{it['status']}: {shorten(it['name'])} ({it['id']})",
    "grade": lambda it: (
        f"{len(it)} commits wait for your grade"
        if isinstance(it, list)
        else "the grade is written down"
    ),
    "proposal.dismiss": lambda it: f"dismissed: {shorten(it['title'])}",
    "agent.dismiss": lambda it: f"{it['name']} is no longer shown",
}
