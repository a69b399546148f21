"""A backup that somebody has made or changed is refused in words, and writes nothing anywhere."""

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.user_state import backup_files
from herdbook.adapters.user_state.backup_files import SUFFIX, BackupFolder
from herdbook.domain.entity import evolve
from herdbook.domain.errors import BackupDamaged, HerdbookError, StoreTooNew
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import DICTIONARY, HEADS, TASKS, VERSION
from herdbook.ports.engine.digests import Digester
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.run import run
from herdbook.services.backups.chains import BackupChain, find_chains
from herdbook.services.backups.line_format import BackupHeader, LineWriter
from herdbook.services.backups.restore import assemble
from herdbook.services.backups.write_backup import write_copy, write_segment
from tests.cases import for_each

SPACE = "work/here"
Lines = list[bytes]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> BackupFolder:
    """A copy of one task, and a segment with another."""
    files = BackupFolder(tmp_path_factory.mktemp("backups") / "space")
    with open_store("memory://") as store:
        run(store, SPACE, lambda uow: uow.tasks.add(Task(name="one")))
        write_copy(store, SPACE, files)
        run(store, SPACE, lambda uow: uow.tasks.add(Task(name="two")))
        write_segment(store, SPACE, files)
    return files


@pytest.fixture
def changed(tmp_path: Path) -> BackupFolder:
    """Where changed files are put."""
    folder = tmp_path / "changed"
    folder.mkdir()
    return BackupFolder(folder)


def put(files: BackupFolder, name: str, data: bytes) -> None:
    """Write the bytes of a file as they are."""
    (files.folder / f"{name}{SUFFIX}").write_bytes(data)


def data_of(files: BackupFolder, name: str) -> bytes:
    """The bytes of a file."""
    return (files.folder / f"{name}{SUFFIX}").read_bytes()


def restore_all(files: BackupFolder) -> list[str]:
    """Put together whatever chain there is; the spaces of the scratch store at the end."""
    with open_store("memory://") as scratch:
        chains = find_chains(files)
        for chain in chains:
            assemble(chain, files, scratch)
        if not chains:
            raise BackupDamaged(files.place(""), "nothing in it has a header")
        return scratch.spaces()


def test_a_file_cut_off_anywhere_is_refused(original: BackupFolder, changed: BackupFolder) -> None:
    """At every byte, be it a copy or a segment: nothing that is left of it counts."""
    copy, segment = original.names()
    whole = data_of(original, copy)
    for length in range(len(whole)):
        put(changed, copy, whole[:length])
        with pytest.raises(BackupDamaged, match="not a whole backup|nothing in it"):
            restore_all(changed)
    put(changed, copy, whole)
    assert restore_all(changed) == [SPACE]
    later = data_of(original, segment)
    (chain,) = find_chains(original)
    for length in range(len(later)):
        put(changed, segment, later[:length])
        with open_store("memory://") as scratch, pytest.raises(BackupDamaged):
            assemble(chain, changed, scratch)


def test_a_file_with_any_byte_changed_is_refused(
    original: BackupFolder, changed: BackupFolder
) -> None:
    """But for the few that say nothing (gzip's header, its padding), none goes unnoticed."""
    copy, _ = original.names()
    whole = data_of(original, copy)
    chance = random.Random(5)
    before = everything(original, copy)
    harmless = 0
    for at in range(len(whole)):
        harmed = bytearray(whole)
        harmed[at] ^= chance.randrange(1, 256)
        put(changed, copy, bytes(harmed))
        try:
            if list(changed.read(copy)) == before:
                harmless += 1
                continue
            restore_all(changed)
        except BackupDamaged:
            continue
        pytest.fail(f"byte {at} was changed and the file restored")
    assert harmless <= 12


def everything(files: BackupFolder, name: str) -> Lines:
    """The lines of a file."""
    return list(files.read(name))


