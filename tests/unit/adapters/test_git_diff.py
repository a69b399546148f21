"""What changed between two commits, asked of real repositories."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from herdbook.adapters.git import diff
from herdbook.adapters.git.diff import CommitComparison
from herdbook.adapters.git.diff_parser import parse_changed_files, parse_patch
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.diff import ChangedFile, DiffChange, DiffLine, Hunk
from herdbook.domain.plan.model import LineType
from tests.unit.adapters.git_repositories import git, made, settle

NAMES = (
    'quo"te',
    "new\nline",
    "<script>alert(1)</script>",
    "\u202egpj.exe",
    "-p",
    ":(top)x",
    "a\\b",
)


def apply_hunks(old: Sequence[str], hunks: Iterable[Hunk]) -> list[str]:
    """The lines of the new text, each with its line feed if it has one, made from the old lines.

    Raises InvalidValue if the hunks are not in order, or do not fit the old lines.
    """
    new: list[str] = []
    at = 0
    for hunk in hunks:
        begin = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        if not at <= begin <= len(old):
            raise InvalidValue("hunks", f"line {hunk.old_start} is out of order")
        new += old[at:begin]
        at = begin
        for line in hunk.lines:
            text = line.text if line.is_open else f"{line.text}\n"
            if line.type is not LineType.ADDED:
                if at >= len(old) or old[at] != text:
                    raise InvalidValue("hunks", f"line {at + 1} is another one in the old text")
                at += 1
            if line.type is not LineType.REMOVED:
                new.append(text)
    return [*new, *old[at:]]


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A user of whom git knows nothing."""
    with pytest.MonkeyPatch.context() as patch:
        settle(patch, tmp_path_factory.mktemp("home"))
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made(tmp_path / "app")


def save(root: Path, files: dict[str, bytes | None]) -> str:
    """Commit these files, without those that are None; the hash."""
    for name, text in files.items():
        path = root / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "-m", "saved")
    return git(root, "rev-parse", "HEAD").strip()


def compare(root: Path, base: str, head: str) -> dict[str, ChangedFile]:
    found = CommitComparison(str(root), os.environ).changed_files(base, head)
    assert found.is_complete
    return {each.path: each for each in found.files}


def test_files_are_told_with_what_happened_to_them(root: Path) -> None:
    """Added, removed, modified, renamed with changes, and made executable; with their lines."""
    base = save(root, {"kept": b"1\n", "gone": b"1\n2\n", "was": b"a\nb\nc\nd\n", "run": b"x\n"})
    (root / "run").chmod(0o755)
    head = save(root, {"gone": None, "was": None, "is": b"a\nb\nc\nD\ne\n", "new": b"else\n"})
    found = compare(root, base, head)
    facts = {name: (each.change.value, each.added, each.removed) for name, each in found.items()}
    assert facts == {
        "gone": ("removed", 0, 2),
        "is": ("renamed", 2, 1),
        "new": ("added", 1, 0),
        "run": ("modified", 0, 0),
    }
    assert found["is"].old_path == "was"
    assert (found["run"].old_mode, found["run"].new_mode) == ("100644", "100755")


def test_lines_are_told_with_their_numbers_on_both_sides(root: Path) -> None:
    """Also where the file was renamed; an unended last line says so."""
    base = save(root, {"was": b"a\nb\nc\nd\n"})
    head = save(root, {"was": None, "is": b"a\nb\nC\nd"})
    comparison = CommitComparison(str(root), os.environ)
    (hunk,) = comparison.file_hunks(base, head, compare(root, base, head)["is"], 1).hunks
    assert hunk.lines == (
        DiffLine(LineType.CONTEXT, 2, 2, "b"),
        DiffLine(LineType.REMOVED, 3, None, "c"),
        DiffLine(LineType.REMOVED, 4, None, "d"),
        DiffLine(LineType.ADDED, None, 3, "C"),
        DiffLine(LineType.ADDED, None, 4, "d", is_open=True),
    )
    assert (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count) == (2, 3, 2, 3)


def test_names_are_names_whatever_they_look_like(root: Path) -> None:
    """Quotes, newlines, markup, directions, options, patterns, and bytes that are no UTF-8."""
    names = [*NAMES, os.fsdecode(b"\xff\xfe"), "deep/" + "x" * 200]
    base = save(root, dict.fromkeys(names, b"1\n"))
    head = save(root, dict.fromkeys(names, b"2\n"))
    found = compare(root, base, head)
    assert found.keys() == set(names)
    comparison = CommitComparison(str(root), os.environ)
    for name in names:
        (hunk,) = comparison.file_hunks(base, head, found[name], 3).hunks
        assert [line.text for line in hunk.lines] == ["1", "2"]
        assert comparison.file_lines(head, name) == ["2"]


def test_a_folder_in_the_place_of_a_file_is_not_mistaken_for_it(root: Path) -> None:
    """Git takes the name of a file for a folder too."""
    base = save(root, {"a": b"file\n"})
    (root / "a").unlink()
    head = save(root, {"a/b": b"1\n", "a/c": b"2\n"})
    found = compare(root, base, head)
    comparison = CommitComparison(str(root), os.environ)
    (hunk,) = comparison.file_hunks(base, head, found["a"], 3).hunks
    assert [line.text for line in hunk.lines] == ["file"]


