"""What a process knows of the place it works in: the one spot where everything is put together.

Nothing is read before it is asked for, and nothing is imported before it is needed: `where` answers
without any engine, rule or row being loaded.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from herdbook.adapters.workspace import Whereabouts, account_name
from herdbook.domain.location.areas import Area
from herdbook.domain.location.settings import DEFAULTS, effective_setting

if TYPE_CHECKING:
    from herdbook.domain.agents.model import Agent
    from herdbook.domain.grading import Experience
    from herdbook.domain.journal import Actor
    from herdbook.ports.engine.store import Store
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

R = TypeVar("R")

LONGEST_NOTE = 300
RECORD_OVERRIDES = frozenset({"--record", "--store", "HERDBOOK_RECORD", "HERDBOOK_STORE"})
"""The rules by which one command uses another record than the user's own."""
Progress = Callable[[str, int, int], None]
"""Told now and then which space is at work, how many rows are done, and of how many."""


def no_progress(_: str, __: int, ___: int) -> None:
    """Tell nobody."""


class Here(Whereabouts):
    """One folder, as Herdbook sees it from there.

    What waits for something stops when `enough` says that whoever asked has had enough, and lets
    time pass with `pause`.
    """

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
        *,
        progress: Progress = no_progress,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(folder, variables, arguments)
        self.progress = progress
        self.warn = warn
        self.note: str | None = None
        self.enough: Callable[[], bool] = lambda: False
        self.pause: Callable[[float], object] = time.sleep

    @contextmanager
    def opened(self, area: Area, *, create: bool = False) -> Iterator["Store"]:
        """Open the store of an area, made on the first write; the first write also pins who we are.

        Raises StoreUnavailable where there is none and it may not be made.
        """
        if create:
            self.pin()
        place = self.place(area)
        for note in place.notes:
            self.warn(note)
        with self.opened_at(place, create=create) as store:
            if create:
                self.note_use(place)
                if area is Area.RECORD and self.setting("merge_legacy"):
                    from herdbook.entrypoints import tracker_automerge  # noqa: PLC0415

                    tracker_automerge.merge_once(self, store)
            yield store

    def run(self, area: Area | None, use_case: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run a use case on the store of an area, made if there is none, as whoever acts here."""
        from herdbook.ports.unit_of_work.run import run  # noqa: PLC0415

        area = area or Area.WORK
        with self.opened(area, create=True) as store:
            if area is not Area.WORK:
                return run(
                    store,
                    self.space(area),
                    use_case,
                    *args,
                    actor=self.actor,
                    experience=self.experience,
                    **kwargs,
                )
            self.see(store)
            return run(
                store,
                self.space(area),
                self._as_acting(use_case),
                *args,
                actor=self.actor,
                **kwargs,
            )

    def _as_acting(self, use_case: Callable[..., R]) -> Callable[..., R]:
        """The use case, done in the name of the agent that acts here."""

        def done(uow: "UnitOfWork", *args: Any, **kwargs: Any) -> R:
            agent = self.acting(uow)
            if agent is not None:
                uow.act_as(agent.name)
            return use_case(uow, *args, **kwargs)

        return done

    def acting(self, uow: "UnitOfWork") -> "Agent | None":
        """The agent that acts here: the one named, the session's, or the only one at work here."""
        from herdbook.services.agents import agent_lifecycle  # noqa: PLC0415

        return agent_lifecycle.find_acting_agent(
            uow,
            self.variables.get("HERDBOOK_AGENT") or None,
            self.variables.get("HERDBOOK_SESSION") or None,
            self.worktree_id,
        )

    def read(self, area: Area | None, question: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Ask the store of an area; where there never was one, it answers as an empty one does.

        Raises StoreGone where there was one.
        """
        from herdbook.ports.unit_of_work.run import read  # noqa: PLC0415

        area = area or Area.WORK
        place = self.place(area)
        if not self.is_there(place):
            place = place._replace(url="memory://")
        for note in place.notes:
            self.warn(note)
        with self.opened_at(place) as store:
            rules = self.experience if area is Area.RECORD else None
            return read(store, self.space(area), question, *args, experience=rules, **kwargs)

    @cached_property
    def experience(self) -> "Experience | None":
        """What successes are worth, where the user has set it."""
        prefix = "experience_"
        keys = [key for key in DEFAULTS if key.startswith(prefix)]
        if all(effective_setting(self.layers, key) is None for key in keys):
            return None
        from herdbook.domain.grading import Experience  # noqa: PLC0415

        return Experience(**{key.removeprefix(prefix): self.setting(key) for key in keys})

    def see(self, store: "Store") -> None:
        """Write down in the work store that somebody works in this worktree."""
        facts, identity = self.facts, self.worktree_id
        if facts is None or facts.top_level is None or identity is None:
            return
        from herdbook.ports.unit_of_work.run import run  # noqa: PLC0415
        from herdbook.services.agents import worktrees  # noqa: PLC0415

        run(
            store,
            self.space(Area.WORK),
            worktrees.record_worktree,
            identity,
            text_of(facts.top_level),
            branch=facts.branch,
            is_main=facts.is_main,
            actor=self.actor,
        )

    @property
    def actor(self) -> "Actor":
        """Who acts here, as far as the environment tells."""
        from herdbook.domain.journal import Actor  # noqa: PLC0415

        return Actor(
            person=self.user,
            agent=self.variables.get("HERDBOOK_AGENT") or None,
            session=self.variables.get("HERDBOOK_SESSION") or None,
            worktree=self.worktree_id,
            note="; ".join(filter(None, (*self.overrides, self.note)))[:LONGEST_NOTE] or None,
        )

    @cached_property
    def overrides(self) -> tuple[str, ...]:
        """What leads away from the record that this account keeps, in which halts are written."""
        found = []
        if self.user != account_name():
            found.append(f"HERDBOOK_USER is {self.user}")
        rule = self.place(Area.RECORD).decided_by.rule
        if rule in RECORD_OVERRIDES:
            found.append(f"the record is named by {rule}")
        return tuple(found)

    def with_note(self, note: str) -> Self:
        """The same place for something of which the journal should tell more."""
        noted = copy(self)
        noted.note = note
        return noted


def text_of(path: str | Path) -> str:
    """A path as text that can be kept and printed, whatever bytes it is made of."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
