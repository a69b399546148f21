"""`setup`, `onboard` and `plugin path`: what makes coding agents learn Herdbook by themselves."""

import os
from pathlib import Path
from typing import Any

from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.hooks.handlers import confirm_and_apply, main_checkout
from herdbook.entrypoints.setup import instructions
from herdbook.entrypoints.setup.host_setup import SetupPlace, plan_setup


def setup(app: AppContext, *, host: str, user: bool, undo: bool, preview: bool) -> dict[str, Any]:
    """Set a host up or undo it; on a terminal, after showing the difference."""
    facts, main = app.workspace.facts, main_checkout(app)
    worktree = facts.top_level if facts else None
    place = SetupPlace(
        None if main is None else Path(main),
        None if worktree is None else Path(worktree),
        app.workspace.variables,
    )
    return confirm_and_apply(host, plan_setup(host, place, user=user, undo=undo), preview=preview)


def onboard(app: AppContext, *, file: str | None, remove: bool, preview: bool) -> dict[str, Any]:
    """Put the section into the instructions of this project, or take it out."""
    facts = app.workspace.facts
    root = Path(facts.top_level if facts and facts.top_level else app.workspace.folder)
    path = instructions.instructions_file(root, file)
    plan = instructions.remove_section(path) if remove else instructions.add_section(path)
    return confirm_and_apply(path.name, plan, preview=preview)


def plugin_path(app: AppContext, *, portable: bool) -> dict[str, Any]:
    """Write the plugin folder of this version where it is not there yet; its path."""
    from herdbook.adapters.user_state.dirs import data_folder  # noqa: PLC0415
    from herdbook.entrypoints.cli.help_text import version  # noqa: PLC0415
    from herdbook.entrypoints.setup.plugin_files import PORTABLE, write_plugin  # noqa: PLC0415

    del app
    number = version().removeprefix("herdbook ")
    path = write_plugin(data_folder() / "plugin", number)
    return {"path": os.fspath(path / PORTABLE if portable else path), "version": number}
