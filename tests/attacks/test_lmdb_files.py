"""A cloned repository reaches no file outside itself through the files of an LMDB store in it.

Committed links in the place of a store's files, dangling or not, and files that would end the
process: with real git, and whether Herdbook finds the store by itself or is told to use it.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.attacks.conftest import Person
from tests.e2e.warm_program import WarmProgram

FILES = ("data.mdb", "lock.mdb", "herdbook.json", "writer.lock", "writer.turn", "owner")
COMMANDS = (("status",), ("task", "list"), ("task", "add", "mine"), ("check",))
KEYS = "ssh-ed25519 AAAA somebody@example.com\n" * 40
ALIVE = range(100)
"""How a program ends that was not ended by a signal."""

Victim = dict[str, object]


def seen(path: Path) -> Victim:
    """All that could change about a file, or that it is not there."""
    if not path.exists():
        return {"exists": False}
    status = path.stat()
    return {"content": path.read_bytes(), "time": status.st_mtime_ns, "links": status.st_nlink}


@pytest.fixture
def store(tmp_path: Path, warm: WarmProgram | None) -> Path:
    """The folder of a store that an attacker has filled."""
    attacker = Person(tmp_path / "attacker-home", warm)
    attacker.home.mkdir()
    work = attacker.repository(tmp_path / "attacker")
    attacker.runs(work, "task", "add", "run this", "--store", "store.lmdb")
    (folder,) = (each.parent for each in work.rglob("data.mdb"))
    return folder


@pytest.fixture
def victim(person: Person) -> Path:
    """A file of this person, outside of any repository."""
    path = person.home / ".ssh" / "authorized_keys"
    path.parent.mkdir()
    path.write_text(KEYS)
    return path


def cloned(person: Person, tmp_path: Path, store: Path, name: str, target: Path) -> Path:
    """A clone of a repository whose store has a link in the place of one of its files."""
    evil = person.repository(tmp_path / "evil", origin="https://example.com/team/evil.git")
    for place in (".herdbook/work.lmdb", ".herdbook/record.lmdb", "store.lmdb"):
        folder = evil / place
        folder.parent.mkdir(exist_ok=True)
        shutil.copytree(store, folder)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
    person.git(evil, "add", "--force", "--all")
    person.git(evil, "commit", "--quiet", "--message=work")
    person.git(tmp_path, "clone", "--quiet", str(evil), "clone")
    clone = tmp_path / "clone"
    link = clone / "store.lmdb" / name
    assert link.is_symlink()
    assert os.readlink(link) == str(target)  # noqa: PTH115 - what git has put there, as it is
    return clone


@pytest.mark.parametrize("name", FILES)
def test_a_committed_link_leads_nowhere(
    name: str, person: Person, store: Path, victim: Path, tmp_path: Path
) -> None:
    """No command overwrites the file it points to, or reads it as a part of a store."""
    refuses_link(person, cloned(person, tmp_path, store, name, victim), name, victim)


@pytest.mark.parametrize("name", FILES)
def test_a_committed_link_to_nothing_makes_nothing(
    name: str, person: Person, store: Path, victim: Path, tmp_path: Path
) -> None:
    """No command makes a file in the place that it points to."""
    victim.unlink()
    refuses_link(person, cloned(person, tmp_path, store, name, victim), name, victim)


def refuses_link(person: Person, clone: Path, name: str, victim: Path) -> None:
    """Every command leaves the victim alone, also where the person trusts the store by name."""
    before = seen(victim)
    for trusted in (False, True):
        if trusted:
            told = person.tries(clone, "trust", "store.lmdb")
            if told.returncode == 3 and "there is no store" in told.stderr:
                return  # its data leads nowhere: nothing to trust
            assert told.returncode == 0, told
        for words in COMMANDS:
            for place in ((), ("--store", "store.lmdb")):
                told = person.tries(clone, *words, *place)
                assert seen(victim) == before, (words, place)
                assert told.returncode in ALIVE, told
                assert "internal error" not in told.stderr
                if place:
                    assert told.returncode == 5, told
                    assert "was not opened" in told.stderr or trusted
                    assert not trusted or (name in told.stderr), told
                    assert not trusted or "Nothing was opened" in told.stderr


def test_another_store_is_not_written_past_its_lock(
    person: Person, tmp_path: Path, store: Path
) -> None:
    """A link to the data of the person's own store: it would be written under the clone's lock."""
    own = person.repository(tmp_path / "own")
    person.runs(own, "task", "add", "private", "--store", "own.lmdb")
    data = own / "own.lmdb" / "data.mdb"
    before = seen(data)
    clone = cloned(person, tmp_path, store, "data.mdb", data)
    for words in COMMANDS:
        told = person.tries(clone, *words, "--store", "store.lmdb")
        assert "private" not in told.stdout
        assert seen(data) == before, words


@pytest.mark.parametrize("name", FILES)
def test_a_hard_link_is_refused(
    name: str, person: Person, tmp_path: Path, store: Path, victim: Path
) -> None:
    """Git makes none, but an archive that is unpacked does."""
    folder = tmp_path / "unpacked" / "store.lmdb"
    shutil.copytree(store, folder)
    (folder / name).unlink(missing_ok=True)
    (folder / name).hardlink_to(victim)
    before = seen(victim)
    for words in (("task", "list"), ("task", "add", "mine")):
        told = person.tries(folder.parent, *words, "--store", str(folder))
        assert told.returncode == 5, told
        assert "second name" in told.stderr
        assert seen(victim) == before


def test_a_pipe_stops_nobody(person: Person, tmp_path: Path, store: Path) -> None:
    """To open one for reading would wait until somebody writes."""
    folder = tmp_path / "unpacked" / "store.lmdb"
    shutil.copytree(store, folder)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        told = person.tries(folder.parent, "task", "list", "--store", str(folder))
        assert told.returncode == 5, told
        (folder / name).unlink()
        shutil.rmtree(folder)
        shutil.copytree(store, folder)


def test_a_crafted_file_ends_no_command(person: Person, tmp_path: Path, store: Path) -> None:
    """Flipped bytes in the pages of a store that came from elsewhere are told, not believed."""
    folder = tmp_path / "unpacked" / "store.lmdb"
    shutil.copytree(store, folder)
    whole = (store / "data.mdb").read_bytes()
    pages = [at for at in range(8_192, len(whole), 4_096) if any(whole[at : at + 4_096])]
    for number, page in enumerate(pages[::4]):
        bad = bytearray(whole)
        bad[page + 10] ^= 0xFF  # what kind of page it is
        bad[page + 12 + 2 * (number % 3)] ^= 0x5A  # and where what is in it begins and ends
        (folder / "data.mdb").write_bytes(bad)
        for words in (("task", "list"), ("check",), ("task", "add", "mine")):
            told = person.tries(folder.parent, *words, "--store", str(folder))
            assert told.returncode in ALIVE, (page, words, told)
            assert "internal error" not in told.stderr
