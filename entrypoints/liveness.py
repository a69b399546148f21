"""Keeps who is alive up to date: before it is shown, and while a server runs.

Whoever is awake does it: `status` and `board` for this host, a flush for the sessions of its
events, and a server or a waiting command for its own agent.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from herdbook.adapters.system.processes import process_start
from herdbook.adapters.user_state.activity import SpoolActivity
from herdbook.domain.errors import AgentHalted, HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.claims import SERVER_LEASE
from herdbook.entrypoints.context import AppContext, CallStores
from herdbook.services.agents import liveness
from herdbook.services.agents.halts import note_if_unknown
from herdbook.services.plan import lease_renewal

SHORTEST_PERIOD = 0.1


def update_if_outdated(app: AppContext) -> None:
    """Mark crashed agents, and renew leases, if there may be any, before they are shown."""
    if app.read(Area.WORK, liveness.is_outdated, app.workspace.host, process_start):
        update(app)


def update(app: AppContext) -> None:
    """Mark crashed agents of this host, and renew the leases of agents that were seen.

    Trouble with that is a warning: what is shown is as it was then.
    """
    host, activity = app.workspace.host, SpoolActivity()
    try:
        app.run_unattended(Area.WORK, liveness.update, host, process_start, activity)
    except HerdbookError as error:
        app.warn(f"it could not be written which agents are alive: {error}")


def follow_sessions(app: AppContext, ended: Iterable[str]) -> None:
    """After a flush: renew the leases of agents that were seen, end those of ended sessions."""
    sessions = list(ended)
    try:
        if app.workspace.store_exists(app.workspace.locate(Area.WORK)):
            app.run_unattended(Area.WORK, lease_renewal.renew_seen, SpoolActivity())
            if sessions:
                app.run_unattended(Area.WORK, lease_renewal.end_leases, sessions)
    except HerdbookError as error:
        app.warn(f"the leases of agents could not be renewed: {error}")


def renew(app: AppContext, ttl: timedelta = SERVER_LEASE) -> None:
    """Renew what the acting agent holds, unless it is halted or has ended."""
    agent = app.read(Area.WORK, app.identity.find_agent)
    if agent is None or not app.read(Area.WORK, lease_renewal.needs_renewal, agent.id, ttl):
        return
    try:
        note_if_unknown(app.halts(), agent.name)
    except AgentHalted:
        return
    app.run_unattended(Area.WORK, lease_renewal.renew_held, agent.id, ttl)


class LeaseRenewal:
    """Renews, in a thread of its own, what the acting agent of a server or command holds.

    The leases last for the duration of the last claim, and are renewed three times in that. When
    the process ends, they run out.
    """

    def __init__(self, get_context: Callable[[], AppContext]) -> None:
        self._get_context = get_context
        self._ttl = SERVER_LEASE
        self._changed = threading.Event()
        self._is_over = False

    def start(self, *, at_once: bool = False) -> None:
        """Begin to renew, the first time after a third of the duration unless `at_once`."""
        if at_once:
            self._changed.set()
        threading.Thread(target=self._run, name="lease renewal", daemon=True).start()

    def expect(self, ttl: timedelta) -> None:
        """Renew for this duration from now on."""
        self._ttl = ttl
        self._changed.set()

    def stop(self) -> None:
        """Renew nothing any more."""
        self._is_over = True
        self._changed.set()

    def _run(self) -> None:
        while not self._is_over:
            self._changed.wait(max(self._ttl.total_seconds() / 3, SHORTEST_PERIOD))
            self._changed.clear()
            if not self._is_over:
                self._renew()

    def _renew(self) -> None:
        app = self._get_context()
        try:
            renew(app, self._ttl)
        except HerdbookError as error:
            app.warn(f"the lease could not be renewed, which is tried again: {error}")


@contextmanager
def renewed_leases(app: AppContext) -> Iterator[None]:
    """While a command waits, renew what its agent holds; a server does that anyway."""
    if app.identity.is_person or not isinstance(app.stores, CallStores):
        yield
        return
    place = app.workspace
    renewal = LeaseRenewal(
        lambda: AppContext.at(
            place.folder, place.variables, place.arguments, agent_name=app.identity.agent_name
        )
    )
    renewal.start(at_once=True)
    try:
        yield
    finally:
        renewal.stop()
