"""`serve`: serve browsers, programs and agents over HTTP on this machine."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from herdbook.adapters.system.extras import describe_missing
from herdbook.adapters.user_state import running_server
from herdbook.adapters.user_state.dirs import write_private
from herdbook.adapters.user_state.running_server import RunningServer
from herdbook.adapters.workspace import Workspace
from herdbook.domain.agents.host_sessions import SESSION_VARIABLES
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.trace_context import TRACEPARENT
from herdbook.entrypoints.client_socket import LINK, ask_first
from herdbook.entrypoints.context import AGENT, SESSION, AppContext

if TYPE_CHECKING:
    from herdbook.entrypoints.http.lifecycle import HttpServer

START_SECONDS = 30.0
"""How long a server that has just been started may take until it says where it is."""
OWN_VARIABLES = frozenset({AGENT, SESSION, *SESSION_VARIABLES, TRACEPARENT})
"""What is true of whoever starts the server, and not of its clients."""
LOOPBACK = "127.0.0.1"
_UNCHANGED = {("host", LOOPBACK)}
_OPTION_NAMES = {
    "names": "allow_host",
    "certificate": "tls_cert",
    "key": "tls_key",
    "renew_token": "new_token",
}
"""Options by the names that people give them, where those differ."""
REDIRECT = '<!doctype html><meta http-equiv="refresh" content="0;url={link}">\n'


class ServeAnswer(NamedTuple):
    """Where the server is, the link to open, and which of both this command did.

    Its `state` is started, demo, running, stopped or absent.
    """

    url: str | None
    link: str | None
    folders: list[str]
    pid: int | None
    state: str


def serve(
    app: AppContext,
    *,
    folders: list[str] | None,
    host: str,
    port: int | None,
    allow_host: list[str] | None,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    new_token: bool,
    no_open: bool,
    stop: bool,
    demo: bool,
) -> Iterator[ServeAnswer]:
    """Serve this folder and others until a signal ends it, or add them to the server that runs.

    With `demo`, serve the repository of a demo, of which nothing is left afterwards. Raises
    StoreUnavailable if there is nothing to serve with, or no port.
    """
    options = {
        "host": host,
        "port": port,
        "names": tuple(allow_host or ()),
        "certificate": tls_cert,
        "key": tls_key,
        "behind_proxy": behind_proxy,
        "renew_token": new_token,
    }
    if demo:
        _refuse_with_demo(folders=folders, new_token=new_token, stop=stop)
        from herdbook.entrypoints.demo.serve_herd import herd_at_work  # noqa: PLC0415 - only here

        with herd_at_work() as (there, user):
            yield from _serve(there, [], options, opens=not no_open, user=user)
    elif stop:
        yield _stop()
    else:
        yield from _serve(app, folders or [], options, opens=not no_open)


def _serve(
    app: AppContext,
    folders: list[str],
    options: dict[str, Any],
    *,
    opens: bool,
    user: Mapping[str, str] | None = None,
) -> Iterator[ServeAnswer]:
    """Serve the folder of a context and others; `user` has the variables to open a browser with."""
    lock = _take_lock()
    try:
        roots = [_root(app, each) for each in (app.workspace.folder, *map(Path, folders))]
        if lock is None:
            _refuse_change({**options, **(app.workspace.arguments or {})})
            yield _join(roots, opens=opens)
            return
        server = _create(app, **options)
        running_server.forget_folders()
        for each in roots:
            running_server.add_folder(each)
        gc.enable()  # unlike other commands, this one keeps running
        gc.freeze()
        with server:
            link = server.make_link()
            state = "started" if user is None else "demo"
            yield ServeAnswer(server.url, link, roots, os.getpid(), state)
            if opens:
                _open(link, user)
            server.run()
    finally:
        if lock is not None:
            _open_file().unlink(missing_ok=True)
            os.close(lock)


def _refuse_with_demo(**options: object) -> None:
    """Raise InvalidValue for an option that means nothing together with the demo."""
    for name, value in options.items():
        if value:
            raise InvalidValue(name, "cannot be combined with demo, which serves its own folder")


def _create(app: AppContext, **options: Any) -> "HttpServer":
    try:
        from herdbook.entrypoints.http.lifecycle import HttpServer, ServeOptions  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("herdbook"):
            raise
        package = error.name.partition(".")[0]
        raise StoreUnavailable("serve", describe_missing(package, "serve")) from error
    from herdbook.entrypoints.cli.help_text import version  # noqa: PLC0415

    workspace = app.workspace
    variables = {k: v for k, v in workspace.variables.items() if k not in OWN_VARIABLES}
    number = version().removeprefix("herdbook ")
    running_server.announce(None)
    return HttpServer(ServeOptions(**options), variables, workspace.arguments, number, app.warn)


def _root(app: AppContext, folder: Path) -> str:
    """The worktree of a folder, else the folder itself; InvalidValue if there is none."""
    if not folder.is_dir():
        raise InvalidValue("folders", f"{str(folder)!r} is no folder")
    facts = Workspace(folder, app.workspace.variables).facts
    return os.path.realpath(folder) if facts is None else facts.top_level or facts.common_dir


def _refuse_change(options: dict[str, Any]) -> None:
    """Raise InvalidValue for an option that a server which runs already would not follow."""
    wanted = [name for name, value in options.items() if value and (name, value) not in _UNCHANGED]
    if wanted:
        found = _find_running()
        reason = f"the server of process {found.pid} listens at {found.url} as it was started; "
        reason += "`herdbook serve --stop` ends it, then start it with these options"
        raise InvalidValue(_OPTION_NAMES.get(wanted[0], wanted[0]), reason)


def _join(roots: list[str], *, opens: bool) -> ServeAnswer:
    """Let the server that runs work for these folders too, and get a link to it."""
    found = _find_running()
    for each in roots:
        running_server.add_folder(each)
    try:
        link = str(ask_first(found.socket, LINK, folder=roots[0]))
    except OSError as error:
        reason = f"its socket does not answer: {error.strerror or 'it took too long'}"
        raise StoreUnavailable(f"herdbook serve (process {found.pid})", reason) from error
    if opens:
        _open(link)
    return ServeAnswer(found.url, link, roots, found.pid, "running")


def _take_lock() -> int | None:
    """The lock of the running server; None if there is one, which has said where it is."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        lock = running_server.take_lock()
        if lock is not None or running_server.find_server() is not None:
            return lock
        time.sleep(0.05)
    raise _no_answer()


