"""A look behind each adapter's back: what a person finds who opens a store with its own tools."""

import json
import os
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any

import psycopg
import pytest
from psycopg import sql

from herdbook.adapters import open_store
from herdbook.domain.entity import evolve
from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    DICTIONARY,
    INITIATIVES,
    PAGES,
    PROPOSALS,
    TASKS,
)
from herdbook.ports.engine.kinds import Kind
from tests.contract import older, raw
from tests.contract.conftest import SHARED
from tests.contract.rows import ENTITIES, make, space_for
from tests.contract.space import HERE, work_in

NewUrl = Callable[[str], str]
Rows = dict[Kind[Any], Any]

on_postgres = pytest.mark.parametrize("engine", ["postgres"], indirect=True)
on_duckdb = pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
on_lmdb = pytest.mark.parametrize("engine", ["lmdb"], indirect=True)
on_sql = pytest.mark.parametrize("engine", ["duckdb", "postgres"], indirect=True)
on_every_engine = pytest.mark.parametrize("engine", SHARED, indirect=True)

COLUMN_TYPES = {
    "postgres": {
        **dict.fromkeys(("id", "name", "text", "choice", "stamp", "secret"), "text"),
        **dict.fromkeys(("integer", "number choice"), "bigint"),
        "flag": "boolean",
        "moment": "timestamp with time zone",
        "document": "json",
        "bytes": "bytea",
    },
    "duckdb": {
        **dict.fromkeys(("id", "name", "text", "choice", "stamp", "secret"), "VARCHAR"),
        **dict.fromkeys(("integer", "number choice"), "BIGINT"),
        "flag": "BOOLEAN",
        "moment": "TIMESTAMP",
        "document": "JSON",
        "bytes": "BLOB",
    },
}


@pytest.fixture
def url(engine: str, new_url: NewUrl) -> str:
    return new_url(engine)


@pytest.fixture(scope="module")
def filled(engine: str, new_url: NewUrl) -> tuple[str, Rows]:
    """A closed store that tests only look at, and the rows in it."""
    url = new_url(engine)
    return url, _fill(url)


def _fill(url: str) -> Rows:
    """Write a full row of every kind, saved once where that can be."""
    added: Rows = {}
    with open_store(url) as store:
        for area in ("work", "record", "checkpoints"):
            with work_in(store, f"{area}/here") as uow:
                for kind in ENTITIES:
                    if kind.area == area:
                        added[kind] = make(uow, kind, full=True)
                uow.commit()
            with work_in(store, f"{area}/here") as uow:
                for kind, row in added.items():
                    if kind.area == area and not kind.append_only:
                        (current,) = uow.get_existing(kind, [row.id])
                        (added[kind],) = uow.save(kind, [current])
                uow.commit()
    return added


def _declared(engine: str) -> dict[str, dict[str, tuple[str, bool]]]:
    """The columns of every kind: their type in this engine, and whether they may be empty."""
    types = COLUMN_TYPES[engine]
    return {
        kind.name: {
            "space": (types["id"], False),
            **{
                name: (types[column.type_name], column.optional)
                for name, column in kind.columns.items()
            },
        }
        for kind in DICTIONARY
    }


@on_sql
def test_columns_have_the_type_of_their_field(engine: str, filled: tuple[str, Rows]) -> None:
    """Every field is a column of its own, in a type that a person and a tool can read."""
    url, _ = filled
    question = (
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = current_schema() ORDER BY ordinal_position"
    )
    opened = raw.postgres(url) if engine == "postgres" else raw.duckdb_file(url)
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    with opened as database:
        for table, column, type_name, nullable in database.execute(question).fetchall():
            found.setdefault(table, {})[column] = (type_name, nullable == "YES")
    assert set(found.pop("store")) >= {"uuid", "schema_version", "catalogue"}
    assert found == _declared(engine)


