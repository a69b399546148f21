"""A real PgBouncer for the tests, in front of a PostgreSQL of theirs.

It pools by transaction: what a client says next may reach another server connection. It is made
from Debian's program, answers on loopback only, lives in one temporary folder, runs as a user
without rights where the tests run as root, which it refuses, and ends with the process that asked
for it, even when that one is killed.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tests import guarded_process
from tests.postgres_server import (
    PostgresServer,
    free_port,
    give_to,
    new_folder,
    unprivileged_account,
)

POOLED = "pooled"
"""The database whose clients share server connections."""
STRAIGHT = "straight"
"""The same one for clients that keep theirs, as tests do that look behind our back."""
PATIENCE = 60.0

SETTINGS = """
[databases]
{pooled} = host={host} port={port} dbname=postgres pool_size={size}
{straight} = host={host} port={port} dbname=postgres pool_mode=session pool_size=50

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
max_client_conn = 500
logfile = {folder}/log
"""


@contextmanager
def running_pgbouncer(server: PostgresServer, *, size: int = 50) -> Iterator[str]:
    """Give the URL of a PgBouncer with so many server connections, until the block ends."""
    program = pgbouncer_program()
    account = unprivileged_account()
    folder, port, owner = new_folder(account), free_port(), os.getpid()
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "settings.ini").write_text(
        SETTINGS.format(
            pooled=POOLED,
            straight=STRAIGHT,
            host=server.folder,
            port=server.port,
            size=size,
            own_port=port,
            folder=folder,
        )
    )
    give_to(folder, account)
    command = (account or "", str(folder), program, "--quiet", str(folder / "settings.ini"))
    guard = subprocess.Popen(
        [sys.executable, "-I", guarded_process.__file__, str(owner), *command],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _wait_until_it_answers(port, folder)
        yield f"postgresql://postgres@127.0.0.1:{port}/{POOLED}"
    finally:
        # A forked child that unwinds its stack must not take it from its parent.
        if os.getpid() == owner:
            guard.communicate(b"the end\n")


def straight_url(url: str) -> str:
    """The URL under which a client keeps its server connection; any other URL as it is."""
    return url.replace(f"/{POOLED}", f"/{STRAIGHT}", 1)


def pgbouncer_program() -> str:
    """Where the program is; Debian has it where only administrators look."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise RuntimeError("no PgBouncer to test with: install Debian's package pgbouncer")
    return found


def _wait_until_it_answers(port: int, folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.connect(("127.0.0.1", port))
            return
        if time.monotonic() > deadline:
            log = folder / "log"
            raise RuntimeError(
                f"PgBouncer does not start: {log.read_text() if log.exists() else log}"
            )
        time.sleep(0.05)
