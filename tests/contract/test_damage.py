"""A damaged store is never taken for an empty one, and nothing is lost in silence.

Each is looked at by a process of its own: where an engine would crash over the damage, the test of
that damage fails and no other. What is refused is left as it was, byte by byte.
"""

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.unit_of_work.run import run
from tests.cases import for_each
from tests.contract.children import Died, apart
from tests.contract.space import HERE, everything_in
from tests.contract.visitors import add, add_and_die, visit

NewUrl = Callable[[str], str]
Harm = Callable[[Path], object]

MARK = "a text that can be found in the file"
NOISE = bytes(range(256)) * 4_096


def filled(url: str, rows: int = 30) -> dict[str, list[Any]]:
    """Make a store of some hundred kilobytes; what it holds."""
    chance = random.Random(3)
    with open_store(url) as store:
        for number in range(rows):
            run(store, HERE, add, f"task {number}", f"{MARK} {chance.randbytes(2_000).hex()}")
        return everything_in(store)


def files(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, but for what locks leave behind."""
    locks = (".lock", ".turn", ".wake", "lock.mdb")
    return {
        str(each): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and not each.name.endswith(locks)
    }


def is_refused(url: str, place: Path) -> str:
    """Whether a store says that it is damaged and where, and is left as it was; what it said."""
    before = files(place.parent)
    kind, text = apart(visit, url)
    assert kind is StoreDamaged, text
    assert text.startswith(f"{place} is not a whole Herdbook store: ")
    assert text.endswith("keep the file as it is and open a backup or a copy")
    assert files(place.parent) == before
    return str(text)


def flip(path: Path, at: int, bits: int = 0xFF) -> None:
    """Change one byte of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ bits]))


def flip_text(path: Path) -> None:
    """Change a letter in every copy of a text that the store keeps."""
    whole = path.read_bytes()
    assert MARK.encode() in whole
    path.write_bytes(whole.replace(MARK.encode(), MARK.replace("found", "foumd").encode()))


def cut(to: float) -> Harm:
    """Cut off the end of a file: to a length, or to a part of what it had."""
    return lambda path: os.truncate(path, int(path.stat().st_size * to if to < 1 else to))


def cut_last_page(path: Path) -> None:
    """Cut off the last page of what is kept, and the room behind it that nobody has used yet."""
    with lmdb.open(str(path.parent), readonly=True, lock=False) as environment:
        last = environment.info()["last_pgno"]
    os.truncate(path, last * 4_096)


def an_empty_environment(path: Path) -> None:
    """Put a database in its place that is whole and has nothing in it."""
    shutil.rmtree(path.parent / "elsewhere", ignore_errors=True)
    with lmdb.open(str(path.parent / "elsewhere"), max_dbs=4) as environment:
        environment.open_db(b"meta")
    (path.parent / "elsewhere" / "data.mdb").rename(path)
    shutil.rmtree(path.parent / "elsewhere")


def an_sqlite_file(path: Path) -> None:
    """Put a database of another kind in its place."""
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE tasks (id TEXT)")
    connection.commit()
    connection.close()


LMDB_HARM: dict[str, Harm] = {
    "0 bytes": cut(0),
    "a few bytes": cut(100),
    "one page": cut(4_096),
    "two pages": cut(8_192),
    "half": cut(0.5),
    "all but its end": cut_last_page,
    "missing": Path.unlink,
    "nothing in it": an_empty_environment,
    "noise": lambda path: path.write_bytes(NOISE),
    "an SQLite file": an_sqlite_file,
    "the first header's magic": lambda path: flip(path, 16),
    "the second header's magic": lambda path: flip(path, 4_096 + 16),
    "the first header's version": lambda path: flip(path, 20),
    "the second header's version": lambda path: flip(path, 4_096 + 20),
    "the page size": lambda path: flip(path, 40),
    "the first header's number": lambda path: flip(path, 144),
    "the second header's number": lambda path: flip(path, 4_096 + 144),
    "the last bit of a number": lambda path: flip(path, 144, 0x01),
    "the second bit of a number": lambda path: flip(path, 144, 0x02),
    "a value": flip_text,
}


@for_each("harm", LMDB_HARM)
def test_a_damaged_lmdb_store_is_refused(harm: str, new_url: NewUrl) -> None:
    """The error names the data file; the next one who looks finds it as it was."""
    url = new_url("lmdb")
    data = Path(url.removeprefix("lmdb://")) / "data.mdb"
    filled(url)
    LMDB_HARM[harm](data)
    assert is_refused(url, data) == is_refused(url, data)


DUCKDB_HARM: dict[str, Harm] = {
    "0 bytes": cut(0),
    "a few bytes": cut(100),
    "its headers alone": cut(12_288),
    "half": cut(0.5),
    "all but its end": lambda path: os.truncate(path, path.stat().st_size - 1),
    "noise": lambda path: path.write_bytes(NOISE),
    "an SQLite file": an_sqlite_file,
    "its magic": lambda path: flip(path, 8),
    "its first header": lambda path: flip(path, 40),
    "its database headers": lambda path: (flip(path, 4_096 + 20), flip(path, 8_192 + 20)),
}


