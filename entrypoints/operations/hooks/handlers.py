"""`hooks install`, `hooks uninstall`, and `hook` itself for calls through the table."""

import sys
from pathlib import Path
from typing import Any

from herdbook.adapters.git.git_process import ask_git, without_repository_variables
from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.cli.text import plain_lines
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.hooks import git_hooks, hook, hosts
from herdbook.entrypoints.hooks.file_changes import ChangePlan, apply_plan, unified_diff


def install(
    app: AppContext, *, target: str, project: bool, user: bool, preview: bool
) -> dict[str, Any]:
    """Install the hook in a coding agent or git; on a terminal, after showing the difference."""
    return _change_hooks(app, target, project=project, user=user, preview=preview, uninstall=False)


def uninstall(
    app: AppContext, *, target: str, project: bool, user: bool, preview: bool
) -> dict[str, Any]:
    """Uninstall the hook."""
    return _change_hooks(app, target, project=project, user=user, preview=preview, uninstall=True)


def spool(app: AppContext, *, event: str | None) -> dict[str, Any]:
    """Spool one event; `main` does this itself, before any import, if the event is named."""
    if event is None:
        raise InvalidValue("event", "name the event, and pass its data on standard input")
    del app
    hook.main([event])
    return {}


def _change_hooks(
    app: AppContext, target: str, *, project: bool, user: bool, preview: bool, uninstall: bool
) -> dict[str, Any]:
    if project and user:
        raise InvalidValue("user", "either --project or --user, not both")
    return confirm_and_apply(
        target, _plan(app, target, user=user, uninstall=uninstall), preview=preview
    )


def confirm_and_apply(target: str, plan: ChangePlan, *, preview: bool) -> dict[str, Any]:
    """Make the changes of a plan; a person at the terminal sees them and is asked first."""
    shown = [unified_diff(each) for each in plan.changes]
    asked = bool(shown) and not preview and sys.stdin.isatty() and sys.stderr.isatty()
    agreed = _confirm(shown) if asked else not preview
    if agreed:
        apply_plan(plan)
    return {
        "target": target,
        "done": agreed,
        "asked": asked,
        "changes": [
            {"path": str(change.path), "difference": text}
            for change, text in zip(plan.changes, shown, strict=True)
        ],
        "notes": plan.notes,
    }


def _plan(app: AppContext, target: str, *, user: bool, uninstall: bool) -> ChangePlan:
    if target == "git":
        if user:
            raise InvalidValue("user", "git's hooks belong to a repository: leave --user out")
        change = git_hooks.uninstall if uninstall else git_hooks.install
        return change(Path(app.workspace.folder), app.workspace.variables)
    root = app.workspace.facts.top_level if app.workspace.facts else None
    if target == "claude-code" and not user:
        # What is there, Claude Code reads in all worktrees.
        root = main_checkout(app) or root
    there = hosts.settings_file(
        target, Path(root or app.workspace.folder), app.workspace.variables, user=user
    )
    if uninstall:
        return hosts.uninstall(target, there)
    plan = hosts.install(target, there)
    if not user and target != "claude-code":
        plan.notes.append(
            f"this is for this worktree alone; `herdbook setup {target}` reaches all of them"
        )
    if there.private and not user and root and _is_seen_by_git(app, root, there.path):
        plan.notes.append("git does not ignore this file; it names paths of this machine only")
    return plan


def main_checkout(app: AppContext) -> str | None:
    """The root of the main worktree; None without a repository, and for a bare one."""
    root = app.workspace.paths.repository if app.workspace.facts else None
    return root if root is not None and (Path(root) / ".git").exists() else None


def _is_seen_by_git(app: AppContext, root: str, path: Path) -> bool:
    words = ["-C", root, "check-ignore", "--quiet", "--", str(path)]
    return ask_git(words, without_repository_variables(app.workspace.variables))[0] == 1


def _confirm(shown: list[str]) -> bool:
    """Show the difference on the terminal and ask whether to make it."""
    sys.stderr.write("\n".join([*map(plain_lines, shown), "make this change? [y/N] "]))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
