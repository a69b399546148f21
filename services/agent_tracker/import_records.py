"""Import the records of OpenCode's agent-tracker: agents, commits, grades and activities."""

from collections.abc import Collection, Mapping
from typing import Any

from herdbook.domain.record.model import Retrospective, ScoreEvent
from herdbook.domain.record.standing import Grader, grade_key
from herdbook.ports.engine.dictionary import ACTIVITIES, COMMITS, RETROSPECTIVES, SCORE_EVENTS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.integrity import find_clashes
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.agent_tracker import TrackerContents
from herdbook.services.agent_tracker.balance import SINGLE_ENDINGS
from herdbook.services.agent_tracker.rows import TrackerRows
from herdbook.services.stores.merge_spaces import MergeFailure, MergeReport


def import_tracker(
    uow: UnitOfWork, tracker: TrackerContents, projects: Mapping[str, str] | None = None
) -> MergeReport:
    """Add to the record what it lacks of an agent-tracker's records; importing again adds nothing.

    A commit or retrospective that the record already has is kept as it is and counts once; so does
    a commit that a party has graded here, whose retrospective comes without another entry. The
    balance between an agent's totals and its single entries is imported the first time only: later
    imports add its new commits, grades, bugs and activities. `projects` maps paths of projects to
    their names in the record; a project that is not in it goes by its path.
    """
    rows = TrackerRows(uow.experience, uow.now, projects or {})
    rows.build(tracker)
    counted = _counted_rows(uow, rows)
    commits, known_commits = _missing_rows(uow, COMMITS, rows.commits, counted)
    judgements, known_judgements = _missing_rows(uow, RETROSPECTIVES, rows.retrospectives, counted)
    activities, _ = _missing_rows(uow, ACTIVITIES, rows.activities)
    graded = {key for key, row in rows.retrospectives.items() if _is_graded(uow, row)}
    known = {rows.entry_of[key] for key in known_commits | known_judgements | graded}
    single = {key: row for key, row in rows.entries.items() if key not in known}
    entries, _ = _missing_rows(uow, SCORE_EVENTS, {**single, **_balances(uow, rows)})
    uow.commits.add_all(commits)
    uow.retrospectives.add_all(judgements)
    uow.activities.add_all(activities)
    uow.ledger.add_all(entries)
    added = len(commits) + len(judgements) + len(activities) + len(entries)
    return MergeReport(
        added=added,
        kept=rows.duplicates + _count_rows(rows) - added,
        failed=tuple(
            MergeFailure(uow.space, str(each.kind), each.key, each.reason) for each in rows.failed
        ),
    )


def _is_graded(uow: UnitOfWork, row: Retrospective) -> bool:
    """Whether a party has graded the commit here."""
    keys = [grade_key(row.agent, row.project, row.commit_hash, party) for party in Grader]
    return any(uow.ledger.find(f"{SCORE_EVENTS.prefix}_{key}") for key in keys)


def _count_rows(rows: TrackerRows) -> int:
    balances = sum(map(len, rows.balances.values()))
    single = len(rows.commits) + len(rows.retrospectives) + len(rows.activities)
    return single + len(rows.entries) + balances


def _counted_rows(uow: UnitOfWork, rows: TrackerRows) -> set[str]:
    """The commits and retrospectives whose entries an earlier import has brought.

    Their own ids follow from the name of their project, which may be another one now.
    """
    entries = uow.get(SCORE_EVENTS, list(rows.entry_of.values()))
    pairs = zip(rows.entry_of, entries, strict=True)
    return {key for key, entry in pairs if entry is not None}


def _missing_rows(
    uow: UnitOfWork, kind: Kind[Any], rows: Mapping[str, Any], counted: Collection[str] = ()
) -> tuple[list[Any], set[str]]:
    """The rows that the record lacks, and the ids of those it has under another id."""
    pairs = zip(rows.values(), uow.get(kind, list(rows)), strict=True)
    new = [row for row, own in pairs if own is None and row.id not in counted]
    taken = {row.id for row, _, _ in find_clashes(uow, kind, new, [None] * len(new))}
    return [row for row in new if row.id not in taken], taken


def _balances(uow: UnitOfWork, rows: TrackerRows) -> dict[str, ScoreEvent]:
    """The entries of the balances to add: all but bugs are added together or not at all."""
    coming: dict[str, ScoreEvent] = {}
    for entries in rows.balances.values():
        once = {each.id: each for each in entries if each.id[-1] in SINGLE_ENDINGS}
        begun = {each.id[:-1] for each in once.values()}
        keys = [start + ending for start in begun for ending in SINGLE_ENDINGS]
        settled = any(row is not None for row in uow.get(SCORE_EVENTS, keys))
        coming |= {each.id: each for each in entries if not (settled and each.id in once)}
    return coming
