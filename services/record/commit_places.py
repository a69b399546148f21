"""The commits of the record, of which each counts once, however often git rewrites it.

A rewritten commit takes the place of the old one: its agent, its time and its entry in the ledger
stay, and its hash is the new one. Of several that became one, the earliest stays. Which commits
became one another is stored for a while, so that it does not matter in which order that, the old
and the new commits are read.
"""

from datetime import datetime
from hashlib import sha256
from typing import Any

from herdbook.domain.entity import evolve
from herdbook.domain.journal import OperationResult
from herdbook.domain.record.events import commit_event_id, entry_id
from herdbook.domain.record.model import Commit
from herdbook.domain.record.standing import Grader, grade_key
from herdbook.ports.engine.dictionary import ACTIVITIES, OPERATIONS, SCORE_EVENTS
from herdbook.ports.repositories.base import Repository
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class CommitPlaces:
    """The commits of the record as they are after the commits and rewrites of a flush."""

    def __init__(self, uow: UnitOfWork) -> None:
        self.added: dict[str, Commit] = {}
        self.moved: dict[str, Commit] = {}
        self.removed: dict[str, Commit] = {}
        self._uow = uow
        self._rows: dict[tuple[str, str], list[Commit]] = {}
        self._became: dict[str, str | None] = {}
        self._rewrites: dict[str, str] = {}
        self._judged: list[tuple[str, str, str, str]] = []

    def add(self, commit: Commit) -> None:
        """Add a commit, unless an earlier one has its place; a later one makes room for it."""
        now = self._current_hash(commit.project, commit.commit_hash)
        there = self._rows_at(commit.project, now)
        named = commit.commit_hash == now
        self.added[commit.id] = commit = evolve(commit, commit_hash=now)
        task = commit.task if named or not there else there[0].task
        self._settle([*there, commit], now, task)

    def rewrite(self, project: str, old: str, new: str) -> None:
        """Let a new commit take the place of an old one."""
        before, now = self._current_hash(project, old), self._current_hash(project, new)
        if before == now:
            return
        key = _rewrite_key(project, before)
        self._became[key] = self._rewrites[key] = now
        left, there = self._rows_at(project, before), self._rows_at(project, now)
        self._judged += [(row.agent, project, before, now) for row in left]
        if left:
            task = there[0].task if there else min(left, key=_order).task
            self._settle([*left, *there], now, task)
            self._rows[project, before] = []

    def write(self) -> None:
        """Write what has changed; the entries of commits that have lost their place go too."""
        uow = self._uow
        uow.ledger.remove_all(self.removed_entries())
        uow.commits.remove_all([*self.removed, *self.moved])
        uow.commits.add_all([*self.moved.values(), *self.added.values()])
        self._move_judgements()
        uow.operations.add_all(
            [
                OperationResult(operation_id=key, result={"hash": now}, at=uow.now)
                for key, now in self._rewrites.items()
            ]
        )

    def removed_entries(self) -> list[str]:
        """The ids of the ledger entries of the commits that are removed."""
        keys = [entry_id(commit_event_id(each)) for each in self.removed.values()]
        found = self._uow.get(SCORE_EVENTS, keys) if keys else []
        return [each.id for each in found if each is not None]

    def _settle(self, rows: list[Commit], commit_hash: str, task: str) -> None:
        """Let the earliest of these commits have the place, and take out the others."""
        first = min(rows, key=_order)
        for row in rows:
            if row is not first:
                self._take_out(row)
        stays = evolve(first, commit_hash=commit_hash, task=task or first.task)
        if stays.id in self.added:
            self.added[stays.id] = stays
        elif stays != first:
            self.moved[stays.id] = stays
        self._rows[stays.project, commit_hash] = [stays]

    def _take_out(self, row: Commit) -> None:
        if self.added.pop(row.id, None) is None:
            self.moved.pop(row.id, None)
            self.removed[row.id] = row

    def _rows_at(self, project: str, commit_hash: str) -> list[Commit]:
        key = project, commit_hash
        if key not in self._rows:
            self._rows[key] = self._uow.commits.with_hash(*key)
        return self._rows[key]

    def _current_hash(self, project: str, commit_hash: str) -> str:
        """The hash of what a commit has become, its own if it was not rewritten."""
        while (later := self._rewritten_to(_rewrite_key(project, commit_hash))) is not None:
            commit_hash = later
        return commit_hash

    def _rewritten_to(self, key: str) -> str | None:
        if key not in self._became:
            (known,) = self._uow.get(OPERATIONS, [key])
            result = None if known is None else known.result
            self._became[key] = str(result["hash"]) if isinstance(result, dict) else None
        return self._became[key]

    def _move_judgements(self) -> None:
        """Let grades and retrospectives follow their commits, unless the new one has its own."""
        judgements = self._uow.retrospectives
        for agent, project, before, now in self._judged:
            judged = judgements.of_commit(agent, project, before)
            if judged is not None and judgements.of_commit(agent, project, now) is None:
                judgements.remove(judged.id)
                judgements.add(evolve(judged, commit_hash=now))
            for grader in Grader:
                keys = [grade_key(agent, project, each, grader) for each in (before, now)]
                _rename(self._uow.ledger, *(f"{SCORE_EVENTS.prefix}_{key}" for key in keys))
                _rename(self._uow.activities, *(f"{ACTIVITIES.prefix}_{key}" for key in keys))


def _rename(rows: Repository[Any], before: str, now: str) -> None:
    """Give a row another id, if there is one and the id is free."""
    row = rows.find(before)
    if row is not None and rows.find(now) is None:
        rows.remove(before)
        rows.add(evolve(row, id=now))


def _order(commit: Commit) -> tuple[datetime, str]:
    return commit.at, commit_event_id(commit)


def _rewrite_key(project: str, commit_hash: str) -> str:
    identity = f"{project}\0{commit_hash}".encode(errors="surrogatepass")
    return f"rew_{sha256(identity).hexdigest()[:40]}"
