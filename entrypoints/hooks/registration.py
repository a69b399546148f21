"""Tells the record what an agent was registered with, by an event in the spool as any hook's.

The record is one for all repositories and opens none of their stores.
"""

import json
import os
import time

from herdbook.adapters.hosts import registration
from herdbook.adapters.user_state import spool
from herdbook.domain.agents.model import Agent
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.hooks import hook


def spool_registration(
    app: AppContext,
    agent: Agent,
    *,
    provider: str | None,
    model: str | None,
    mode: str | None,
) -> None:
    """Spool what was said of an agent's setup; trouble with it is a warning and stops nobody."""
    raw = registration.payload(agent, provider, model, mode)
    if raw is None:
        return
    here = text_of(str(app.workspace.folder))
    now = time.time_ns() // 1000
    event = spool.SpooledEvent(os.urandom(16).hex(), now, registration.EVENT, here, {}, raw)
    try:
        hook.append(str(spool.folder()), f"\n{json.dumps(event._asdict())}\n".encode())
    except OSError as error:
        app.warn(f"the record does not learn what {agent.name} runs as: {error.strerror or error}")