@on_postgres
def test_texts_are_collated_by_their_bytes(filled: tuple[str, Rows]) -> None:
    """No text column of a kind sorts by the server's locale."""
    url, _ = filled
    question = (
        "SELECT DISTINCT collation_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND data_type = 'text' AND table_name <> 'store'"
    )
    with raw.postgres(url) as server:
        assert server.execute(question).fetchall() == [("C",)]


@on_postgres
def test_every_unique_and_lookup_has_its_index(filled: tuple[str, Rows]) -> None:
    """Uniques are fenced by the engine too, and no declared lookup needs a scan."""
    url, _ = filled
    question = (
        "SELECT t.relname, i.indisprimary, i.indisunique, count(*) FROM pg_index i "
        "JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace "
        "WHERE n.nspname = current_schema() AND t.relname <> 'store' GROUP BY 1, 2, 3"
    )
    with raw.postgres(url) as server:
        found = {tuple(key): n for *key, n in server.execute(question).fetchall()}
    expected = {}
    for kind in DICTIONARY:
        expected[kind.name, True, True] = 1
        expected[kind.name, False, True] = len(kind.uniques)
        expected[kind.name, False, False] = len(kind.all_lookups) - len(kind.uniques)
    assert found == {key: n for key, n in expected.items() if n}


@on_postgres
def test_a_unique_holds_against_those_who_write_without_us(filled: tuple[str, Rows]) -> None:
    """The server itself refuses a second agent of one name and a second root page."""
    url, _ = filled
    with raw.postgres(url) as server:
        for kind in (AGENTS, PAGES):
            copied = sql.SQL("INSERT INTO {} (space, id, {}) SELECT space, 'other', {} FROM {}")
            rest = [sql.Identifier(name) for name in kind.columns if name != "id"]
            names, table = sql.SQL(", ").join(rest), sql.Identifier(kind.name)
            with pytest.raises(psycopg.errors.UniqueViolation):
                server.execute(copied.format(table, names, names, table))


@on_duckdb
def test_duckdb_has_primary_keys_and_no_other_index(filled: tuple[str, Rows]) -> None:
    """Secondary indexes and foreign keys are what DuckDB fails at: there are none."""
    url, _ = filled
    with raw.duckdb_file(url) as file:
        indexes = file.execute("SELECT count(*) FROM duckdb_indexes()").fetchall()
        constraints = file.execute(
            "SELECT table_name, constraint_column_names FROM duckdb_constraints() "
            "WHERE constraint_type <> 'NOT NULL' AND table_name <> 'store'"
        ).fetchall()
        kinds_of = file.execute("SELECT DISTINCT constraint_type FROM duckdb_constraints()")
        types = {name for (name,) in kinds_of.fetchall()}
    assert indexes == [(0,)]
    assert types == {"NOT NULL", "PRIMARY KEY"}
    assert dict(constraints) == {kind.name: ["space", kind.key] for kind in DICTIONARY}


def _readable(kind: Kind[Any], row: Any) -> dict[str, Any]:
    """A row as a person would expect it in a table: words, numbers, flags, UTC times, JSON."""
    values = encode_row(kind, row, reveal=True)
    for name, column in kind.columns.items():
        values.setdefault(name, None)
        if column.type_name == "moment" and values[name] is not None:
            values[name] = datetime.fromisoformat(values[name])
    return values


def _plain(kind: Kind[Any], found: dict[str, Any]) -> dict[str, Any]:
    """A fetched row, times in UTC and documents parsed, whichever way the driver gives them."""
    values = {name: value for name, value in found.items() if name != "space"}
    for name, column in kind.columns.items():
        value = values[name]
        if column.type_name == "moment" and value is not None:
            values[name] = value.replace(tzinfo=UTC)
        if column.type_name == "document" and isinstance(value, str):
            values[name] = json.loads(value)
    return values