def test_a_file_that_becomes_a_link_has_both_sides(root: Path) -> None:
    base = save(root, {"a": b"file\n"})
    (root / "a").unlink()
    (root / "a").symlink_to("elsewhere")
    head = save(root, {})
    file = compare(root, base, head)["a"]
    assert file.change is DiffChange.RETYPED
    told = CommitComparison(str(root), os.environ).file_hunks(base, head, file, 3)
    assert [line.text for hunk in told.hunks for line in hunk.lines] == ["file", "elsewhere"]


def test_binary_and_large_files_have_sizes_and_no_lines(root: Path) -> None:
    """Nothing is read of them."""
    large = b"line\n" * (diff.LARGEST // 5 + 1)
    base = save(root, {"bin": b"a\0b", "large": b"1\n"})
    head = save(root, {"bin": b"a\0bc", "large": large})
    found = compare(root, base, head)
    assert (found["bin"].added, found["bin"].old_size, found["bin"].new_size) == (None, 3, 4)
    assert (found["large"].added, found["large"].new_size) == (None, len(large))
    comparison = CommitComparison(str(root), os.environ)
    assert comparison.file_hunks(base, head, found["large"], 3).hunks == ()
    assert comparison.file_lines(head, "large") is None
    assert comparison.file_lines(head, "nothing") is None


def test_what_is_too_long_is_cut_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of files and the lines of one, each at its limit."""
    numbers = [str(each).encode() for each in range(3_000)]
    base = save(root, {f"f{each:03}": b"1\n" for each in range(300)} | {"long": b""})
    edited = {f"f{each:03}": b"2\n" for each in range(300)}
    head = save(root, edited | {"long": b"\n".join(numbers)})
    comparison = CommitComparison(str(root), os.environ)
    file = compare(root, base, head)["long"]
    monkeypatch.setattr(diff, "MOST_PATCH", 5_000)
    told = comparison.file_hunks(base, head, file, 3)
    assert not told.is_complete
    (hunk,) = told.hunks
    texts = [line.text.encode() for line in hunk.lines]
    assert 100 < len(texts) < 3_000
    assert texts == numbers[: len(texts)]
    monkeypatch.setattr(diff, "MOST_NAMES", 5_000)
    some = comparison.changed_files(base, head)
    assert not some.is_complete
    assert [each.path for each in some.files] == [f"f{n:03}" for n in range(len(some.files))]


def test_git_s_refusal_has_its_reason(root: Path) -> None:
    with pytest.raises(InvalidValue, match="bad object"):
        CommitComparison(str(root), os.environ).changed_files("1" * 40, "HEAD")


LINES = st.lists(
    st.sampled_from([b"", b"a", b"b", b"--- a", b"+++ b", b"@@ -1 +1 @@", b"\\ No", b"\r", b"\xff"])
    | st.binary(max_size=6).map(lambda text: text.replace(b"\n", b"").replace(b"\0", b"")),
    max_size=12,
)
TEXTS = st.tuples(LINES, st.booleans()).map(
    lambda made: b"\n".join(made[0]) + (b"\n" if made[1] and made[0] else b"")
)


@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8), context=st.integers(0, 4))
@example(pairs=[(b"a\nb", b"a\nb\n"), (b"", b"\n"), (b"x\n", b"")], context=0)
@settings(max_examples=25, deadline=None)
def test_the_hunks_make_the_new_text_of_the_old_one(
    pairs: list[tuple[bytes, bytes]], context: int
) -> None:
    """For any two texts, as real git tells their difference."""
    folder = Path(tempfile.mkdtemp())
    try:
        root = made(folder / "app")
        base = save(root, {f"file{n}": old for n, (old, _) in enumerate(pairs)})
        head = save(root, {f"file{n}": new for n, (_, new) in enumerate(pairs)})
        found = compare(root, base, head)
        comparison = CommitComparison(str(root), os.environ)
        for number, (old, new) in enumerate(pairs):
            file = found.get(f"file{number}")
            assert (file is None) == (old == new)
            if file is None or file.added is None:
                continue
            told = comparison.file_hunks(base, head, file, context)
            made_new = apply_hunks(_lines(old), told.hunks)
            assert "".join(made_new) == _text(new)
            kinds = [line.type for hunk in told.hunks for line in hunk.lines]
            assert kinds.count(LineType.ADDED) == file.added
            assert kinds.count(LineType.REMOVED) == file.removed
    finally:
        shutil.rmtree(folder)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _lines(data: bytes) -> list[str]:
    return [each for each in _text(data).replace("\n", "\n\0").split("\0") if each]


@given(st.binary(max_size=400) | st.text("@+- \\,0123\ndiff git index.\0\tMR:", max_size=400))
def test_nothing_that_git_could_print_breaks_the_parser(output: bytes | str) -> None:
    """It tells what it understands, and raises ValueError at worst for what git never prints."""
    data = output if isinstance(output, bytes) else output.encode()
    parse_patch(data)
    try:
        parse_changed_files(data)
    except ValueError:
        assert b":" in data or b"\0" in data


def test_hunks_that_do_not_fit_are_refused(root: Path) -> None:
    base = save(root, {"a": b"1\n2\n3\n"})
    head = save(root, {"a": b"1\nx\n3\n"})
    comparison = CommitComparison(str(root), os.environ)
    hunks = comparison.file_hunks(base, head, compare(root, base, head)["a"], 1).hunks
    for lines in (["1\n"], ["1\n", "other\n", "3\n"]):
        with pytest.raises(InvalidValue):
            apply_hunks(lines, hunks)
    with pytest.raises(InvalidValue):
        apply_hunks(["1\n", "2\n", "3\n"], [*hunks, *hunks])
