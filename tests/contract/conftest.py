"""One suite, every store a row of a fixture.

`store` is a store of each engine in turn, kept for the whole run; a test gets a `space` of its own
in it. Tests that open, harm or share a store take `fresh`, which makes new ones.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.system.ids import random_id
from herdbook.domain.journal import NOBODY, Actor
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from tests.contract.brokers import THROUGH_BROKERS, brokers

SHARED = ("lmdb", "duckdb", "postgres")
"""The engines whose stores several processes can share."""
ENGINES = ("memory", *SHARED)

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_url(postgres_server_url: str) -> str:
    return postgres_server_url


@pytest.fixture(scope="session")
def new_url(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str
) -> Iterator[Callable[[str], str]]:
    """Makes the URL of a place where there is no store yet.

    With HERDBOOK_TEST_BROKER a DuckDB store is there already, empty and served by a broker.
    """
    used: list[str] = []
    stack = ExitStack()
    started = stack.enter_context(brokers())

    def make(engine: str) -> str:
        folder: Path = tmp_path_factory.mktemp("store", numbered=True)
        match engine:
            case "memory":
                return "memory://"
            case "lmdb":
                return f"lmdb://{folder / 'store'}"
            case "duckdb":
                url = f"duckdb://{folder / 'store.duckdb'}"
                if THROUGH_BROKERS:
                    started.start(url)
                return url
            case _:
                schema = f"herdbook_{random_id()}"
                used.append(schema)
                return f"{postgres_url}{'&' if '?' in postgres_url else '?'}schema={schema}"

    with stack:
        yield make
    if used:
        with psycopg.connect(postgres_url, autocommit=True) as server:
            for schema in used:
                server.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def store(engine: str, new_url: Callable[[str], str]) -> Iterator[Store]:
    with open_store(new_url(engine)) as opened:
        yield opened


@pytest.fixture
def space() -> str:
    return f"work/test-{next(_numbers)}"


@pytest.fixture
def fresh(engine: str, new_url: Callable[[str], str]) -> Iterator[Callable[..., Store]]:
    """Opens new stores of the engine, closed at the end of the test."""
    with ExitStack() as stack:

        def make(url: str | None = None, **options: Any) -> Store:
            return stack.enter_context(open_store(url or new_url(engine), **options))

        yield make


class Begin:
    """Begins units of work in one space of a store, or in another one that it is given."""

    def __init__(self, store: Store, space: str) -> None:
        self.store, self.space = store, space

    def in_space(self, space: str) -> "Begin":
        """The same for another space of the store."""
        return Begin(self.store, space)

    @contextmanager
    def __call__(
        self,
        *,
        write: bool = True,
        actor: Actor = NOBODY,
        space: str | None = None,
        **options: Any,
    ) -> Iterator[UnitOfWork]:
        where = self.space if space is None else space
        with unit_of_work(
            self.store, where, ids=random_id, write=write, actor=actor, **options
        ) as uow:
            yield uow


@pytest.fixture
def begin(store: Store, space: str) -> Begin:
    """Begins a unit of work in the test's own space."""
    return Begin(store, space)
