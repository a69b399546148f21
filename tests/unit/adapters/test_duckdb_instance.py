"""A DuckDB in memory opens the files that it was given, and no others."""

from pathlib import Path

import duckdb
import pytest

from herdbook.adapters.duckdb.instance import open_instance
from tests.cases import for_each

LARGE = """
SELECT max(k) FROM (SELECT hash(i) k, repeat('x', 200) || i v FROM range(400000) r(i) ORDER BY v)
"""


def test_it_attaches_what_it_was_given_and_nothing_else(tmp_path: Path) -> None:
    """Also a name with quotes in it; what is not on the list is neither opened nor made."""
    mine, other = tmp_path / "it's mine.duckdb", tmp_path / "other.duckdb"
    logs = [f"{mine}{suffix}" for suffix in (".wal", ".wal.checkpoint", ".wal.recovery")]
    with open_instance([str(mine), *logs]) as instance:
        quoted = str(mine).replace("'", "''")
        instance.execute(f"ATTACH '{quoted}' AS mine (TYPE duckdb)")
        instance.execute("CREATE TABLE mine.main.t AS SELECT 1 AS a")
        instance.execute("CHECKPOINT mine")
        for statement in (
            f"ATTACH '{other}' AS other (TYPE duckdb)",
            f"COPY mine.main.t TO '{tmp_path / 'out.csv'}'",
            "SELECT * FROM read_text('/etc/passwd')",
            f"SELECT * FROM read_blob('{tmp_path}/*')",
        ):
            with pytest.raises(duckdb.PermissionException):
                instance.execute(statement)
    assert sorted(tmp_path.iterdir()) == [mine]


@for_each(
    "change",
    [
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/passwd']",
        "SET allowed_directories = ['/etc']",
        "SET temp_directory = '/tmp'",
        "SET lock_configuration = false",
        "SET allow_unsigned_extensions = true",
        "PRAGMA enable_checkpoint_on_shutdown",
    ],
)
def test_its_configuration_is_locked(change: str) -> None:
    """Nothing that runs in it opens it up again."""
    with open_instance([]) as instance, pytest.raises(duckdb.Error):
        instance.execute(change)


@for_each("extension", ["httpfs", "sqlite_scanner", "spatial", "/tmp/x"])  # noqa: S108
def test_it_loads_no_extension(extension: str) -> None:
    """What is not built in is neither fetched nor loaded."""
    with open_instance([]) as instance:
        for verb in ("INSTALL", "LOAD", "FORCE INSTALL"):
            with pytest.raises(duckdb.Error):
                instance.execute(f"{verb} '{extension}'")


def test_what_does_not_fit_into_memory_goes_into_the_folder_for_it(tmp_path: Path) -> None:
    """That folder is reached although no other is, and without one the memory is the limit."""
    small = {"memory_limit": "40MB"}
    with open_instance([], spill=str(tmp_path / "spill"), settings=small) as instance:
        assert instance.execute(LARGE).fetchone() is not None
    with (
        open_instance([], settings=small) as instance,
        pytest.raises(duckdb.OutOfMemoryException),
    ):
        instance.execute(LARGE)
