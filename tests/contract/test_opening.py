"""What cannot be opened is refused in one clear sentence, and what lies there is left alone."""

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import lmdb
import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.domain.errors import (
    InvalidValue,
    StoreDamaged,
    StoreUnavailable,
)
from herdbook.domain.location.areas import GIB, MIB, TIB, Area
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from tests.cases import for_each
from tests.contract.children import NOBODY, apart, as_nobody, program
from tests.contract.conftest import SHARED
from tests.contract.space import HERE, everything_in
from tests.contract.visitors import refusal_of

SCHEMES = "memory://, lmdb://, duckdb://, postgresql://, postgres://"
FILES = ("lmdb", "duckdb")

shared = pytest.mark.parametrize("engine", SHARED, indirect=True)
in_files = pytest.mark.parametrize("engine", FILES, indirect=True)

NewUrl = Callable[[str], str]


def path_in(url: str) -> Path:
    """The path in the URL of a file or a folder."""
    return Path(url.partition("://")[2])


def contents(path: Path) -> dict[str, bytes]:
    """Every file at a path or below it that holds data; what locks leave behind holds none."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    locks = (".lock", ".turn", ".wake", "lock.mdb")
    return {str(each): each.read_bytes() for each in files if not each.name.endswith(locks)}


def filled(url: str) -> dict[str, list[Any]]:
    """Make a store with something in it; what it holds."""
    with open_store(url) as store:
        run(store, HERE, lambda uow: uow.tasks.add(Task(name="kept", description="as it was")))
        return everything_in(store)


def held(url: str) -> dict[str, list[Any]]:
    """What a store holds that must be there."""
    with open_store(url, create=False) as store:
        return everything_in(store)


@for_each(
    ("url", "named"),
    [
        ("mysql://somewhere", "mysql"),
        ("sqlite:///file", "sqlite"),
        ("/var/lib/herdbook", "/var/lib/herdbook"),
        ("lmdb:/folder", "lmdb"),
        ("LMDB:///folder", "LMDB"),
        ("postgresql:ann:s3cret@host/db", "postgresql"),
        ("", ""),
    ],
)
def test_an_unknown_scheme_is_refused(url: str, named: str) -> None:
    """Who names no known kind of store hears which there are."""
    with pytest.raises(InvalidValue) as refusal:
        open_store(url)
    assert str(refusal.value) == f"url: {named!r} begins no store's URL; these do: {SCHEMES}"


@for_each("scheme", FILES)
@for_each(
    ("rest", "reason"),
    [
        ("", "names no path, as {}:///path does"),
        ("/", "names no path, as {}:///path does"),
        ("host/path", "names a host; a file's URL has three slashes, as in {}:///path"),
        ("ann:s3cret@host/path", "names a host; a file's URL has three slashes, as in {}:///path"),
        ("[::1/path", "names a host; a file's URL has three slashes, as in {}:///path"),
        ("/a%00b", "has the character NUL in its path"),
        ("/a?size=3", "has something after its path; a ? or # in it is written %3F or %23"),
        ("/a#b", "has something after its path; a ? or # in it is written %3F or %23"),
    ],
)
def test_a_url_that_names_no_file_is_refused(scheme: str, rest: str, reason: str) -> None:
    """A file's URL is a path and nothing else, and no part of it is silently left out."""
    with pytest.raises(InvalidValue) as refusal:
        open_store(f"{scheme}://{rest}")
    assert str(refusal.value) == f"url: {reason.format(scheme)}"


@in_files
def test_a_path_may_have_any_name(engine: str, tmp_path: Path) -> None:
    """What a URL would take for its own is read back from its percent form."""
    url = f"{engine}://{tmp_path}/a%20%23%3F%25%F0%9F%90%84"
    kept = filled(url)
    assert "a #?%\U0001f404" in {each.name for each in tmp_path.iterdir()}
    assert held(url) == kept


