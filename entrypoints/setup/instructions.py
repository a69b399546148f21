"""The section of AGENTS.md or CLAUDE.md that tells agents of Herdbook: six lines that go not stale.

It stands between two marks, so that it can be updated and removed exactly; everything outside of
them keeps every byte.
"""

import os
import re
from pathlib import Path

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.hooks.file_changes import (
    ChangePlan,
    content,
    plan_change,
    require_inside,
    rewrite_text,
    saved_original,
    without_ours,
)

BEGIN, END = "<!-- herdbook:begin v1 -->", "<!-- herdbook:end -->"
SECTION = f"""\
{BEGIN}
## Shared plan
This repository's plan is in Herdbook, shared with other agents. Run `herdbook prime` first: it says
who you are, what you hold, what waits for you and which commands to use. Work only on a task that
you have claimed, and complete or release it when you end. Keep no plan in files of your own.
{END}
"""
NAMES = ("AGENTS.md", "CLAUDE.md")
"""The files that hosts read; the first that is there gets the section."""
_OURS = re.compile(
    r"<!-- herdbook:begin v\d+ -->\r?\n.*?<!-- herdbook:end -->(?:\r?\n)?", re.DOTALL
)


def instructions_file(root: Path, name: str | None = None) -> Path:
    """The file for the section: the one named, else the one that has it, else the first there is.

    Raises InvalidValue if its links lead out of the project, or if it names no file of a project.
    """
    if name is not None and (os.path.isabs(name) or Path(name).suffix != ".md"):  # noqa: PTH117
        raise InvalidValue("file", "must be a Markdown file of this project, such as AGENTS.md")
    known = [root / each for each in NAMES]
    ours = [each for each in known if _OURS.search(_text(each))]
    there = [each for each in known if each.exists()]
    path = root / name if name is not None else next(iter([*ours, *there, *known]))
    require_inside(path, root)
    return path


def add_section(path: Path) -> ChangePlan:
    """The changes that put our section into a file: at its end, or in place of an earlier one."""
    now = content(path)
    return plan_change(path, now, rewrite_text(path, now, _put), _without_section(path, now))


def remove_section(path: Path) -> ChangePlan:
    """The changes that restore the file, except for what others changed in it since."""
    now = content(path)
    before = _without_section(path, now)
    return plan_change(path, now, before, before)


def _without_section(path: Path, now: bytes | None) -> bytes | None:
    """The file before us; none if our section was all of it."""
    unchanged, _ = saved_original(path, now)
    before = without_ours(path, now, _take)
    return before if before or unchanged or not now else None


def _put(text: str) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    section = SECTION.replace("\n", newline)
    if _OURS.search(text):
        first = True

        def replace(_: re.Match[str]) -> str:
            nonlocal first
            kept, first = section if first else "", False
            return kept

        return _OURS.sub(replace, text)
    if not text:
        return section
    gap = newline if text.endswith("\n") else 2 * newline
    return text + gap + section


def _take(text: str) -> str:
    found = _OURS.search(text)
    if found is None:
        return text
    before, after = text[: found.start()], text[found.end() :]
    if not after:  # the blank line that was added before it, and a newline that was missing
        before = re.sub(r"(?<=\n)\r?\n$", "", before)
    return before + after


def _text(path: Path) -> str:
    try:
        return (content(path) or b"").decode("utf-8", "replace")
    except OSError:
        return ""
