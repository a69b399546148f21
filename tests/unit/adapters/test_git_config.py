"""The laws of our reader of git's config files: it agrees with git, or says that it is unsure."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from herdbook.adapters.git.config import NeedsGit, parse_boolean, parse_config
from tests.cases import for_each

Entries = list[tuple[str, str | None]]

KEYS = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,6}", fullmatch=True)
NAMES = st.from_regex(r"[A-Za-z0-9.-]{1,8}", fullmatch=True)
BLANKS = st.text(" \t", max_size=3)
# What a grammar stumbles over, and a little of everything else but NUL.
PIECES = st.sampled_from(
    [*'"\\\n\r \t;#=[].aB1-é牛\x0b\ufeff\udcff', '\\"', "\\n", "\\t", "\\b", "\\x", "\\\n", "\r\n"]
)
NOISE = st.lists(PIECES, max_size=12).map("".join)
WORDS = st.text(st.sampled_from('abZ09 ./:@-_é"\\#;=[]'), max_size=12)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


SECTIONS = st.one_of(
    st.builds("[{}]".format, NAMES),
    st.builds("[{} {}]".format, NAMES, WORDS.map(quoted)),
)
VALUES = st.one_of(
    st.from_regex(r"[a-zA-Z0-9./:@ -]{0,12}", fullmatch=True),
    WORDS.map(quoted),
    st.builds("{}{}{}".format, WORDS.map(quoted), st.sampled_from(["", " ", "\\\n"]), KEYS),
)
LINES = st.one_of(
    SECTIONS,
    st.builds("{}{}{}={}{}".format, BLANKS, KEYS, BLANKS, BLANKS, VALUES),
    KEYS,
    st.builds("{}{}{}".format, BLANKS, st.sampled_from("#;"), WORDS),
    st.just(""),
)
WELL_FORMED = st.builds("{}\n{}".format, SECTIONS, st.lists(LINES, max_size=8).map("\n".join))
NOISY = st.builds("[a]\n{}{}".format, st.sampled_from(["", "k=", "k"]), NOISE) | NOISE


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A config file to write to, and git without anybody's own settings."""
    folder = tmp_path_factory.mktemp("config")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        patch.setenv("HOME", str(folder))
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield folder / "config"


def told_by_git(file: Path, data: bytes) -> Entries | None:
    """What git reads from such a file; None when it refuses."""
    file.write_bytes(data)
    command = ["git", "config", "--file", str(file), "--null", "--list"]
    ended = subprocess.run(command, check=False, capture_output=True)
    if ended.returncode != 0:
        return None
    lines = ended.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    pairs = (line.partition("\n") for line in lines)
    return [(key, value if has_value else None) for key, has_value, value in pairs]


def told_by_us(data: bytes) -> Entries | None:
    try:
        return parse_config(data)
    except NeedsGit:
        return None


@settings(max_examples=300)
@given(text=NOISY)
@example(text="[a]\nk = x\\")
@example(text='[a]\nk = "x')
@example(text="[a]\nk = a\tb")
@example(text="[a]\nk ; comment")
@example(text="\ufeff[a]\nk")
def test_what_we_read_is_what_git_reads(text: str, file: Path) -> None:
    """For any text at all, we are unsure or say exactly what git says."""
    data = text.encode("utf-8", "surrogateescape")
    ours = told_by_us(data)
    if ours is not None:
        assert ours == told_by_git(file, data)


@settings(max_examples=200)
@given(text=WELL_FORMED)
def test_what_git_writes_and_people_write_is_understood(text: str, file: Path) -> None:
    """Sections, subsections, quotes, escapes, comments and bare keys leave us in no doubt."""
    data = text.encode()
    assert parse_config(data) == told_by_git(file, data)


def test_what_git_itself_writes_is_understood(file: Path) -> None:
    """Values that need quotes come back as they were given to git."""
    file.write_bytes(b"")
    values = [
        "plain",
        " led",
        "ends ",
        "a;b",
        "a#b",
        'say "x"',
        "back\\slash",
        "new\nline",
        "",
        "é",
    ]
    for value in values:
        command = ["git", "config", "--file", str(file), "--add", 'Re.mo "t]e.Url', value]
        subprocess.run(command, check=True)
    assert parse_config(file.read_bytes()) == [('re.mo "t]e.url', value) for value in values]


HOSTILE: dict[str, Callable[[int], str]] = {
    "blanks before a quote": lambda n: "[a]\nk = a" + " " * n + '"b"\n',
    "tabs before a quote": lambda n: "[a]\nk = a" + "\t" * n + '"b"\n',
    "blanks before nonsense": lambda n: "[a]\nk" + " " * n + "?\n",
    "quotes": lambda n: "[a]\nk = " + '"a" ' * n + "\n",
    "escapes in a section": lambda n: '[a "' + "\\\\" * n + "\n",
    "comments": lambda n: "[a]\n" + " \n#" * n + "?\n",
    "entries": lambda n: "[a]\n" + "k=1\n" * n,
    "lines that go on": lambda n: "[a]\nk=" + "\\\n" * n + "\n",
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_long_file_takes_time_by_its_length(make: Callable[[int], str], file: Path) -> None:
    """And no more: whoever sends an archive cannot keep us busy. This one would take hours."""
    begun = time.monotonic()
    told_by_us(make(500_000).encode())
    assert time.monotonic() - begun < 60
    assert told_by_us(data := make(5).encode()) in (None, told_by_git(file, data))


@for_each(
    "text",
    ["k = 1", "[a]\n1k = 1", "[a b]", "[]", '[a "b]', "[a]\nk = \\q", "[a]\nk v", "[a]\n\0"],
)
def test_what_we_do_not_understand_is_left_to_git(text: str) -> None:
    """Anything outside the grammar is Unsure, never a guess."""
    with pytest.raises(NeedsGit):
        parse_config(text.encode())


def test_a_truth_is_what_git_takes_for_one(file: Path) -> None:
    """Words, digits, nothing at all and no value mean the same to us as to git."""
    values = [None, "", "true", "YES", "On", "1", "false", "No", "off", "0", "perhaps", "2", "-1"]
    for value in values:
        file.write_text("[a]\nk" + ("" if value is None else f" = {value}"))
        command = ["git", "config", "--file", str(file), "--type=bool", "a.k"]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        try:
            ours = str(parse_boolean(value)).lower()
        except NeedsGit:
            assert value in {"perhaps", "2", "-1"}
        else:
            assert ours == ended.stdout.strip()