@on_sql
def test_tables_hold_readable_values(engine: str, filled: tuple[str, Rows]) -> None:
    """Choices are words, times are times, documents are JSON: nothing is packed or encoded."""
    url, rows = filled
    found = raw.rows(engine, url)
    for kind, row in rows.items():
        same = [each for each in found[kind.name] if each[kind.key] == kind.key_of(row)]
        assert [_plain(kind, each) for each in same] == [_readable(kind, row)], kind.name
        assert [each["space"] for each in same] == [space_for(kind, HERE)]


@on_sql
def test_documents_can_be_asked_by_the_engine(engine: str, filled: tuple[str, Rows]) -> None:
    """A person can look into a document with the engine's own operators."""
    url, rows = filled
    question = "SELECT metadata->'nested'->>1, metadata->>'n' FROM proposals"
    opened = raw.postgres(url) if engine == "postgres" else raw.duckdb_file(url)
    with opened as database:
        ((nested, number),) = database.execute(question).fetchall()
    assert (nested, number) == ("2.5", str(rows[PROPOSALS].metadata["n"]))


@on_lmdb
def test_lmdb_rows_are_checksum_and_readable_json(filled: tuple[str, Rows]) -> None:
    """Under space, kind and key lies the row as JSON, its bytes as they are behind a NUL.

    Four bytes before all that guard it.
    """
    url, rows = filled
    with raw.lmdb_entries(url, "spaces") as entries:
        spaces = {name.decode(): number for name, number in entries}
    with raw.lmdb_entries(url, "rows") as entries:
        kept = dict(entries)
    assert sorted(spaces) == ["checkpoints/here", "record/here", "work/here"]
    for kind, row in rows.items():
        key = b"%s%s\0%s\0" % (
            spaces[space_for(kind, HERE)],
            kind.name.encode(),
            kind.key_of(row).encode(),
        )
        checksum, (text, _, data) = kept[key][:4], kept[key][4:].partition(b"\0")
        values = encode_row(kind, row, reveal=True)
        assert data == b"".join(values[name] for name in kind.bytes_fields)
        assert json.loads(text) == values | {name: len(values[name]) for name in kind.bytes_fields}
        assert checksum == zlib.crc32(kept[key][4:]).to_bytes(4, "big")
        assert b"\\u" not in text


def _lookups_of(url: str) -> tuple[int, int]:
    """How many lookup entries there are, and how many the rows ask for."""
    found = raw.rows("lmdb", url)
    with raw.lmdb_entries(url, "lookups") as entries:
        there = len(entries)
    return there, sum(len(DICTIONARY.kinds[n].all_lookups) * len(rows) for n, rows in found.items())


@on_lmdb
def test_lmdb_has_as_many_lookup_entries_as_declared(url: str) -> None:
    """Saves, removals and cascades leave no entry behind and forget none."""
    rows = _fill(url)
    there, declared = _lookups_of(url)
    assert there == declared > 0
    with open_store(url) as store, work_in(store) as uow:
        for kind in (TASKS, AGENTS, INITIATIVES):
            (current,) = uow.get_existing(kind, [rows[kind].id])
            uow.save(kind, [evolve(current, name="changed", status=list(type(current.status))[-1])])
        uow.remove(INITIATIVES, [rows[INITIATIVES].id])
        uow.remove(AGENTS, [rows[AGENTS].id])
        uow.commit()
    there, declared = _lookups_of(url)
    assert there == declared > 0


@on_lmdb
def test_an_upgrade_leaves_no_lookup_entry_of_the_older_dictionary(url: str) -> None:
    """Entries of lookups that were given up go, those of new ones come."""
    with open_store(url, dictionary=older.OLD) as store:
        older.write(store)
    with open_store(url, dictionary=older.NEW):
        pass
    there, declared = _lookups_of(url)
    assert there == declared > 0


