"""Tells the editor which remarks stand where, and again whenever that is otherwise."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from herdbook.entrypoints.lsp.buffers import Buffers
from herdbook.entrypoints.lsp.diagnostics import diagnostic
from herdbook.entrypoints.lsp.folder_session import Room
from herdbook.entrypoints.lsp.lsp_types import uri_of

MOST_FILES = 1_000
"""Of so many files that are not open, remarks are shown."""
PUBLISH = "textDocument/publishDiagnostics"

Shown = tuple[str, list[dict[str, Any]]]


class Publisher:
    """Publishes remarks, one thread at a time, so that the last word on a file is the newest."""

    def __init__(
        self,
        buffers: Buffers,
        room_of: Callable[[str], Room | None],
        notify: Callable[[str, Any], None],
    ) -> None:
        self._buffers = buffers
        self._room_of = room_of
        self._notify = notify
        self._shown: dict[str, Shown] = {}
        self._publishing = threading.Lock()

    def diagnostics(self, path: str) -> list[dict[str, Any]]:
        """The unresolved remarks of a file."""
        return self._now(path)[2]

    def publish(self, path: str) -> None:
        """Tell what stands beside a file, if the editor does not know it."""
        with self._publishing:
            uri, version, found = self._now(path)
            if self._shown.get(path, (uri, [])) == (uri, found):
                return
            told: dict[str, Any] = {"uri": uri, "diagnostics": found}
            if version is not None:
                told["version"] = version
            self._notify(PUBLISH, told)
            if found:
                self._shown[path] = (uri, found)
            else:
                self._shown.pop(path, None)

    def publish_all(self, rooms: Sequence[Room]) -> None:
        """Tell what stands beside all files that are open, have remarks or had some."""
        remarked = [path for room in rooms for path in room.workspace.files()]
        paths = [*self._buffers.paths(), *remarked[:MOST_FILES], *list(self._shown)]
        for path in dict.fromkeys(paths):
            self.publish(path)

    def _now(self, path: str) -> tuple[str, int | None, list[dict[str, Any]]]:
        room = self._room_of(path)
        buffer = self._buffers.find(path)
        uri = uri_of(path) if buffer is None else buffer.uri
        if room is None:
            return uri, None, []
        placed = room.workspace.placed(path)
        found = [
            diagnostic(remark, mark, placed.lines, self._buffers.encoding)
            for remark, mark in placed.remarks
            if not remark.thread.first.resolved
        ]
        return placed.uri or uri, placed.version, found
