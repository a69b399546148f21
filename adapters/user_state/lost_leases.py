"""What agents are told at their next tool: that somebody else holds the task they were at.

One small file for each agent, named after its session, or after the agent if it has none; the hook
reads it before a tool is used, and removes it once the agent was told.
"""

from pathlib import Path

from herdbook.adapters.user_state.dirs import state_folder, write_private
from herdbook.adapters.user_state.halt_markers import agent_marker_name, marker_name
from herdbook.domain.agents.model import Agent


def folder() -> Path:
    """The folder of the files; `hook.py` computes the same path by itself."""
    return state_folder() / "lost-leases"


def note_lost(agent: Agent, sentence: str) -> None:
    """Leave a sentence for an agent that lost its lease."""
    write_private(_path(agent), " ".join(sentence.split()) + "\n")


def forget_lost(agent: Agent) -> None:
    """Remove the sentence for an agent, which has claimed another task since."""
    _path(agent).unlink(missing_ok=True)


def _path(agent: Agent) -> Path:
    session = agent.session_id
    return folder() / (marker_name(session) if session else agent_marker_name(agent.name))