@for_each("harm", DUCKDB_HARM)
def test_a_damaged_duckdb_store_is_refused(harm: str, new_url: NewUrl) -> None:
    """The error names the file; the next one who looks finds it as it was."""
    url = new_url("duckdb")
    file = Path(url.removeprefix("duckdb://"))
    filled(url)
    DUCKDB_HARM[harm](file)
    is_refused(url, file)
    is_refused(url, file)


# LMDB keeps no checksum of keys: only what rows hold is safe there from being misread.
@pytest.mark.parametrize(
    ("engine", "headers"), [("lmdb", 8_192), ("duckdb", 12_288)], indirect=["engine"]
)
def test_a_flipped_byte_is_noticed_or_means_nothing(
    engine: str, headers: int, new_url: NewUrl
) -> None:
    """Wherever it is, reading gives what was there or StoreDamaged, and mostly the latter."""
    url = new_url(engine)
    path = Path(url.partition("://")[2])
    file = path / "data.mdb" if engine == "lmdb" else path
    kept = filled(url)
    whole = file.read_bytes()
    noticed = 0
    for at in range(headers + 9, len(whole), len(whole) // 16):
        file.write_bytes(whole)
        flip(file, at)
        found = apart(visit, url)
        if found == kept:
            continue
        kind, text = found
        assert kind is StoreDamaged, text
        assert text.startswith(str(file))
        noticed += 1
    assert noticed > 1


@pytest.fixture
def crashed(new_url: NewUrl) -> tuple[str, Path, dict[str, list[Any]]]:
    """A DuckDB store whose last writer was killed, so that its log lies beside it."""
    url = new_url("duckdb")
    file = Path(url.removeprefix("duckdb://"))
    filled(url, 3)
    with pytest.raises(Died) as death:
        apart(add_and_die, url, 10)
    assert death.value.exitcode == -signal.SIGKILL
    assert log_of(file).stat().st_size
    copy = file.with_name("copy")
    copy.mkdir()
    for each in (file, log_of(file)):
        shutil.copy(each, copy)
    kept = apart(visit, f"duckdb://{copy / file.name}")
    shutil.rmtree(copy)
    return url, file, kept


def log_of(file: Path) -> Path:
    """DuckDB's write-ahead log."""
    return file.with_name(f"{file.name}.wal")


def test_a_log_that_was_left_behind_is_read(
    crashed: tuple[str, Path, dict[str, list[Any]]],
) -> None:
    """After the death of a writer all that it had acknowledged is there."""
    url, _, kept = crashed
    assert len(kept["tasks"]) == 13
    assert apart(visit, url) == kept


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.99])
def test_a_log_that_lost_its_end_is_refused(
    crashed: tuple[str, Path, dict[str, list[Any]]], part: float
) -> None:
    """What was acknowledged and is not there any more is not silently forgotten."""
    url, file, _ = crashed
    cut(part)(log_of(file))
    assert "write-ahead log" in is_refused(url, file)


@pytest.mark.parametrize("part", [0.2, 0.5, 0.8])
def test_a_flipped_byte_in_a_log_is_noticed(
    crashed: tuple[str, Path, dict[str, list[Any]]], part: float
) -> None:
    """What cannot be read of a log is not silently left out."""
    url, file, _ = crashed
    flip(log_of(file), int(log_of(file).stat().st_size * part))
    is_refused(url, file)


def test_a_log_without_its_file_is_refused(
    crashed: tuple[str, Path, dict[str, list[Any]]],
) -> None:
    """No new store is made over what is left of one."""
    url, file, _ = crashed
    file.unlink()
    assert "the file is missing, but its write-ahead log is there" in is_refused(url, file)


def test_a_log_of_another_copy_is_refused(
    crashed: tuple[str, Path, dict[str, list[Any]]],
) -> None:
    """A stale log beside a newer file is neither applied nor thrown away."""
    url, file, kept = crashed
    stale = log_of(file).read_bytes()
    assert apart(visit, url) == kept
    with open_store(url) as store:
        run(store, HERE, add, "newer")
    log_of(file).write_bytes(stale)
    assert "belongs to another copy" in is_refused(url, file)


@for_each(
    ("statement", "said"),
    [
        ("DROP TABLE {}.tasks", "tasks"),
        ("DROP TABLE {}.heads", "heads"),
        ("ALTER TABLE {}.tasks DROP COLUMN summary", "summary"),
        ("DELETE FROM {}.store", "it does not say which store it is"),
        ("DROP TABLE {}.store", "holds another program's tables"),
        ("ALTER TABLE {}.store DROP COLUMN uuid", "uuid"),
    ],
)
def test_a_damaged_schema_is_refused(
    statement: str, said: str, new_url: NewUrl, postgres_url: str
) -> None:
    """Neither a table, a column nor the store's own row that is gone is taken for an empty one."""
    url = new_url("postgres")
    schema = url.rpartition("=")[2]
    filled(url, 2)
    columns = "SELECT * FROM information_schema.columns WHERE table_schema = %s ORDER BY 3, 4"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(statement.format(schema))
        before = server.execute(columns, [schema]).fetchall()
        for _ in range(2):
            kind, text = apart(visit, url)
            assert kind is StoreDamaged, text
            assert f"schema={schema} is not a whole Herdbook store: " in text
            assert said in text
        assert server.execute(columns, [schema]).fetchall() == before
        (rows,) = server.execute(f"SELECT count(*) FROM {schema}.journal").fetchone() or (0,)
        assert rows == 2
