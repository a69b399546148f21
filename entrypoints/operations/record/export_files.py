"""The record of one project as files in its worktree, for programs that do not read stores.

The files are derived from the store, rewritten completely each time, and never read back.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.adapters.user_state.dirs import replace_file
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.record.model import Activity, Commit, Retrospective, Standing
from herdbook.entrypoints.operations.serialize import to_data
from herdbook.ports.engine.dictionary import ACTIVITIES, COMMITS, RETROSPECTIVES
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

STATUS, JOURNAL, COMMUNICATION = ".agent/status.json", ".journal", "communication.json"


class ProjectRecord(NamedTuple):
    """Everything in the record about one project."""

    project: str
    standings: list[Standing]
    commits: list[Commit]
    retrospectives: list[Retrospective]
    activities: list[Activity]


def read_project(uow: UnitOfWork, project: str) -> ProjectRecord:
    """Read the rows of a project, and the standings of the agents with rows or entries in it."""
    commits = _of_project(uow, COMMITS, project)
    retrospectives = _of_project(uow, RETROSPECTIVES, project)
    activities = _of_project(uow, ACTIVITIES, project)
    agents = {each.agent for each in (*commits, *retrospectives, *activities)}
    agents |= {name for name in uow.standings.names() if uow.ledger.has_entry(name, project)}
    standings = [uow.standings.of_agent(agent) for agent in sorted(agents)]
    return ProjectRecord(project, standings, commits, retrospectives, activities)


def write(root: Path, record: ProjectRecord) -> list[Path]:
    """Write the files into a worktree, each atomically; returns those that changed.

    Raises StoreUnavailable if a folder is a symbolic link or cannot be written.
    """
    files = {root / STATUS: _json({"project": record.project, "agents": to_data(record.standings)})}
    communication = {"project": record.project, "retrospectives": to_data(record.retrospectives)}
    files[root / JOURNAL / COMMUNICATION] = _json(communication)
    for day, text in journal_pages(record).items():
        files[root / JOURNAL / f"{day.isoformat()}.md"] = text
    for folder in {path.parent for path in files}:
        if folder.is_symlink():
            reason = "is a link; exports are written into the worktree itself and nowhere else"
            raise StoreUnavailable(str(folder), reason)
    try:
        return [path for path, text in files.items() if _replace(path, text)]
    except OSError as error:
        reason = f"{error.strerror}; the exports there are as they were, and the record is safe"
        raise StoreUnavailable(str(root), reason) from error


def journal_pages(record: ProjectRecord) -> dict[date, str]:
    """A Markdown page for each day with entries."""
    lines: dict[date, list[tuple[datetime, str]]] = defaultdict(list)
    for commit in record.commits:
        text = f"**{_line(commit.agent)}** committed `{commit.commit_hash[:12]}`"
        lines[commit.at.date()].append((commit.at, _with(text, commit.task)))
    for retro in record.retrospectives:
        text = (
            f"`{retro.commit_hash[:12]}` of **{_line(retro.agent)}** was graded "
            f"{retro.agent_grade.label} by itself and {retro.user_grade.label} by the user "
            f"(score {retro.score_before} to {retro.score_after})"
        )
        notes = "; ".join(filter(None, (retro.agent_note, retro.user_note)))
        lines[retro.at.date()].append((retro.at, _with(text, notes)))
    for activity in record.activities:
        text = f"**{_line(activity.agent)}** {_line(activity.task)}"
        rest = "; ".join(filter(None, (activity.actions, activity.outcome, activity.decisions)))
        lines[activity.at.date()].append((activity.at, _with(text, rest)))
    return {day: _page(day, sorted(its)) for day, its in sorted(lines.items())}


def _page(day: date, lines: Sequence[tuple[datetime, str]]) -> str:
    entries = [f"- {at:%H:%M} {text}" for at, text in lines]
    return "\n".join([f"# {day.isoformat()} (UTC)", "", *entries, ""])


def _with(text: str, words: str) -> str:
    return f"{text}: {_line(words)}" if words.strip() else text


def _line(text: str) -> str:
    return " ".join(text.split())


def _of_project(uow: UnitOfWork, kind: Kind[Any], project: str) -> list[Any]:
    return list(select_all(uow, find(kind, {"project": project}, by=("at",), limit=PAGE)))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _replace(path: Path, text: str) -> bool:
    data = text.encode()
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)
    return True