def _find_running() -> RunningServer:
    """The running server, which may have been started a moment ago; else StoreUnavailable."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        found = running_server.find_server()
        if found is not None:
            return found
        time.sleep(0.05)
    raise _no_answer()


def _no_answer() -> StoreUnavailable:
    reason = "another one begins or ends, and did not come to it"
    return StoreUnavailable("herdbook serve", reason)


def _stop() -> ServeAnswer:
    """End the running server; if there is none, that is no error."""
    free = running_server.take_lock()
    if free is not None:
        os.close(free)
        return ServeAnswer(None, None, [], None, "absent")
    found = _find_running()
    os.kill(found.pid, signal.SIGTERM)
    end = time.monotonic() + START_SECONDS
    while (lock := running_server.take_lock()) is None:
        if time.monotonic() > end:
            reason = "it was told to end, and still answers those who wait"
            raise StoreUnavailable(f"herdbook serve (process {found.pid})", reason)
        time.sleep(0.05)
    os.close(lock)
    return ServeAnswer(found.url, None, [], found.pid, "stopped")


def _open(link: str, user: Mapping[str, str] | None = None) -> None:
    """Open the page, by a private file that leads to it: a list of processes shows no ticket.

    The browser is one of the user, whose variables may be others than those of this process. Some
    stay in the foreground, so a process of its own waits for it.
    """
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        return
    write_private(_open_file(), REDIRECT.format(link=link))
    subprocess.Popen(  # noqa: S603 - a module of Python's own, and an address of ours
        [sys.executable, "-P", "-m", "webbrowser", _open_file().as_uri()],
        env=None if user is None else dict(user),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _open_file() -> Path:
    return running_server.server_folder() / "open.html"
