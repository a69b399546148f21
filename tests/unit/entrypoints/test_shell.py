"""What holds for the SQL prompt of a store, driven by real programs on real terminals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.duckdb.file_lock import DuckDBFileLock
from herdbook.adapters.sql_query.native_shell import open_native_shell
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.system.ids import random_id
from herdbook.domain.errors import HerdbookError, StoreBusy, StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.domain.record.model import Account
from herdbook.domain.secret import Secret
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from tests.postgres_server import machine_programs, wheel_programs
from tests.unit.entrypoints.shell_process import REFUSED
from tests.unit.entrypoints.terminals import SHELL, shell_in_a_pipe, shell_on_a_terminal

PROGRAM = Path(__file__).with_name("duckdb_program.py")
SPACE = "work/here"
WARNING = "not in the journal; `herdbook check` reports"


def fill(url: str) -> str:
    """Make a store with two tasks and an account."""
    with open_store(url) as store:
        with unit_of_work(store, SPACE) as uow:
            uow.tasks.add_all([Task(name="graze"), Task(name="ruminate")])
            uow.commit()
        with unit_of_work(store, "record/me") as uow:
            uow.accounts.add(Account(email="a@example.org", config=Secret("S3CR3T")))
            uow.commit()
    return url


@pytest.fixture(autouse=True)
def psql_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine has no psql of its own, the one beside the server for the tests serves."""
    programs = machine_programs() or wheel_programs()
    if programs is not None:
        monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)


