"""Whatever an editor sends, the language server goes on, and complains in its own words."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.lsp.server import ERROR
from herdbook.entrypoints.rpc.messages import RpcError
from tests.unit.entrypoints.lsp_editor import Editor, add_comment, phase_of, repository

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
DOCUMENTS = ["textDocument", "uri", "version", "text", "contentChanges", "event", "added"]
PARTS = ["range", "start", "end", "line", "character", "context", "only", "command", "arguments"]
NAMES = st.sampled_from([*DOCUMENTS, *PARTS])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
PLACES = st.fixed_dictionaries({"line": st.integers(-2, 9), "character": st.integers(-2, 2**33)})
RANGES = st.fixed_dictionaries({"start": PLACES, "end": PLACES})
TEXTS = st.sampled_from(["", "x", "\n", "\r", "\r\n", "🐄", "\ud83d", "\udc04", "a\nb"])
CHANGES = st.fixed_dictionaries({"text": TEXTS}, optional={"range": RANGES})


def _with(uri: str, **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "version": 1, "text": ""}, **more}


def test_nonsense_harms_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Notifications never raise, requests raise what a client is told, and nothing is a defect."""
    root = repository(monkeypatch, tmp_path)
    with Editor(root) as editor:
        app = editor.get_context()
        add_comment(app, phase_of(app), 2)
        editor.begin()
        uri = editor.open(root / "a.py")

        @settings(
            max_examples=max(40, settings.default.max_examples // 2),
            suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        )
        @given(params=JSON, changes=st.lists(CHANGES | JSON, max_size=4), lines=RANGES | JSON)
        def holds(params: Any, changes: list[Any], lines: Any) -> None:
            given = [params, _with(uri, contentChanges=changes, range=lines, context=params)]
            for each in given:
                for name in ("didOpen", "didChange", "didSave", "didClose"):
                    editor.language.handle_notification(f"textDocument/{name}", each)
                editor.language.handle_notification("workspace/didChangeWorkspaceFolders", each)
                for name, method in editor.language.methods.items():
                    try:
                        if name != "initialize":
                            method(each)
                    except (HerdbookError, RpcError):
                        continue

        holds()
        defects = [told for _, told in editor.told if told.get("type") == ERROR]
        assert defects == []
        editor.say("didClose", uri)
        editor.open(root / "a.py")
        assert len(editor.ask("textDocument/diagnostic", uri)["items"]) == 1


def test_any_edit_keeps_every_comment_inside_the_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever is typed, as many comments are shown as there are, each at a line that there is."""
    root = repository(monkeypatch, tmp_path)
    with Editor(root) as editor:
        app = editor.get_context()
        phase = phase_of(app)
        for line in (1, 2, 5):
            add_comment(app, phase, line)
        editor.begin()
        uri = editor.open(root / "a.py")

        @settings(max_examples=max(40, settings.default.max_examples // 2))
        @given(st.lists(CHANGES, max_size=6))
        def holds(changes: list[dict[str, Any]]) -> None:
            editor.type(uri, *changes)
            buffer = editor.language._buffers.find(str(root / "a.py"))
            assert buffer is not None
            found = editor.lines(uri)
            assert len(found) == 3
            assert all(0 <= line < len(buffer.snapshot.lines) for line in found)

        holds()
        assert editor.logged() == []
