"""The variables in which coding agents' hosts name their session to the programs they start."""

from collections.abc import Mapping
from typing import Final

SESSION_VARIABLES: Final = {"CODEX_THREAD_ID": "codex", "CLAUDE_CODE_SESSION_ID": "claude"}
"""Each with the provider of its host.

Who runs one host inside another runs Codex in Claude Code, so that comes first.
"""


def host_session(variables: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The session that a host names in these variables, and its provider; None for neither."""
    for name, provider in SESSION_VARIABLES.items():
        if session := variables.get(name):
            return session, provider
    return None, None
