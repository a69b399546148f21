"""Comments of reviews in an editor's margin: which are shown, where, and while somebody types."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Initiative, LineType, Phase
from herdbook.entrypoints.lsp.diagnostics import LINE_REMOVED, ON_REMOVED_LINE
from herdbook.services.plan import reviews
from tests.unit.adapters.git_repositories import git
from tests.unit.entrypoints.lsp_editor import (
    TEXT,
    Editor,
    add_comment,
    change,
    phase_of,
    repository,
)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return repository(monkeypatch, tmp_path)


@pytest.fixture
def editor(root: Path) -> Iterator[Editor]:
    with Editor(root) as opened:
        yield opened


def test_a_comment_stands_at_its_line_with_its_replies(editor: Editor, root: Path) -> None:
    """Its range is what the line says, and its code is the comment's id."""
    app = editor.get_context()
    first = add_comment(app, phase_of(app), 2)
    app.run(Area.WORK, reviews.reply, first.id, "because", author="brisk-otter")
    editor.begin()
    uri = editor.open(root / "a.py")
    (shown,) = editor.sees(uri, "you: why?\nbrisk-otter: because")
    places = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}
    assert shown["range"] == places
    assert (shown["code"], shown["source"], shown["severity"]) == (first.id, "herdbook", 3)


def test_files_that_are_not_open_are_shown_as_well(editor: Editor, root: Path) -> None:
    """Lines behind the end of the file are its last line, and a file that is gone keeps them."""
    app = editor.get_context()
    phase = phase_of(app)
    add_comment(app, phase, 99)
    add_comment(app, phase, 7, "gone", path="b.py")
    editor.begin()
    (last,) = editor.sees((root / "a.py").as_uri(), "you: why?")
    (gone,) = editor.sees((root / "b.py").as_uri(), "you: gone")
    assert last["range"]["start"] == {"line": 4, "character": 0}
    assert gone["range"]["start"] == {"line": 6, "character": 0}


def test_nothing_outside_the_worktree_is_read_or_shown(
    editor: Editor, root: Path, tmp_path: Path
) -> None:
    """Neither by a name that leads out nor by a link that does."""
    (tmp_path / "secret").write_text("s3cr3t\n")
    (root / "link").symlink_to(tmp_path / "secret")
    app = editor.get_context()
    phase = phase_of(app)
    for path in ("../secret", str(tmp_path / "secret"), "link", "a/../../secret", "x\ty", "."):
        add_comment(app, phase, 1, path=path)
    add_comment(app, phase, 1, "seen")
    editor.begin()
    editor.sees((root / "a.py").as_uri(), "you: seen")
    shown = {params["uri"] for name, params in editor.told if name.endswith("publishDiagnostics")}
    assert shown <= {(root / name).as_uri() for name in ("a.py", "x\ty")}


def test_only_comments_on_the_branchs_initiative_are_shown(editor: Editor, root: Path) -> None:
    """Another branch that is checked out later brings its own comments."""
    app = editor.get_context()
    add_comment(app, phase_of(app, branch="main"), 1, "of main")
    add_comment(app, phase_of(app, branch="side"), 2, "of side")
    editor.begin()
    uri = editor.open(root / "a.py")
    editor.sees(uri, "you: of main")
    git(root, "switch", "--quiet", "-c", "side")
    editor.say("didSave", uri)
    editor.sees(uri, "you: of side")


def test_comments_move_with_their_lines(editor: Editor, root: Path) -> None:
    """A question right behind a change sees it, and so is the editor told again."""
    app = editor.get_context()
    phase = phase_of(app)
    add_comment(app, phase, 2, "two")
    add_comment(app, phase, 4, "four")
    editor.begin()
    uri = editor.open(root / "a.py")
    assert editor.lines(uri) == [1, 3]
    editor.type(uri, change((0, 0), (0, 0), "zero\n"), change((3, 5), (3, 5), "\nmore"))
    assert editor.lines(uri) == [2, 5]
    editor.waits(
        lambda: [each["range"]["start"]["line"] for each in editor.shown(uri) or []] == [2, 5]
    )
    assert editor.told[-1][1].get("version") == 2


def test_a_comment_on_a_removed_line_stands_at_the_next_one_and_says_so(
    editor: Editor, root: Path
) -> None:
    """It comes back when the removal is taken back."""
    app = editor.get_context()
    add_comment(app, phase_of(app), 2)
    editor.begin()
    uri = editor.open(root / "a.py")
    editor.sees(uri, "you: why?")
    editor.type(uri, change((1, 0), (2, 0), ""))
    (shown,) = editor.sees(uri, f"you: why?\n({LINE_REMOVED})")
    assert shown["range"]["end"] == {"line": 1, "character": 5}
    editor.type(uri, change((1, 0), (1, 0), "two\n"))
    editor.sees(uri, "you: why?")


