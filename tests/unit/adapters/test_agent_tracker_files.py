"""Reading an agent-tracker's file: what it tells, and that no damage makes the reader run away."""

import os
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from herdbook.adapters.agent_tracker import locate, reader
from herdbook.adapters.agent_tracker.reader import read
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.ports.world.agent_tracker import TrackedKind, TrackerContents

FIXTURES = Path(__file__).parents[2] / "fixtures" / "agent-tracker"
TRACKER, FIRST, WORDED = (FIXTURES / f"{name}.lmdb" for name in ("tracker", "first", "dictionary"))
WORDS = FIXTURES / "words.txt"
PAGE = 4096


def _count(tracker: TrackerContents, kind: TrackedKind) -> int:
    return sum(each.kind is kind for each in tracker.records)


def _newest(data: bytes) -> tuple[int, int]:
    """The place of the newest meta, and the number of the page on which the main tree begins."""
    places = (0, PAGE)
    at = max(places, key=lambda place: struct.unpack_from("<Q", data, place + 152)[0])
    return at, struct.unpack_from("<Q", data, at + 96 + 40)[0]


def _root_of(data: bytes, page: int, name: bytes) -> int:
    """The place of the number of the page on which a database's tree begins."""
    return data.index(name + b"\0", page * PAGE) + len(name) + 1 + 40


