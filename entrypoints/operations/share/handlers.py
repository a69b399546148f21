"""A page of the dashboard as one file that loads nothing: `share`.

It is made from the answers that the pages in a browser are made from.
"""

import os
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

from herdbook.adapters.user_state.dirs import replace_file
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.rewind import AsOf
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.operations.share import pages
from herdbook.entrypoints.operations.share.document import write_document
from herdbook.entrypoints.operations.share.parts import Shared
from herdbook.entrypoints.rpc.methods import methods
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class ShareAnswer(TypedDict):
    """What was written, and as of which entry of the journal."""

    file: str
    bytes: int
    page: str
    seq: int
    time: datetime


def share(
    app: AppContext,
    *,
    page: str,
    key: str | None,
    output: str,
    force: bool,
    at: Position | None = None,
) -> ShareAnswer:
    """Write a page into a file, which is not replaced unless that is asked for.

    Raises InvalidValue for a page that is not known of an earlier position, for one that needs a
    key, and for a file that is there; StoreUnavailable if it cannot be written.
    """
    if key is None and page == "task":
        raise InvalidValue("key", "must name the task")
    if key is not None and page not in pages.WITH_KEY:
        raise InvalidValue("key", f"is for the pages {', '.join(sorted(pages.WITH_KEY))}")
    if at is not None and page in pages.WITHOUT_PAST:
        reason = f"the page {page} is not in the journal of the plan: not known of then"
        raise InvalidValue("at", reason)
    target = app.workspace.folder / output
    if not force and os.path.lexists(target):
        raise InvalidValue("output", f"{output} is there already; --force replaces it")
    moment = app.read(Area.WORK, _read_moment, at=at)

    def ask(method: str, **params: Any) -> Any:
        then = {} if at is None or method in pages.ABOUT_NOW else {"at": moment.seq}
        return methods()[method](app, {**params, **then})

    repository = _repository(app)
    roots = {os.path.realpath(app.workspace.folder), *_roots(app)}
    places = {**dict.fromkeys(roots, repository), str(Path.home()): "~"}
    shown = Shared(ask, moment.time, is_past=at is not None, places=places)
    title, body = pages.PAGES[page](shown, key)
    data = write_document(title, body, repository, moment.seq, shown).encode()
    _write(target, data, force=force)
    return {
        "file": output,
        "bytes": len(data),
        "page": page,
        "seq": moment.seq,
        "time": moment.time,
    }


def _read_moment(uow: UnitOfWork) -> AsOf:
    """The position that is read, and its time."""
    return uow.as_of or AsOf(uow.journal.last(), uow.now)


def _repository(app: AppContext) -> str:
    """The name of the repository: that of the folder of its first worktree."""
    facts = app.workspace.facts
    if facts is None:
        return text_of(app.workspace.folder.name)
    common = Path(text_of(facts.common_dir))
    return common.parent.name if common.name == ".git" else common.name.removesuffix(".git")


def _roots(app: AppContext) -> list[str]:
    """The folders of the worktree and of the repository, if there are any."""
    paths = app.workspace.paths
    return [each for each in (paths.worktree, paths.repository) if each is not None]


def _write(target: Path, data: bytes, *, force: bool) -> None:
    """Write the file; without `force`, only where there is none."""
    try:
        if force:
            replace_file(target, data)
        else:
            with target.open("xb") as file:
                file.write(data)
    except FileExistsError:
        reason = f"{target.name} is there already; --force replaces it"
        raise InvalidValue("output", reason) from None
    except OSError as error:
        raise StoreUnavailable(str(target), error.strerror or str(error)) from error