@on_duckdb
def test_a_closed_duckdb_store_is_whole_by_itself(url: str) -> None:
    """Who closes a store may copy the file at once, also while its linger is just ending."""
    for milliseconds in range(3, 10):
        with open_store(url) as store:
            with work_in(store) as uow:
                make(uow, TASKS)
                uow.commit()
            sleep(milliseconds / 1_000)
        assert not raw.path_of(url).with_name("store.duckdb.wal").exists()
        with raw.duckdb_file(url) as file:
            assert file.table("tasks").count("id").fetchall() == [(milliseconds - 2,)]


@on_duckdb
def test_an_upgrade_that_was_cut_off_is_completed(url: str) -> None:
    """Columns that are there already, beside the old version number, do no harm."""
    with open_store(url, dictionary=older.OLD) as store:
        rows = older.write(store)
    with raw.duckdb_file(url, write=True) as file:
        file.execute("ALTER TABLE projects ADD COLUMN default_branch VARCHAR DEFAULT 'main'")
    with open_store(url, dictionary=older.NEW) as store, work_in(store, write=False) as uow:
        assert uow.projects.page() == older.as_new(rows)["projects"]
        assert store.schema_version == 2


@on_every_engine
def test_secrets_are_in_their_row_and_nowhere_else(engine: str, url: str) -> None:
    """A store keeps what it was given; its journal, searched as it lies there, does not."""
    with open_store(url) as store:
        with work_in(store, "record/here") as uow:
            account = make(uow, ACCOUNTS, config="s3cr3t-1", credentials="s3cr3t-2")
            uow.commit()
        with work_in(store, "record/here") as uow:
            account = uow.accounts.save(evolve(account, credentials="s3cr3t-3"))
            gone = make(uow, ACCOUNTS, config="s3cr3t-4")
            uow.accounts.remove(gone.id)
            uow.commit()
    found = raw.rows(engine, url)
    (kept,) = found.pop("accounts")
    assert (kept["config"], kept["credentials"]) == ("s3cr3t-1", "s3cr3t-3")
    assert len(found["journal"]) == 4
    assert "s3cr3t" not in repr(found)
    assert "***" in repr(found["journal"])


@on_every_engine
def test_a_store_says_what_it_is(engine: str, url: str) -> None:
    """Name and version stand in the store itself, where its own tools find them."""
    with open_store(url) as store:
        uuid = store.uuid
    if engine == "lmdb":
        with raw.lmdb_entries(url, "meta") as entries:
            text = dict(entries)[b"store"]
        described = json.loads(text)
    else:
        (described,) = raw.rows(engine, url)["store"]
    assert (described["uuid"], described["schema_version"]) == (uuid, DICTIONARY.version)


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Lets every program create files for everybody, if it does not know better."""
    before = os.umask(0)
    yield
    os.umask(before)


def _modes(folder: Path) -> dict[str, int]:
    return {each.name: each.lstat().st_mode & 0o777 for each in folder.iterdir()}


@on_lmdb
@pytest.mark.usefixtures("no_umask")
def test_an_lmdb_store_is_its_owners_alone(url: str) -> None:
    """Nobody else may look into the folder or its files."""
    with open_store(url) as store, work_in(store) as uow:
        make(uow, TASKS)
        uow.commit()
        folder = raw.path_of(url)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert set(_modes(folder).values()) == {0o600}


@on_duckdb
@pytest.mark.usefixtures("no_umask")
def test_a_duckdb_store_is_its_owners_alone(url: str) -> None:
    """Nobody else may look into the file, its log or what stands beside it."""
    folder = raw.path_of(url).parent
    with open_store(url) as store:
        with work_in(store) as uow:
            make(uow, TASKS)
            uow.commit()
        with work_in(store) as uow:
            make(uow, TASKS)
            while_open = _modes(folder)
    assert {name: mode for name, mode in while_open.items() if mode != 0o600} == {}
    assert {name: mode for name, mode in _modes(folder).items() if mode != 0o600} == {}
