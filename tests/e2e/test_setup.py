"""`setup`, `onboard` and `plugin path`: shown first, valid in all worktrees, undone exactly."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from herdbook.entrypoints.setup.instructions import SECTION
from herdbook.entrypoints.setup.skill import DESCRIPTION, PLAN_SKILL, SKILL, WORKER
from tests.cases import for_each
from tests.e2e.conftest import PROGRAM, Person
from tests.tokens import estimate_tokens

HOSTS = ("claude-code", "codex", "opencode", "cursor", "agy")
THERE = {
    ".claude.json": '{\n  "numStartups": 3,\n  "projects": {"/elsewhere": {"mcpServers": {}}}\n}\n',
    ".codex/config.toml": 'model = "x" # mine\n',
    ".codex/hooks.json": '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}',
    ".config/opencode/opencode.jsonc": '{\n  // mine\n  "theme": "dark",\n}\n',
    ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "bell"}]}}\n',
    ".cursor/mcp.json": '{"mcpServers": {"other": {"command": "x"}}}',
    ".gemini/config/mcp_config.json": "{}\n",
}
"""What a user may have in the files of the hosts."""


def snapshot(*roots: Path) -> dict[str, bytes]:
    """Every file below some folders, but for git's and Herdbook's own."""
    return {
        str(file): file.read_bytes()
        for root in roots
        for file in sorted(root.rglob("*"))
        if file.is_file() and not {".git", "herdbook", ".herdbook"} & set(file.parts)
    }


@pytest.mark.parametrize("scope", [(), ("--user",)], ids=["repository", "user"])
@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_setting_a_host_up_is_shown_first_idempotent_and_undone_exactly(
    person: Person, app: Path, scope: tuple[str, ...], filled: bool
) -> None:
    """For every host, byte for byte, whether its files were there or not; no folder is left."""
    if filled:
        (app / "AGENTS.md").write_text("# Rules\nbe kind")
        for name, text in THERE.items():
            file = person.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    before = snapshot(person.home, app)
    for host in HOSTS:
        shown = person.runs(app, "setup", host, *scope, "--preview")
        assert "nothing was changed" in shown
        assert snapshot(person.home, app) == before
        person.runs(app, "setup", host, *scope)
        after = snapshot(person.home, app)
        assert after != before
        assert "nothing to change" in person.runs(app, "setup", host, *scope)
        assert snapshot(person.home, app) == after
        person.runs(app, "setup", host, *scope, "--undo")
        assert snapshot(person.home, app) == before, host
    assert not (app / ".claude").exists()


def test_what_others_changed_since_stays(person: Person, app: Path) -> None:
    """Undoing takes out what is ours and nothing else."""
    person.runs(app, "setup", "claude-code")
    own = person.home / ".claude.json"
    data = json.loads(own.read_text())
    data["numStartups"] = 7
    own.write_text(json.dumps(data))
    notes = app / "CLAUDE.md"
    notes.write_text("# Before\n" + notes.read_text() + "\nafter\n")
    person.runs(app, "setup", "claude-code", "--undo")
    assert json.loads(own.read_text()) == {"numStartups": 7}
    assert notes.read_text() == "# Before\n\nafter\n"


def test_a_worktree_is_set_up_with_its_repository(person: Person, app: Path) -> None:
    """From a linked worktree those of the main checkout are changed, which all worktrees see."""
    person.git(app, "worktree", "add", "--quiet", str(app.parent / "side"))
    side = app.parent / "side"
    person.runs(side, "setup", "claude-code")
    assert "prime --hook-json" in (app / ".claude" / "settings.local.json").read_text()
    assert (app / ".claude" / "skills" / "herdbook" / "SKILL.md").read_text() == SKILL
    assert not (side / ".claude").exists()
    projects = json.loads((person.home / ".claude.json").read_text())["projects"]
    assert projects[str(app)]["mcpServers"]["herdbook"]["args"] == ["mcp"]
    assert "reaches all of them" in person.runs(side, "hooks", "install", "codex")


def test_each_host_gets_hooks_server_skill_and_instructions(person: Person, app: Path) -> None:
    """In the files that it reads."""
    for host in HOSTS:
        person.runs(app, "setup", host)
    home = person.home
    assert "prime" in (home / ".codex" / "hooks.json").read_text()
    codex = tomllib.loads((home / ".codex" / "config.toml").read_text())
    assert codex["mcp_servers"]["herdbook"]["args"] == ["mcp"]
    opencode = json.loads((home / ".config" / "opencode" / "opencode.json").read_text())
    assert opencode["mcp"]["herdbook"]["command"] == [str(PROGRAM), "mcp"]
    cursor = json.loads((home / ".cursor" / "hooks.json").read_text())
    assert "--for cursor" in cursor["hooks"]["sessionStart"][0]["command"]
    agy = json.loads((home / ".gemini" / "config" / "mcp_config.json").read_text())
    assert agy["mcpServers"]["herdbook"]["args"] == ["mcp"]
    skills = [".agents", ".config/opencode", ".cursor", ".gemini/config"]
    assert all((home / each / "skills/herdbook/SKILL.md").read_text() == SKILL for each in skills)
    assert (app / "CLAUDE.md").read_text() == SECTION


def test_onboarding_writes_one_section_and_removes_it(person: Person, app: Path) -> None:
    """It is updated in its place, follows a link inside the project and never one out of it."""
    (app / "AGENTS.md").write_text("# Rules\r\nbe kind")
    (app / "CLAUDE.md").symlink_to("AGENTS.md")
    person.runs(app, "onboard")
    text = (app / "AGENTS.md").read_bytes().decode()
    assert text == "# Rules\r\nbe kind\r\n\r\n" + SECTION.replace("\n", "\r\n")
    old = text.replace("begin v1", "begin v0").replace("Shared plan", "Old plan")
    (app / "AGENTS.md").write_bytes((old + "more\r\n").encode())
    person.runs(app, "onboard", "--file", "CLAUDE.md")
    assert (app / "AGENTS.md").read_bytes().decode() == text + "more\r\n"
    assert (app / "CLAUDE.md").is_symlink()
    person.runs(app, "onboard", "--remove")
    assert (app / "AGENTS.md").read_bytes() == b"# Rules\r\nbe kind\r\n\r\nmore\r\n"
    (app / "EVIL.md").symlink_to(person.home / "diary.md")
    for file in ("EVIL.md", "../x.md", str(person.home / "diary.md"), "setup.py"):
        assert person.tries(app, "onboard", "--file", file).returncode == 2, file
    assert not (person.home / "diary.md").exists()


def test_the_plugin_folder_fits_the_version_and_is_one_line(person: Person, app: Path) -> None:
    """Every manifest is JSON with what its host demands, and a changed file is set right again."""
    told = person.tries(app, "plugin", "path")
    root = Path(told.stdout.strip())
    assert (told.stdout.count("\n"), root.is_dir(), told.returncode) == (1, True, 0)
    version = person.runs(app, "--version").split()[1]
    read = {
        str(file.relative_to(root)): json.loads(file.read_text()) for file in root.rglob("*.json")
    }
    for host in ("portable/", ".claude-plugin/", ".codex-plugin/", ".cursor-plugin/"):
        manifest = read[f"{host}plugin.json"]
        assert (manifest["name"], manifest["version"]) == ("herdbook", version)
    allowed = {"$schema", "name", "version", "description", "author", "homepage", "repository"}
    assert person.runs(app, "plugin", "path", "--portable").strip() == str(root / "portable")
    assert "plugin.json" not in read, "Codex would read no other manifest"
    assert set(read["portable/plugin.json"]) <= allowed | {"license", "keywords", "extensions"}
    assert read["portable/mcp.json"]["mcpServers"]["herdbook"]["type"] == "stdio"
    assert "SessionStart" in read["hooks/hooks.json"]["hooks"]
    skill = root / "skills" / "herdbook" / "SKILL.md"
    skill.write_text("spoilt")
    person.runs(app, "plugin", "path")
    assert skill.read_text() == SKILL
    assert (root / "agents" / "herdbook-worker.md").read_text() == WORKER


def test_the_plugin_folder_has_what_hosts_load_on_request(person: Person, app: Path) -> None:
    """A plugin for review comments, the manifest of agy, and the skill that writes plans."""
    root = Path(person.runs(app, "plugin", "path").strip())
    market = json.loads((root / ".claude-plugin" / "marketplace.json").read_text())
    for plugin in market["plugins"]:
        there = root / plugin["source"]
        manifest = json.loads((there / ".claude-plugin" / "plugin.json").read_text())
        assert manifest["name"] == plugin["name"]
    assert not (root / ".lsp.json").exists(), "a language server is for those who ask for it"
    (server,) = json.loads((root / "herdbook-review" / ".lsp.json").read_text()).values()
    assert all(each.startswith(".") for each in server["extensionToLanguage"])
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    params = {"processId": None, "rootUri": app.as_uri(), "capabilities": {}}
    body = json.dumps({**hello, "params": params})
    ended = subprocess.run(
        [server["command"], *server["args"]],
        input=f"Content-Length: {len(body)}\r\n\r\n{body}",
        cwd=app,
        env=person.variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert '"capabilities"' in ended.stdout
    extension = json.loads((root / "gemini-extension.json").read_text())
    assert (root / extension["contextFileName"]).read_text() == SECTION
    assert list(extension["mcpServers"]) == ["herdbook"]
    for folder in (root, root / "portable"):
        skills = {each.parent.name: each.read_text() for each in folder.glob("skills/*/SKILL.md")}
        assert set(skills) == {"herdbook", "herdbook-plan"}
        for name, text in skills.items():
            assert text.startswith(f"---\nname: {name}\ndescription: ")
            assert estimate_tokens(text) <= 500


def test_the_plan_that_the_skill_shows_is_one(person: Person, app: Path) -> None:
    """It is imported as it stands there."""
    plan = PLAN_SKILL.partition("```markdown\n")[2].partition("```")[0]
    (app / "plan.md").write_text(plan)
    person.runs(app, "import", "plan", "plan.md")
    tasks = person.asks(app, "task", "list", "--initiative", "Login")
    assert [each["name"] for each in tasks] == [
        "Agree on columns",
        "Write the migration",
        "Draw the form",
    ]
    assert tasks[0]["acceptance"] == "the table exists and is tested"


@for_each("text, tokens", [(SECTION, 120), (SKILL, 500), (DESCRIPTION, 100)])
def test_what_agents_are_given_is_small(text: str, tokens: int) -> None:
    """A section of AGENTS.md is read in every session, the skill when it is used."""
    assert estimate_tokens(text) <= tokens
    assert len(DESCRIPTION) <= 1_024
