"""The language server: its requests and notifications, and what it sends to the editor."""

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
from herdbook.entrypoints.lsp.background_jobs import BackgroundJobs
from herdbook.entrypoints.lsp.buffers import Buffers, version_of
from herdbook.entrypoints.lsp.folder_session import FolderSession
from herdbook.entrypoints.lsp.lenses import SHOW_AGENT
from herdbook.entrypoints.lsp.publishing import Publisher
from herdbook.entrypoints.rpc.messages import RpcError

R = TypeVar("R")

ERROR, WARNING, INFO = 1, 2, 3


class EditorConnection(Protocol):
    """The connection to the editor; see `herdbook.entrypoints.rpc.writer`."""

    def get_context(self) -> AppContext:
        """The current context of the server's folder."""

    def notify(self, method: str, params: Any) -> None:
        """Send a notification to the editor."""

    def request(self, method: str, params: Any) -> "Future[Any]":
        """Send a request to the editor."""


class LanguageServer:
    """The language server of one editor."""

    def __init__(self, app: AppContext, connection: EditorConnection) -> None:
        self._app = app
        self._connection = connection
        self._buffers = Buffers()
        self._sessions: dict[str, FolderSession] = {}
        self._roots: dict[str, str] = {}
        self._refreshes = self._hides_errors = False
        self._jobs = BackgroundJobs(self._log_error)
        self._publisher = Publisher(self._buffers, self._session_of, connection.notify)
        self.methods: Mapping[str, Callable[[Any], Any]] = {
            "initialize": self._initialize,
            "textDocument/diagnostic": self._diagnostic,
            "textDocument/codeAction": self._code_action,
            "textDocument/codeLens": self._code_lens,
            "workspace/executeCommand": self._execute,
        }
        self._notification_handlers: Mapping[str, Callable[[Any], None]] = {
            "initialized": self._initialized,
            "textDocument/didOpen": self._did_open,
            "textDocument/didChange": self._did_change,
            "textDocument/didSave": self._did_save,
            "textDocument/didClose": self._did_close,
            "workspace/didChangeWorkspaceFolders": self._did_change_folders,
        }

    def handle_notification(self, method: str, params: Any) -> None:
        """Handle a notification of the editor; an error is logged and has no other effect."""
        handler = self._notification_handlers.get(method)
        if handler is None:
            return
        try:
            handler(params)
        except Exception as error:  # noqa: BLE001 - the editor goes on after any error
            self._log_error(error)

    def close(self) -> None:
        """End all threads, and close the stores of folders other than the server's own."""
        self._jobs.close()
        for session in self._sessions.values():
            session.close()

    def _initialize(self, params: Any) -> dict[str, Any]:
        editor = initialize.editor_info(params)
        self._buffers.encoding = editor.encoding
        self._refreshes = editor.refreshes_lenses
        self._hides_errors = editor.hides_errors
        for folder in editor.folders:
            self._add_folder(folder)
        if not self._sessions:
            self._add_folder(None)
        return initialize.initialize_result(editor.encoding)

    def _initialized(self, _: Any) -> None:
        for session in self._sessions.values():
            session.watch_journal(self._on_change, self._log)
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
            changes = lsp_types.array(params, "contentChanges")
            self._buffers.change(path, version_of(params), changes)
            self._publish(path)

    def _did_save(self, params: Any) -> None:
        _, path = _document(params)
        if path is not None:
            self._buffers.save(path)
            self._publish(path)
            for session in list(self._sessions.values()):
                session.lenses.note_save(path)
            self._request_lens_refresh()

    def _did_close(self, params: Any) -> None:
        _, path = _document(params)
        if path is not None:
            self._buffers.close(path)
            self._publish(path)

    def _did_change_folders(self, params: Any) -> None:
        """Add and remove folders in the background: both may have to wait for a store."""
        removed, added = (
            [
                lsp_types.path_of(lsp_types.text(each, "uri"))
                for each in lsp_types.array(params, "event", name)
            ]
            for name in ("removed", "added")
        )

        def change_folders() -> None:
            for each in removed:
                if each is not None:
                    self._remove_folder(each)
            for each in added:
                session = None if each is None else self._add_folder(each)
                if session is not None:
                    session.watch_journal(self._on_change, self._log)
            self._publisher.publish_all(list(self._sessions.values()))

        self._jobs.submit(object(), change_folders)

    def _diagnostic(self, params: Any) -> dict[str, Any]:
        _, path = _document(params)
        found: list[dict[str, Any]] = []
        if path is not None:
            found = self._read_or_log(partial(self._publisher.diagnostics, path)) or []
        return {"kind": "full", "items": found}

    def _code_action(self, params: Any) -> list[dict[str, Any]]:
        _, path = _document(params)
        first = lsp_types.number(params, "range", "start", "line")
        last = lsp_types.number(params, "range", "end", "line")
        session = None if path is None else self._session_of(path)
        if session is None or path is None:
            return []
        located = self._read_or_log(partial(session.worktree.locate_comments, path))
        if located is None:
            return []
        return actions.code_actions(
            located.comments, first, last, lsp_types.optional(params, "context")
        )

    def _code_lens(self, params: Any) -> list[dict[str, Any]]:
        _, path = _document(params)
        session = None if path is None else self._session_of(path)
        name = None if session is None or path is None else session.worktree.name_of(path)
        if session is None or name is None:
            return []
        return self._read_or_log(partial(session.lenses.lenses_for, name)) or []

    def _execute(self, params: Any) -> Any:
        command = lsp_types.text(params, "command")
        arguments = lsp_types.optional(params, "arguments")
        try:
            app = self._session_for_command(arguments).worktree.get_context()
            answer, sentence = actions.execute(app, command, arguments)
        except (HerdbookError, RpcError) as error:
            if self._hides_errors:
                message = error.message if isinstance(error, RpcError) else str(error)
                self._show(message, ERROR)
            raise
        if sentence is not None:
            self._show(sentence, INFO)
        if command != SHOW_AGENT:
            self._publish_after_command()
        return answer

    def _publish_after_command(self) -> None:
        """Publish what a command has changed, before its answer.

        The journal watcher would publish it too, but after the answer, and there are editors that
        process what comes right after an answer only when something else comes.
        """
        sessions = list(self._sessions.values())
        for session in sessions:
            session.forget()
        try:
            self._publisher.publish_all(sessions)
        except Exception as error:  # noqa: BLE001 - the command is done even if this fails
            self._log_error(error)

    def _session_for_command(self, arguments: Any) -> FolderSession:
        """The session that a command is for: the one with the comment it names, else the first."""
        sessions = list(self._sessions.values())
        first = arguments[0] if isinstance(arguments, list) and arguments else None
        named = lsp_types.optional(first, "comment_id") or first
        if len(sessions) > 1 and isinstance(named, str):
            for session in sessions:
                if self._read_or_log(partial(session.worktree.find_comment, named)) is not None:
                    return session
        if not sessions:
            raise InvalidValue("workspace", "no folder is open")
        return sessions[0]

    def _add_folder(self, folder: str | None) -> FolderSession | None:
        """Add a session for the worktree of a folder; None if it has one or cannot be opened."""
        try:
            session = self._open_session(folder)
        except (HerdbookError, OSError) as error:
            self._log_error(error)
            return None
        self._roots[os.path.realpath(folder or self._app.workspace.folder)] = session.worktree.root
        known = self._sessions.setdefault(session.worktree.root, session)
        if known is not session:
            session.close()
            return None
        return session

    def _remove_folder(self, folder: str) -> None:
        """Close the session of a folder's worktree, unless another folder is in that worktree."""
        root = self._roots.pop(os.path.realpath(folder), None)
        if root is not None and root not in self._roots.values():
            self._sessions.pop(root).close()

    def _open_session(self, folder: str | None) -> FolderSession:
        own = FolderSession(self._connection.get_context, self._buffers, self._request_lens_refresh)
        if folder is None or os.path.realpath(folder) == own.worktree.root:
            return own
        from herdbook.entrypoints.server_context import ServerContext  # noqa: PLC0415 - other folders only

        variables = without_repository_variables(self._app.workspace.variables)
        server = ServerContext(Path(folder), variables, self._app.workspace.arguments)
        session = FolderSession(
            server.call, self._buffers, self._request_lens_refresh, server.close
        )
        if session.worktree.root != own.worktree.root:
            own.close()
            return session
        session.close()
        return own

    def _session_of(self, path: str) -> FolderSession | None:
        """The session of the innermost worktree that contains a file."""
        sessions = list(self._sessions.values())
        inside = [session for session in sessions if session.worktree.name_of(path) is not None]
        return max(inside, key=lambda session: len(session.worktree.root), default=None)

    def _on_change(self, *, comments: bool, lenses: bool) -> None:
        """Publish again what the journal says has changed."""
        if comments:
            self._publish_all()
        if lenses:
            self._request_lens_refresh()

    def _request_lens_refresh(self) -> None:
        if self._refreshes:
            self._jobs.submit("refresh", self._send_lens_refresh)

    def _send_lens_refresh(self) -> None:
        self._connection.request("workspace/codeLens/refresh", None)

    def _publish(self, path: str) -> None:
        self._jobs.submit(path, lambda: self._publisher.publish(path))

    def _publish_all(self) -> None:
        self._jobs.submit("all", lambda: self._publisher.publish_all(list(self._sessions.values())))

    def _read_or_log(self, question: Callable[[], R]) -> R | None:
        """The answer to a question; a HerdbookError is logged, and the answer is None."""
        try:
            return question()
        except HerdbookError as error:
            self._log_error(error)
            return None

    def _show(self, sentence: str, kind: int) -> None:
        self._connection.notify("window/showMessage", {"type": kind, "message": sentence})

    def _log_error(self, error: BaseException) -> None:
        sentence = str(error) if isinstance(error, HerdbookError) else repr(error)
        self._log(sentence, ERROR if not isinstance(error, HerdbookError) else WARNING)

    def _log(self, sentence: str, kind: int = WARNING) -> None:
        message = {"type": kind, "message": f"herdbook: {sentence}"}
        self._connection.notify("window/logMessage", message)


def _document(params: Any) -> tuple[str, str | None]:
    """The URI of a document and its real path; None if it is not a file of this machine."""
    uri = lsp_types.text(params, "textDocument", "uri")
    path = lsp_types.path_of(uri)
    return uri, None if path is None else os.path.realpath(path)
