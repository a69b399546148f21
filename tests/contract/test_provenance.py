"""What the journal says of a change besides the change: why it was made, and where it came from."""

from datetime import timedelta
from itertools import pairwise

import pytest

from herdbook.domain.clock import FARTHEST_AHEAD, Stamp
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import Actor, Cause, JournalEntry, Op, Provenance
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, PHASES, PROJECTS, TASKS
from tests.contract.conftest import Begin
from tests.contract.rows import make


def _last(begin: Begin, seq: int = 0) -> list[JournalEntry]:
    with begin(write=False) as uow:
        return uow.journal.since(seq)


def _position(begin: Begin) -> int:
    with begin(write=False) as uow:
        return uow.journal.last()


def test_what_a_removal_takes_along_names_its_root(begin: Begin) -> None:
    """A cascade and an emptied reference say so, with the stamp of the removal they follow from."""
    with begin() as uow:
        ours, theirs = make(uow, INITIATIVES), make(uow, INITIATIVES)
        rows = {}
        for owner in (ours, theirs):
            phase = make(uow, PHASES, initiative_id=owner.id)
            task = make(uow, TASKS, phase_id=phase.id, initiative_id=None)
            child = make(uow, TASKS, parent_task_id=task.id, phase_id=None, initiative_id=None)
            agent = make(uow, AGENTS, task_id=None, initiative_id=owner.id)
            rows[owner.id] = {phase.id, task.id, child.id, agent.id}
        uow.commit()
    before = _position(begin)
    with begin() as uow:
        uow.remove(INITIATIVES, [ours.id, theirs.id])
        uow.commit()
    entries = _last(begin, before)
    stamps = {entry.key: entry.at for entry in entries if entry.key in (ours.id, theirs.id)}
    for entry in entries:
        if entry.key in stamps:
            assert (entry.cause, entry.root) == (None, None)
            continue
        (owner_id,) = (each for each, keys in rows.items() if entry.key in keys)
        cause = Cause.CASCADE if entry.op is Op.REMOVE else Cause.SET_NULL
        assert (entry.cause, entry.root) == (cause, stamps[owner_id])
    assert {entry.key for entry in entries} == {*stamps, *rows[ours.id], *rows[theirs.id]}


def test_what_somebody_asked_for_has_no_cause(begin: Begin) -> None:
    """Rows that are added, saved and removed by name follow from nothing."""
    with begin() as uow:
        project = make(uow, PROJECTS)
        (project,) = uow.save(PROJECTS, [project])
        uow.remove(PROJECTS, [project.id])
        uow.commit()
    for entry in _last(begin):
        assert (entry.cause, entry.root, entry.origin, entry.origin_tx, entry.parents) == (
            (None,) * 5
        )


def test_a_change_of_another_replica_keeps_where_it_came_from(begin: Begin) -> None:
    """Its stamp, transaction and parents stand beside the local stamp, which comes after them."""
    with begin() as uow:
        make(uow, PROJECTS)
        uow.commit()
    with begin() as uow:
        origin = Stamp(uow.now + timedelta(seconds=30), 7, "elsewhere")
        parents = (Stamp(uow.now, 0, "elsewhere"), Stamp(uow.now, 1, "third"))
        uow.receive(Provenance(origin, "tx_there", parents))
        make(uow, PROJECTS)
        uow.receive(None)
        make(uow, PROJECTS)
        uow.commit()
    _, foreign, local = entries = _last(begin)
    assert (foreign.origin, foreign.origin_tx) == (origin, "tx_there")
    assert foreign.parents == [str(each) for each in parents]
    assert foreign.at > origin
    assert (local.origin, local.origin_tx, local.parents) == (None, None, None)
    assert all(one.at < other.at for one, other in pairwise(entries))
    with begin() as uow:
        make(uow, PROJECTS)
        uow.commit()
    assert _last(begin)[-1].at > origin


def test_a_stamp_from_a_wrong_clock_is_refused(begin: Begin) -> None:
    """One machine that is far ahead does not move the clock of this space."""
    with begin() as uow:
        make(uow, PROJECTS)
        uow.commit()
    clock = _last(begin)[-1].at
    with begin() as uow:
        ahead = Stamp(uow.now + FARTHEST_AHEAD + timedelta(seconds=1), 0, "elsewhere")
        with pytest.raises(InvalidValue, match="ahead of this machine's clock"):
            uow.receive(Provenance(ahead, "tx_there"))
        make(uow, PROJECTS)
        uow.commit()
    entry = _last(begin)[-1]
    assert clock < entry.at < ahead
    assert entry.origin is None


def test_the_trace_of_the_actor_is_in_the_journal(begin: Begin) -> None:
    """Whoever reads a change finds the trace that it was made in."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with begin(actor=Actor(person="ada", trace_id=trace)) as uow:
        make(uow, PROJECTS)
        uow.commit()
    with begin() as uow:
        make(uow, PROJECTS)
        uow.commit()
    assert [entry.trace_id for entry in _last(begin)] == [trace, None]
