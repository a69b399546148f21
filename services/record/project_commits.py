"""The commits of a project in a period, as the record knows them."""

from collections.abc import Collection
from datetime import datetime

from herdbook.domain.record.model import Commit
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

MAX_COMMITS = 5_000
"""How many commits are read at most; the newest count."""


def project_commits(
    uow: UnitOfWork, names: Collection[str], since: datetime, until: datetime
) -> list[Commit]:
    """The commits in the projects of these names from a time on until another, oldest first."""
    found: list[Commit] = []
    for name in names:
        for each in uow.commits.of_project(name):
            if each.at < since or len(found) >= MAX_COMMITS:
                break
            if each.at < until:
                found.append(each)
    return sorted(found, key=lambda each: each.at)
