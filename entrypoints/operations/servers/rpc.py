"""`rpc`: serve programs over JSON-RPC on standard input and output."""

import gc
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from herdbook.domain.agents.host_sessions import SESSION_VARIABLES
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import MIB
from herdbook.entrypoints.context import AGENT, SESSION, AppContext
from herdbook.entrypoints.rpc.dispatcher import Dispatcher
from herdbook.entrypoints.rpc.server import Server
from herdbook.entrypoints.rpc.writer import MessageWriter
from herdbook.entrypoints.server_context import ServerContext


def serve(app: AppContext) -> NoReturn:
    """Serve the program at the other end of standard input and output until it ends the session.

    Then everything is answered, written and closed, and the process exits at once: a regular
    shutdown, or waiting for a thread that runs git, takes longer than editors wait.
    """
    incoming, outgoing = private_streams()
    gc.enable()  # unlike other commands, this one keeps running
    gc.freeze()
    server = server_at(
        app.workspace.folder,
        app.workspace.variables,
        incoming,
        outgoing,
        app.workspace.arguments,
    )
    code = server.run()
    sys.stderr.flush()
    os._exit(code)


def server_at(
    folder: Path,
    variables: Mapping[str, str],
    incoming: int,
    outgoing: int,
    arguments: Mapping[str, str | None] | None = None,
) -> Server:
    """A server for a folder, with its client at two file descriptors."""
    context = ServerContext(folder.absolute(), dict(variables), arguments)
    _renew_leases(context, variables)
    writer = MessageWriter(outgoing, context.call)
    return Server(Dispatcher(context, writer), writer, incoming, limit=_limit(context))


def _renew_leases(context: ServerContext, variables: Mapping[str, str]) -> None:
    """Renew what the agent of this server holds, if one is named; a person holds nothing."""
    if any(variables.get(each) for each in (AGENT, SESSION, *SESSION_VARIABLES)):
        from herdbook.entrypoints.liveness import LeaseRenewal  # noqa: PLC0415 - only for agents

        renewal = LeaseRenewal(context.call)
        context.on_lease = renewal.expect
        renewal.start()


def _limit(context: ServerContext) -> int:
    """The maximum size of a message; invalid settings are reported with every answer."""
    try:
        limit: int = context.call().workspace.setting("message_limit")
    except HerdbookError:
        return 16 * MIB
    return limit


def private_streams() -> tuple[int, int]:
    """The client's descriptors; standard input and output themselves are redirected from here on.

    So nothing that a library prints, or that a subprocess reads, mixes with the messages.
    """
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing
