"""DuckDB files that came with a clone: links beside them, and content that was made to be run.

DuckDB opens its write-ahead log and its other side files by itself and follows links, and a view or
a default of a table may call any function. Whoever commits a `.herdbook` folder chooses all that.
The laws hold for the installed program in a real clone, where it may also refuse the store as a
whole, and for the adapter, which is shown the same files by their path.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.sql_query import ask
from herdbook.adapters.stores.probe import probe
from herdbook.domain.errors import HerdbookError, StoreDamaged, StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.run import read, run
from tests.attacks.conftest import Person

ORIGIN = "https://example.com/stranger/app.git"
KEYS = b"ssh-ed25519 AAAA somebody@example.com\n" * 60
BESIDE = (
    *(".wal", ".wal.checkpoint", ".wal.recovery", ".lock", ".turn", ".rollback", ".owner"),
    *(".new", ".new.wal", ".new.wal.checkpoint", ".new.wal.recovery"),
)
SECRET = "only-the-owner-knows-this"  # noqa: S105 - a mark to be found, no password
SPACE = "work/here"


def stranger(person: Person, tmp_path: Path) -> Path:
    """A stranger's repository that brings settings and a store; the space is that of its origin."""
    folder = person.repository(tmp_path / "stranger", origin=ORIGIN)
    (folder / "herdbook.toml").write_text('backend = "duckdb"\n')
    store = folder / ".herdbook" / "work.duckdb"
    store.parent.mkdir()
    with open_store(f"duckdb://{store}") as made:
        run(
            made,
            person.at(folder).workspace.space(Area.WORK),
            lambda u: u.tasks.add(Task(name="bait")),
        )
    return folder


def clone(person: Person, folder: Path, tmp_path: Path) -> Path:
    """What the victim gets of it by a plain `git clone`."""
    person.git(folder, "add", "--force", "--all")
    person.git(folder, "commit", "--quiet", "--message=everything")
    person.git(tmp_path, "clone", "--quiet", str(folder), "clone")
    cloned = tmp_path / "clone"
    person.git(cloned, "remote", "set-url", "origin", ORIGIN)
    return cloned


@pytest.mark.parametrize("there", [True, False], ids=["existing", "dangling"])
@pytest.mark.parametrize("suffixes", [BESIDE[:1], BESIDE[1:]], ids=["log", "others"])
def test_a_committed_link_beside_a_store_harms_no_file(
    person: Person, tmp_path: Path, suffixes: tuple[str, ...], there: bool
) -> None:
    """What it leads to is neither written nor made, whichever command runs in the clone."""
    victim = person.home / "victim" / "authorized_keys"
    victim.parent.mkdir()
    if there:
        victim.write_bytes(KEYS)
    folder = stranger(person, tmp_path)
    for suffix in suffixes:
        link = folder / ".herdbook" / f"work.duckdb{suffix}"
        link.unlink(missing_ok=True)
        link.symlink_to(victim)
    cloned = clone(person, folder, tmp_path)
    store = cloned / ".herdbook" / "work.duckdb"
    assert all(store.with_name(f"{store.name}{suffix}").is_symlink() for suffix in suffixes)
    for words in (("status",), ("task", "list"), ("task", "add", "x")):
        person.tries(cloned, *words)
        person.tries(cloned, *words, "--store", str(store))
        assert victim.exists() == there
    assert not there or victim.read_bytes() == KEYS


@pytest.fixture(scope="session")
def store_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with a task, closed."""
    folder = tmp_path_factory.mktemp("template")
    with open_store(f"duckdb://{folder / 'store.duckdb'}") as store:
        run(store, SPACE, lambda uow: uow.tasks.add(Task(name="bait")))
    return folder


@pytest.fixture
def store_path(tmp_path: Path, store_template: Path) -> Path:
    """A store with a task, closed: a copy, with all that lies beside it."""
    for each in store_template.iterdir():
        shutil.copy2(each, tmp_path)
    return tmp_path / "store.duckdb"


def as_link(at: Path, victim: Path) -> None:
    at.symlink_to(victim)


def as_hard_link(at: Path, victim: Path) -> None:
    at.hardlink_to(victim)


def as_pipe(at: Path, _: Path) -> None:
    os.mkfifo(at)


def as_folder(at: Path, _: Path) -> None:
    at.mkdir()


PLANTS: tuple[Callable[[Path, Path], None], ...] = (as_link, as_hard_link, as_pipe, as_folder)
"""What a stranger may put in the place of a side file."""


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("suffix", BESIDE)
def test_the_adapter_opens_no_side_file_that_is_not_its_own(
    store_path: Path, tmp_path: Path, suffix: str, plant: Callable[[Path, Path], None]
) -> None:
    """A link, a second name, a pipe or a folder in its place is refused by name, and left alone."""
    url, victim = f"duckdb://{store_path}", tmp_path / "victim"
    victim.write_bytes(KEYS)
    beside = Path(f"{store_path}{suffix}")
    beside.unlink(missing_ok=True)
    before = store_path.read_bytes()
    if suffix.startswith(".new"):
        store_path.unlink()
    plant(beside, victim)
    with pytest.raises(StoreUnavailable, match=rf"{beside.name}\b"):
        open_store(url)
    probe(url)
    with suppress(HerdbookError):
        ask(url, "SELECT name FROM tasks", patience=5)
    assert victim.read_bytes() == KEYS
    assert not store_path.exists() or store_path.read_bytes() == before


@pytest.mark.parametrize("suffix", ["", ".wal", ".lock", ".rollback", ".tmp"])
def test_the_adapter_opens_no_file_of_another_account(
    store_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it could: whoever owns a file can change it while it is used."""
    for each in store_path.parent.glob("*.duckdb.*"):
        each.unlink()
    beside = Path(f"{store_path}{suffix}")
    if suffix == ".tmp":
        beside.mkdir()
    else:
        beside.touch()
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    before = sorted(store_path.parent.iterdir())
    with pytest.raises(StoreUnavailable, match=rf"{beside.name} belongs to the account {mine}\b"):
        open_store(f"duckdb://{store_path}")
    assert sorted(store_path.parent.iterdir()) == before


@pytest.mark.parametrize("plant", ["link", "file", "linked content"])
def test_the_adapter_spills_into_no_folder_that_is_not_its_own(
    store_path: Path, tmp_path: Path, plant: str
) -> None:
    """DuckDB writes temporary files into `.tmp`: neither it nor anything in it may be a link."""
    outside, spill = tmp_path / "outside", Path(f"{store_path}.tmp")
    outside.mkdir()
    (outside / "victim").write_bytes(KEYS)
    match plant:
        case "link":
            spill.symlink_to(outside)
        case "file":
            spill.write_bytes(KEYS)
        case _:
            spill.mkdir()
            (spill / "duckdb_temp_storage_DEFAULT-0.tmp").symlink_to(outside / "victim")
    with pytest.raises(StoreUnavailable, match=r"\.tmp"):
        open_store(f"duckdb://{store_path}")
    assert [each.name for each in outside.iterdir()] == ["victim"]


def test_a_spill_folder_that_a_killed_process_left_is_no_obstacle(store_path: Path) -> None:
    """It is an own folder with plain files in it."""
    spill = Path(f"{store_path}.tmp")
    spill.mkdir()
    (spill / "duckdb_temp_storage_DEFAULT-0.tmp").write_bytes(b"\0" * 4096)
    with open_store(f"duckdb://{store_path}") as store:
        (task,) = read(store, SPACE, lambda uow: uow.select(find(TASKS)))
    assert task.name == "bait"


