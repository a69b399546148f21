"""The `initialize` request: what the editor can do, its folders, and the server's answer."""

from pathlib import Path
from typing import Any, NamedTuple

from herdbook.entrypoints.lsp import actions, lsp_types
from herdbook.entrypoints.lsp.positions import Encoding

INCREMENTAL = 2
HIDES_ERRORS = ("helix",)
"""Editors that write the error of a command to their log only, where nobody sees it."""


class EditorInfo(NamedTuple):
    """What the server needs to know about an editor."""

    encoding: Encoding
    refreshes_lenses: bool
    hides_errors: bool
    folders: list[str]


def editor_info(params: Any) -> EditorInfo:
    """What an editor says about itself; positions are in UTF-16 unless it offers UTF-8."""
    encodings = lsp_types.optional(params, "capabilities", "general", "positionEncodings")
    utf_8 = isinstance(encodings, list) and Encoding.UTF8 in encodings
    refreshes = lsp_types.optional(
        params, "capabilities", "workspace", "codeLens", "refreshSupport"
    )
    return EditorInfo(
        Encoding.UTF8 if utf_8 else Encoding.UTF16,
        refreshes is True,
        lsp_types.optional(params, "clientInfo", "name") in HIDES_ERRORS,
        _folders(params),
    )


def _folders(params: Any) -> list[str]:
    """The folders that an editor shows and that exist."""
    folders = lsp_types.optional(params, "workspaceFolders")
    uris = (
        [lsp_types.optional(each, "uri") for each in folders] if isinstance(folders, list) else []
    )
    uris = uris or [lsp_types.optional(params, "rootUri")]
    paths = [lsp_types.path_of(uri) for uri in uris if isinstance(uri, str)]
    return [path for path in paths if path is not None and Path(path).is_dir()]


def initialize_result(encoding: Encoding) -> dict[str, Any]:
    """The answer to `initialize`."""
    from importlib.metadata import version  # noqa: PLC0415 - imports a parser of mails

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
