"""What is said when an editor comes: what it can do, which folders it shows, what we can do."""

from pathlib import Path
from typing import Any, NamedTuple

from herdbook.entrypoints.lsp import actions, lsp_types
from herdbook.entrypoints.lsp.positions import Encoding

INCREMENTAL = 2
HIDING = ("helix",)
"""Editors that write the refusal of a command to their log, where nobody sees it."""


class Guest(NamedTuple):
    """What we need to know of an editor."""

    encoding: Encoding
    refreshes_lenses: bool
    hides_refusals: bool
    folders: list[str]


def guest(params: Any) -> Guest:
    """What an editor says of itself; it counts in UTF-16 unless it offers UTF-8."""
    offered = lsp_types.offered(params, "capabilities", "general", "positionEncodings")
    utf_8 = isinstance(offered, list) and Encoding.UTF8 in offered
    refreshes = lsp_types.offered(params, "capabilities", "workspace", "codeLens", "refreshSupport")
    return Guest(
        Encoding.UTF8 if utf_8 else Encoding.UTF16,
        refreshes is True,
        lsp_types.offered(params, "clientInfo", "name") in HIDING,
        _folders(params),
    )


def _folders(params: Any) -> list[str]:
    """The folders that an editor shows, as far as they are there."""
    listed = lsp_types.offered(params, "workspaceFolders")
    uris = [lsp_types.offered(each, "uri") for each in listed] if isinstance(listed, list) else []
    uris = uris or [lsp_types.offered(params, "rootUri")]
    paths = [lsp_types.path_of(uri) for uri in uris if isinstance(uri, str)]
    return [path for path in paths if path is not None and Path(path).is_dir()]


def welcome(encoding: Encoding) -> dict[str, Any]:
    """The answer to `initialize`."""
    from importlib.metadata import version  # noqa: PLC0415 - brings a parser of mails with it

    return {
        "capabilities": {
            "positionEncoding": str(encoding),
            "textDocumentSync": {
                "openClose": True,
                "change": INCREMENTAL,
                "save": {"includeText": False},
            },
            "codeActionProvider": {"codeActionKinds": [actions.QUICK_FIX]},
            "codeLensProvider": {"resolveProvider": False},
            "executeCommandProvider": {"commands": list(actions.COMMANDS)},
            "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
        },
        "serverInfo": {"name": "herdbook", "version": version("herdbook")},
    }
