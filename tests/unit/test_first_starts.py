"""Which commands of the tests CI leaves to the installed program: the first of each kind."""

from pathlib import Path

from tests.e2e.first_starts import FirstStarts


def test_a_command_of_the_same_kind_is_first_once(tmp_path: Path) -> None:
    """What it is given makes no difference; its operation, options and engine do."""
    firsts = FirstStarts(tmp_path / "started")
    assert firsts.is_first(("task", "add", "one", "--phase=a", "--json"), "")
    assert not firsts.is_first(("task", "add", "two", "--json", "--phase=b"), "")
    assert firsts.is_first(("task", "add", "two", "--json"), "")
    assert firsts.is_first(("task", "list", "--json"), "")
    assert firsts.is_first(("task", "add", "two", "--json"), "duckdb")


def test_words_behind_the_operation_are_no_part_of_its_kind(tmp_path: Path) -> None:
    """Ids are new in each test, and would make every command a first one."""
    firsts = FirstStarts(tmp_path / "started")
    assert firsts.is_first(("done", "tsk_1"), "")
    assert not firsts.is_first(("done", "tsk_2"), "")


def test_workers_of_one_run_share_what_was_started(tmp_path: Path) -> None:
    """Each kind is cold once in a run, whichever worker has it first."""
    one, other = FirstStarts(tmp_path / "started"), FirstStarts(tmp_path / "started")
    assert one.is_first(("where",), "lmdb")
    assert not other.is_first(("where",), "lmdb")