@pytest.fixture
def harmed(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "harmed.lmdb"
        path.write_bytes(data)
        return path

    return write


Harmed = Callable[[bytes], Path]


def test_every_record_of_every_database_is_told() -> None:
    """Over several pages of a tree; databases that are not for the record are left alone."""
    found = read(TRACKER)
    assert {kind: _count(found, kind) for kind in TrackedKind} == {
        TrackedKind.AGENT: 2,
        TrackedKind.COMMIT: 200,
        TrackedKind.COMMUNICATION: 4,
        TrackedKind.RETROSPECTIVE: 1,
        TrackedKind.ACTIVITY: 2,
    }
    otter = next(each for each in found.records if each.key == "agt-1")
    assert otter.fields["name"] == "brisk-otter"
    assert otter.fields["updated_at"] == datetime(2026, 1, 2, 3, 50, 0, 250_000, tzinfo=UTC)


def test_a_value_that_is_no_record_is_told_by_its_key() -> None:
    """The others are read all the same."""
    ((kind, key, reason),) = read(TRACKER).failures
    assert (kind, key, reason) == (TrackedKind.AGENT, "agt-3", "it is no record")


def test_the_first_layout_is_understood() -> None:
    """Its records lie at the top and tell their kinds by prefixes; others are left alone."""
    found = read(FIRST)
    assert [(each.kind, each.key.partition(":")[0]) for each in found.records] == [
        (TrackedKind.AGENT, "agt-1"),
        (TrackedKind.COMMIT, "/src/our/shop"),
        (TrackedKind.COMMUNICATION, "agt-1"),
    ]
    assert found.failures == ()


def test_long_values_are_expanded_with_their_word_list() -> None:
    """Also one that lies on pages of its own."""
    found = read(WORDED, WORDS.read_bytes())
    short, long = (each.fields for each in found.records)
    words = WORDS.read_text().split()
    assert short["task"] == " ".join(words[20:70])
    assert long["actions"] == " ".join(words)
    assert len(long["task"].split()) == 2000
    assert found.failures == ()


def test_a_long_value_without_its_word_list_is_told_by_its_key() -> None:
    """With the name of the file that is missing."""
    found = read(WORDED)
    assert found.records == ()
    assert [each.key[-25:] for each in found.failures] == [
        ":2026-01-02T03:01:00.250Z",
        ":2026-01-02T03:02:00.250Z",
    ]
    assert all("dict/dict.txt" in each.reason for each in found.failures)


def test_a_folder_is_read_by_its_data_file(tmp_path: Path) -> None:
    """LMDB keeps a database in a folder unless told otherwise."""
    (tmp_path / "data.mdb").write_bytes(FIRST.read_bytes())
    assert read(tmp_path) == read(FIRST)


def test_reading_changes_nothing(tmp_path: Path) -> None:
    """No lock file, no other time of change, not a byte."""
    path = tmp_path / "tracker.lmdb"
    path.write_bytes(TRACKER.read_bytes())
    before = path.stat().st_mtime_ns
    read(path)
    assert [each.name for each in tmp_path.iterdir()] == ["tracker.lmdb"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (TRACKER.read_bytes(), before)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Nothing there, a pipe that nobody writes into, an empty file."""
    pipe, empty = tmp_path / "pipe", tmp_path / "empty"
    os.mkfifo(pipe)
    empty.touch()
    with pytest.raises(StoreUnavailable):
        read(tmp_path / "nothing")
    with pytest.raises(InvalidValue, match="is no file"):
        read(pipe)
    with pytest.raises(InvalidValue, match="is empty"):
        read(empty)


def test_a_file_of_something_else_is_refused(harmed: Harmed) -> None:
    """By its first bytes, or by its format."""
    with pytest.raises(InvalidValue, match="does not begin as LMDB's files do"):
        read(harmed(b"SQLite format 3\0" * 1000))
    data = bytearray(TRACKER.read_bytes())
    for place in (0, PAGE):
        struct.pack_into("<I", data, place + 28, 1)
    with pytest.raises(InvalidValue, match="data format 1"):
        read(harmed(bytes(data)))


def test_a_torn_first_page_leaves_the_state_of_the_other(harmed: Harmed) -> None:
    """Whichever of the two it is, there is a whole state to read."""
    for place in (0, PAGE):
        data = bytearray(TRACKER.read_bytes())
        data[place : place + 60] = bytes(60)
        assert _count(read(harmed(bytes(data))), TrackedKind.COMMIT) > 0


def test_a_file_that_is_cut_off_is_refused(harmed: Harmed) -> None:
    """At any page that is in use, and within the first ones."""
    data = WORDED.read_bytes()
    for size in (1, 100, PAGE + 50, 2 * PAGE, len(data) - 2 * PAGE):
        with pytest.raises(InvalidValue, match="cannot be read"):
            read(harmed(data[:size]))


def test_pages_that_lead_to_each_other_are_refused(harmed: Harmed) -> None:
    """A tree within itself, two databases in one tree, and a page that leads to itself."""
    whole = TRACKER.read_bytes()
    _, root = _newest(whole)
    place = {name: _root_of(whole, root, name) for name in (b"agents", b"commits")}
    (top,) = struct.unpack_from("<Q", whole, place[b"commits"])
    (first,) = struct.unpack_from("<H", whole, top * PAGE + 24)
    (agents,) = struct.unpack_from("<Q", whole, place[b"agents"])
    for at, form, target in [
        (place[b"agents"], "<Q", root),
        (place[b"commits"], "<Q", agents),
        (top * PAGE + 24 + first, "<H", top),
    ]:
        data = bytearray(whole)
        struct.pack_into(form, data, at, target)
        with pytest.raises(InvalidValue, match=f"page {target} is used twice"):
            read(harmed(bytes(data)))


def test_a_page_that_claims_too_much_is_refused(harmed: Harmed) -> None:
    """More nodes than it has room for, a node outside it, and a page that is another one."""
    whole = TRACKER.read_bytes()
    _, root = _newest(whole)
    for place, value in [(20, 0xFFFE), (24, 0xFFF0), (0, 999), (18, 0x04)]:
        data = bytearray(whole)
        struct.pack_into("<H", data, root * PAGE + place, value)
        with pytest.raises(InvalidValue, match=f"page {root} "):
            read(harmed(bytes(data)))


def test_a_broken_value_holds_up_no_other(harmed: Harmed) -> None:
    """A length that runs over the end is told with the key of its record."""
    data = TRACKER.read_bytes()
    found = read(harmed(data.replace(b"\xabbrisk-otter", b"\xdbbrisk-otter")))
    assert [each.key for each in found.failures] == ["agt-1", "agt-3"]
    assert _count(found, TrackedKind.COMMIT) == 200


def test_any_flipped_bytes_are_told_or_refused(harmed: Harmed) -> None:
    """The reader comes to an end with an answer or an error of ours, whatever is in the file."""
    random = Random(5)
    refused = 0
    for source in (TRACKER, FIRST, WORDED):
        whole = source.read_bytes()
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(random.randrange(1, 30)):
                # Where numbers stand rather than texts: at the beginnings of pages.
                page = random.randrange(len(data) // PAGE) * PAGE
                data[page + random.choice((random.randrange(40), random.randrange(PAGE)))] = (
                    random.randrange(256)
                )
            try:
                read(harmed(bytes(data)), WORDS.read_bytes())
            except InvalidValue:
                refused += 1
    assert refused


def test_a_file_that_is_written_meanwhile_is_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A commit between the first byte and the last shows in the first pages, and is waited out."""
    path = tmp_path / "tracker.lmdb"
    path.write_bytes(FIRST.read_bytes())
    look = reader._meta_size
    states = [TRACKER.read_bytes()]

    def write_meanwhile(data: bytes) -> int:
        if states:
            path.write_bytes(states.pop())
        return look(data)

    monkeypatch.setattr(reader, "_meta_size", write_meanwhile)
    assert _count(read(path), TrackedKind.COMMIT) == 200


def test_databases_are_found_where_the_plugin_leaves_them(tmp_path: Path) -> None:
    """In the user's folder, and below a folder that is really called `~`."""
    project, home = tmp_path / "project", tmp_path / "home"
    assert locate.find_databases(project, home) == []
    places = [project / "~" / locate.DATABASE, home / locate.DATABASE]
    for place in places:
        place.parent.mkdir(parents=True)
        place.touch()
    assert locate.find_databases(project, home) == places


def test_a_word_list_near_the_database_counts_if_it_is_the_known_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another one would make other words of the same bytes."""
    database = tmp_path / "opencode" / "agent-tracker.lmdb"
    place = tmp_path / "opencode" / "packages" / "plugin" / locate.WORD_LIST
    place.parent.mkdir(parents=True)
    place.write_bytes(WORDS.read_bytes())
    assert locate.find_word_list(database, tmp_path) is None
    monkeypatch.setattr(locate, "KNOWN_WORDS", _digest(WORDS))
    assert locate.find_word_list(database, tmp_path) == WORDS.read_bytes()
    assert locate.read_word_list(WORDS) == WORDS.read_bytes()
    with pytest.raises(StoreUnavailable):
        locate.read_word_list(tmp_path / "nothing")


def _digest(path: Path) -> str:
    return locate.sha256(path.read_bytes()).hexdigest()
