"""What becomes of proposals: new pages, phases and tasks, and changed ones.

A proposal with a target changes that row's name and text. One without makes a new row of its
initiative, and a few keys of its metadata say where it goes; see `KEYS`. Where one of them takes an
id, it may be that of another proposal which is accepted along and makes such a row.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import CycleRefused, InvalidValue, UnknownReference
from herdbook.domain.plan.graph import find_cycle
from herdbook.domain.plan.model import (
    Page,
    Phase,
    PhaseDependency,
    Proposal,
    ProposalTarget,
    Task,
    TaskDependency,
)
from herdbook.ports.engine.dictionary import (
    PAGES,
    PHASE_DEPENDENCIES,
    PHASES,
    TASK_DEPENDENCIES,
    TASKS,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")

_PAGE, _PHASE, _TASK = ProposalTarget.PAGE, ProposalTarget.PHASE, ProposalTarget.TASK
_KINDS: dict[ProposalTarget, Kind[Any]] = {_PAGE: PAGES, _PHASE: PHASES, _TASK: TASKS}

KEYS = {
    _PAGE: ("parent_page_id",),
    _PHASE: ("depends_on",),
    _TASK: ("phase_id", "parent_task_id", "priority", "category", "depends_on"),
}
"""What metadata may say of a new row."""
CHANGED = {_PAGE: (), _PHASE: (), _TASK: ("priority", "category")}
"""What it may say of a row that is there already."""


class Acceptance:
    """What becomes of proposals, made up in full before any of it is written."""

    def __init__(self, uow: UnitOfWork, proposals: Sequence[Proposal]) -> None:
        self._uow = uow
        self._proposals = proposals
        self._initiative = uow.initiatives.get(proposals[0].initiative_id)
        self._ids = {
            each.id: (_KINDS[each.target_type], uow.new_id(_KINDS[each.target_type]))
            for each in proposals
            if each.target_id is None
        }
        kinds: tuple[Kind[Any], ...] = (PHASES, PHASE_DEPENDENCIES, TASKS, TASK_DEPENDENCIES, PAGES)
        self._added: dict[Kind[Any], list[Any]] = {kind: [] for kind in kinds}
        self._saved: dict[Kind[Any], dict[str, Any]] = {kind: {} for kind in kinds}
        self._root: Page | None = None

    def prepare(self) -> None:
        """Make up the rows that are new and those that change."""
        for proposal in self._proposals:
            if proposal.target_id is None:
                key = self._ids[proposal.id][1]
                said = _said(proposal, KEYS[proposal.target_type])
                {_PAGE: self._page, _PHASE: self._phase, _TASK: self._task}[proposal.target_type](
                    proposal, key, said
                )
            else:
                self._change(proposal, proposal.target_id)
        parents = {page.id: [page.parent_page_id] for page in self._added[PAGES]}
        cycle = find_cycle({page: [up for up in ups if up] for page, ups in parents.items()})
        if cycle:
            raise CycleRefused(cycle)

    def write(self) -> None:
        """Write it: first what may be refused, which is all or nothing."""
        self._uow.adopt({kind: rows for kind, rows in self._added.items() if rows})
        for kind, rows in self._saved.items():
            if rows:
                self._uow.save(kind, list(rows.values()))

    def _add(self, kind: Kind[E], row: E, key: str = "") -> E:
        stamped = evolve(
            row,
            id=key or self._uow.new_id(kind),
            created_at=self._uow.now,
            updated_at=self._uow.now,
            version=1,
            worktree_id=self._uow.actor.worktree,
        )
        self._added[kind].append(stamped)
        return stamped

    def _page(self, proposal: Proposal, key: str, said: dict[str, Any]) -> None:
        parent = self._named(proposal, "parent_page_id", said, PAGES)
        page = Page(
            initiative_id=self._initiative.id,
            parent_page_id=parent or self._root_page().id,
            title=proposal.title,
            content=proposal.content,
            sort_order=proposal.sort_order,
        )
        self._add(PAGES, page, key)

    def _root_page(self) -> Page:
        root = self._root or self._uow.pages.root(self._initiative.id)
        if root is None:
            page = Page(initiative_id=self._initiative.id, title=self._initiative.name)
            root = self._add(PAGES, page)
        self._root = root
        return root

    def _phase(self, proposal: Proposal, key: str, said: dict[str, Any]) -> None:
        phase = Phase(
            initiative_id=self._initiative.id, name=proposal.title, content=proposal.content
        )
        self._add(PHASES, phase, key)
        for other in self._several(proposal, said, PHASES):
            edge = PhaseDependency(phase_id=key, depends_on_phase_id=other)
            self._add(PHASE_DEPENDENCIES, edge)

    def _task(self, proposal: Proposal, key: str, said: dict[str, Any]) -> None:
        phase_id = self._named(proposal, "phase_id", said, PHASES)
        task = Task(
            initiative_id=self._initiative.id,
            phase_id=phase_id,
            parent_task_id=self._named(proposal, "parent_task_id", said, TASKS),
            name=proposal.title,
            description=proposal.content,
            order=proposal.sort_order,
            **_chosen(said),
        )
        self._add(TASKS, task, key)
        for other in self._several(proposal, said, TASKS):
            self._add(TASK_DEPENDENCIES, TaskDependency(task_id=key, depends_on_task_id=other))

    def _change(self, proposal: Proposal, key: str) -> None:
        kind = _KINDS[proposal.target_type]
        said = _said(proposal, CHANGED[proposal.target_type])
        others = [each for each in self._proposals if each.target_id == key]
        if len(others) > 1:
            both = " and ".join(repr(each.id) for each in others)
            raise InvalidValue("target_id", f"{both} change the same {kind.title}; accept one")
        self._existing(proposal, "target_id", key, kind)
        row = self._current(kind, key)
        if isinstance(row, Page):
            changed: Any = evolve(row, title=proposal.title, content=proposal.content)
        elif isinstance(row, Phase):
            changed = evolve(row, name=proposal.title, content=proposal.content)
        else:
            texts = {"name": proposal.title, "description": proposal.content}
            changed = evolve(row, **texts, **_chosen(said))
        if changed != row:
            self._saved[kind][key] = changed

    def _current(self, kind: Kind[E], key: str) -> E | None:
        """A row as it will be, as far as that is known; None where there is none yet."""
        row: E | None = self._saved[kind].get(key) or self._uow.get(kind, [key])[0]
        return row

    def _named(
        self, proposal: Proposal, field: str, said: dict[str, Any], kind: Kind[Any]
    ) -> str | None:
        """The row that metadata names, if it names one."""
        if field not in said:
            return None
        return self._id(proposal, field, said[field], kind, own=True)

    def _several(self, proposal: Proposal, said: dict[str, Any], kind: Kind[Any]) -> Iterable[str]:
        """What the new row shall wait for, each once; it may be of another initiative."""
        field, named = "depends_on", said.get("depends_on", [])
        if not isinstance(named, list):
            raise InvalidValue(f"metadata.{field}", "must be a list of ids")
        found = [self._id(proposal, field, each, kind, own=False) for each in named]
        return dict.fromkeys(found)

    def _id(
        self, proposal: Proposal, field: str, named: object, kind: Kind[Any], *, own: bool
    ) -> str:
        if not isinstance(named, str):
            raise InvalidValue(f"metadata.{field}", f"must be an id, not {type(named).__name__}")
        made, key = self._ids.get(named, (None, named))
        if made is kind:
            return key
        self._existing(proposal, f"metadata.{field}", named, kind, own=own)
        return named

    def _existing(
        self, proposal: Proposal, field: str, key: str, kind: Kind[Any], *, own: bool = True
    ) -> None:
        """Refuse what is not there, or is of another initiative where it must not be."""
        (row,) = self._uow.get(kind, [key])
        if row is None:
            raise UnknownReference("proposal", proposal.id, field, kind.title, key)
        initiative_id = row.initiative_id
        if isinstance(row, Task) and row.phase_id is not None:
            initiative_id = self._uow.phases.get(row.phase_id).initiative_id
        # A task may be of no initiative at all, and then of any.
        if own and initiative_id not in (None, self._initiative.id):
            raise InvalidValue(field, f"{kind.title} {key!r} is of initiative {initiative_id!r}")


def _said(proposal: Proposal, known: Sequence[str]) -> dict[str, Any]:
    """What metadata says, without what it leaves open."""
    said = {key: each for key, each in (proposal.metadata or {}).items() if each is not None}
    unknown = sorted(said.keys() - set(known))
    if unknown:
        what = (
            f"a {proposal.target_type}" if proposal.target_id else f"a new {proposal.target_type}"
        )
        takes = f"takes {', '.join(known)}" if known else "takes none"
        raise InvalidValue(
            "metadata",
            f"{', '.join(unknown)} of proposal {proposal.id!r} is not known: {what} {takes}",
        )
    return said


def _chosen(said: dict[str, Any]) -> dict[str, Any]:
    return {name: said[name] for name in ("priority", "category") if name in said}
