"""`prime`: for an agent at a prompt, and for the hooks of the hosts that start agents.

A hook's payload tells its event and session. The event decides what is answered: the briefing when
a session begins or was compacted, and a reminder when a turn ends while a task is held.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import SESSION, AppContext
from herdbook.entrypoints.operations.prime.text import halted_text, prime_text, reminder_text
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents import briefing

if TYPE_CHECKING:
    from herdbook.domain.agents.model import Agent

ENDS = frozenset({"Stop", "stop"})
"""The events after which a turn is over."""
_LONGEST_PROGRAM = 100
REMIND_EVERY = 1_800
"""Seconds until a session is reminded of what it holds once more."""
NAMES_ITS_SESSION = frozenset({"claude-code", "codex", "opencode"})
"""The hosts that name their session to the commands that an agent runs."""


class PrimeAnswer(TypedDict):
    """The text for an agent, and the answer to a hook if one asked; empty without a store."""

    text: str
    hook: dict[str, Any] | None


def prime(app: AppContext, *, mcp: bool, hook_json: str | None, host: str) -> PrimeAnswer:
    """What an agent is told; empty where there is no store, and never an error for a hook."""
    if hook_json is None:
        return {"text": _text(app, mcp=mcp, session_known=bool(app.identity.session)), "hook": None}
    payload = _payload(hook_json)
    event = str(payload.get("hook_event_name") or "SessionStart")
    app = _context_of_hook(app, payload, host)
    try:
        if event in ENDS:
            text = _reminder(app, payload)
        else:
            text = _text(app, mcp=mcp, session_known=host in NAMES_ITS_SESSION)
    except HerdbookError as error:
        app.warn(str(error))  # a session begins and ends whatever the store does
        text = ""
    return {"text": text, "hook": _envelope(host, event, text) if text else {}}


def _text(app: AppContext, *, mcp: bool, session_known: bool) -> str:
    if not _has_store(app):
        return ""
    found = app.read(Area.WORK, lambda uow: briefing.brief(uow, app.identity.agent(uow)))
    own_text = app.workspace.trusted_prime()
    if _is_halted(app, found.agent):
        return halted_text(found)
    return prime_text(
        found,
        tools=mcp,
        session_known=session_known,
        own_text=own_text,
        program=_program_off_path(app.workspace.variables.get("PATH", "")),
    )


def _is_halted(app: AppContext, agent: "Agent | None") -> bool:
    """Whether the agent that acts is halted, by the markers that its hook obeys too."""
    from herdbook.adapters.user_state.halt_markers import is_marked  # noqa: PLC0415

    name = app.identity.agent_name if agent is None else agent.name
    return is_marked(name, app.identity.session)


def _program_off_path(path: str) -> str | None:
    """The path of this program if it is not found by its name, and is short enough to be told."""
    if any(os.access(f"{each}/herdbook", os.X_OK) for each in path.split(os.pathsep) if each):
        return None
    program = f"{os.path.dirname(sys.executable)}/herdbook"  # noqa: PTH120 - pathlib costs more
    fits = len(program) <= _LONGEST_PROGRAM and os.access(program, os.X_OK)
    return program if fits else None


def _reminder(app: AppContext, payload: dict[str, Any]) -> str:
    """The reminder of what the agent holds; empty if it was reminded a short while ago."""
    if payload.get("stop_hook_active") or payload.get("loop_count") or not _has_store(app):
        return ""

    def question(uow: UnitOfWork) -> tuple[briefing.HeldTask, ...]:
        agent = app.identity.agent(uow)
        return () if _is_halted(app, agent) else briefing.forgotten_tasks(uow, agent)

    held = app.read(Area.WORK, question)
    return reminder_text(held) if held and _is_due(app.identity.session or "") else ""


def _is_due(session: str) -> bool:
    """Whether a session may be reminded again; notes that it was."""
    from herdbook.adapters.system.os_errors import translate_os_errors  # noqa: PLC0415
    from herdbook.adapters.user_state.dirs import (  # noqa: PLC0415
        keep_newest,
        make_private,
        state_folder,
    )
    from herdbook.domain.retention import MOST_MARKS  # noqa: PLC0415
    from herdbook.entrypoints.hooks.hook import marker  # noqa: PLC0415

    file = state_folder() / "reminded" / (marker(session) or "no-session")
    with translate_os_errors(str(file)):
        if file.exists() and time.time() - file.stat().st_mtime < REMIND_EVERY:
            return False
        make_private(file.parent)
        file.touch(mode=0o600)
        keep_newest(file.parent, MOST_MARKS)
    return True


def _has_store(app: AppContext) -> bool:
    return app.workspace.store_exists(app.workspace.locate(Area.WORK))


def _payload(text: str) -> dict[str, Any]:
    """The payload of a hook; empty if it is something else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _context_of_hook(app: AppContext, payload: dict[str, Any], host: str) -> AppContext:
    """The context of the session that a hook belongs to.

    Cursor starts the hooks of a user in its own folder and names that of the project.
    """
    workspace = app.workspace
    folder = workspace.variables.get("CURSOR_PROJECT_DIR", "") if host == "cursor" else ""
    if os.path.isabs(folder) and os.path.isdir(folder):  # noqa: PTH112, PTH117 - pathlib costs more
        app = AppContext.at(Path(folder), workspace.variables, workspace.arguments, warn=app.warn)
    session = payload.get("session_id") or payload.get("conversation_id")
    if isinstance(session, str) and session and not workspace.variables.get(SESSION):
        app.identity.session = session
    return app


def _envelope(host: str, event: str, text: str) -> dict[str, Any]:
    """A text as the hooks of a host answer with it."""
    if host == "cursor":
        return {"followup_message": text} if event in ENDS else {"additional_context": text}
    if event in ENDS:
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