@for_each("patience", [0, -1, float("nan"), float("inf"), "10", None, True])
def test_patience_is_a_number_of_seconds(patience: Any) -> None:
    """Nobody waits for less than nothing, or for ever."""
    with pytest.raises(InvalidValue) as refusal:
        open_store("memory://", patience=patience)
    assert str(refusal.value) == (f"patience: must be a number of seconds above 0, is {patience!r}")


@pytest.mark.parametrize(
    ("area", "most", "said"),
    [
        (Area.RECORD, 2 * GIB, "2147483648 (2 GiB)"),
        (Area.WORK, TIB, "1099511627776 (1024 GiB)"),
        (Area.CHECKPOINTS, TIB, "1099511627776 (1024 GiB)"),
        (None, TIB, "1099511627776 (1024 GiB)"),
    ],
)
def test_a_size_limit_lies_in_its_areas_range(
    area: Area | None, most: int, said: str, tmp_path: Path
) -> None:
    """Both ends are allowed; anything else is refused with the range, and nothing is made."""
    url = f"lmdb://{tmp_path / 'store'}"
    for wrong in (0, -1, 1, MIB - 1, most + 1, 2**63, True, False, "64", 1e9, b"1"):
        with pytest.raises(InvalidValue) as refusal:
            open_store(url, area=area, size_limit=wrong)  # type: ignore[arg-type]
        assert str(refusal.value) == (
            f"size_limit: must be from 1048576 (1 MiB) to {said} bytes, is {wrong!r}"
        )
    assert list(tmp_path.iterdir()) == []
    for right in (MIB, most):
        open_store(url, area=area, size_limit=right).close()


@for_each(
    ("scheme", "driver", "install"),
    [
        ("duckdb", "duckdb", "in a clone of Herdbook, `pip install '.[duckdb]'`"),
        ("postgresql", "psycopg", "in a clone of Herdbook, `pip install '.[postgres]'`"),
        ("postgres", "psycopg", "in a clone of Herdbook, `pip install '.[postgres]'`"),
        ("lmdb", "lmdb", "`pip install lmdb`"),
    ],
)
def test_a_missing_driver_says_what_to_install(scheme: str, driver: str, install: str) -> None:
    """One sentence, in which stands what to type."""
    script = (
        f"import sys; sys.modules[{driver!r}] = None\n"
        "from herdbook.adapters import open_store\n"
        f"try: open_store('{scheme}:///tmp/nowhere')\n"
        "except OSError as error: print(type(error).__name__, error, sep=': ')\n"
    )
    ended = program("-c", script)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == (
        f"StoreUnavailable: {scheme}:// cannot be used: the package {driver} is not installed; "
        f"{install} brings it\n"
    )


def test_a_driver_that_cannot_be_loaded_says_why() -> None:
    """A driver that is there but lacks a library is no traceback either."""
    script = (
        "import os; os.environ['PSYCOPG_IMPL'] = 'missing'\n"
        "from herdbook.adapters import open_store\n"
        "try: open_store('postgresql://nowhere/db')\n"
        "except OSError as error: print(error)\n"
    )
    ended = program("-c", script)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.fullmatch(
        r"postgresql:// cannot be used: the package psycopg cannot be loaded: .*missing.*\n",
        ended.stdout,
    )


@pytest.mark.parametrize(
    ("url", "drivers"), [("memory://", []), ("lmdb://{}/store", ["lmdb"])], ids=["memory", "lmdb"]
)
def test_only_the_driver_that_is_used_is_imported(
    url: str, drivers: list[str], tmp_path: Path
) -> None:
    """Opening a store and working in it costs no other engine's import."""
    script = (
        "import sys\n"
        "from herdbook.adapters import open_store\n"
        "from herdbook.domain.plan.model import Task\n"
        "from herdbook.ports.unit_of_work.run import run\n"
        f"with open_store({url.format(tmp_path)!r}) as store:\n"
        "    run(store, 'work/here', lambda uow: uow.tasks.add(Task(name='one')))\n"
        "print(*sorted({'duckdb', 'lmdb', 'psycopg'} & set(sys.modules)))\n"
    )
    ended = program("-c", script)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == drivers


