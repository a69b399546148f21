"""Checks of the program itself, of hooks and of MCP servers in the settings of coding agents."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.resolve import is_within
from herdbook.entrypoints.hooks import git_hooks, hosts, json_settings
from herdbook.entrypoints.hooks.file_changes import content
from herdbook.entrypoints.hooks.owned_files import is_sealed
from herdbook.entrypoints.mcp import clients
from herdbook.entrypoints.operations.doctor.check_result import CheckResult, ok, problem, warning
from herdbook.entrypoints.operations.doctor.installation import Installation

LIBRARIES = ("lmdb", "duckdb", "psycopg", "mcp")
HOSTS, CLIENTS = ("codex", "opencode", "claude-code"), clients.TARGETS
_ANSWER_SECONDS = 10.0


def check_versions(_: Installation) -> Iterator[CheckResult]:
    """This program, Python, and the libraries of the engines."""
    found = [f"{name} {_version(name) or 'is not installed'}" for name in LIBRARIES]
    python = ".".join(map(str, sys.version_info[:3]))
    yield ok(f"herdbook {_version('herdbook')}, Python {python}, {', '.join(found)}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def check_path(there: Installation) -> Iterator[CheckResult]:
    """Whether `herdbook` on the PATH is this program, or another one of the same version."""
    variables = there.app.workspace.variables
    found = shutil.which("herdbook", path=variables.get("PATH"))
    own = Path(sys.executable).with_name("herdbook")
    if found is None:
        advice = f"add {own.parent} to the PATH: shared hooks and MCP servers call `herdbook`"
        yield warning("`herdbook` is not on the PATH", advice)
        return
    if os.path.realpath(found) == os.path.realpath(own):
        yield ok(f"`herdbook` on the PATH is this program, {found}")
        return
    yield _compare(found, there)


def _compare(found: str, there: Installation) -> CheckResult:
    root = there.app.workspace.paths.worktree
    if root is not None and is_within(os.path.realpath(found), root):
        return warning(
            f"`herdbook` on the PATH is {found}, inside this repository; it was not run",
            "put the folder of your own installation first on the PATH",
        )
    if not there.app.is_command:
        advice = "`herdbook doctor` in a terminal compares their versions"
        return ok(f"`herdbook` on the PATH is {found}, another installation than this one", advice)
    try:
        told = subprocess.run(  # noqa: S603 - what the user's own PATH names, as hooks do
            [found, "--version"], capture_output=True, timeout=_ANSWER_SECONDS, check=False
        )
        answer = told.stdout.decode("utf-8", "replace").strip()[:100]
    except (OSError, subprocess.TimeoutExpired) as error:
        return problem(f"`herdbook` on the PATH is {found}, which does not run: {error}")
    if answer == f"herdbook {_version('herdbook')}":
        return ok(f"`herdbook` on the PATH is {found}, of this version")
    return warning(
        f"`herdbook` on the PATH is {found}, which says {answer or 'nothing'!r}",
        "use one version: an older program cannot open what a newer one has written",
    )


def check_hooks(there: Installation) -> Iterator[CheckResult]:
    """The hooks of each coding agent and of git, and whether their programs are there."""
    results = [*_host_hooks(there), *_git_hooks(there)]
    yield from results
    if not results:
        advice = "`herdbook hooks install claude-code --user` lets the record follow sessions"
        yield ok("no hooks are installed", advice)


def _host_hooks(there: Installation) -> Iterator[CheckResult]:
    workspace = there.app.workspace
    root = Path(workspace.paths.worktree or workspace.folder)
    for target in HOSTS:
        if target == "claude-code":  # it reads those of the main checkout in all worktrees
            root = Path(workspace.paths.repository or root)
        for user in (True, False):
            where, option = ("user", " --user") if user else ("this project", "")
            name = f"{target} ({where})"
            try:
                file = hosts.settings_file(target, root, workspace.variables, user=user)
                data = content(file.path)
                if data is None:
                    continue
                missing = _missing_hook(target, data)
            except (HerdbookError, ValueError) as error:
                yield warning(f"{name}: {error}", "correct that file; it is left as it is")
                continue
            if missing is None:
                continue
            again = f"`herdbook hooks install {target}{option}` writes them for this installation"
            yield _program_result(name, str(file.path), missing, again)


def _missing_hook(target: str, data: bytes) -> str | None:
    """The program of our hooks that is missing, empty if none is; None without hooks of ours."""
    if target == "opencode":
        return _missing(["herdbook"]) if is_sealed(data) else None
    commands = json_settings.our_commands(data.decode())
    if not commands:
        return None
    return next(filter(None, (_missing(shlex.split(each)[:-1]) for each in commands)), "")


def _missing(words: list[str]) -> str:
    """The first word of a command that names a program or a file that is not there."""
    program, *rest = words
    if not (os.access(program, os.X_OK) if os.path.isabs(program) else shutil.which(program)):  # noqa: PTH117
        return program
    files = (word for word in rest if os.path.isabs(word))  # noqa: PTH117
    return next((word for word in files if not Path(word).is_file()), "")


def _program_result(name: str, path: str, missing: str, again: str) -> CheckResult:
    if missing and not os.path.isabs(missing):  # noqa: PTH117
        advice = "it must be on the PATH of the program that calls it"
        return warning(f"{name}: {path} calls {missing}, which is not on this PATH", advice)
    if missing:
        return problem(f"{name}: {path} calls {missing}, which is not there", again)
    return ok(f"{name}: installed in {path}")


def _git_hooks(there: Installation) -> Iterator[CheckResult]:
    workspace = there.app.workspace
    if workspace.facts is None:
        return
    folder, _ = git_hooks.hooks_folder(Path(workspace.folder), workspace.variables)
    scripts = {name: content(folder / name) for name in git_hooks.HOOKS}
    ours = {name: data for name, data in scripts.items() if data is not None and is_sealed(data)}
    if not ours:
        return
    again = "`herdbook hooks install git` writes them for this installation"
    lost = next(filter(None, map(_missing_in_script, ours.values())), "")
    lacking = [name for name in git_hooks.HOOKS if name not in ours]
    if lacking and not lost:
        yield warning(f"git: {', '.join(lacking)} in {folder} is not ours", again)
        return
    yield _program_result("git", str(folder), lost, again)


def _missing_in_script(data: bytes) -> str:
    """The file of our hook that a script names and that is not there."""
    for line in data.decode("utf-8", "replace").splitlines():
        command, is_ours, _ = line.partition("; }")
        if is_ours:
            words = shlex.split(command.rpartition("| ")[2])
            end = next((at for at, word in enumerate(words) if word.endswith("hook.py")), 0)
            return _missing(words[: end + 1] or ["herdbook"])
    return ""


def check_mcp(there: Installation) -> Iterator[CheckResult]:
    """The MCP servers in the settings of coding agents, and whether their programs are there."""
    workspace = there.app.workspace
    root = Path(workspace.paths.worktree or workspace.folder)
    found = False
    for target in CLIENTS:
        for user in (True, False):
            where, option = ("user", " --user") if user else ("this project", "")
            name = f"{target} ({where})"
            try:
                file = clients.settings_file(target, root, workspace.variables, user=user)
                data = content(file.path)
                main = workspace.paths.repository if target == "claude-code" else None
                command = clients.registered_command(target, (data or b"").decode(), main)
            except (HerdbookError, ValueError) as error:
                yield warning(f"{name}: {error}", "correct that file; it is left as it is")
                continue
            if command is None:
                continue
            found = True
            again = f"`herdbook mcp install {target}{option}` writes it for this installation"
            yield _program_result(name, str(file.path), _missing([command]), again)
    if not found:
        yield ok(
            "no MCP server is registered",
            "`herdbook mcp install claude-code --user` gives agents its tools",
        )