def craft(path: Path, *statements: str) -> None:
    """Change a store behind Herdbook's back."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.execute("CHECKPOINT")


def replaced_by_view(table: str, column: str, expression: str) -> list[str]:
    """A table with all its rows that computes one of its columns."""
    return [
        f"ALTER TABLE {table} RENAME TO kept",
        f"CREATE VIEW {table} AS SELECT * REPLACE (({expression}) AS {column}) FROM kept",
    ]


def crafted(secret: Path) -> dict[str, list[str]]:
    """Ways to have something called when a store is read or written, and tables out of shape."""
    content = f"SELECT content FROM read_text('{secret}')"
    return {
        "a view": replaced_by_view("tasks", "name", content),
        "a view of the store": replaced_by_view("store", "catalogue", content),
        "a view of heads": replaced_by_view("heads", "clock", content),
        "a generated column": [
            "ALTER TABLE phases RENAME TO kept",
            "CREATE TABLE phases (id VARCHAR, name VARCHAR GENERATED ALWAYS AS (upper(id)))",
        ],
        "a default": ["ALTER TABLE tasks ALTER COLUMN summary SET DEFAULT getvariable('x')"],
        "a macro": [f"CREATE MACRO max(x) AS ({content})"],
        "a table macro": [f"CREATE MACRO unnest(x) AS TABLE {content}"],
        "a trigger": [
            "CREATE TABLE got (content VARCHAR)",
            f"CREATE TRIGGER t AFTER INSERT ON tasks FOR EACH STATEMENT INSERT INTO got {content}",
        ],
        "a type": ["CREATE TYPE mood AS ENUM ('a', 'b')"],
        "a sequence": ["CREATE SEQUENCE numbers"],
        "a schema": ["CREATE SCHEMA other"],
        "an index": ["CREATE INDEX names ON tasks (upper(name))"],
        "a check": [
            "ALTER TABLE phases RENAME TO kept",
            "CREATE TABLE phases (id VARCHAR CHECK (upper(id) <> 'X'))",
        ],
        "another type": ["ALTER TABLE tasks ALTER COLUMN summary TYPE BLOB"],
        "a column too many": ["ALTER TABLE tasks ADD COLUMN extra VARCHAR"],
        "a column too few": ["ALTER TABLE tasks DROP COLUMN summary"],
        "no table": ["DROP TABLE tasks"],
        "no catalogue": ["UPDATE store SET catalogue = '{'"],
        "a deep catalogue": ["UPDATE store SET catalogue = repeat('[', 100000)"],
        "a catalogue of other things": ["""UPDATE store SET catalogue = '{"tasks": 1}'"""],
        "an old view": [
            "UPDATE store SET schema_version = 0",
            *replaced_by_view("tasks", "name", content),
        ],
    }


NAMES = tuple(crafted(Path("secret")))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that only its owner should read."""
    path = tmp_path / "secret"
    path.write_text(SECRET)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_the_adapter_refuses_a_file_in_which_something_could_run(
    store_path: Path, secret: Path, name: str
) -> None:
    """Only tables of rows, as they are declared, are a store; nothing in the file is changed."""
    craft(store_path, *crafted(secret)[name])
    url, before = f"duckdb://{store_path}", store_path.read_bytes()
    with pytest.raises(StoreDamaged) as refusal:
        open_store(url)
    with pytest.raises(StoreDamaged):
        ask(url, "SELECT * FROM tasks", patience=30)
    texts = [str(refusal.value), repr(refusal.value.__cause__), repr(probe(url))]
    assert SECRET not in " ".join(texts)
    assert store_path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tasks SET status = 'nonsense'",
        "UPDATE heads SET clock = 'x'",
        "UPDATE journal SET op = 'x'",
        "UPDATE journal SET \"at\" = 'x'",
        "UPDATE tasks SET priority = ''",
    ],
)
def test_rows_that_no_herdbook_has_written_are_damage(store_path: Path, change: str) -> None:
    """They are refused as such, and no error of Python's gets out."""
    craft(store_path, change)
    table = change.split()[1]
    with (
        open_store(f"duckdb://{store_path}") as store,
        pytest.raises(StoreDamaged, match=f"a row of its table {table} holds what"),
    ):
        read(store, SPACE, lambda uow: uow.select(find(store.dictionary.kinds[table])))


@pytest.mark.parametrize("name", ["a view", "a view of the store", "a view of heads", "a trigger"])
def test_a_crafted_store_in_a_clone_shows_and_takes_nothing(
    person: Person, tmp_path: Path, secret: Path, name: str
) -> None:
    """No command prints what a file outside holds, nor puts it where another command would."""
    folder = stranger(person, tmp_path)
    craft(folder / ".herdbook" / "work.duckdb", *crafted(secret)[name])
    cloned = clone(person, folder, tmp_path)
    store = cloned / ".herdbook" / "work.duckdb"
    before = store.read_bytes()
    other = tmp_path / "copied.lmdb"
    for words in (
        ("task", "list"),
        ("task", "add", "x"),
        ("status",),
        ("board",),
        ("journal", "list"),
        ("sql", "SELECT * FROM tasks"),
        ("copy", str(store), str(other)),
        ("where",),
        ("check",),
    ):
        for more in ((), ("--store", str(store))):
            told = person.tries(cloned, *words, *more)
            assert SECRET not in told.stdout + told.stderr
    assert store.read_bytes() == before
    assert not any(SECRET.encode() in each.read_bytes() for each in other.glob("*"))


def test_a_store_cannot_reach_files_beside_its_own(store_path: Path, secret: Path) -> None:
    """Should anything in a file run after all, DuckDB itself lets it open nothing else."""
    with open_store(f"duckdb://{store_path}") as store:
        for statement in (
            f"SELECT content FROM read_text('{secret}')",
            f"SELECT * FROM '{secret}'",
            f"SELECT * FROM glob('{secret.parent}/*')",
            f"COPY (SELECT 1) TO '{secret}'",
            f"ATTACH '{secret.parent / 'another.duckdb'}' AS another",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            f"SET allowed_paths = ['{secret}']",
        ):
            with pytest.raises(duckdb.Error), cursor_of(store) as cursor:
                cursor.execute(statement).fetchall()
    assert secret.read_text() == SECRET
    assert not (secret.parent / "another.duckdb").exists()


@contextmanager
def cursor_of(store: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    """The connection behind a store's back."""
    with store._file.attach(write=True) as attachment:
        yield attachment.cursor
