"""Compare two commits: the files that differ, and their lines.

Only objects of the repository are compared, never files of a worktree, so no filter is needed.
External diff programs and text conversions are switched off, attributes cannot switch them on
again, and what the config says about the form of a diff is overridden. Files above `LARGEST` count
as binary, so git never holds a very large one.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from herdbook.adapters.git.diff_parser import (
    NOTHING,
    PatchSection,
    parse_changed_files,
    parse_patch,
)
from herdbook.adapters.git.git_process import (
    ask_git_up_to,
    raise_complaint,
    without_repository_variables,
)
from herdbook.domain.plan.diff import ChangedFile, DiffChange, Hunk

LARGEST: Final = 2 * 2**20
"""The size in bytes above which a file is not compared by lines."""
MOST_NAMES: Final = 16 * 2**20
"""How many bytes git may take to name the files that differ."""
MOST_PATCH: Final = 8 * 2**20
"""How many bytes the patch of one file may have."""
MOST_SIZED: Final = 200
"""How many files are asked for their sizes."""
MOST_RENAMES: Final = 400
PATIENCE: Final = 20.0
SUBMODULE: Final = "160000"
_SETTINGS: Final = {
    "core.attributesFile": os.devnull,
    "core.bigFileThreshold": str(LARGEST),
    "core.quotePath": "true",
    "diff.orderFile": os.devnull,
    "diff.relative": "false",
    "diff.suppressBlankEmpty": "false",
}
_COMPARE: Final = (
    "diff-tree",
    "-r",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-abbrev",
    "--full-index",
    "--ignore-submodules=none",
    "--submodule=short",
    "--diff-algorithm=histogram",
    "--find-renames=50%",
    f"-l{MOST_RENAMES}",
)


class ChangedFiles(NamedTuple):
    """The files that differ, in git's order; not all of them if git named too many."""

    files: Sequence[ChangedFile]
    is_complete: bool


class FileHunks(NamedTuple):
    """The hunks of a file, and whether they are all of them."""

    hunks: tuple[Hunk, ...]
    is_complete: bool


class CommitComparison:
    """Compares commits in the repository that git uses when it is started in a folder.

    Commits are hashes that git gave before. Raises StoreBusy if git does not answer in time,
    InvalidValue with git's reason if it refuses.
    """

    def __init__(self, folder: str, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {
            **without_repository_variables(environment),
            # A path is never a pattern.
            "GIT_LITERAL_PATHSPECS": "1",
        }

    def changed_files(self, base: str, head: str) -> ChangedFiles:
        """The files that differ; renames are found."""
        words = [*_COMPARE, "-z", "--raw", "--numstat", base, head, "--"]
        output, is_cut = self._ask(words, MOST_NAMES)
        files = parse_changed_files(output)
        uncounted = [each for each in files if each.added is None and not is_cut][:MOST_SIZED]
        if uncounted:
            old = self._sizes(base, [each.old_path for each in uncounted])
            new = self._sizes(head, [each.path for each in uncounted])
            sized = {
                each.path: each._replace(
                    old_size=old.get(each.old_path), new_size=new.get(each.path)
                )
                for each in uncounted
            }
            files = [sized.get(each.path, each) for each in files]
        return ChangedFiles(files, not is_cut)

    def file_hunks(self, base: str, head: str, file: ChangedFile, context: int) -> FileHunks:
        """The hunks of one of these files, with so many unchanged lines around them."""
        if file.old_id == file.new_id or file.added is None:
            return FileHunks((), is_complete=True)
        paths = list(dict.fromkeys((file.old_path, file.path)))
        form = ["-p", f"--unified={context}", "--inter-hunk-context=0"]
        output, _ = self._ask([*_COMPARE, *form, base, head, "--", *paths], MOST_PATCH)
        sections = _sections_of(file, parse_patch(output))
        hunks = tuple(hunk for each in sections for hunk in each.hunks)
        return FileHunks(hunks, not any(each.is_cut for each in sections))

    def file_lines(self, commit: str, path: str) -> list[str] | None:
        """The lines of a file in a commit, without line feeds; None if it has none to be read."""
        if "\0" in path:
            return None
        try:
            words = ["cat-file", "blob", f"{commit}:{path}"]
            output, is_cut = self._ask(words, LARGEST)
        except ValueError:
            return None  # the commit does not have it
        if is_cut:
            return None
        lines = output.decode("utf-8", "surrogateescape").split("\n")
        return lines if lines[-1] else lines[:-1]

    def _sizes(self, commit: str, paths: Sequence[str]) -> dict[str, int]:
        """The sizes of those files that the commit has."""
        words = ["ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", *paths]
        output, _ = self._ask(words, MOST_NAMES)
        sizes = {}
        for entry in output.split(b"\0")[:-1]:
            facts, _, path = entry.partition(b"\t")
            size = facts.split()[-1]
            if size.isdigit():
                sizes[os.fsdecode(path)] = int(size)
        return sizes

    def _ask(self, words: Sequence[str], most: int) -> tuple[bytes, bool]:
        status, output, complaint, is_cut = ask_git_up_to(
            most, ["-C", self._folder, *words], self._environment, PATIENCE, settings=_SETTINGS
        )
        if status != 0:
            raise_complaint("git", status, complaint)
        return output, is_cut


def _sections_of(file: ChangedFile, sections: Sequence[PatchSection]) -> list[PatchSection]:
    """The sections of one file: a file that became a link, or the reverse, has two.

    The others are of files in a folder that has or had the name of the file.
    """
    wanted = {(file.old_id, file.new_id)}
    if file.change is DiffChange.RETYPED:
        none = NOTHING * len(file.old_id)
        wanted = {(file.old_id, none), (none, file.new_id)}
    found = [each for each in sections if (each.old_id, each.new_id) in wanted]
    # Two files of a folder may have the same contents as this one; each section has all of them.
    return found[: len(wanted)]
