"""`mcp`: serve tools to coding agents; `mcp install` adds the server to one."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.adapters.system.extras import describe_missing
from herdbook.domain.errors import HerdbookError, InvalidValue, StoreUnavailable
from herdbook.entrypoints.context import AppContext

if TYPE_CHECKING:
    from herdbook.entrypoints.mcp.client_session import ClientSession


def mcp(
    app: AppContext,
    *,
    action: str | None,
    target: str | None,
    project: bool,
    user: bool,
    preview: bool,
    tools: str,
    structured: bool,
) -> dict[str, Any]:
    """Serve the client on standard input and output; or install or uninstall the server."""
    if action is not None:
        if target is None:
            raise InvalidValue(
                "target", "say for which coding agent: claude-code, codex, cursor, opencode, agy"
            )
        options = mcp_options(tools, structured=structured)
        return _change_client(
            app, action, target, options, project=project, user=user, preview=preview
        )
    if project or user or preview:
        raise InvalidValue("action", "--project, --user and --preview go with install or uninstall")
    if sys.stdin.isatty():
        reason = (
            "this is for coding agents, which speak to it over pipes; "
            "`herdbook mcp install claude-code` installs it"
        )
        raise InvalidValue("mcp", reason)
    _serve(app, tools, structured=structured)
    return {}


def mcp_options(tools: str, *, structured: bool) -> list[str]:
    """The options to start the server with; none where they say what is so by default."""
    from herdbook.entrypoints.mcp.tools import choose_tools  # noqa: PLC0415

    choose_tools(tools)
    chosen = [] if tools == "all" else ["--tools", tools]
    return [*chosen, "--structured"] if structured else chosen


def _serve(app: AppContext, tools: str, *, structured: bool) -> None:
    """Serve until the client closes the pipe; only protocol messages go to standard output."""
    import gc  # noqa: PLC0415

    gc.enable()  # unlike other commands, this one keeps running
    wire = os.dup(sys.stdout.fileno())
    _redirect_output()
    try:
        from herdbook.entrypoints.cli.help_text import version  # noqa: PLC0415
        from herdbook.entrypoints.mcp.client_session import ClientSession  # noqa: PLC0415

        caller = ClientSession(app, app.warn, full=structured)
        _handle_signals(app, caller)
        served = _server(caller, version().removeprefix("herdbook "), tools)
        caller.renewal.start()
        sys.stdout.flush()
        # The SDK takes over the pipe as soon as it runs, and redirects what others print.
        os.dup2(wire, sys.stdout.fileno())
        served.run("stdio")
    finally:
        _redirect_output()
        os.close(wire)
    caller.renewal.stop()
    _record_end(app, caller)
    caller.close()


def _handle_signals(app: AppContext, caller: "ClientSession") -> None:
    """Record the end of the agents also if a signal ends the server.

    A thread that waits for the next line of a pipe cannot be woken, so the process exits at once.
    """
    import signal  # noqa: PLC0415
    import threading  # noqa: PLC0415

    def record_and_exit(number: int) -> None:
        _record_end(app, caller)
        caller.start_backups()
        os._exit(128 + number)

    def on_signal(number: int, _: object) -> None:
        threading.Thread(target=record_and_exit, args=(number,), daemon=True).start()

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, on_signal)


def _redirect_output() -> None:
    """Send standard output to standard error from here on."""
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def _server(caller: "ClientSession", version: str, tools: str) -> Any:
    from herdbook.entrypoints.mcp.tools import choose_tools  # noqa: PLC0415

    try:
        from herdbook.entrypoints.mcp.server import create_server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("herdbook"):
            raise
        raise StoreUnavailable("mcp", describe_missing("mcp", "mcp")) from error
    return create_server(lambda: caller, version, choose_tools(tools), full=caller.full)


def _record_end(app: AppContext, caller: "ClientSession") -> None:
    from herdbook.entrypoints.mcp.invoke import stop_agents  # noqa: PLC0415

    try:
        stop_agents(caller)
    except HerdbookError as error:
        app.warn(f"it could not be written down that {', '.join(caller.names)} ended: {error}")


def _change_client(
    app: AppContext,
    action: str,
    target: str,
    options: list[str],
    *,
    project: bool,
    user: bool,
    preview: bool,
) -> dict[str, Any]:
    from herdbook.entrypoints.mcp import clients  # noqa: PLC0415
    from herdbook.entrypoints.operations.hooks.handlers import confirm_and_apply  # noqa: PLC0415

    if project and user:
        raise InvalidValue("user", "either --project or --user, not both")
    root = app.workspace.facts.top_level if app.workspace.facts else None
    there = clients.settings_file(
        target, Path(root or app.workspace.folder), app.workspace.variables, user=user
    )
    if action == "install":
        plan = clients.install(target, there, options)
    else:
        plan = clients.uninstall(target, there)
    if not user and action == "install":
        plan.notes.append(
            f"this is for this worktree alone; `herdbook setup {target}` reaches all of them"
        )
    return confirm_and_apply(target, plan, preview=preview)
