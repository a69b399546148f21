"""Git hooks: one install for all worktrees of a repository, chained with existing hooks.

An existing hook is kept beside ours under another name and called with the same arguments and
input; its exit code counts, ours never does. A shell script is sourced by a shell that was started
as ours was, because many scripts look at the name they were called by.
"""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from herdbook.adapters.git import find, folder_for_git
from herdbook.adapters.git.git_process import (
    HOOKS_PATH,
    ask_git,
    raise_complaint,
    without_repository_variables,
)
from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.hooks import hook
from herdbook.entrypoints.hooks.file_changes import ChangePlan, FileChange, content
from herdbook.entrypoints.hooks.owned_files import is_sealed, seal

HOOKS = ("post-commit", "post-rewrite", "pre-push")
BACKUP_SUFFIX = ".before-herdbook"
_USERS_SCOPES = (b"system", b"global", b"command")
_SHELL = re.compile(rb"#! ?(?:/usr)?(?:/bin/env +)?(?:/\S*/)?(?:sh|bash|dash|ash|ksh)(?: .*)?$")
_GIVES = {
    "post-commit": """printf '{{"commit": "%s"}}' "$(git rev-parse HEAD)" | {command}""",
    "post-rewrite": """printf '%s' "$given" | {command} "$@" """,
    "pre-push": """printf '%s' "$given" | {command}""",
}


def hooks_folder(folder: Path, variables: Mapping[str, str]) -> tuple[Path, bool]:
    """The folder of a repository's hooks, and whether it is inside the worktree.

    Raises InvalidValue outside of a repository, and if the repository itself chose a folder outside
    of it.
    """
    environment = without_repository_variables(variables)
    found = find(folder, environment=environment)
    if found.facts is None:
        raise InvalidValue("folder", found.problem or "not a git repository (or any above it)")
    common = Path(found.facts.common_dir)
    top = Path(found.facts.top_level or common)
    git = ["-C", folder_for_git(found.facts), "rev-parse", "--git-path", "hooks"]
    # This asks git for the folder of hooks; no hook is run by it.
    status, told, complaint = ask_git(git, environment, except_for={HOOKS_PATH})
    if status != 0:
        raise_complaint("folder", status, complaint)
    hooks = Path(os.path.realpath(top / os.fsdecode(told).removesuffix("\n")))
    inside = hooks.is_relative_to(top) and not hooks.is_relative_to(common)
    if not inside and not hooks.is_relative_to(common):
        _require_chosen_by_user(["-C", folder_for_git(found.facts)], environment, hooks)
    return hooks, inside


def _require_chosen_by_user(git: list[str], environment: Mapping[str, str], hooks: Path) -> None:
    """Raise InvalidValue if a folder outside the repository was not chosen by the user."""
    words = ["config", "--show-scope", "--get", HOOKS_PATH]
    _, told, _ = ask_git([*git, *words], environment, except_for={HOOKS_PATH})
    if told.partition(b"\t")[0] not in _USERS_SCOPES:
        reason = f"git takes the hooks of this repository from {hooks}, which lies outside it"
        raise InvalidValue("folder", f"{reason} and was not chosen by you. Nothing was changed")


def install(folder: Path, variables: Mapping[str, str]) -> ChangePlan:
    """The changes that install our hooks; none if they are installed already.

    Raises InvalidValue if another hook is there and the name for its copy is taken.
    """
    hooks, shared = hooks_folder(folder, variables)
    changes = []
    for name in HOOKS:
        path, kept = hooks / name, hooks / (name + BACKUP_SUFFIX)
        now = content(path)
        ours = now is not None and is_sealed(now)
        if now is not None and not ours and (kept.is_symlink() or kept.exists()):
            raise InvalidValue(
                str(path),
                f"is not Herdbook's, and {kept.name} is already there. Nothing was changed; "
                "move one of the two to a name of its own",
            )
        chained = content(kept) if ours or now is None else now
        after = hook_script(name, chained, shared=shared)
        if after != now:
            keep = None if ours or now is None else kept
            changes.append(FileChange(path, now, after, keep=keep, executable=True))
    return ChangePlan(changes, _notes(hooks, shared=shared))


def uninstall(folder: Path, variables: Mapping[str, str]) -> ChangePlan:
    """The changes that remove our hooks and move the previous ones back."""
    hooks, _ = hooks_folder(folder, variables)
    changes, notes = [], []
    for name in HOOKS:
        path, kept = hooks / name, hooks / (name + BACKUP_SUFFIX)
        now = content(path)
        if now is None or not is_sealed(now):
            if now is not None and b"herdbook" in now:
                notes.append(f"{path} was changed since it was installed, and is left as it is")
            continue
        restore = kept if kept.is_symlink() or kept.exists() else None
        changes.append(FileChange(path, now, content(kept) if restore else None, restore=restore))
    return ChangePlan(changes, notes)


def hook_script(name: str, chained: bytes | None, *, shared: bool) -> bytes:
    """The script of a hook that writes to the spool and then calls the previous hook."""
    words = [sys.executable, "-I", "-S", str(Path(hook.__file__).resolve())]
    command = "herdbook hook" if shared else shlex.join(words)
    first = (chained or b"").partition(b"\n")[0].rstrip()
    is_shell = chained is not None and (not first.startswith(b"#!") or bool(_SHELL.match(first)))
    shebang = first.decode() if is_shell and first.startswith(b"#!") else "#!/bin/sh"
    gives = _GIVES[name].format(command=f"{command} {name}").rstrip()
    reads = name != "post-commit"
    lines = [
        *(["given=$(cat; echo .) || :", "given=${given%.}"] if reads else []),
        f"{{ {gives}; }} >/dev/null 2>&1 || :",
    ]
    if chained is not None:
        call = f'( . "$0{BACKUP_SUFFIX}" )' if is_shell else f'"$0{BACKUP_SUFFIX}" "$@"'
        call = f"""printf '%s' "$given" | {call}""" if reads else call
        lines += [f'[ -x "$0{BACKUP_SUFFIX}" ] || exit 0', call]
    else:
        lines.append("exit 0")
    return seal("\n".join(lines) + "\n", "#", f"{shebang}\n")


def _notes(hooks: Path, *, shared: bool) -> list[str]:
    if not shared:
        return []
    where = f"git takes its hooks from {hooks}, which may be committed"
    return [f"{where}: so they call `herdbook`, which must be on the PATH"]