@pytest.fixture(scope="module")
def on_postgres(postgres_server_url: str) -> Iterator[str]:
    schema = f"herdbook_Shell_{random_id()}"
    yield fill(f"{postgres_server_url}{'&' if '?' in postgres_server_url else '?'}schema={schema}")
    with psycopg.connect(postgres_server_url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE')


@pytest.fixture
def on_lmdb(tmp_path: Path) -> str:
    return fill(f"lmdb://{tmp_path / 'store'}")


@pytest.fixture
def on_duckdb(tmp_path: Path) -> str:
    return fill(f"duckdb://{tmp_path / 'it is.duckdb'}")


@pytest.fixture
def with_program(tmp_path: Path) -> dict[str, str]:
    """An environment in which there is a program `duckdb`."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "duckdb"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PROGRAM}" "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def names(url: str, patience: float = 600.0) -> list[str]:
    """The tasks in a store, as another user of it sees them."""
    with (
        open_store(url, patience=patience) as store,
        store.transaction(SPACE, write=False) as session,
    ):
        return sorted(task.name for task in session.select(find(TASKS)))


class TestPsql:
    def test_it_finds_the_tables_and_only_reads(self, on_postgres: str) -> None:
        """Tables have their plain names there, and a change is refused by the server."""
        with shell_on_a_terminal(on_postgres) as terminal:
            terminal.wait_for("=[#>]")
            terminal.type("SELECT count(*) AS many FROM tasks;\n")
            terminal.wait_for(r"many\s+-+\s+2\s")
            terminal.type("DELETE FROM tasks;\n")
            terminal.wait_for("cannot execute DELETE in a read-only transaction")
            terminal.type("\\q\n")
            assert terminal.end() == 0
            assert WARNING not in terminal.shown

    def test_told_to_write_it_writes_and_warns(self, on_postgres: str) -> None:
        """With `write` a change is made, and one line says that no journal tells of it."""
        typed = "BEGIN;\nUPDATE tasks SET summary = 'x';\nROLLBACK;\n"
        told = shell_in_a_pipe(on_postgres, "write", typed)
        assert (told.returncode, told.stderr.count("\n")) == (0, 1)
        assert WARNING in told.stderr
        assert "UPDATE 2" in told.stdout

    def test_an_interrupt_ends_the_query_and_not_the_prompt(self, on_postgres: str) -> None:
        """What Ctrl-C stops is what the program does; it and we go on."""
        with shell_on_a_terminal(on_postgres) as terminal:
            terminal.wait_for("=[#>]")
            terminal.type("DO $$ BEGIN RAISE NOTICE 'asleep'; PERFORM pg_sleep(3600); END $$;\n")
            terminal.wait_for("NOTICE:  asleep")
            terminal.type("\x03")
            terminal.wait_for("canceling statement due to user request")
            terminal.type("SELECT 'still ' || 'here';\n")
            terminal.wait_for("still here")
            terminal.type("\\q\n")
            assert terminal.end() == 0

    def test_a_signal_to_end_is_passed_on(self, on_postgres: str) -> None:
        """Told to end, the process ends its program first and says by which signal it ended."""
        with shell_on_a_terminal(on_postgres) as terminal:
            terminal.wait_for("=[#>]")
            (child,) = psutil.Process(terminal.process.pid).children()
            terminal.process.send_signal(signal.SIGTERM)
            assert terminal.end() == 128 + signal.SIGTERM
            assert not child.is_running()

    def test_the_code_of_the_program_is_ours(self, on_postgres: str) -> None:
        """We end with the code that it ended with."""
        typed = "\\set ON_ERROR_STOP on\nSELECT nonsense;\n"
        assert shell_in_a_pipe(on_postgres, typed=typed).returncode == 3

    def test_the_terminal_is_left_as_it_was(self, on_postgres: str) -> None:
        """A program that is killed while it edits a line leaves no raw terminal behind."""
        with shell_on_a_terminal(on_postgres) as terminal:
            before = terminal.modes()
            terminal.wait_for("=[#>]")
            (child,) = psutil.Process(terminal.process.pid).children()
            child.kill()
            assert terminal.process.wait(300) == 128 + signal.SIGKILL
            assert terminal.modes() == before

    def test_nobody_sees_the_password(self) -> None:
        """It is in the environment alone, and so is all else that names the server."""
        url = "postgresql://ann:p%40ss@localhost:5433/herd?schema=My_Herd&sslmode=disable"
        with open_native_shell(url, write=False) as program:
            assert program is not None
            assert [Path(each).name for each in program.command] == ["psql"]
            assert program.environment == {
                "PGUSER": "ann",
                "PGPASSWORD": "p@ss",
                "PGHOST": "localhost",
                "PGPORT": "5433",
                "PGDATABASE": "herd",
                "PGSSLMODE": "disable",
                "PGOPTIONS": '-c search_path="My_Herd" -c default_transaction_read_only=on',
            }
            assert "p@ss" not in repr(program)

    def test_what_has_no_variable_is_an_argument_unless_it_is_secret(self) -> None:
        """Other options go along in the open; a secret one is refused."""
        with open_native_shell("postgresql:///herd?keepalives_idle=7", write=True) as program:
            assert program is not None
            assert program.command[1:] == ("keepalives_idle='7'",)
            assert program.environment["PGOPTIONS"] == '-c search_path="herdbook"'
        with (
            pytest.raises(StoreUnavailable, match="psql takes sslpassword only where others"),
            open_native_shell("postgresql:///herd?sslpassword=s", write=True),
        ):
            pass

    def test_without_it_the_small_prompt_answers(self, on_postgres: str, tmp_path: Path) -> None:
        """Where there is no psql, queries are still answered, and writing is refused."""
        told = shell_in_a_pipe(on_postgres, typed="SELECT name FROM tasks\n", PATH=str(tmp_path))
        assert "ruminate" in told.stdout
        told = shell_in_a_pipe(on_postgres, "write", PATH=str(tmp_path))
        assert told.returncode == REFUSED
        assert "needs the program `psql`" in told.stderr


class TestDuckDBsProgram:
    def test_it_opens_the_file_to_read(self, on_duckdb: str, with_program: dict[str, str]) -> None:
        """Its program gets the file, read-only, and sees what is in it."""
        typed = "SELECT name FROM tasks ORDER BY name\nDELETE FROM tasks\n"
        told = shell_in_a_pipe(on_duckdb, typed=typed, **with_program)
        assert told.returncode == 0
        assert "['-readonly']\n[('graze',), ('ruminate',)]\nError: " in told.stdout
        assert names(on_duckdb) == ["graze", "ruminate"]

    def test_others_read_beside_it_and_writers_are_told_who_holds_it(
        self, on_duckdb: str, with_program: dict[str, str]
    ) -> None:
        """While it reads, another process reads too; one that would write is told its number."""
        with shell_on_a_terminal(on_duckdb, **with_program) as terminal:
            terminal.wait_for("open")
            assert names(on_duckdb, patience=0.2) == ["graze", "ruminate"]
            with open_store(on_duckdb, patience=0.2) as store:
                with pytest.raises(StoreBusy) as busy:
                    run(store, SPACE, _add)
                assert f"process {terminal.process.pid} (shell_process.py)" in str(busy.value)
            terminal.type(".quit\n")
            assert terminal.end() == 0
        with open_store(on_duckdb) as store:
            run(store, SPACE, _add)

    def test_all_others_wait_while_it_writes(
        self, on_duckdb: str, with_program: dict[str, str]
    ) -> None:
        """Nobody opens the file beside one that writes; afterwards its change is there."""
        with shell_on_a_terminal(on_duckdb, "write", **with_program) as terminal:
            terminal.wait_for(WARNING)
            terminal.wait_for(r"open \d+ \[\]")
            assert _refused(on_duckdb) is StoreBusy
            terminal.type("UPDATE tasks SET name = 'moo' WHERE name = 'graze'\n")
            terminal.wait_for(r"\[\(1,\)\]")
            assert _refused(on_duckdb) is StoreBusy
            terminal.type(".quit\n")
            assert terminal.end() == 0
        assert names(on_duckdb) == ["moo", "ruminate"]

    def test_the_file_stays_locked_for_a_program_that_outlives_us(
        self, on_duckdb: str, with_program: dict[str, str]
    ) -> None:
        """Killed before its program, the process leaves the lock with it until that one ends."""
        command = [sys.executable, str(SHELL), on_duckdb, "write"]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, **with_program}
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            program = psutil.Process(int(process.stdout.readline().split()[1]))
            process.kill()
            process.wait()
            with pytest.raises(StoreBusy):
                DuckDBFileLock(path_of(on_duckdb)).take(write=False, patience=0.2)
            assert program.is_running()
            process.stdin.write(".quit\n")
            process.stdin.flush()
            psutil.wait_procs([program], 300)
        assert names(on_duckdb, patience=0.2) == ["graze", "ruminate"]

    def test_a_file_held_by_others_is_not_opened(
        self, on_duckdb: str, with_program: dict[str, str]
    ) -> None:
        """While somebody writes, the prompt waits and then says who it waited for."""
        with open_store(on_duckdb) as store, store.transaction(SPACE, write=True):
            told = shell_in_a_pipe(on_duckdb, patience=0.3, **with_program)
        assert told.returncode == REFUSED
        assert f"held by process {os.getpid()}" in told.stderr

    @pytest.mark.parametrize("version", ["v1.5.6 (Variegata) abc\n", "", "no version\n"])
    def test_one_that_cannot_read_our_files_is_left_alone(
        self, on_duckdb: str, with_program: dict[str, str], version: str
    ) -> None:
        """A program of another version never sees the file: the small prompt answers."""
        told = shell_in_a_pipe(
            on_duckdb,
            typed="SELECT name FROM tasks ORDER BY name\n",
            DUCKDB_PROGRAM_VERSION=version,
            **with_program,
        )
        assert told.stdout == "name\n--------\ngraze\nruminate\n"


def _add(uow: UnitOfWork) -> None:
    uow.tasks.add(Task(name="moo"))


def _refused(url: str) -> type[HerdbookError] | None:
    try:
        names(url, patience=0.2)
    except HerdbookError as error:
        return type(error)
    return None


class TestTheSmallPrompt:
    def test_it_answers_line_by_line(self, on_lmdb: str) -> None:
        """A query a line, with or without its end; errors are one line each and not the end."""
        typed = (
            "SELECT name FROM tasks ORDER BY name;\n\nSELEC 1\nDELETE FROM tasks\n"
            "SELECT count(*) AS n FROM tasks\n.quit\nSELECT 'never'\n"
        )
        told = shell_in_a_pipe(on_lmdb, typed=typed)
        assert told.returncode == 0
        assert told.stdout == "name\n--------\ngraze\nruminate\nn\n-\n2\n"
        assert told.stderr.splitlines() == [
            'sql: syntax error at or near "SELEC"',
            "sql: must be one query that only reads (SELECT, WITH, VALUES or TABLE)",
        ]

    def test_it_tells_its_tables_and_hides_secrets(self, on_lmdb: str) -> None:
        """`.tables` names them, and a secret is stars here too."""
        told = shell_in_a_pipe(on_lmdb, typed=".tables\nSELECT config FROM accounts\n.help\n")
        assert "\ntask_dependencies\ntasks\n" in told.stdout
        assert "config\n------\n***\n" in told.stdout
        assert "S3CR3T" not in told.stdout + told.stderr

    def test_on_a_terminal_an_interrupt_drops_the_line(self, on_lmdb: str) -> None:
        """Ctrl-C gives a new line, and the end of input ends the prompt."""
        with shell_on_a_terminal(on_lmdb) as terminal:
            terminal.wait_for("herdbook> ")
            terminal.type("SELECT half a que")
            terminal.wait_for("half a que")
            terminal.interrupt_until("herdbook> ")
            terminal.type("SELECT count(*) AS cows FROM tasks\n")
            terminal.wait_for(r"cows\n-+\n +2\n")
            terminal.wait_for("herdbook> ")
            terminal.type("\x04")
            assert terminal.end() == 0

    def test_on_a_terminal_an_interrupt_ends_the_query(self, on_lmdb: str) -> None:
        """Ctrl-C stops what takes too long, and the prompt comes back."""
        numbers = "generate_series(1, 1000000)"
        with shell_on_a_terminal(on_lmdb) as terminal:
            terminal.wait_for("herdbook> ")
            terminal.type(f"SELECT count(*) FROM {numbers} a(i), {numbers} b(j) WHERE i + j = 3\n")
            terminal.wait_for("i \\+ j = 3\n")
            terminal.type("\x03")
            assert "stopped after" not in terminal.wait_for("(.*)herdbook> ")[1]
            terminal.type(".quit\n")
            assert terminal.end() == 0

    def test_it_does_not_write(self, on_lmdb: str, on_duckdb: str, tmp_path: Path) -> None:
        """Told to write where only the small prompt is, it says why not."""
        told = shell_in_a_pipe(on_lmdb, "write")
        assert told.returncode == REFUSED
        assert told.stderr == (
            "write: cannot be had: a store at lmdb:// has no SQL of its own; "
            "Herdbook's own prompt only reads\n"
        )
        told = shell_in_a_pipe(on_duckdb, "write", PATH=str(tmp_path))
        assert told.returncode == REFUSED
        assert "needs DuckDB's program `duckdb`, version 2 or newer" in told.stderr

    @pytest.mark.parametrize("mode", ["read", "write"])
    def test_a_store_that_is_not_there_is_not_made(self, tmp_path: Path, mode: str) -> None:
        """The prompt of nothing is refused, and nothing comes of it."""
        for scheme in ("lmdb", "duckdb"):
            told = shell_in_a_pipe(f"{scheme}://{tmp_path / 'none'}", mode)
            assert told.returncode == REFUSED
            assert "cannot be used" in told.stderr
        assert list(tmp_path.iterdir()) == []
