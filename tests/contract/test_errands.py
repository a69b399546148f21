"""Errands from their start to their end."""

import pytest

from herdbook.domain.errors import AlreadyExists, InvalidValue, NotFound
from herdbook.domain.plan.model import Errand, ErrandStatus, Project
from herdbook.services.plan import errands
from tests.contract.claims import add_agents, do
from tests.contract.turns import Begin

ACTIVE, PENDING_REVIEW, CONFLICT, MERGED, ABANDONED = ErrandStatus


def _project(begin: Begin) -> Project:
    row = Project(name="barn", url="https://example.org/barn", default_branch="trunk")
    return do(begin, lambda uow: uow.projects.add(row))


def _errand(begin: Begin, **given: object) -> Errand:
    return do(begin, errands.start, _project(begin).id, "Mend it", "mend", **given)


def test_an_errand_starts_from_the_default_branch_of_its_project(begin: Begin) -> None:
    """Active, and of nobody yet."""
    errand = _errand(begin)
    assert (errand.base_branch, errand.branch) == ("trunk", "mend")
    assert (errand.status, errand.agent_id) == (ACTIVE, None)


def test_an_errand_may_be_told_its_id_its_base_and_its_agent(begin: Begin) -> None:
    """An id that is taken is refused."""
    (agent,) = add_agents(begin)
    given = {"base_branch": "next", "agent_id": agent, "errand_id": "err_mine"}
    errand = _errand(begin, **given)
    assert (errand.id, errand.base_branch, errand.agent_id) == ("err_mine", "next", agent)
    with pytest.raises(AlreadyExists):
        do(begin, errands.start, errand.project_id, "x", "x", errand_id="err_mine")
    with pytest.raises(NotFound):
        do(begin, errands.start, "nothing", "x", "x")


@pytest.mark.parametrize("end", [MERGED, ABANDONED])
def test_an_errand_moves_until_it_has_ended(begin: Begin, end: ErrandStatus) -> None:
    """There and back as often as it takes; once it was merged or abandoned, it stays so."""
    errand = _errand(begin)
    for status in (PENDING_REVIEW, CONFLICT, ACTIVE, PENDING_REVIEW, end):
        errand = do(begin, errands.change_status, errand.id, status)
        assert errand.status is status
    assert do(begin, errands.change_status, errand.id, end) == errand
    for status in set(ErrandStatus) - {end}:
        with pytest.raises(InvalidValue, match=f"is {end} and stays so"):
            do(begin, errands.change_status, errand.id, status)
    with begin(write=False) as uow:
        assert uow.errands.get(errand.id) == errand