def test_a_whole_new_text_keeps_comments_at_their_lines(editor: Editor, root: Path) -> None:
    """Also where the editor sends no range."""
    app = editor.get_context()
    add_comment(app, phase_of(app), 4)
    editor.begin()
    uri = editor.open(root / "a.py")
    assert editor.lines(uri) == [3]
    editor.type(uri, {"text": "new\n" + TEXT.replace("two\n", "")})
    assert editor.lines(uri) == [3]
    editor.type(uri, {"text": "four"})
    assert editor.lines(uri) == [0]
    editor.type(uri, {"text": ""})
    assert editor.lines(uri) == [0]


def test_a_comment_on_the_old_side_is_found_by_the_phases_base(editor: Editor, root: Path) -> None:
    """Its line is counted in the file as it was before the phase."""
    base = git(root, "rev-parse", "HEAD").strip()
    (root / "a.py").write_text("zero\none\nthree\nfour\nfive\n")
    app = editor.get_context()
    phase = phase_of(app, merge_base=base)
    add_comment(app, phase, 2, "needed", kind=LineType.REMOVED)
    editor.begin()
    uri = editor.open(root / "a.py")
    (shown,) = editor.sees(uri, f"you: needed\n({ON_REMOVED_LINE})")
    assert shown["range"]["end"] == {"line": 2, "character": 5}


def test_what_was_typed_before_a_file_was_closed_still_counts(editor: Editor, root: Path) -> None:
    """Opened again, and while it is closed, a comment stands where its line does."""
    app = editor.get_context()
    add_comment(app, phase_of(app), 2)
    editor.begin()
    uri = editor.open(root / "a.py")
    editor.sees(uri, "you: why?")
    editor.type(uri, change((0, 0), (0, 0), "zero\n"))
    assert editor.lines(uri) == [2]
    (root / "a.py").write_text("zero\n" + TEXT)
    editor.say("didSave", uri)
    editor.say("didClose", uri)
    assert editor.lines(uri) == [2]
    editor.open(root / "a.py", "minus\nzero\n" + TEXT)
    assert editor.lines(uri) == [3]


def test_a_comment_that_comes_while_somebody_types_is_counted_in_the_saved_text(
    editor: Editor, root: Path
) -> None:
    """Whoever made it has not seen what was not saved."""
    app = editor.get_context()
    phase = phase_of(app)
    editor.begin()
    uri = editor.open(root / "a.py")
    editor.type(uri, change((0, 0), (0, 0), "zero\n"))
    add_comment(app, phase, 2)
    (shown,) = editor.sees(uri, "you: why?")
    assert shown["range"]["start"]["line"] == 2


@pytest.mark.parametrize(
    ("offered", "chosen", "ends"),
    [
        ((), "utf-16", (2, 5)),
        (("utf-16", "utf-8"), "utf-8", (2, 8)),
        (("utf-32",), "utf-16", (2, 5)),
    ],
)
def test_places_are_counted_as_agreed(
    editor: Editor, root: Path, offered: tuple[str, ...], chosen: str, ends: tuple[int, int]
) -> None:
    """In UTF-8 where the editor offers it, else in UTF-16; both ways, and with CRLF."""
    app = editor.get_context()
    add_comment(app, phase_of(app), 1)
    answer = editor.begin(*offered)
    assert answer["capabilities"]["positionEncoding"] == chosen
    uri = editor.open(root / "a.py", "  🐄é\r\nb")
    (found,) = editor.ask("textDocument/diagnostic", uri)["items"]
    assert found["range"]["start"]["character"] == ends[0]
    assert found["range"]["end"]["character"] == ends[1]
    behind_cow = 4 if chosen == "utf-16" else 6
    editor.type(uri, change((0, 2), (0, behind_cow), "x"))
    (found,) = editor.ask("textDocument/diagnostic", uri)["items"]
    assert found["range"]["end"]["character"] == (4 if chosen == "utf-16" else 5)


