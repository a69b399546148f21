"""The PostgreSQL that tests run against starts, restarts and leaves nothing behind."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from tests import postgres_server
from tests.postgres_server import (
    machine_programs,
    private_postgres,
    running_postgres,
    wheel_programs,
)

REPOSITORY = Path(__file__).parents[2]

# A machine need not have a PostgreSQL: its row is there only where it has. The wheel's always is.
PROGRAMS = {"machine": machine_programs(), "wheel": wheel_programs()}
each_source = pytest.mark.parametrize(
    "programs", [pytest.param(path, id=name) for name, path in PROGRAMS.items() if path]
)


def ask(url: str, question: str) -> object:
    """The first value of the answer."""
    with psycopg.connect(url) as connection:
        row = connection.execute(question).fetchone()
    assert row is not None
    return row[0]


def postmaster(folder: Path) -> psutil.Process:
    """The server's own process, as its folder names it."""
    return psutil.Process(int((folder / "data" / "postmaster.pid").read_text().split()[0]))


def ended(process: psutil.Process) -> bool:
    """Whether a process is gone; one that nobody has waited for yet is."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_the_wheel_is_installed() -> None:
    """Every machine that tests has at least the wheel's PostgreSQL."""
    assert PROGRAMS["wheel"] is not None


@each_source
def test_it_answers_by_socket_and_by_port(programs: Path) -> None:
    """Both addresses lead to a server whose commits are durable."""
    with private_postgres(programs) as server:
        for url in (server.url, server.tcp_url):
            assert ask(url, "SHOW fsync") == "on"
            assert ask(url, "SHOW max_connections") == "300"


@each_source
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_keeps_address_and_commits(
    programs: Path, mode: postgres_server.StopMode
) -> None:
    """What was committed before a restart is there after it, at the same URL."""
    with private_postgres(programs) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
        server.restart(mode)
        assert ask(server.url, "SELECT value FROM kept") == 7


def test_a_stopped_one_refuses_until_it_is_started() -> None:
    """Between stop and start nobody answers."""
    with private_postgres() as server:
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.url)
        server.start()
        assert ask(server.url, "SELECT 1") == 1


def test_it_ends_with_its_block_whatever_happens_there() -> None:
    """A failing test leaves neither a process nor a folder."""
    known: list[tuple[Path, psutil.Process]] = []

    def fail() -> None:
        with private_postgres() as server:
            known.append((server.folder, postmaster(server.folder)))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    ((folder, process),) = known
    assert not folder.exists()
    assert ended(process)


@pytest.mark.parametrize("blow", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_process_that_asked_for_it(blow: signal.Signals) -> None:
    """A killed test run leaves neither a process nor a folder."""
    script = (
        "import time\n"
        "from tests.postgres_server import private_postgres\n"
        "with private_postgres() as server:\n"
        "    print(server.folder, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        folder = Path(asker.stdout.readline().strip())
        process = postmaster(folder)
        asker.send_signal(blow)
    deadline = time.monotonic() + 60
    while folder.exists() or not ended(process):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_forked_child_leaves_it_to_its_parent() -> None:
    """A child that unwinds the block it was forked in does not end its parent's server."""
    script = (
        "import os, sys, psycopg\n"
        "from tests.postgres_server import private_postgres\n"
        "with private_postgres() as server:\n"
        "    if not os.fork():\n"
        "        sys.exit()\n"
        "    os.wait()\n"
        "    psycopg.connect(server.url).close()\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, check=True)


def test_programs_in_a_closed_folder_can_be_used(tmp_path: Path) -> None:
    """Also as root, whose folders the server's user may not enter, and no permission is changed."""
    programs = PROGRAMS["wheel"]
    assert programs is not None
    package = programs.parent.parent
    home = tmp_path / "closed"
    home.mkdir(mode=0o700)
    shutil.copytree(programs.parent, home / package.name / programs.parent.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name, symlinks=True)
    with private_postgres(home / package.name / programs.parent.name / "bin") as server:
        assert ask(server.url, "SELECT 1") == 1
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_given_url_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """HERDBOOK_TEST_POSTGRES_URL is taken as it is, and nothing is started."""
    monkeypatch.setenv("HERDBOOK_TEST_POSTGRES_URL", "postgresql://given/url")
    with running_postgres() as url:
        assert url == "postgresql://given/url"


def test_the_wheel_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a URL and without programs on the machine, the wheel's are used."""
    monkeypatch.delenv("HERDBOOK_TEST_POSTGRES_URL", raising=False)
    monkeypatch.setattr(postgres_server, "machine_programs", lambda: None)
    with running_postgres() as url:
        assert str(ask(url, "SHOW server_version")).startswith("18")


def test_having_none_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing found is an error that names the three ways out, never a skipped engine."""
    monkeypatch.delenv("HERDBOOK_TEST_POSTGRES_URL", raising=False)
    monkeypatch.setattr(postgres_server, "machine_programs", lambda: None)
    monkeypatch.setattr(postgres_server, "wheel_programs", lambda: None)
    with pytest.raises(RuntimeError, match="HERDBOOK_TEST_POSTGRES_URL"), running_postgres():
        pass
