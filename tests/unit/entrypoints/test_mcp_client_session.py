"""Where a client of the tools stands, and who it is."""

import sys
from pathlib import Path

import pytest

from herdbook.adapters.system.ids import random_id
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.mcp.client_session import ClientSession, folder_of
from herdbook.entrypoints.operations.servers import mcp as servers_mcp
from tests.cases import for_each


def caller(folder: Path = Path(), **variables: str) -> ClientSession:
    return ClientSession(AppContext.at(folder, variables), print)


def test_a_root_is_a_folder_of_this_machine(tmp_path: Path) -> None:
    """Whatever letters its name is made of."""
    folder = tmp_path / "ä b%20#?"
    folder.mkdir()
    assert folder_of(folder.as_uri()) == folder
    assert folder_of(folder.as_uri().replace("file:///", "file://localhost/")) == folder


@for_each(
    "uri",
    [
        "https://example.com/src/app",
        "file://example.com/tmp",
        "file:tmp",
        "file:///no/such/folder",
        "file:///tmp%00",
        "file://[",
        "file:///etc/hostname",
        "/",
        "",
    ],
)
def test_what_is_no_folder_here_is_no_root(uri: str) -> None:
    """Other machines, files, and what nobody can read as an address."""
    assert folder_of(uri) is None


def test_the_first_root_that_is_a_folder_counts(tmp_path: Path) -> None:
    """And without any, the folder it was started in."""
    app = caller()
    assert not app.has_folder
    app.set_roots(["https://example.com/", tmp_path.as_uri(), "file:///"])
    assert app.folder == tmp_path
    app.forget_roots()
    assert not app.has_folder
    app.set_roots([])
    assert app.folder == Path()


def test_whoever_said_where_is_asked_for_no_roots(tmp_path: Path) -> None:
    """Neither at the start nor when they change."""
    app = caller(tmp_path)
    assert app.has_folder
    app.forget_roots()
    assert app.has_folder


@pytest.mark.parametrize(
    ("variables", "session"),
    [
        ({"HERDBOOK_SESSION": "s1", "CLAUDE_CODE_SESSION_ID": "s2"}, "s1"),
        ({"HERDBOOK_SESSION": "", "CLAUDE_CODE_SESSION_ID": "s2"}, "s2"),
    ],
)
def test_the_session_is_the_one_that_the_environment_names(
    variables: dict[str, str], session: str
) -> None:
    """So that the hooks of that session tell of the same agent."""
    assert caller(**variables).get_context().identity.session == session


def test_a_session_that_nobody_named_is_one_of_its_own() -> None:
    """And stays the same."""
    one, other = caller(), caller()
    assert one.session != other.session
    assert len(one.session) == len(f"mcp_{random_id()}")


def test_it_acts_as_whom_it_was_last_introduced_as() -> None:
    """Unless the environment says who it is."""
    free, pinned = caller(), caller(HERDBOOK_AGENT="newt")
    assert free.get_context().identity.agent_name is None
    for each in (free, pinned):
        each.names = ["otter", "lynx"]
    assert free.get_context().identity.agent_name == "lynx"
    assert pinned.get_context().identity.agent_name == "newt"


def test_an_agent_that_the_environment_names_takes_no_other_name() -> None:
    """It may say its own."""
    pinned = caller(HERDBOOK_AGENT="newt")
    assert pinned.choose_name(None) == pinned.choose_name("newt") == "newt"
    with pytest.raises(InvalidValue, match="leave it out"):
        pinned.choose_name("otter")


def test_without_the_sdk_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the terms of Herdbook's own extras."""
    monkeypatch.delitem(sys.modules, "herdbook.entrypoints.mcp.server", raising=False)
    for name in [name for name in sys.modules if name == "mcp" or name.startswith("mcp.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(StoreUnavailable, match=r"`pip install '\.\[mcp\]'`"):
        servers_mcp._server(caller(), "1", "all")


@pytest.mark.parametrize(
    ("action", "target", "scope", "field"),
    [
        ("install", None, {}, "target"),
        (None, None, {"preview": True}, "action"),
        ("install", "codex", {"project": True, "user": True}, "user"),
    ],
)
def test_words_that_make_no_sense_together_are_refused(
    tmp_path: Path, action: str | None, target: str | None, scope: dict[str, bool], field: str
) -> None:
    """Before anything is served or changed."""
    flags = {"project": False, "user": False, "preview": False, "structured": False, **scope}
    with pytest.raises(InvalidValue) as refused:
        servers_mcp.mcp(
            AppContext.at(tmp_path, {"HOME": str(tmp_path)}),
            action=action,
            target=target,
            tools="all",
            **flags,
        )
    assert refused.value.field == field
    assert list(tmp_path.iterdir()) == []
