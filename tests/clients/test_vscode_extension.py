"""The extension for VS Code, packaged as it is handed out."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from herdbook.entrypoints.lsp.actions import COMMANDS
from tests.clients.conftest import CHECKOUT

EXTENSION = CHECKOUT / "editors" / "vscode"
LOADER = Path(__file__).with_name("load_extension.cjs")
MANIFEST: dict[str, Any] = json.loads((EXTENSION / "package.json").read_text())


def needed(name: str, node_modules: Path) -> set[str]:
    """A package and all that it needs to run."""
    found: set[str] = set()
    left = {name}
    while left:
        each = left.pop()
        found.add(each)
        manifest = json.loads((node_modules / each / "package.json").read_text())
        left |= set(manifest.get("dependencies", {})) - found
    return found


@pytest.fixture(scope="module")
def vsix(
    tmp_path_factory: pytest.TempPathFactory, node_modules: Path, program: Callable[[str], str]
) -> Path:
    """The extension as a person would install it, made from a copy with its packages beside it."""
    folder = tmp_path_factory.mktemp("vscode")
    copy = folder / "extension"
    shutil.copytree(EXTENSION, copy, ignore=shutil.ignore_patterns("node_modules", "*.vsix"))
    for name in MANIFEST["dependencies"]:
        for each in needed(name, node_modules):
            shutil.copytree(node_modules / each, copy / "node_modules" / each)
    made = folder / "herdbook.vsix"
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_UPDATE_NOTIFIER": "1"}
    vsce = node_modules / "@vscode" / "vsce" / "vsce"
    told = subprocess.run(
        [program("node"), vsce, "package", "--allow-missing-repository", "--out", made],
        cwd=copy,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return made


def test_the_package_holds_all_that_it_requires(vsix: Path, node_modules: Path) -> None:
    """The .vsix has the code, its packages, the readme and the licence, and no tools."""
    with ZipFile(vsix) as archive:
        names = set(archive.namelist())
        licence = archive.read("extension/LICENSE.txt")
    assert {"extension/package.json", "extension/extension.js", "extension/questions.js"} <= names
    assert "extension/readme.md" in names
    assert licence == (CHECKOUT / "LICENSE").read_bytes()
    runtime = {each for name in MANIFEST["dependencies"] for each in needed(name, node_modules)}
    assert {f"extension/node_modules/{each}/package.json" for each in runtime} <= names
    assert not {each for each in names if each.endswith((".map", ".d.ts", ".npmrc", ".gitignore"))}


def test_what_is_packaged_can_be_loaded(
    vsix: Path, tmp_path: Path, program: Callable[[str], str]
) -> None:
    """Node finds every module that the packaged extension names, besides VS Code's own."""
    with ZipFile(vsix) as archive:
        archive.extractall(tmp_path)
    told = subprocess.run(
        [program("node"), LOADER, tmp_path / "extension"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (told.stdout, told.stderr) == ("activate deactivate\n", "")


def test_its_commands_are_the_servers(vsix: Path) -> None:
    """Every command in the palette is one that the server carries out."""
    with ZipFile(vsix) as archive:
        manifest = json.loads(archive.read("extension/package.json"))
    offered = {each["command"] for each in manifest["contributes"]["commands"]}
    assert offered <= set(COMMANDS)
    assert {
        f"herdbook.{each}" for each in ("claim", "complete", "grade", "dismiss", "reply")
    } <= offered


def test_versions_are_exact_and_the_same_as_those_that_are_tested() -> None:
    """The extension names exact versions, and they are the ones of tests/clients/package.json."""
    tested = json.loads(Path(__file__).with_name("package.json").read_text())["dependencies"]
    named = {**MANIFEST["dependencies"], **MANIFEST["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", each) for each in named.values())
    assert named.items() <= tested.items()
