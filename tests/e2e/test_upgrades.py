"""A store that an older program wrote is upgraded by the first command that opens it."""

import gzip
import json
from pathlib import Path

import pytest

from herdbook.ports.engine.dictionary import VERSION
from tests.contract import raw
from tests.e2e.conftest import ROOT, Person

OLD_STORES = ROOT / "tests/contract/old_stores"
OLDEST = 1


def unpack(engine: str, folder: Path, postgres_url: str) -> str:
    """A copy of the oldest store of an engine; its URL."""
    content = gzip.decompress((OLD_STORES / f"v{OLDEST}.{engine}.gz").read_bytes())
    if engine == "postgres":
        schema = postgres_url.rpartition("schema=")[2]
        with raw.postgres(postgres_url) as server:
            server.execute(content.decode().replace("herdbook_old", schema))
        return postgres_url
    folder.mkdir(mode=0o700)
    file = folder / ("data.mdb" if engine == "lmdb" else "old.duckdb")
    file.write_bytes(content)
    file.chmod(0o600)
    return f"{engine}://{folder if engine == 'lmdb' else file}"


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_the_first_command_upgrades_a_store_of_the_first_version(
    person: Person, app: Path, tmp_path: Path, engine: str, postgres_url: str
) -> None:
    """Its tasks are all there, new ones can be added and claimed, and it is found whole."""
    url = unpack(engine, tmp_path / "old", postgres_url)
    rows = json.loads(gzip.decompress((OLD_STORES / f"v{OLDEST}.{engine}.rows.gz").read_bytes()))
    old = sorted(each["name"] for each in rows["spaces"]["work/old"]["tasks"])
    assert old
    asked = {"HERDBOOK_WORK": url}
    # `where` reads nothing of an LMDB file from elsewhere, whose pages nobody has verified yet.
    assert schema(person, app, asked) == (None if engine == "lmdb" else OLDEST)
    person.runs(app, "task", "add", "after the upgrade", **asked)
    assert schema(person, app, asked) == VERSION
    told = person.asks(app, "sql", "SELECT name FROM tasks ORDER BY name", **asked)["rows"]
    assert [name for (name,) in told] == sorted([*old, "after the upgrade"])
    person.runs(app, "agent", "add", "brisk-otter", **asked)
    claimed = person.asks(app, "claim", "--agent", "brisk-otter", **asked)
    assert claimed["task"]["name"] == "after the upgrade"
    person.runs(app, "check", **asked)


def schema(person: Person, app: Path, asked: dict[str, str]) -> int | None:
    """The version of the work store as `where` tells it, which opens nothing."""
    found: int | None = person.asks(app, "where", **asked)["areas"]["work"].get("schema_version")
    return found
