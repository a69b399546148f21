"""Installing the server into coding agents' settings, and taking it out again to the byte."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.hooks.file_changes import apply_plan, unified_diff
from herdbook.entrypoints.mcp import toml_text
from herdbook.entrypoints.mcp.clients import (
    SettingsFile,
    install,
    is_ours,
    server_entry,
    settings_file,
    uninstall,
)
from tests.cases import for_each

TARGETS = ("claude-code", "codex", "cursor")
each_target = pytest.mark.parametrize("target", TARGETS)
both_scopes = pytest.mark.parametrize("user", [False, True], ids=["project", "user"])
JSON = """\
{
	// mine
	"theme": "dark",
	"mcpServers": {
		"docs": {"url": "u"}, // theirs
	},
}"""
TOML = """\
# mine
model = "o3" # and mine
text = \"\"\"
[mcp_servers.herdbook]
command = "not a table" \"\"\"\"
rows = [
    "]", # [mcp_servers.herdbook]
]

[mcp_servers.docs]
command = 'docs' # theirs

# about the next one
[[hooks]]
a.b = { c = "}" }
"""
TEXTS = {"claude-code": JSON, "codex": TOML, "cursor": JSON}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "app"
    root.mkdir()
    return root


def there(target: str, root: Path, *, user: bool = False) -> SettingsFile:
    return settings_file(target, root, {"HOME": str(root.parent / "home")}, user=user)


def written(file: SettingsFile, text: str) -> None:
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.path.write_bytes(text.encode())


def servers(file: SettingsFile) -> dict[str, Any]:
    """What the agent itself would read."""
    text = file.path.read_text()
    if file.path.suffix == ".toml":
        found: dict[str, Any] = tomllib.loads(text)["mcp_servers"]
    else:
        found = json.loads(text)["mcpServers"]
    return found


@pytest.mark.parametrize(
    ("target", "user", "name"),
    [
        ("claude-code", False, "app/.mcp.json"),
        ("claude-code", True, "home/.claude.json"),
        ("codex", False, "app/.codex/config.toml"),
        ("codex", True, "home/.codex/config.toml"),
        ("cursor", False, "app/.cursor/mcp.json"),
        ("cursor", True, "home/.cursor/mcp.json"),
    ],
)
def test_a_file_that_a_project_may_share_names_no_path_of_this_machine(
    target: str, user: bool, name: str, root: Path
) -> None:
    """The user's own names this very program."""
    file = there(target, root, user=user)
    assert file.path == root.parent / name
    apply_plan(install(target, file))
    found = servers(file)["herdbook"]
    assert found["args"][-1] == "mcp"
    if user:
        assert Path(found["command"]).parent == Path(sys.executable).parent
    else:
        assert [found["command"], *found["args"]] == ["herdbook", "mcp"]
        assert str(Path.home()) not in file.path.read_text()


def test_agents_that_keep_their_settings_elsewhere_are_found_there(root: Path) -> None:
    """As their own variables say."""
    variables = {"CLAUDE_CONFIG_DIR": "/people/me/claude", "CODEX_HOME": "/people/me/codex"}
    found = [
        settings_file(each, root, variables, user=True).path for each in ("claude-code", "codex")
    ]
    assert found == [Path("/people/me/claude/.claude.json"), Path("/people/me/codex/config.toml")]


@both_scopes
@each_target
def test_where_nothing_was_nothing_is_left(target: str, user: bool, root: Path) -> None:
    """Neither the file nor the folders that were made for it."""
    file = there(target, root, user=user)
    plan = install(target, file)
    assert not file.path.exists(), "a plan changes nothing"
    assert "+" in unified_diff(plan.changes[0])
    apply_plan(plan)
    assert install(target, file).changes == []
    apply_plan(uninstall(target, file))
    assert not file.path.exists()
    assert list(root.iterdir()) == []
    assert uninstall(target, file).changes == []


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["unix", "dos"])
@each_target
def test_what_others_wrote_keeps_every_byte(target: str, newline: str, root: Path) -> None:
    """Comments, order and spaces too; and uninstalling gives back exactly what was there."""
    file, text = there(target, root), TEXTS[target].replace("\n", newline)
    written(file, text)
    plan = install(target, file)
    apply_plan(plan)
    removed = [line for line in unified_diff(plan.changes[0]).split("\n")[2:] if line[:1] == "-"]
    assert removed == []
    assert newline == "\n" or b"\n" not in file.path.read_bytes().replace(b"\r\n", b"")
    assert install(target, file).changes == []
    apply_plan(uninstall(target, file))
    assert file.path.read_bytes() == text.encode()


@each_target
def test_what_others_change_meanwhile_stays(target: str, root: Path) -> None:
    """Then ours alone is taken out."""
    file, text = there(target, root), TEXTS[target]
    written(file, text)
    apply_plan(install(target, file))
    now = file.path.read_text().replace("mine", "changed")
    written(file, now)
    apply_plan(uninstall(target, file))
    assert file.path.read_text() == text.replace("mine", "changed")


@each_target
def test_what_somebody_added_to_our_server_stays(target: str, root: Path) -> None:
    """It counts as installed; and where ours is out of date, only ours is brought up to date."""
    file = there(target, root)
    apply_plan(install(target, file))
    text = file.path.read_text()
    if target == "codex":
        text += '[mcp_servers.herdbook.env]\nTZ = "UTC"\n'
    else:
        text = text.replace('"type"', '"env": {"TZ": "UTC"}, "type"')
    written(file, text)
    assert install(target, file).changes == []
    own = there(target, root, user=True)._replace(path=file.path)
    apply_plan(install(target, own))
    assert servers(file)["herdbook"] == {**server_entry(target, own), "env": {"TZ": "UTC"}}


