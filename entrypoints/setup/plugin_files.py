"""The plugin folder: one skill, one worker, our MCP server and hooks, with each host's manifest.

It is written into the user's data folder for the installed version, so that it always fits it, and
its commands name this installation. Claude Code, Codex and Cursor have manifests of their own,
which bring the hooks; agy reads `gemini-extension.json`. Agent Plugins 1.0, which several hosts
read, have no hooks; theirs is the folder `portable`, because Codex reads no other manifest beside
it. Review comments as diagnostics of Claude Code are a plugin of their own, `herdbook-review`,
since a host takes one language server for each kind of file: whoever wants ours installs it.
"""

import json
from pathlib import Path
from typing import Any

from herdbook.adapters.system.os_errors import translate_os_errors
from herdbook.adapters.user_state.dirs import replace_file
from herdbook.entrypoints.hooks.file_changes import SettingsFile
from herdbook.entrypoints.hooks.hosts import hook_groups, prime_command, program_words
from herdbook.entrypoints.setup.cursor_hooks import EVENTS
from herdbook.entrypoints.setup.instructions import SECTION
from herdbook.entrypoints.setup.skill import NAME, PLAN_NAME, PLAN_SKILL, SKILL, WORKER

PORTABLE = "portable"
"""The folder of the plugin for hosts that read Agent Plugins 1.0."""
SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"
REVIEW = "herdbook-review"
"""The plugin that shows review comments to an agent where it edits."""
ABOUT_REVIEW = "Review comments of the Herdbook plan as diagnostics of the files they are about."
LANGUAGES = {
    ".c": "c",
    ".cpp": "cpp",
    ".css": "css",
    ".go": "go",
    ".h": "c",
    ".html": "html",
    ".java": "java",
    ".js": "javascript",
    ".jsx": "javascriptreact",
    ".md": "markdown",
    ".php": "php",
    ".py": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".sh": "shellscript",
    ".sql": "sql",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".yaml": "yaml",
}
"""The language of each kind of file, as editors name it."""
README = """\
# Herdbook

The plan that many coding agents and a person share: each task is held by one agent at a time,
agents and the person ask each other questions, and a journal has every change. This plugin brings
hooks that tell an agent at the start of a session who it is and what it holds, the MCP server, a
skill and a worker agent. It was written by `herdbook plugin path` and calls that installation.
"""
README_REVIEW = f"""\
# Herdbook review

{ABOUT_REVIEW} An agent that edits a file is told at once which
comments on it are open, without asking for them. It starts the language server of the installation
that wrote this folder. A host takes one language server for each kind of file, so install it only
where no other one is needed for these files.
"""
ABOUT = "One shared plan for many coding agents: exclusive tasks, questions and a journal."


def write_plugin(folder: Path, version: str) -> Path:
    """Write the files that are not as they should be; the folder of this version.

    Raises StoreFull or StoreUnavailable if they cannot be written.
    """
    root = folder / version
    with translate_os_errors(str(root)):
        for name, text in plugin_files(version).items():
            file = root / name
            if file.is_file() and file.read_text() == text:
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, text.encode())
    return root


def plugin_files(version: str) -> dict[str, str]:
    """The files of the plugin by their paths in its folder."""
    manifest = {
        "name": NAME,
        "version": version,
        "description": ABOUT,
        "author": {"name": "Herdbook"},
        "license": "Apache-2.0",
    }
    server = _server()
    documents: dict[str, Any] = {
        f"{PORTABLE}/plugin.json": {"$schema": f"{SCHEMAS}/plugin.schema.json", **manifest},
        f"{PORTABLE}/mcp.json": {
            "$schema": f"{SCHEMAS}/mcp.schema.json",
            "mcpServers": {NAME: server},
        },
        ".claude-plugin/plugin.json": manifest,
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "owner": {"name": "Herdbook"},
            "description": ABOUT,
            "plugins": [
                {"name": NAME, "source": "./", "description": ABOUT},
                {"name": REVIEW, "source": f"./{REVIEW}", "description": ABOUT_REVIEW},
            ],
        },
        f"{REVIEW}/.claude-plugin/plugin.json": {
            **manifest,
            "name": REVIEW,
            "description": ABOUT_REVIEW,
        },
        f"{REVIEW}/.lsp.json": {NAME: _language_server()},
        "gemini-extension.json": {
            "name": NAME,
            "version": version,
            "mcpServers": {NAME: {"command": server["command"], "args": server["args"]}},
            "contextFileName": "HERDBOOK.md",
        },
        ".mcp.json": {"mcpServers": {NAME: server}},
        "hooks/hooks.json": {"hooks": _groups("claude-code")},
        ".codex-plugin/plugin.json": {
            **manifest,
            "skills": "./skills/",
            "mcpServers": "./.mcp.json",
            "hooks": "./hooks/codex.json",
            "interface": {"displayName": "Herdbook", "shortDescription": ABOUT},
        },
        "hooks/codex.json": {"hooks": _groups("codex")},
        ".cursor-plugin/plugin.json": {**manifest, "hooks": "./hooks/cursor.json"},
        "hooks/cursor.json": {
            "version": 1,
            "hooks": {
                event: [{"command": prime_command("cursor", private=True)}] for event in EVENTS
            },
        },
    }
    return {
        **{name: json.dumps(each, indent=2) + "\n" for name, each in documents.items()},
        "README.md": README,
        "HERDBOOK.md": SECTION,
        f"{REVIEW}/README.md": README_REVIEW,
        **{
            f"{folder}skills/{name}/SKILL.md": text
            for folder in ("", f"{PORTABLE}/")
            for name, text in ((NAME, SKILL), (PLAN_NAME, PLAN_SKILL))
        },
        "agents/herdbook-worker.md": WORKER,
    }


def _server() -> dict[str, Any]:
    command, *words = program_words()
    return {"type": "stdio", "command": command, "args": [*words, "mcp"]}


def _language_server() -> dict[str, Any]:
    """Our language server for the kinds of files that are reviewed most."""
    command, *words = program_words()
    return {
        "command": command,
        "args": [*words, "rpc"],
        "extensionToLanguage": LANGUAGES,
    }


def _groups(host: str) -> dict[str, Any]:
    groups = hook_groups(host, SettingsFile(Path(), private=True))
    return {event: [group] for event, group in groups.items()}
