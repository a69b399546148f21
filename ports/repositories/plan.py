"""Named queries for the plan."""

from collections.abc import Iterable
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Generic, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import (
    UNFINISHED,
    ChangeSet,
    Errand,
    ErrandStatus,
    Initiative,
    InitiativeProject,
    InitiativeStatus,
    Page,
    Phase,
    PhaseDependency,
    Project,
    Proposal,
    ProposalStatus,
    ReviewComment,
    Task,
    TaskDependency,
    TaskStatus,
)
from herdbook.domain.plan.readiness import Opening, OpeningState
from herdbook.ports.engine.dictionary import (
    INITIATIVE_PROJECTS,
    OPENINGS,
    PHASE_DEPENDENCIES,
    TASK_DEPENDENCIES,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import any_of, find, up_to
from herdbook.ports.repositories.base import Repository

E = TypeVar("E")
D = TypeVar("D")


class Initiatives(Repository[Initiative]):
    """The initiatives of a space."""

    def by_status(
        self, status: InitiativeStatus, *, limit: int | None = None, after: Initiative | None = None
    ) -> list[Initiative]:
        """Initiatives in this status, oldest first."""
        return self.select(find(self.kind, {"status": status}, limit=limit, after=after))


class DependentRows(Repository[E], Generic[E, D]):
    """Rows that may wait for others of their kind, by rows of another kind: their dependencies."""

    edges: Kind[D]
    ends: tuple[str, str]
    """The fields of a dependency: the row that waits, and what it waits for."""

    def add_dependency(self, key: str, depends_on: str) -> D:
        """Make a row depend on another; raises CycleRefused if that would close a cycle."""
        return self.add_dependencies([(key, depends_on)])[0]

    def add_dependencies(self, pairs: Iterable[tuple[str, str]]) -> list[D]:
        """Add many dependencies, given as pairs (row, what it depends on)."""
        added = [self.edges.entity(**dict(zip(self.ends, pair, strict=True))) for pair in pairs]
        return self.uow.add(self.edges, added)

    def remove_dependency(self, key: str, depends_on: str) -> bool:
        """Remove a dependency; return False if there was none."""
        where = dict(zip(self.ends, (key, depends_on), strict=True))
        found = self.uow.select(find(self.edges, where))
        self.uow.remove(self.edges, [self.edges.key_of(edge) for edge in found])
        return bool(found)

    def dependencies(self, key: str) -> list[E]:
        """The rows that a row waits for, finished or not."""
        return self._follow(key, *self.ends)

    def dependents(self, key: str) -> list[E]:
        """The rows that wait for a row."""
        return self._follow(key, *reversed(self.ends))

    def _follow(self, key: str, here: str, there: str) -> list[E]:
        found = self.uow.select(find(self.edges, {here: key}))
        return self.get_many(getattr(edge, there) for edge in found)


class Phases(DependentRows[Phase, PhaseDependency]):
    """The phases of initiatives and their dependencies."""

    edges = PHASE_DEPENDENCIES
    ends = ("phase_id", "depends_on_phase_id")

    def of_initiative(self, initiative_id: str) -> list[Phase]:
        """An initiative's phases, oldest first."""
        return self.select(find(self.kind, {"initiative_id": initiative_id}))


class Tasks(DependentRows[Task, TaskDependency]):
    """The tasks of a space, their dependencies, and which can be claimed."""

    edges = TASK_DEPENDENCIES
    ends = ("task_id", "depends_on_task_id")

    def of_initiative(
        self, initiative_id: str, *, limit: int | None = None, after: Task | None = None
    ) -> list[Task]:
        """The tasks that name an initiative, in their order."""
        return self.select(
            find(self.kind, {"initiative_id": initiative_id}, limit=limit, after=after)
        )

    def of_phase(
        self, phase_id: str, *, limit: int | None = None, after: Task | None = None
    ) -> list[Task]:
        """A phase's tasks, in their order."""
        return self.select(find(self.kind, {"phase_id": phase_id}, limit=limit, after=after))

    def any_unfinished_in(self, phase_id: str) -> bool:
        """Whether a phase has an unfinished task."""
        query = find(self.kind, {"phase_id": phase_id, "status": any_of(UNFINISHED)}, limit=1)
        return bool(self.select(query))

    def children(self, parent_task_id: str) -> list[Task]:
        """The tasks a task was broken into, in their order."""
        return self.select(find(self.kind, {"parent_task_id": parent_task_id}))

    def by_status(
        self, status: TaskStatus, *, limit: int | None = None, after: Task | None = None
    ) -> list[Task]:
        """Tasks in this status, oldest first."""
        return self.select(find(self.kind, {"status": status}, limit=limit, after=after))

    def of_assignee(self, agent_id: str) -> list[Task]:
        """The tasks an agent holds or has done."""
        return self.select(find(self.kind, {"assignee_id": agent_id}))

    def initiative_id_of(self, task: Task) -> str | None:
        """The initiative of a task: that of its phase, or without one the task's own."""
        if task.phase_id is None:
            return task.initiative_id
        return self.uow.phases.get(task.phase_id).initiative_id

    def in_progress_of(self, agent_ids: Iterable[str]) -> list[Task]:
        """The tasks that these agents work on now, without what they review."""
        where = {"assignee_id": any_of(agent_ids), "status": TaskStatus.IN_PROGRESS}
        return self.select(find(self.kind, where))

    def ready(
        self, limit: int, *, initiative_id: str | None = None, phase_id: str | None = None
    ) -> list[Task]:
        """The first tasks that can be claimed now, most urgent first."""
        openings = self.uow.openings.claimable(
            limit, initiative_id=initiative_id, phase_id=phase_id
        )
        return self.get_many(opening.task_id for opening in openings)


class Openings(Repository[Opening]):
    """The projection of the tasks that can be claimed or are held."""

    def claimable(
        self, limit: int, *, initiative_id: str | None = None, phase_id: str | None = None
    ) -> list[Opening]:
        """The first that can be claimed: ready ones, and held ones whose lease has expired."""
        within = {"initiative_id": initiative_id, "phase_id": phase_id}
        asked = {name: value for name, value in within.items() if value is not None}
        # A phase belongs to one initiative: all of its openings are in the requested one, or none.
        chosen = asked if phase_id is None else {"phase_id": phase_id}
        query = find(OPENINGS, {**chosen, "state": OpeningState.READY}, by=("rank",), limit=limit)
        ready = self.select(query)
        expired = [opening for opening in self.expired_leases(self.uow.now) if not opening.blockers]
        line = merge(ready, sorted(expired, key=urgency_key), key=urgency_key)
        inside = (
            opening
            for opening in line
            if all(getattr(opening, name) == value for name, value in asked.items())
        )
        return list(islice(inside, limit))

    def expired_leases(self, now: datetime) -> list[Opening]:
        """Held openings whose lease has expired, the longest expired first."""
        held = {"state": OpeningState.HELD, "lease_until": up_to(now)}
        return self.select(find(OPENINGS, held))

    def reviews_of(self, agent_ids: Iterable[str]) -> list[Opening]:
        """The reviews that these agents hold."""
        return self.select(find(OPENINGS, {"reviewer_id": any_of(agent_ids)}))

    def put(self, opening: Opening) -> None:
        """Change the lease of an opening; everything else about it follows from its task."""
        self.uow.put_derived(OPENINGS, [opening])


def urgency_key(opening: Opening) -> tuple[object, ...]:
    """Sort key of the ready queue: priority, order, age, id."""
    return opening.rank, opening.order, opening.created_at, opening.task_id


class Projects(Repository[Project]):
    """The projects of a space and the initiatives that touch them."""

    def by_name(self, name: str) -> Project | None:
        """The project with this name."""
        return self.first(find(self.kind, {"name": name}))

    def of_initiative(self, initiative_id: str) -> list[Project]:
        """The projects an initiative touches."""
        links = self.uow.select(find(INITIATIVE_PROJECTS, {"initiative_id": initiative_id}))
        return self.get_many(link.project_id for link in links)

    def set_for_initiative(self, initiative_id: str, project_ids: Iterable[str]) -> None:
        """Set the projects an initiative touches; links that stay are not rewritten."""
        wanted = list(dict.fromkeys(project_ids))
        links = self.uow.select(find(INITIATIVE_PROJECTS, {"initiative_id": initiative_id}))
        there = {link.project_id for link in links}
        gone = [link.id for link in links if link.project_id not in wanted]
        self.uow.remove(INITIATIVE_PROJECTS, gone)
        new = [
            InitiativeProject(initiative_id=initiative_id, project_id=project_id)
            for project_id in wanted
            if project_id not in there
        ]
        self.uow.add(INITIATIVE_PROJECTS, new)


class Pages(Repository[Page]):
    """The pages of initiatives."""

    def root(self, initiative_id: str) -> Page | None:
        """An initiative's root page."""
        return self.first(find(self.kind, {"initiative_id": initiative_id, "parent_page_id": None}))

    def get_or_create_root(self, initiative_id: str, title: str) -> Page:
        """An initiative's root page, created with this title if there is none."""
        root = self.root(initiative_id)
        return root or self.add(Page(initiative_id=initiative_id, title=title))

    def children(self, parent_page_id: str) -> list[Page]:
        """The pages under a page, in their order."""
        return self.select(find(self.kind, {"parent_page_id": parent_page_id}))


class Proposals(Repository[Proposal]):
    """The proposals of agents."""

    def of_agent(self, agent_id: str, status: ProposalStatus) -> list[Proposal]:
        """An agent's proposals in this status, in their order."""
        return self.select(find(self.kind, {"agent_id": agent_id, "status": status}))

    def count_of_agent(self, agent_id: str, status: ProposalStatus) -> int:
        """How many of an agent's proposals are in this status."""
        return self.uow.count(find(self.kind, {"agent_id": agent_id, "status": status}))

    def set_status_of_agent(
        self, agent_id: str, status: ProposalStatus, *, of: ProposalStatus = ProposalStatus.PENDING
    ) -> list[Proposal]:
        """Move all of an agent's proposals in one status to another."""
        return self.save_all(
            [evolve(proposal, status=status) for proposal in self.of_agent(agent_id, of)]
        )


class ChangeSets(Repository[ChangeSet]):
    """The change sets of initiatives."""

    def of_initiative(self, initiative_id: str) -> list[ChangeSet]:
        """An initiative's change sets, oldest first."""
        return self.select(find(self.kind, {"initiative_id": initiative_id}))

    def of_tx(self, tx: str) -> ChangeSet | None:
        """The change set of a journal transaction."""
        return self.first(find(self.kind, {"tx": tx}, limit=1))


class ReviewComments(Repository[ReviewComment]):
    """Comments on phases' diffs."""

    def of_phase(self, phase_id: str) -> list[ReviewComment]:
        """A phase's comments, oldest first."""
        return self.select(find(self.kind, {"phase_id": phase_id}))

    def resolve(self, comment_id: str) -> ReviewComment:
        """Mark a comment as resolved."""
        return self.save(evolve(self.get(comment_id), resolved=True))

    def unresolve(self, comment_id: str) -> ReviewComment:
        """Mark a comment as not resolved."""
        return self.save(evolve(self.get(comment_id), resolved=False))


class Errands(Repository[Errand]):
    """Small changes outside any initiative."""

    def of_project(
        self, project_id: str, statuses: Iterable[ErrandStatus] = tuple(ErrandStatus)
    ) -> list[Errand]:
        """A project's errands in these statuses, oldest first."""
        where = {"project_id": project_id, "status": any_of(statuses)}
        return self.select(find(self.kind, where))

    def by_status(self, status: ErrandStatus) -> list[Errand]:
        """Errands of all projects in this status, oldest first."""
        return self.select(find(self.kind, {"status": status}))