def rewrite(
    lines: Lines, change: Callable[[Lines], object], *, fits: bool = False, **about: Any
) -> Lines:
    """Change the lines between the first and the last, and give the file the digest that fits.

    With `fits` the digest of the content fits too. The header says what is given `about` it.
    """
    header = {**json.loads(lines[0]), **about}
    header.pop("herdbook")
    header.pop("format")
    rows = lines[1:-1]
    change(rows)
    writer = LineWriter(BackupHeader(**header))
    made = [writer.first_line()]
    for line in rows:
        writer.rows += 1
        made.append(writer._count(line))
    end = json.loads(writer.last_line())
    end["end"]["kinds"] = json.loads(lines[-1])["end"]["kinds"]
    if fits:
        digester = Digester()
        for line in rows:
            name, text = line[2:-1].split(b'",', 1)
            digester.add(DICTIONARY.kinds[name.decode()], text)
        end["end"]["kinds"] = digester.result().kinds
    return [*made, json.dumps(end, separators=(",", ":")).encode()]


def test_rows_that_the_journal_does_not_know_are_refused(
    original: BackupFolder, changed: BackupFolder
) -> None:
    """Where every digest was made to fit, what `check` finds is what refuses it."""
    copy, _ = original.names()
    with open_store("memory://") as store:
        run(store, SPACE, lambda uow: uow.tasks.add(Task(name="one")))
        with store.transaction(SPACE, write=True) as session:
            (task,) = session.select(find(TASKS))
            session.replace(TASKS, [evolve(task, name="another")])
            session.commit()
        write_copy(store, SPACE, changed)
    with pytest.raises(BackupDamaged, match="1 flaws.*its name is not what the journal says"):
        restore_all(changed)
    assert copy not in changed.names()


def replace_in(kind: str, **values: Any) -> Callable[[Lines], None]:
    """Change fields of the rows of a kind."""

    def change(rows: Lines) -> None:
        for at, line in enumerate(rows):
            name, row = json.loads(line)
            if name == kind:
                rows[at] = json.dumps([name, {**row, **values}], separators=(",", ":")).encode()

    return change


DEEP = b'["tasks",' + b'{"description":' * 100_000 + b"1" + b"}" * 100_000 + b"]"
CHANGES: dict[str, Callable[[Lines], object]] = {
    "a row of a kind that nobody knows": lambda rows: rows.insert(0, b'["cows",{"id":"x"}]'),
    "a field that nobody knows": replace_in("tasks", colour="red"),
    "a value of another type": replace_in("tasks", name=["not", "text"]),
    "a status that is none": replace_in("tasks", status="grazing"),
    "a number beyond 64 bits": replace_in("tasks", order=2**64),
    "a number of five thousand digits": lambda rows: rows.insert(
        0, b'["tasks",{"order":' + b"9" * 5_000 + b"}]"
    ),
    "a time that is none": replace_in("tasks", created_at="yesterday"),
    "a missing field": lambda rows: rows.insert(0, b'["tasks",{"id":"tsk_x"}]'),
    "nested without end": lambda rows: rows.insert(0, DEEP),
    "a row twice": lambda rows: rows.insert(0, rows[0]),
    "a row less": lambda rows: rows.pop(0),
    "no head": lambda rows: rows.__delitem__(slice(-1, None)),
    "text that is no JSON": lambda rows: rows.insert(0, b'["tasks",{]'),
    "a line that is no row": lambda rows: rows.insert(0, b"{}"),
    "a key alone": lambda rows: rows.insert(0, b'["tasks","tsk_x"]'),
    "another name": replace_in("tasks", name="another"),
    "another journal": replace_in("journal", key="tsk_other"),
}


