"""Folders of an editor's window that lie in one worktree: it is shown as long as one is open."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.entrypoints.lsp_editor import Editor, add_comment, phase_of, repository

FOLDERS = "workspace/didChangeWorkspaceFolders"


def _folder(path: Path) -> dict[str, Any]:
    return {"uri": path.as_uri(), "name": path.name}


def _event(*, added: tuple[Path, ...] = (), removed: tuple[Path, ...] = ()) -> dict[str, Any]:
    return {"event": {"added": list(map(_folder, added)), "removed": list(map(_folder, removed))}}


@pytest.mark.parametrize("later", [False, True], ids=["at the start", "later"])
def test_a_worktree_is_shown_until_its_last_folder_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, later: bool
) -> None:
    """Whichever goes first, and whether they were there at the start or came later."""
    root = repository(monkeypatch, tmp_path)
    inner = root / "src"
    inner.mkdir()
    with Editor(root) as editor:
        app = editor.get_context()
        phase = phase_of(app)
        add_comment(app, phase, 2, "first")
        if later:
            editor.begin(workspaceFolders=[_folder(root)])
            editor.language.handle_notification(FOLDERS, _event(added=(inner,)))
        else:
            editor.begin(workspaceFolders=[_folder(root), _folder(inner)])
        uri = editor.open(root / "a.py")
        editor.sees(uri, "you: first")
        editor.language.handle_notification(FOLDERS, _event(removed=(root,)))
        add_comment(app, phase, 3, "second")
        editor.sees(uri, "you: first", "you: second")
        editor.language.handle_notification(FOLDERS, _event(added=(root,)))
        editor.language.handle_notification(FOLDERS, _event(removed=(inner, tmp_path)))
        add_comment(app, phase, 4, "third")
        editor.sees(uri, "you: first", "you: second", "you: third")
        editor.language.handle_notification(FOLDERS, _event(removed=(root,)))
        editor.waits(lambda: editor.shown(uri) == [])
        shown = [params["diagnostics"] for name, params in editor.told if "publish" in name]
        assert [len(each) for each in shown] == [1, 2, 3, 0]
