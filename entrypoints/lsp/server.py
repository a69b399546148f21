"""The language server: what an editor may ask and tell, and what it is told of its own accord."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from herdbook.adapters.git.git_process import without_repository_variables
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.lsp import actions, initialize, lsp_types
from herdbook.entrypoints.lsp.background_jobs import Errands
from herdbook.entrypoints.lsp.buffers import Buffers, version_of
from herdbook.entrypoints.lsp.folder_session import Room
from herdbook.entrypoints.lsp.lenses import SHOW
from herdbook.entrypoints.lsp.publishing import Publisher
from herdbook.entrypoints.rpc.messages import RpcError

R = TypeVar("R")

ERROR, WARNING, INFO = 1, 2, 3


class Outlet(Protocol):
    """The way to the editor; see `herdbook.entrypoints.rpc.writer`."""

    def here(self) -> AppContext:
        """What is known of the server's folder now."""

    def notify(self, method: str, params: Any) -> None:
        """Tell the editor something."""

    def request(self, method: str, params: Any) -> "Future[Any]":
        """Ask the editor something."""


class Language:
    """What one editor sees of Herdbook."""

    def __init__(self, here: AppContext, outlet: Outlet) -> None:
        self._here = here
        self._outlet = outlet
        self._buffers = Buffers()
        self._rooms: dict[str, Room] = {}
        self._roots: dict[str, str] = {}
        self._refreshes = self._hides_refusals = False
        self._errands = Errands(self._failed)
        self._publisher = Publisher(self._buffers, self._room_of, outlet.notify)
        self.methods: Mapping[str, Callable[[Any], Any]] = {
            "initialize": self._initialize,
            "textDocument/diagnostic": self._diagnostic,
            "textDocument/codeAction": self._code_action,
            "textDocument/codeLens": self._code_lens,
            "workspace/executeCommand": self._execute,
        }
        self._notices: Mapping[str, Callable[[Any], None]] = {
            "initialized": self._initialized,
            "textDocument/didOpen": self._did_open,
            "textDocument/didChange": self._did_change,
            "textDocument/didSave": self._did_save,
            "textDocument/didClose": self._did_close,
            "workspace/didChangeWorkspaceFolders": self._did_change_folders,
        }

    def notice(self, method: str, params: Any) -> None:
        """Take in what the editor tells; what makes no sense is logged, and that is all."""
        told = self._notices.get(method)
        if told is None:
            return
        try:
            told(params)
        except Exception as error:  # noqa: BLE001 - an editor must not suffer for it
            self._failed(error)

    def close(self) -> None:
        """End all threads and close the stores of folders that are not the server's own."""
        self._errands.close()
        for room in self._rooms.values():
            room.close()

    def _initialize(self, params: Any) -> dict[str, Any]:
        guest = initialize.guest(params)
        self._buffers.encoding = guest.encoding
        self._refreshes = guest.refreshes_lenses
        self._hides_refusals = guest.hides_refusals
        for folder in guest.folders:
            self._enter(folder)
        if not self._rooms:
            self._enter(None)
        return initialize.welcome(guest.encoding)

    def _initialized(self, _: Any) -> None:
        for room in self._rooms.values():
            room.follow(self._changed, self._log)
        self._publish_all()

    def _did_open(self, params: Any) -> None:
        uri, path = _document(params)
        if path is not None:
            content = lsp_types.text(params, "textDocument", "text")
            self._buffers.open(path, uri, version_of(params), content)
            self._publish(path)

    def _did_change(self, params: Any) -> None:
        _, path = _document(params)
        if path is not None:
            changes = lsp_types.listed(params, "contentChanges")
            self._buffers.change(path, version_of(params), changes)
            self._publish(path)

    def _did_save(self, params: Any) -> None:
        _, path = _document(params)
        if path is not None:
            self._buffers.save(path)
            self._publish(path)
            for room in list(self._rooms.values()):
                room.lenses.saved(path)
            self._late()

    def _did_close(self, params: Any) -> None:
        _, path = _document(params)
        if path is not None:
            self._buffers.close(path)
            self._publish(path)

    def _did_change_folders(self, params: Any) -> None:
        """Move in and out behind this thread: both may have to wait for a store."""
        left, come = (
            [
                lsp_types.path_of(lsp_types.text(each, "uri"))
                for each in lsp_types.listed(params, "event", name)
            ]
            for name in ("removed", "added")
        )

        def move() -> None:
            for each in left:
                if each is not None:
                    self._leave(each)
            for each in come:
                room = None if each is None else self._enter(each)
                if room is not None:
                    room.follow(self._changed, self._log)
            self._publisher.publish_all(list(self._rooms.values()))

        self._errands.want(object(), move)

    def _diagnostic(self, params: Any) -> dict[str, Any]:
        _, path = _document(params)
        found: list[dict[str, Any]] = []
        if path is not None:
            found = self._safely(partial(self._publisher.diagnostics, path)) or []
        return {"kind": "full", "items": found}

    def _code_action(self, params: Any) -> list[dict[str, Any]]:
        _, path = _document(params)
        first = lsp_types.number(params, "range", "start", "line")
        last = lsp_types.number(params, "range", "end", "line")
        room = None if path is None else self._room_of(path)
        if room is None or path is None:
            return []
        placed = self._safely(partial(room.workspace.placed, path))
        if placed is None:
            return []
        return actions.actions(placed.remarks, first, last, lsp_types.offered(params, "context"))

    def _code_lens(self, params: Any) -> list[dict[str, Any]]:
        _, path = _document(params)
        room = None if path is None else self._room_of(path)
        name = None if room is None or path is None else room.workspace.name_of(path)
        if room is None or name is None:
            return []
        return self._safely(partial(room.lenses.of, name)) or []

    def _execute(self, params: Any) -> Any:
        command = lsp_types.text(params, "command")
        arguments = lsp_types.offered(params, "arguments")
        try:
            here = self._acting_room(arguments).workspace.look()
            answer, sentence = actions.execute(here, command, arguments)
        except (HerdbookError, RpcError) as error:
            if self._hides_refusals:
                said = error.message if isinstance(error, RpcError) else str(error)
                self._show(said, ERROR)
            raise
        if sentence is not None:
            self._show(sentence, INFO)
        if command != SHOW:
            self._publish_own()
        return answer

    def _publish_own(self) -> None:
        """Show what a command has changed, before its answer.

        The journal will tell as well, but behind it, and there are editors that leave what comes
        right behind an answer until something else comes.
        """
        rooms = list(self._rooms.values())
        for room in rooms:
            room.forget()
        try:
            self._publisher.publish_all(rooms)
        except Exception as error:  # noqa: BLE001 - the command is done, whatever is shown of it
            self._failed(error)

    def _acting_room(self, arguments: Any) -> Room:
        """Where a command is meant: where the remark it names is shown, else the first folder."""
        rooms = list(self._rooms.values())
        first = arguments[0] if isinstance(arguments, list) and arguments else None
        named = lsp_types.offered(first, "comment_id") or first
        if len(rooms) > 1 and isinstance(named, str):
            for room in rooms:
                if self._safely(partial(room.workspace.remark_of, named)) is not None:
                    return room
        if not rooms:
            raise InvalidValue("workspace", "no folder is open")
        return rooms[0]

    def _enter(self, folder: str | None) -> Room | None:
        """Show the worktree of a folder, unless it is shown; None where that cannot be done."""
        try:
            room = self._room(folder)
        except (HerdbookError, OSError) as error:
            self._failed(error)
            return None
        self._roots[os.path.realpath(folder or self._here.workspace.folder)] = room.workspace.root
        known = self._rooms.setdefault(room.workspace.root, room)
        if known is not room:
            room.close()
            return None
        return room

    def _leave(self, folder: str) -> None:
        """Show the worktree of a folder no longer, unless another folder lies in it."""
        root = self._roots.pop(os.path.realpath(folder), None)
        if root is not None and root not in self._roots.values():
            self._rooms.pop(root).close()

    def _room(self, folder: str | None) -> Room:
        own = Room(self._outlet.here, self._buffers, self._late)
        if folder is None or os.path.realpath(folder) == own.workspace.root:
            return own
        from herdbook.entrypoints.server_context import ServerContext  # noqa: PLC0415 - other folders only

        variables = without_repository_variables(self._here.workspace.variables)
        server = ServerContext(Path(folder), variables, self._here.workspace.arguments)
        room = Room(server.call, self._buffers, self._late, server.close)
        if room.workspace.root != own.workspace.root:
            own.close()
            return room
        room.close()
        return own

    def _room_of(self, path: str) -> Room | None:
        """The innermost worktree that a file lies in."""
        rooms = list(self._rooms.values())
        inside = [room for room in rooms if room.workspace.name_of(path) is not None]
        return max(inside, key=lambda room: len(room.workspace.root), default=None)

    def _changed(self, *, remarks: bool, lenses: bool) -> None:
        """Show again what the journal says has changed."""
        if remarks:
            self._publish_all()
        if lenses:
            self._late()

    def _late(self) -> None:
        if self._refreshes:
            self._errands.want("refresh", self._refresh)

    def _refresh(self) -> None:
        self._outlet.request("workspace/codeLens/refresh", None)

    def _publish(self, path: str) -> None:
        self._errands.want(path, lambda: self._publisher.publish(path))

    def _publish_all(self) -> None:
        self._errands.want("all", lambda: self._publisher.publish_all(list(self._rooms.values())))

    def _safely(self, question: Callable[[], R]) -> R | None:
        """An answer, or None where there is trouble, which is logged."""
        try:
            return question()
        except HerdbookError as error:
            self._failed(error)
            return None

    def _show(self, sentence: str, kind: int) -> None:
        self._outlet.notify("window/showMessage", {"type": kind, "message": sentence})

    def _failed(self, error: BaseException) -> None:
        sentence = str(error) if isinstance(error, HerdbookError) else repr(error)
        self._log(sentence, ERROR if not isinstance(error, HerdbookError) else WARNING)

    def _log(self, sentence: str, kind: int = WARNING) -> None:
        message = {"type": kind, "message": f"herdbook: {sentence}"}
        self._outlet.notify("window/logMessage", message)


def _document(params: Any) -> tuple[str, str | None]:
    """The URI of a document and its real path; None for what is no file of this machine."""
    uri = lsp_types.text(params, "textDocument", "uri")
    path = lsp_types.path_of(uri)
    return uri, None if path is None else os.path.realpath(path)