@for_each("what", CHANGES)
def test_a_file_that_was_rewritten_is_refused(
    what: str, original: BackupFolder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also where its own digest was made to fit: by its content's, by the rules or by `check`."""
    copy, _ = original.names()
    files = BackupFolder(tmp_path_factory.mktemp("rewritten"))
    lines = rewrite(everything(original, copy), CHANGES[what])
    put(files, copy, gzip.compress(b"".join(line + b"\n" for line in lines)))
    with pytest.raises(BackupDamaged) as refusal:
        restore_all(files)
    assert "Traceback" not in str(refusal.value)
    assert str(refusal.value).startswith(files.place(copy))


HEADERS: dict[str, dict[str, Any]] = {
    "no space": {"space": "../../etc"},
    "another type": {"type": "everything"},
    "a clock that is none": {"clock": "noon"},
    "a number that is none": {"seq": "12"},
    "a time without a zone": {"taken_at": "2026-01-01T00:00:00"},
    "a field too many": {"path": "/etc/passwd"},
    "another format": {"format": 2},
    "another program": {"herdbook": "store"},
    "a list": {"store": ["x"]},
}


@for_each("what", HEADERS)
def test_a_header_that_no_backup_has_is_refused(
    what: str, original: BackupFolder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing that it names is opened."""
    copy, _ = original.names()
    lines = everything(original, copy)
    lines[0] = json.dumps({**json.loads(lines[0]), **HEADERS[what]}).encode()
    files = BackupFolder(tmp_path_factory.mktemp("header"))
    put(files, copy, gzip.compress(b"".join(line + b"\n" for line in lines)))
    with pytest.raises(BackupDamaged):
        restore_all(files)


def test_a_file_of_a_newer_program_is_left_to_it(
    original: BackupFolder, changed: BackupFolder
) -> None:
    """It is not called damaged."""
    copy, _ = original.names()
    lines = everything(original, copy)
    header = {**json.loads(lines[0]), "schema_version": 999}
    lines[0] = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    put(changed, copy, gzip.compress(b"".join(line + b"\n" for line in lines)))
    with pytest.raises(StoreTooNew):
        restore_all(changed)


def test_a_file_of_an_older_program_is_upgraded(
    original: BackupFolder, changed: BackupFolder
) -> None:
    """Fields that did not exist have their defaults, and the space says its version of now."""

    def age(rows: Lines) -> None:
        for at, line in enumerate(rows):
            name, row = json.loads(line)
            row = {key: value for key, value in row.items() if key not in ("pruned_to", "fence")}
            row |= {"schema_version": 4, "oldest_writer": 4} if name == HEADS.name else {}
            text = json.dumps([name, row], separators=(",", ":"), sort_keys=True)
            rows[at] = text.encode()

    copy, _ = original.names()
    lines = rewrite(everything(original, copy), age, fits=True, schema_version=4)
    put(changed, copy, gzip.compress(b"".join(line + b"\n" for line in lines)))
    (chain,) = find_chains(changed)
    with open_store("memory://") as scratch:
        assemble(chain, changed, scratch)
        with scratch.transaction(SPACE, write=False) as session:
            assert session.head is not None
            assert session.head.schema_version == VERSION
            (task,) = session.select(find(TASKS))
            assert (task.name, task.fence) == ("one", 0)


def test_a_line_without_end_is_not_read_into_memory(
    original: BackupFolder, changed: BackupFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes that unpack to any number of them end at the longest line there may be."""
    monkeypatch.setattr(backup_files, "LONGEST_LINE", 2**20)
    copy, _ = original.names()
    first = everything(original, copy)[0]
    put(changed, copy, gzip.compress(first + b'\n["tasks",{"id":"' + b"x" * 2**26))
    with pytest.raises(BackupDamaged, match="too long"):
        restore_all(changed)


def test_what_is_no_file_is_not_waited_for(changed: BackupFolder, original: BackupFolder) -> None:
    """A named pipe in the place of a file is refused at once."""
    copy, _ = original.names()
    os.mkfifo(changed.folder / f"{copy}{SUFFIX}")
    with pytest.raises(BackupDamaged, match="no file"):
        list(changed.read(copy))


def test_a_chain_that_lacks_a_file_is_no_chain(
    original: BackupFolder, changed: BackupFolder
) -> None:
    """A segment without its copy restores nothing."""
    _, segment = original.names()
    put(changed, segment, data_of(original, segment))
    assert find_chains(changed) == []
    (chain,) = find_chains(original)
    lonely = BackupChain(chain.names[1:], chain.headers[1:])
    with open_store("memory://") as scratch, pytest.raises(HerdbookError):
        assemble(lonely, original, scratch)
