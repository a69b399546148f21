"""Writes commits of the past, with their authors and times, by one process of git."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from herdbook.domain.grading import Grade
from herdbook.entrypoints.demo.herd_plan import HerdAgent, code_of, file_of
from herdbook.entrypoints.demo.sandbox import git
from herdbook.entrypoints.demo.scenario import MAIN, TRAILER


class PastCommit(NamedTuple):
    """A commit that an agent made for a task, and the grades that it and you give it."""

    agent: HerdAgent
    at: datetime
    task_id: str
    task: str
    grades: tuple[Grade, Grade]


def write_commits(folders: Mapping[str, Path], commits: Sequence[PastCommit]) -> list[str]:
    """Write commits to the branches of their agents; their hashes, in the same order.

    Raises InvalidValue if git refuses them.
    """
    marks = folders[MAIN].parent / "marks"
    heads = {branch: git(folder, "rev-parse", "HEAD").strip() for branch, folder in folders.items()}
    with TemporaryFile() as stream:
        stream.writelines(_stream(commits, heads))
        stream.seek(0)
        git(folders[MAIN], "fast-import", "--quiet", f"--export-marks={marks}", reads=stream)
    lines = (line.split() for line in marks.read_text().splitlines())
    hashes = {int(mark.removeprefix(":")): name for mark, name in lines}
    marks.unlink()
    for folder in folders.values():
        git(folder, "reset", "--hard", "--quiet")
    return [hashes[number] for number in range(1, len(commits) + 1)]


def _stream(commits: Sequence[PastCommit], heads: Mapping[str, str]) -> Iterator[bytes]:
    begun: set[str] = set()
    for number, each in enumerate(commits, start=1):
        agent, branch = each.agent, each.agent.worktree
        who = f"{agent.name} <{agent.name}@example.com> {int(each.at.timestamp())} +0000"
        yield f"commit refs/heads/{branch}\nmark :{number}\n".encode()
        yield f"author {who}\ncommitter {who}\n".encode()
        yield _data(f"{each.task}\n\n{TRAILER}: {each.task_id}\n")
        if branch not in begun:
            yield f"from {heads[branch]}\n".encode()
            begun.add(branch)
        yield f"M 100644 inline {file_of(each.task)}\n".encode()
        yield _data(code_of(each.task, agent.name))


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%s\n" % (len(content), content)