@pytest.mark.parametrize(
    "notice",
    [
        pytest.param(("textDocument/didOpen", None), id="nothing"),
        pytest.param(("textDocument/didOpen", {"textDocument": {"uri": 7}}), id="no uri"),
        pytest.param(
            (
                "textDocument/didChange",
                {"textDocument": {"uri": "file:///x"}, "contentChanges": []},
            ),
            id="not open",
        ),
        pytest.param(("workspace/didChangeWorkspaceFolders", {"event": 1}), id="no event"),
    ],
)
def test_what_makes_no_sense_is_logged_and_harms_nothing(
    editor: Editor, root: Path, notice: tuple[str, Any]
) -> None:
    """The server goes on as before."""
    app = editor.get_context()
    add_comment(app, phase_of(app), 1)
    editor.begin()
    before = len(editor.logged())
    editor.language.handle_notification(*notice)
    assert len(editor.logged()) > before
    uri = editor.open(root / "a.py")
    assert editor.lines(uri) == [0]


@pytest.mark.parametrize(
    "uri", ["untitled:one", "file://elsewhere/a", "git:/a?b", "file:", "\ud800"]
)
def test_what_is_no_file_here_has_no_comments(editor: Editor, uri: str) -> None:
    """Whatever the editor calls it, nothing is complained of."""
    editor.begin()
    document = {"uri": uri, "version": 1, "text": "x"}
    editor.language.handle_notification("textDocument/didOpen", {"textDocument": document})
    assert editor.lines(uri) == []
    assert editor.actions(uri, 0) == []
    assert editor.ask("textDocument/codeLens", uri) == []
    assert editor.logged() == []


def test_an_editor_in_another_worktree_sees_that_one(
    editor: Editor, root: Path, tmp_path: Path
) -> None:
    """Its own initiative, from the store that all worktrees share."""
    side = tmp_path / "side"
    git(root, "worktree", "add", "--quiet", "-b", "side", side)
    app = editor.get_context()
    add_comment(app, phase_of(app, branch="main"), 1, "of main")
    add_comment(app, phase_of(app, branch="side"), 2, "of side")
    folders = [{"uri": each.as_uri(), "name": each.name} for each in (side, root)]
    editor.begin(workspaceFolders=folders)
    editor.sees(editor.open(side / "a.py"), "you: of side")
    editor.sees(editor.open(root / "a.py"), "you: of main")


def test_folders_come_and_go(editor: Editor, root: Path, tmp_path: Path) -> None:
    """Comments on one that comes are shown, and no longer when it goes."""
    side = tmp_path / "side"
    git(root, "worktree", "add", "--quiet", "-b", "side", side)
    app = editor.get_context()
    add_comment(app, phase_of(app, branch="side"), 2, "of side")
    editor.begin()
    uri, folder = (side / "a.py").as_uri(), {"uri": side.as_uri(), "name": "side"}
    folders = "workspace/didChangeWorkspaceFolders"
    editor.language.handle_notification(folders, {"event": {"added": [folder], "removed": []}})
    editor.sees(uri, "you: of side")
    editor.language.handle_notification(folders, {"event": {"added": [], "removed": [folder]}})
    editor.waits(lambda: editor.shown(uri) == [])


def test_without_a_repository_and_a_store_an_editor_is_told_nothing(
    editor: Editor, root: Path, tmp_path: Path
) -> None:
    """No store is made because somebody looks."""
    del root
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text(TEXT)
    editor.begin(root=outside)
    uri = editor.open(outside / "a.py")
    assert editor.lines(uri) == []
    assert editor.logged() == []
    assert not (editor.folder / ".herdbook").exists()


def test_two_initiatives_without_a_branch_show_nothing(editor: Editor, root: Path) -> None:
    """Nobody could say which of them is meant."""
    app = editor.get_context()
    add_comment(app, phase_of(app), 1)
    other = app.run(Area.WORK, lambda uow: uow.initiatives.add(Initiative(name="other")))
    app.run(Area.WORK, lambda uow: uow.phases.add(Phase(initiative_id=other.id, name="p")))
    editor.begin()
    assert editor.lines(editor.open(root / "a.py")) == []


def test_a_comment_on_a_commit_is_where_its_line_is_now(editor: Editor, root: Path) -> None:
    """Its number counts in the commit that it names, not in the text that was saved since."""
    app = editor.get_context()
    head = git(root, "rev-parse", "HEAD").strip()
    new = reviews.NewComment("why?", None, "a.py", 2, LineType.ADDED, commit_hash=head)
    app.run(Area.WORK, reviews.submit, phase_of(app).id, [new])
    (root / "a.py").write_text(f"new\nlines\n{TEXT}")
    editor.begin()
    (shown,) = editor.sees((root / "a.py").as_uri(), "you: why?")
    assert shown["range"]["start"]["line"] == 3
