"""Publishes the comments of files to the editor as diagnostics, whenever they change."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from herdbook.entrypoints.lsp.buffers import Buffers
from herdbook.entrypoints.lsp.diagnostics import diagnostic
from herdbook.entrypoints.lsp.folder_session import FolderSession
from herdbook.entrypoints.lsp.lsp_types import uri_of

MOST_FILES = 1_000
"""The number of files that are not open whose comments are published."""
PUBLISH = "textDocument/publishDiagnostics"

Published = tuple[str, list[dict[str, Any]]]


class Publisher:
    """Publishes comments, one thread at a time, so that the last message on a file is current."""

    def __init__(
        self,
        buffers: Buffers,
        session_of: Callable[[str], FolderSession | None],
        notify: Callable[[str, Any], None],
    ) -> None:
        self._buffers = buffers
        self._session_of = session_of
        self._notify = notify
        self._published: dict[str, Published] = {}
        self._publishing = threading.Lock()

    def diagnostics(self, path: str) -> list[dict[str, Any]]:
        """The diagnostics of a file: its unresolved comments."""
        return self._current(path)[2]

    def publish(self, path: str) -> None:
        """Publish the diagnostics of a file, unless the editor has them already."""
        with self._publishing:
            uri, version, found = self._current(path)
            if self._published.get(path, (uri, [])) == (uri, found):
                return
            params: dict[str, Any] = {"uri": uri, "diagnostics": found}
            if version is not None:
                params["version"] = version
            self._notify(PUBLISH, params)
            if found:
                self._published[path] = (uri, found)
            else:
                self._published.pop(path, None)

    def publish_all(self, sessions: Sequence[FolderSession]) -> None:
        """Publish the diagnostics of all files that are open, have comments or had some."""
        commented = [path for session in sessions for path in session.worktree.commented_files()]
        paths = [*self._buffers.paths(), *commented[:MOST_FILES], *list(self._published)]
        for path in dict.fromkeys(paths):
            self.publish(path)

    def _current(self, path: str) -> tuple[str, int | None, list[dict[str, Any]]]:
        session = self._session_of(path)
        buffer = self._buffers.find(path)
        uri = uri_of(path) if buffer is None else buffer.uri
        if session is None:
            return uri, None, []
        located = session.worktree.locate_comments(path)
        found = [
            diagnostic(comment, mark, located.lines, self._buffers.encoding)
            for comment, mark in located.comments
            if not comment.thread.first.resolved
        ]
        return located.uri or uri, located.version, found
