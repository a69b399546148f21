"""A store and a copy of its files are two nodes: their stamps are never equal."""

import shutil
from collections.abc import Callable

import pytest

from herdbook.adapters import open_store
from herdbook.ports.engine.dictionary import PROJECTS
from herdbook.services.stores.copy_spaces import copy
from tests.contract import raw
from tests.contract.conftest import SHARED
from tests.contract.rows import make
from tests.contract.space import HERE, everything_in, work_in

NewUrl = Callable[[str], str]

every_engine = pytest.mark.parametrize("engine", SHARED, indirect=True)
in_files = pytest.mark.parametrize("engine", ["lmdb", "duckdb"], indirect=True)


@pytest.fixture
def url(engine: str, new_url: NewUrl) -> str:
    """A store that somebody has written to."""
    made = new_url(engine)
    _write(made)
    return made


def _write(url: str) -> tuple[str, str, str]:
    """Write to a store; gives its uuid, its node and the node of the last stamp."""
    with open_store(url) as store:
        with work_in(store) as uow:
            make(uow, PROJECTS)
            uow.commit()
        return store.uuid, store.node, everything_in(store)["journal"][-1].at.node


def _copy_behind(engine: str, url: str, target: str) -> None:
    """Copy a store as a person would, past Herdbook."""
    if engine != "postgres":
        source, copied = raw.path_of(url), raw.path_of(target)
        if source.is_dir():
            shutil.copytree(source, copied)
        else:
            shutil.copy2(source, copied)
        return
    schema, other = (each.rpartition("schema=")[2] for each in (url, target))
    with raw.postgres(url) as server:
        tables = server.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]
        ).fetchall()
        server.execute(f'CREATE SCHEMA "{other}"')
        for (table,) in tables:
            server.execute(
                f'CREATE TABLE "{other}"."{table}" (LIKE "{schema}"."{table}" INCLUDING ALL)'
            )
            server.execute(f'INSERT INTO "{other}"."{table}" SELECT * FROM "{schema}"."{table}"')


@every_engine
def test_a_store_stays_the_node_it_is(url: str) -> None:
    """Closed and opened again, it stamps as before."""
    first, second = _write(url), _write(url)
    assert first == second
    assert first[1] == first[2] != first[0]


@every_engine
def test_copied_files_are_another_node(engine: str, url: str, new_url: NewUrl) -> None:
    """The copy has the store's uuid, goes on with its journal, and stamps as somebody else."""
    uuid, node, _ = _write(url)
    target = new_url(engine)
    _copy_behind(engine, url, target)
    copied = _write(target)
    assert copied[0] == uuid
    assert copied[1] == copied[2] != node
    assert _write(url)[1] == node


@in_files
def test_moved_files_are_the_same_node(engine: str, url: str, new_url: NewUrl) -> None:
    """A store that was moved is still the only one of its kind."""
    before = _write(url)
    target = new_url(engine)
    raw.path_of(url).rename(raw.path_of(target))
    assert _write(target) == before


@every_engine
def test_a_copy_by_herdbook_is_another_node(engine: str, url: str, new_url: NewUrl) -> None:
    """The rows and the journal are the source's; what is written from then on is the copy's."""
    _, node, _ = _write(url)
    target = new_url(engine)
    with open_store(url) as source, open_store(target) as copied:
        copy(source, copied, [HERE])
        assert {entry.at.node for entry in everything_in(copied)["journal"]} == {node}
    assert _write(target)[2] != node
