"""An editor for tests of the language server: says what one says, and keeps what it is told."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Initiative, LineType, Phase, ReviewComment
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.lsp.server import LanguageServer
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import reviews
from tests.unit.adapters.git_repositories import git, made, settle

LONG = 60.0
"""Seconds after which a test gives up: far more than anything here takes."""
TEXT = "one\ntwo\nthree\nfour\nfive\n"


def repository(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """A repository with a file in it, and nothing of the user's around it."""
    for name in [name for name in os.environ if name.startswith("HERDBOOK_")]:
        monkeypatch.delenv(name)
    settle(monkeypatch, folder / "home")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "home" / ".data"))
    root = made(folder / "app")
    (root / "a.py").write_text(TEXT)
    git(root, "add", "a.py")
    git(root, "commit", "--quiet", "-m", "a file")
    return root


def phase_of(app: AppContext, **more: Any) -> Phase:
    """A phase of a new initiative."""

    def add(uow: UnitOfWork) -> Phase:
        goal = uow.initiatives.add(Initiative(name="login", branch=more.pop("branch", None)))
        return uow.phases.add(Phase(initiative_id=goal.id, name="schema", **more))

    return app.run(Area.WORK, add)


def add_comment(
    app: AppContext,
    phase: Phase,
    line: int,
    body: str = "why?",
    *,
    path: str = "a.py",
    kind: LineType = LineType.ADDED,
) -> ReviewComment:
    """A comment on a line of the file."""
    return app.run(
        Area.WORK,
        reviews.comment,
        phase.id,
        body,
        file_path=path,
        line_number=line,
        line_type=kind,
    )


class Editor:
    """Stands where the JSON-RPC server and the editor behind it stand."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.variables = {**os.environ, **variables}
        self.told: list[tuple[str, Any]] = []
        self.asked: list[str] = []
        self._news = threading.Condition()
        self._versions: dict[str, int] = {}
        self.language = LanguageServer(self.get_context(), self)

    def get_context(self) -> AppContext:
        """What is known of the folder now."""
        return AppContext.at(self.folder, self.variables)

    def notify(self, method: str, params: Any) -> None:
        with self._news:
            self.told.append((method, params))
            self._news.notify_all()

    def request(self, method: str, _: Any) -> "Future[Any]":
        answered: Future[Any] = Future()
        answered.set_result(None)
        with self._news:
            self.asked.append(method)
            self._news.notify_all()
        return answered

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.language.close()

    def begin(self, *encodings: str, root: Path | None = None, **more: Any) -> dict[str, Any]:
        """Shake hands; what the server can do."""
        capabilities: dict[str, Any] = {"workspace": {"codeLens": {"refreshSupport": True}}}
        if encodings:
            capabilities["general"] = {"positionEncodings": list(encodings)}
        uri = (root or self.folder).as_uri()
        params = {"rootUri": uri, "capabilities": capabilities, **more}
        answer: dict[str, Any] = self.language.methods["initialize"](params)
        self.language.handle_notification("initialized", {})
        return answer

    def open(self, path: Path, text: str | None = None) -> str:
        """Open a file; its URI."""
        uri = path.as_uri()
        self._versions[uri] = 1
        text = path.read_text() if text is None else text
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.language.handle_notification("textDocument/didOpen", {"textDocument": document})
        return uri

    def type(self, uri: str, *changes: dict[str, Any]) -> None:
        """Change a text."""
        self._versions[uri] += 1
        document = {"uri": uri, "version": self._versions[uri]}
        params = {"textDocument": document, "contentChanges": list(changes)}
        self.language.handle_notification("textDocument/didChange", params)

    def say(self, what: str, uri: str) -> None:
        """Save or close a text."""
        self.language.handle_notification(f"textDocument/{what}", {"textDocument": {"uri": uri}})

    def ask(self, method: str, uri: str, **more: Any) -> Any:
        """Ask about a text."""
        return self.language.methods[method]({"textDocument": {"uri": uri}, **more})

    def actions(self, uri: str, line: int, **context: Any) -> list[dict[str, Any]]:
        """What can be done at a line."""
        place = {"line": line, "character": 0}
        lines = {"start": place, "end": place}
        found: list[dict[str, Any]] = self.ask(
            "textDocument/codeAction", uri, range=lines, context={"diagnostics": [], **context}
        )
        return found

    def run(self, command: str, *arguments: Any) -> Any:
        """Give a command."""
        params = {"command": command, "arguments": list(arguments)}
        return self.language.methods["workspace/executeCommand"](params)

    def lines(self, uri: str) -> list[int]:
        """At which lines of a text comments stand, asked for."""
        items = self.ask("textDocument/diagnostic", uri)["items"]
        return [each["range"]["start"]["line"] for each in items]

    def shown(self, uri: str) -> list[dict[str, Any]] | None:
        """The comments that the editor was last told of, None if it was told nothing."""
        for method, params in reversed(self.told):
            if method == "textDocument/publishDiagnostics" and params["uri"] == uri:
                found: list[dict[str, Any]] = params["diagnostics"]
                return found
        return None

    def sees(self, uri: str, *messages: str) -> list[dict[str, Any]]:
        """Wait until these comments are shown, and give them."""
        self.waits(lambda: [each["message"] for each in self.shown(uri) or []] == list(messages))
        return self.shown(uri) or []

    def waits(self, happened: Callable[[], object]) -> None:
        """Wait until something has happened."""
        with self._news:
            assert self._news.wait_for(happened, LONG), self.told

    def logged(self) -> list[str]:
        """What the server has complained of."""
        return [params["message"] for name, params in self.told if name == "window/logMessage"]


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, Any]:
    """A change between two places, as editors word it."""
    names = ("line", "character")
    ends = {
        "start": dict(zip(names, start, strict=True)),
        "end": dict(zip(names, end, strict=True)),
    }
    return {"range": ends, "text": text}
