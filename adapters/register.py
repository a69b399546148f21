"""The stores this user has ever written to, so that all of them can be shown at once.

One small file each, named by its content: any number of processes may add to it without a lock.
"""

import json
from hashlib import sha256

from herdbook.adapters.folders import make_private, state_folder, write_private


def note(url: str, space: str) -> None:
    """Remember that this user keeps a space in a store."""
    text = json.dumps({"url": url, "space": space})
    folder = state_folder() / "stores"
    mark = folder / sha256(text.encode()).hexdigest()[:32]
    if mark.exists():
        return
    make_private(folder)
    write_private(mark, text)


def known() -> list[tuple[str, str]]:
    """The stores and spaces this user has written to, as (url, space), in order."""
    folder = state_folder() / "stores"
    marks = folder.iterdir() if folder.is_dir() else ()
    notes = [json.loads(mark.read_text()) for mark in marks if not mark.name.startswith(".")]
    return sorted((note["url"], note["space"]) for note in notes)
