"""The laws of the registry: an engine is added by its own module and one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.sql_query import ask
from herdbook.adapters.sql_query.native_shell import open_native_shell, why_no_native_shell
from herdbook.adapters.stores import registry
from herdbook.adapters.stores.engine_spec import load
from herdbook.adapters.stores.probe import is_missing, probe
from herdbook.adapters.stores.urls import shown_url
from herdbook.adapters.workspace import Workspace
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import read, run


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The URL of a store of an engine that one line has added."""
    modules = (*registry.ENGINES, "tests.unit.adapters.toy_engine")
    monkeypatch.setattr(registry, "ENGINES", modules)
    return f"toy://{tmp_path / 'a.toy'}"


def test_an_engine_that_is_not_listed_is_not_there(tmp_path: Path) -> None:
    """Without its line, nothing knows of it."""
    with pytest.raises(InvalidValue, match="'toy' begins no store's URL"):
        open_store(f"toy://{tmp_path / 'a.toy'}")


def test_one_line_adds_an_engine_to_every_way_of_using_a_store(toy: str) -> None:
    """It is opened, probed, asked and shown by its URL."""
    assert is_missing(toy)
    assert probe(toy).exists is False
    with open_store(toy) as store:
        run(store, "work/toys", lambda uow: uow.tasks.add(Task(name="paint it")))
    assert not is_missing(toy)
    assert probe(toy).bytes == 0
    with open_store(toy, create=False) as store:
        tasks = read(store, "work/toys", lambda uow: uow.tasks.by_status("pending"))
        assert [task.name for task in tasks] == ["paint it"]
        assert ask(store, "SELECT name FROM tasks").rows == [("paint it",)]
    assert shown_url(toy) == toy
    with open_native_shell(toy, write=False) as program:
        assert program is None
    assert why_no_native_shell(toy) == "cannot be had: a store at toy:// has no SQL of its own"
    with pytest.raises(InvalidValue, match="postgres://, toy://"):
        open_store("puppet:///x")


@pytest.mark.parametrize("setting", ["backend", "work"])
def test_one_line_adds_an_engine_to_the_settings(toy: str, setting: str, tmp_path: Path) -> None:
    """Both as the backend and by its URL, and its stores are known as this user's own."""
    home, config = tmp_path / "home", tmp_path / "config"
    (config / "herdbook").mkdir(parents=True)
    value = "toy" if setting == "backend" else toy
    (config / "herdbook" / "config.toml").write_text(f'{setting} = "{value}"\n')
    variables = {"HOME": str(home), "XDG_CONFIG_HOME": str(config)}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, variables[name])
        for name in ("XDG_STATE_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(tmp_path / name))
        here = Workspace(tmp_path, {**os.environ})
        place = here.locate(Area.WORK)
        assert place.scheme == "toy"
        assert not here.store_exists(place)
        with here.open_store(place, create=True) as store:
            assert store.url == place.url
        assert here.store_exists(place)
        assert here.probe(place).exists


def test_every_name_in_a_spec_leads_somewhere() -> None:
    """A misspelt one would be noticed only by who first uses it."""
    for spec in registry.specs():
        for name in (spec.store, spec.probe, spec.is_missing, spec.query, spec.native_shell):
            assert not name or callable(load(name))


def test_reading_the_specs_loads_no_engine_and_no_driver() -> None:
    """Every command reads them when it starts."""
    script = (
        "import sys\nfrom herdbook.adapters.stores.registry import specs\nspecs()\n"
        "print(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    modules = set(ended.stdout.decode().split())
    engines = ("lmdb", "duckdb", "postgres", "memory")
    assert {f"herdbook.adapters.{name}.spec" for name in engines} <= modules
    assert not modules & {"lmdb", "duckdb", "psycopg", "attr", "attrs", "urllib.parse"}
    assert not modules & {f"herdbook.adapters.{name}.store" for name in engines}
    assert "herdbook.ports.engine.dictionary" not in modules