@in_files
def test_a_missing_folder_is_named_and_not_made(engine: str, tmp_path: Path) -> None:
    """A store is put into a folder that is there, not into a misspelt one."""
    path = tmp_path / "missing" / "store"
    with pytest.raises(StoreUnavailable) as refusal:
        open_store(f"{engine}://{path}")
    assert str(refusal.value) == (f"{path} cannot be used: the folder {path.parent} does not exist")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("lmdb", "there is a file where an LMDB store needs a folder"),
        ("duckdb", "it is a folder, not a file"),
    ],
    indirect=["engine"],
)
def test_a_file_for_a_folder_and_the_reverse_are_refused(
    engine: str, reason: str, tmp_path: Path
) -> None:
    """What is there already is told and kept."""
    path = tmp_path / "store"
    if engine == "lmdb":
        path.write_text("somebody's notes")
    else:
        path.mkdir()
        (path / "notes").write_text("somebody's notes")
    before = contents(path)
    with pytest.raises(StoreUnavailable) as refusal:
        open_store(f"{engine}://{path}")
    assert str(refusal.value) == f"{path} cannot be used: {reason}"
    assert contents(path) == before


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    """An LMDB store does not move into somebody's folder."""
    (tmp_path / "notes").write_text("somebody's notes")
    with pytest.raises(StoreUnavailable) as refusal:
        open_store(f"lmdb://{tmp_path}")
    assert str(refusal.value) == (
        f"{tmp_path} cannot be used: the folder holds other things; choose a folder of its own"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["notes"]


@shared
def test_nothing_is_made_where_nothing_should_be(engine: str, new_url: NewUrl) -> None:
    """With `create=False` a missing store is an error, and is still missing after that."""
    url = new_url(engine)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="there is no (store here|such file)"):
            open_store(url, create=False)
    if engine in FILES:
        assert not path_in(url).exists()


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may enter: those of pytest are its user's own."""
    folder = Path(tempfile.mkdtemp(prefix="herdbook-public-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@in_files
def test_a_read_only_folder_is_refused(engine: str, public: Path) -> None:
    """Where nothing may be written there is no new store, and the reason is told."""
    public.chmod(0o555)
    kind, text = apart(as_nobody, refusal_of, f"{engine}://{public / 'store'}")
    assert kind is StoreUnavailable
    assert str(public / "store") in text
    assert "Permission denied" in text
    assert list(public.iterdir()) == []


def _give(path: Path, account: int) -> None:
    if os.geteuid() == 0:
        os.chown(path, account, account)


@in_files
def test_a_store_that_may_only_be_read_is_refused(engine: str, public: Path) -> None:
    """Who may not write the files hears so, and the store holds what it held."""
    url = f"{engine}://{public / 'store'}"
    kept = filled(url)
    for each in (public, *public.rglob("*")):
        each.chmod(0o555 if each.is_dir() else 0o444)
        _give(each, NOBODY)  # a store of another account is refused for that alone
    before = contents(public)
    kind, text = apart(as_nobody, refusal_of, url)
    assert kind is StoreUnavailable
    assert "Permission denied" in text
    assert contents(public) == before
    for each in (public, *public.rglob("*")):
        _give(each, os.geteuid())
        each.chmod(0o755 if each.is_dir() else 0o644)
    assert held(url) == kept


def a_foreign_environment(folder: Path, **databases: dict[bytes, bytes]) -> None:
    """Leave an LMDB environment as another program would."""
    with lmdb.open(str(folder), max_dbs=8) as environment:
        for name, rows in databases.items():
            database = environment.open_db(name.encode()) if name != "main" else None
            with environment.begin(write=True) as transaction:
                for key, value in rows.items():
                    transaction.put(key, value, db=database)


def an_sqlite_file(path: Path) -> None:
    """Leave a database of the most common kind."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE store (uuid TEXT, schema_version INTEGER)")
    connection.commit()
    connection.close()


def a_duckdb_file(path: Path, *statements: str) -> None:
    """Leave a DuckDB database as another program would."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


ROWS = {b"key": b"value"}
NOISE = bytes(range(256)) * 64
FOREIGN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "lmdb: keys": ("lmdb", lambda at: a_foreign_environment(at, main=ROWS)),
    "lmdb: databases": ("lmdb", lambda at: a_foreign_environment(at, mails=ROWS)),
    "lmdb: a database called meta": ("lmdb", lambda at: a_foreign_environment(at, meta=ROWS)),
    "lmdb: meta and others": (
        "lmdb",
        lambda at: a_foreign_environment(at, meta={}, mails=ROWS),
    ),
    "lmdb: a key called meta": (
        "lmdb",
        lambda at: a_foreign_environment(at, main={b"meta": b"value"}),
    ),
    "lmdb: its store says otherwise": (
        "lmdb",
        lambda at: a_foreign_environment(at, meta={b"store": b'{"name": "shop"}'}),
    ),
    "lmdb: noise": ("lmdb", lambda at: (at.mkdir(), (at / "data.mdb").write_bytes(NOISE))),
    "lmdb: a few bytes": ("lmdb", lambda at: (at.mkdir(), (at / "data.mdb").write_bytes(b"x"))),
    "lmdb: an SQLite file": ("lmdb", lambda at: (at.mkdir(), an_sqlite_file(at / "data.mdb"))),
    "duckdb: tables": ("duckdb", lambda at: a_duckdb_file(at, "CREATE TABLE mails (id INTEGER)")),
    "duckdb: a table called store": (
        "duckdb",
        lambda at: a_duckdb_file(at, "CREATE TABLE store (id INTEGER, catalogue VARCHAR)"),
    ),
    "duckdb: no tables": ("duckdb", a_duckdb_file),
    "duckdb: noise": ("duckdb", lambda at: at.write_bytes(NOISE)),
    "duckdb: a few bytes": ("duckdb", lambda at: at.write_bytes(b"x")),
    "duckdb: an SQLite file": ("duckdb", an_sqlite_file),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_another_program_keeps_is_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    """Neither noise nor another program's database is taken for a store, nor written into."""
    engine, leave = FOREIGN[name]
    path = tmp_path / "store"
    leave(path)
    before = contents(path)
    assert before
    for create in (True, False):
        kind, text = apart(refusal_of, f"{engine}://{path}", create)
        assert kind is StoreDamaged
        assert text.startswith(str(path))
        assert "is not a whole Herdbook store: " in text
    assert contents(path) == before


@for_each(
    "table",
    ["mails (id integer)", "store (id integer)", "store (uuid text, schema_version text)"],
)
def test_another_programs_schema_is_refused_and_left_alone(
    table: str, new_url: NewUrl, postgres_url: str
) -> None:
    """A schema with somebody's tables in it is not moved into."""
    url = new_url("postgres")
    schema = url.rpartition("schema=")[2]
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE SCHEMA {schema}")
        server.execute(f"CREATE TABLE {schema}.{table}")
        server.execute(f"CREATE TABLE {schema}.letters (id integer)")
        before = server.execute(tables, [schema]).fetchall()
        with pytest.raises(StoreDamaged) as refusal:
            open_store(url)
        assert schema in str(refusal.value)
        assert server.execute(tables, [schema]).fetchall() == before


@shared
def test_closing_one_leaves_the_other_open(engine: str, new_url: NewUrl) -> None:
    """Two that opened one place share it, and each only closes its own."""
    url = new_url(engine)
    first, second = open_store(url), open_store(url)
    run(first, HERE, lambda uow: uow.tasks.add(Task(name="one")))
    first.close()
    first.close()
    run(second, HERE, lambda uow: uow.tasks.add(Task(name="two")))
    with pytest.raises(StoreUnavailable, match="has been closed"):
        everything_in(first)
    assert [task.name for task in sorted_tasks(second)] == ["one", "two"]
    second.close()


def sorted_tasks(store: Store) -> list[Task]:
    """The tasks of a store by name."""
    return sorted(everything_in(store)["tasks"], key=lambda task: task.name)
