"""Another account of this machine and the socket of `herdbook serve`."""

import json
import os
import socket
from pathlib import Path

import pytest

from herdbook.entrypoints.http import local_socket
from tests.attacks.conftest import NOBODY, Person
from tests.attacks.test_serve import ask_socket, socket_of
from tests.e2e.serve_process import serving

LINK = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "serve.link"}).encode() + b"\n"


def test_another_account_gets_nothing_from_the_socket(
    person: Person, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by its mode, nor, where somebody opened the folder and the socket, by its kernel.

    Only root can become another account; there it is done for real. For others, what decides is
    tested with a number of another account.
    """
    with serving(person, app) as server:
        path = Path(socket_of(server))
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_mode & 0o777 == 0o600
        assert b"#t=" in ask_socket(str(path), LINK)
        if os.geteuid() == 0:
            assert ask_as_nobody(path) == b"PermissionError"
            path.chmod(0o666)
            assert ask_as_nobody(path) == b"PermissionError"
            path.parent.chmod(0o711)
            assert ask_as_nobody(path) == b""
            path.parent.chmod(0o700)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert local_socket.peer_uid(ours) == os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
        assert local_socket.peer_uid(ours) != os.geteuid()


def ask_as_nobody(path: Path) -> bytes:
    """What another account gets for the first message; the name of the error if it is refused."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.chdir(path.parent)  # so that no folder above it decides
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            told = ask_socket(path.name, LINK)
        except OSError as error:
            told = type(error).__name__.encode()
        os.write(writing, told)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()
