"""The rows that accepted proposals add or change: pages, phases and tasks.

A proposal with a target changes that row's name and text. One without a target adds a row to its
initiative, placed by some keys of its metadata; see `NEW_KEYS`. Where such a key takes an id, it
may be that of another proposal which is accepted in the same call and adds such a row.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, UnknownReference
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

NEW_KEYS = {
    _PAGE: ("parent_page_id",),
    _PHASE: ("depends_on",),
    _TASK: ("phase_id", "parent_task_id", "priority", "category", "depends_on"),
}
"""The metadata keys of a proposal that adds a row."""
CHANGE_KEYS = {_PAGE: (), _PHASE: (), _TASK: ("priority", "category")}
"""The metadata keys of a proposal that changes a row."""


class ProposalAcceptance:
    """The rows of accepted proposals, all prepared before the first is written."""

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
        """Prepare the rows to add and to change."""
        for proposal in self._proposals:
            if proposal.target_id is None:
                key = self._ids[proposal.id][1]
                metadata = _read_metadata(proposal, NEW_KEYS[proposal.target_type])
                {_PAGE: self._new_page, _PHASE: self._new_phase, _TASK: self._new_task}[
                    proposal.target_type
                ](proposal, key, metadata)
            else:
                self._change(proposal, proposal.target_id)

    def write(self) -> None:
        """Write the rows: first the new ones, which may be refused as a whole.

        Raises CycleRefused for a cycle of tasks, phases or pages.
        """
        self._uow.insert_verbatim({kind: rows for kind, rows in self._added.items() if rows})
        for kind, rows in self._saved.items():
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

    def _new_page(self, proposal: Proposal, key: str, metadata: dict[str, Any]) -> None:
        parent = self._reference(proposal, "parent_page_id", metadata, PAGES)
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

    def _new_phase(self, proposal: Proposal, key: str, metadata: dict[str, Any]) -> None:
        phase = Phase(
            initiative_id=self._initiative.id, name=proposal.title, content=proposal.content
        )
        self._add(PHASES, phase, key)
        for other in self._dependencies(proposal, metadata, PHASES):
            edge = PhaseDependency(phase_id=key, depends_on_phase_id=other)
            self._add(PHASE_DEPENDENCIES, edge)

    def _new_task(self, proposal: Proposal, key: str, metadata: dict[str, Any]) -> None:
        phase_id = self._reference(proposal, "phase_id", metadata, PHASES)
        task = Task(
            initiative_id=self._initiative.id,
            phase_id=phase_id,
            parent_task_id=self._reference(proposal, "parent_task_id", metadata, TASKS),
            name=proposal.title,
            description=proposal.content,
            order=proposal.sort_order,
            **_task_fields(metadata),
        )
        self._add(TASKS, task, key)
        for other in self._dependencies(proposal, metadata, TASKS):
            self._add(TASK_DEPENDENCIES, TaskDependency(task_id=key, depends_on_task_id=other))

    def _change(self, proposal: Proposal, key: str) -> None:
        kind = _KINDS[proposal.target_type]
        metadata = _read_metadata(proposal, CHANGE_KEYS[proposal.target_type])
        others = [each for each in self._proposals if each.target_id == key]
        if len(others) > 1:
            both = " and ".join(repr(each.id) for each in others)
            raise InvalidValue("target_id", f"{both} change the same {kind.title}; accept one")
        self._check_exists(proposal, "target_id", key, kind)
        row = self._current(kind, key)
        if isinstance(row, Page):
            changed: Any = evolve(row, title=proposal.title, content=proposal.content)
        elif isinstance(row, Phase):
            changed = evolve(row, name=proposal.title, content=proposal.content)
        else:
            texts = {"name": proposal.title, "description": proposal.content}
            changed = evolve(row, **texts, **_task_fields(metadata))
        if changed != row:
            self._saved[kind][key] = changed

    def _current(self, kind: Kind[E], key: str) -> E | None:
        """A row with the changes prepared so far; None for one that is not stored yet."""
        row: E | None = self._saved[kind].get(key) or self._uow.get(kind, [key])[0]
        return row

    def _reference(
        self, proposal: Proposal, field: str, metadata: dict[str, Any], kind: Kind[Any]
    ) -> str | None:
        """The id of the row that a metadata key names; None without that key."""
        if field not in metadata:
            return None
        return self._resolve_id(proposal, field, metadata[field], kind, own=True)

    def _dependencies(
        self, proposal: Proposal, metadata: dict[str, Any], kind: Kind[Any]
    ) -> Iterable[str]:
        """The ids of the dependencies of a new row, each once; any initiative's are allowed."""
        field, named = "depends_on", metadata.get("depends_on", [])
        if not isinstance(named, list):
            raise InvalidValue(f"metadata.{field}", "must be a list of ids")
        found = [self._resolve_id(proposal, field, each, kind, own=False) for each in named]
        return dict.fromkeys(found)

    def _resolve_id(
        self, proposal: Proposal, field: str, named: object, kind: Kind[Any], *, own: bool
    ) -> str:
        if not isinstance(named, str):
            raise InvalidValue(f"metadata.{field}", f"must be an id, not {type(named).__name__}")
        made, key = self._ids.get(named, (None, named))
        if made is kind:
            return key
        self._check_exists(proposal, f"metadata.{field}", named, kind, own=own)
        return named

    def _check_exists(
        self, proposal: Proposal, field: str, key: str, kind: Kind[Any], *, own: bool = True
    ) -> None:
        """Raise UnknownReference for a missing row, InvalidValue for another initiative's."""
        (row,) = self._uow.get(kind, [key])
        if row is None:
            raise UnknownReference("proposal", proposal.id, field, kind.title, key)
        is_task = isinstance(row, Task)
        initiative_id = self._uow.tasks.initiative_id_of(row) if is_task else row.initiative_id
        # A task without an initiative may be used by any.
        if own and initiative_id not in (None, self._initiative.id):
            raise InvalidValue(field, f"{kind.title} {key!r} is of initiative {initiative_id!r}")


def _read_metadata(proposal: Proposal, known: Sequence[str]) -> dict[str, Any]:
    """The metadata of a proposal without nulls; raises InvalidValue for unknown keys."""
    metadata = {key: each for key, each in (proposal.metadata or {}).items() if each is not None}
    unknown = sorted(metadata.keys() - set(known))
    if unknown:
        what = (
            f"a {proposal.target_type}" if proposal.target_id else f"a new {proposal.target_type}"
        )
        takes = f"takes {', '.join(known)}" if known else "takes none"
        raise InvalidValue(
            "metadata",
            f"{', '.join(unknown)} of proposal {proposal.id!r} is not known: {what} {takes}",
        )
    return metadata


def _task_fields(metadata: dict[str, Any]) -> dict[str, Any]:
    return {name: metadata[name] for name in ("priority", "category") if name in metadata}
