"""What is to be seen of a store from outside, on every engine that others can see."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.stores.probe import is_missing, probe
from herdbook.domain.location.resolve import NO_STORE
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.unit_of_work.run import run
from tests.contract.conftest import SHARED

on_shared = pytest.mark.parametrize("engine", SHARED, indirect=True)


@on_shared
def test_where_there_is_no_store_nothing_is_seen_and_nothing_is_made(
    engine: str, new_url: Callable[[str], str]
) -> None:
    """However often one looks."""
    url = new_url(engine)
    assert [probe(url), probe(url)] == [NO_STORE, NO_STORE]
    if engine != "postgres":
        assert list(Path(url.partition("://")[2]).parent.iterdir()) == []


@on_shared
def test_a_store_shows_its_size_and_its_schema(engine: str, new_url: Callable[[str], str]) -> None:
    """Also while somebody has it open and writes in it."""
    url = new_url(engine)
    with open_store(url) as store:
        while_open = probe(url)
        assert store.schema_version == DICTIONARY.version
    closed = probe(url)
    for sight in (while_open, closed):
        assert (sight.exists, sight.schema_version) == (True, DICTIONARY.version)
        assert sight.bytes
        assert sight.problem is None


@on_shared
def test_many_look_and_open_at_once(engine: str, new_url: Callable[[str], str]) -> None:
    """Threads of one process do not stand in each other's way."""
    url = new_url(engine)
    open_store(url).close()

    def visit(number: int) -> str | None:
        if number % 2:
            return probe(url).problem
        with open_store(url, create=False) as store:
            return None if store.uuid else "it has no name"

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(visit, range(64))) == {None}


def test_a_server_out_of_reach_is_told_and_not_raised() -> None:
    """Nobody knows then whether there is a store."""
    sight = probe("postgresql://me:S3CRET@127.0.0.1:1/x?connect_timeout=1")
    assert (sight.exists, sight.bytes, sight.schema_version) == (None, None, None)
    assert sight.problem
    assert "S3CRET" not in sight.problem


@pytest.mark.parametrize("scheme", ["lmdb", "duckdb"])
def test_what_is_no_store_is_told_and_not_raised(tmp_path: Path, scheme: str) -> None:
    """It is there, and something is wrong with it."""
    place = tmp_path / "store"
    if scheme == "lmdb":
        place.mkdir()
        (place / "data.mdb").write_bytes(b"no database" * 100)
    else:
        place.write_bytes(b"no database" * 100)
    sight = probe(f"{scheme}://{place}")
    assert sight.exists
    assert sight.schema_version is None
    assert sight.problem


@on_shared
def test_whether_a_store_is_missing_is_told_without_making_one(
    engine: str, new_url: Callable[[str], str]
) -> None:
    """It is missing before it is made and there afterwards, also while somebody writes in it."""
    url = new_url(engine)
    assert is_missing(url)
    assert probe(url) == NO_STORE
    with open_store(url) as store:
        assert not is_missing(url)
        run(store, "work/here", lambda uow: uow.tasks.add(Task(name="one")))
        assert not is_missing(url)
    assert not is_missing(url)


def test_what_cannot_be_told_is_not_missing() -> None:
    """Whoever opens it hears what stands in the way, instead of an empty store."""
    assert not is_missing("postgresql://me@127.0.0.1:1/x?connect_timeout=1")
    assert not is_missing("duckdb:///half%20%FF")


def test_a_log_without_its_file_is_not_nothing(tmp_path: Path) -> None:
    """A DuckDB store that has lost its file is told of as damaged, never taken for an empty one."""
    url = f"duckdb://{tmp_path / 'store'}"
    (tmp_path / "store.wal").write_bytes(b"a log")
    assert not is_missing(url)
    assert "write-ahead log is there" in (probe(url).problem or "")