@each_target
def test_a_server_of_somebody_else_by_our_name_is_left_alone(target: str, root: Path) -> None:
    """Installing says so, and uninstalling finds nothing of ours."""
    file = there(target, root)
    text = '{"mcpServers": {"herdbook": {"command": "other", "args": ["mcp"]}}}'
    if target == "codex":
        text = '[mcp_servers.herdbook]\ncommand = "other"\nargs = ["mcp"]\n'
    written(file, text)
    with pytest.raises(InvalidValue, match="of somebody else. Nothing was changed"):
        install(target, file)
    assert uninstall(target, file).changes == []
    assert file.path.read_text() == text


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("claude-code", "{"),
        ("claude-code", "[]"),
        ("claude-code", '{"mcpServers": []}'),
        ("codex", "a = "),
        ("codex", "mcp_servers = 1"),
        ("codex", 'mcp_servers = { docs = { command = "docs" } }'),
        ("cursor", "\udcff"),
    ],
)
def test_what_cannot_be_added_to_is_refused(target: str, text: str, root: Path) -> None:
    """With its name, and it stays as it is."""
    file = there(target, root)
    file.path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode("utf-8", "surrogateescape")
    file.path.write_bytes(data)
    with pytest.raises(InvalidValue, match="Nothing was changed") as refused:
        install(target, file)
    assert refused.value.field == str(file.path)
    assert file.path.read_bytes() == data


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\nherdbook = { command = "herdbook", args = ["mcp"] }\n',
        'mcp_servers.herdbook.command = "herdbook"\nmcp_servers.herdbook.args = ["mcp"]\n',
        '[mcp_servers]\nherdbook.command = "herdbook"\nherdbook.args = ["mcp"]\n',
    ],
    ids=["inline", "dotted", "below"],
)
def test_what_only_a_person_can_take_apart_is_left_to_one(text: str, root: Path) -> None:
    """Rather than to guess what belongs together."""
    file = there("codex", root)
    written(file, text)
    with pytest.raises(InvalidValue, match="by hand. Nothing was changed"):
        uninstall("codex", file)
    assert file.path.read_text() == text


@pytest.mark.parametrize(
    "header",
    ["[mcp_servers.herdbook]", '[ mcp_servers . "herdbook" ] # it', "[mcp_servers.'herdbook']"],
)
def test_our_table_is_known_however_its_name_is_written(header: str, root: Path) -> None:
    """It goes, and what stands around it stays."""
    file = there("codex", root)
    own = f'{header}\ncommand = "herdbook"\nargs = [\n  "mcp", # it\n]\n'
    written(file, f"a = 1\n\n{own}\n# about b\n[b]\nc = 2\n")
    apply_plan(uninstall("codex", file))
    assert file.path.read_text() == "a = 1\n\n# about b\n[b]\nc = 2\n"


PIECES = (
    "# a remark\n",
    "\n",
    "[mcp_servers.docs]\ncommand = 'docs' # theirs\n",
    '[mcp_servers.docs.env]\n"a.b" = """\n[mcp_servers.herdbook]\n\\""""\n',
    "[mcp_servers.'herdbook two']\nargs = [ # [x]\n  '#', \"]\",\n]\n",
    "[[hooks]]\nnames = {a = '}', b = [{c = 1}]}\n",
    "[a.mcp_servers.herdbook]\ntext = '''\n[b]\n'''''\n",
    '[a]\t# "open\nat = 2026-05-01T12:00:00Z\n',
    "[last]",
)


@given(st.lists(st.sampled_from(PIECES[:-1]), unique=True), st.booleans(), st.booleans())
def test_any_toml_comes_back_as_it_was(pieces: list[str], dos: bool, cut: bool) -> None:
    """Whatever stands before ours; what others add behind it stays."""
    text = "".join([*pieces, PIECES[-1] if cut else ""])
    text = text.replace("\n", "\r\n") if dos else text
    wanted = {"command": "herdbook", "args": ["mcp"]}
    put = toml_text.add_server(text, "herdbook", wanted, is_ours)
    assert put.startswith(text)
    assert tomllib.loads(put)["mcp_servers"]["herdbook"] == wanted
    assert toml_text.add_server(put, "herdbook", wanted, is_ours) == put
    taken = toml_text.remove_server(f"{put}# behind\n[more]\n", "herdbook", is_ours)
    assert taken.removesuffix("# behind\n[more]\n").rstrip("\r\n") == text.rstrip("\r\n")
    assert tomllib.loads(taken) == {**tomllib.loads(text), "more": {}}


@for_each(
    ("found", "ours"),
    [
        ({"command": "herdbook", "args": ["mcp"]}, True),
        ({"command": "/opt/app/bin/herdbook", "args": ["mcp"]}, True),
        ({"command": "python", "args": ["-P", "-m", "herdbook.entrypoints", "mcp"]}, True),
        ({"command": "herdbook", "args": ["rpc"]}, False),
        ({"command": "herdbook"}, False),
        ({"args": ["mcp"]}, False),
        ({"url": "https://example.com"}, False),
        ("herdbook mcp", False),
    ],
    ids=str,
)
def test_ours_is_what_starts_our_server(found: object, ours: bool) -> None:
    """Wherever it was installed."""
    assert is_ours(found) is ours


@each_target
def test_an_unknown_target_or_a_shared_file_is_spoken_about(target: str, root: Path) -> None:
    """What a person should know of a project's file is said."""
    assert any("must be on the PATH" in each for each in install(target, there(target, root)).notes)
    assert install(target, there(target, root, user=True)).notes == []
    with pytest.raises(InvalidValue, match="is not one of"):
        settings_file("emacs", root, {}, user=False)
