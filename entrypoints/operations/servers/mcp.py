"""`mcp`: tools for coding agents, and `mcp install`, which tells coding agents of them."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.domain.errors import HerdbookError, InvalidValue, StoreUnavailable
from herdbook.entrypoints.context import AppContext

if TYPE_CHECKING:
    from herdbook.entrypoints.mcp.client_session import Caller


def mcp(
    here: AppContext,
    *,
    action: str | None,
    target: str | None,
    project: bool,
    user: bool,
    preview: bool,
) -> dict[str, Any]:
    """Serve the client at the other end of standard input; or install, or uninstall."""
    if action is not None:
        if target is None:
            raise InvalidValue("target", "say for which coding agent: claude-code, codex, cursor")
        return _changed(here, action, target, project=project, user=user, preview=preview)
    if project or user or preview:
        raise InvalidValue("action", "--project, --user and --preview go with install or uninstall")
    if sys.stdin.isatty():
        reason = (
            "this is for coding agents, which speak to it over pipes; "
            "`herdbook mcp install claude-code` tells one of it"
        )
        raise InvalidValue("mcp", reason)
    _serve(here)
    return {}


def _serve(here: AppContext) -> None:
    """Answer until the client closes the pipe; nothing but protocol goes to standard output."""
    import gc  # noqa: PLC0415

    gc.enable()  # unlike other commands this one goes on
    wire = os.dup(sys.stdout.fileno())
    _away()
    try:
        from herdbook.entrypoints.cli.help_text import version  # noqa: PLC0415
        from herdbook.entrypoints.mcp.client_session import Caller  # noqa: PLC0415

        caller = Caller(here, here.warn)
        _end_well(here, caller)
        served = _server(caller, version().removeprefix("herdbook "))
        sys.stdout.flush()
        # The SDK takes the pipe for itself as soon as it runs, and sends what others print away.
        os.dup2(wire, sys.stdout.fileno())
        served.run("stdio")
    finally:
        _away()
        os.close(wire)
    _farewell(here, caller)
    caller.close()


def _end_well(here: AppContext, caller: "Caller") -> None:
    """Write down the end also where a signal brings it.

    Whoever waits for the next line of a pipe cannot be woken, so there is no other way out.
    """
    import signal  # noqa: PLC0415
    import threading  # noqa: PLC0415

    def leave(number: int) -> None:
        _farewell(here, caller)
        os._exit(128 + number)

    def told(number: int, _: object) -> None:
        threading.Thread(target=leave, args=(number,), daemon=True).start()

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, told)


def _away() -> None:
    """Let what is printed go to standard error."""
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def _server(caller: "Caller", version: str) -> Any:
    try:
        from herdbook.entrypoints.mcp.server import create_server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("herdbook"):
            raise
        reason = "tools for agents need the package mcp: `pip install 'herdbook[mcp]'` brings it"
        raise StoreUnavailable("mcp", reason) from error
    return create_server(caller, version)


def _farewell(here: AppContext, caller: "Caller") -> None:
    from herdbook.entrypoints.mcp.invoke import farewell  # noqa: PLC0415

    try:
        farewell(caller)
    except HerdbookError as error:
        here.warn(f"it could not be written down that {', '.join(caller.names)} ended: {error}")


def _changed(
    here: AppContext, action: str, target: str, *, project: bool, user: bool, preview: bool
) -> dict[str, Any]:
    from herdbook.entrypoints.mcp import clients  # noqa: PLC0415
    from herdbook.entrypoints.operations.hooks.handlers import carried_out  # noqa: PLC0415

    if project and user:
        raise InvalidValue("user", "either --project or --user, not both")
    root = here.workspace.facts.top_level if here.workspace.facts else None
    there = clients.settings_file(
        target, Path(root or here.workspace.folder), here.workspace.variables, user=user
    )
    plan = (clients.install if action == "install" else clients.uninstall)(target, there)
    return carried_out(target, plan, preview=preview)
