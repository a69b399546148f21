"""Whole files of ours whose format leaves no room for a seal in their first line."""

from pathlib import Path

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.hooks.file_changes import ChangePlan, FileChange, content, saved_original


def add_file(path: Path, text: str) -> ChangePlan:
    """The change that writes a file of ours, or brings it up to date.

    Raises InvalidValue if there is one that Herdbook did not write.
    """
    now, wanted = content(path), text.encode()
    if now == wanted:
        return ChangePlan([], [])
    if now is not None:
        _require_ours(path, now, wanted)
    return ChangePlan([FileChange(path, now, wanted, None)], [])


def remove_file(path: Path, text: str) -> ChangePlan:
    """The change that removes a file of ours; InvalidValue if somebody has changed it."""
    now = content(path)
    if now is None:
        return ChangePlan([], [])
    _require_ours(path, now, text.encode())
    return ChangePlan([FileChange(path, now, None, None)], [])


def _require_ours(path: Path, now: bytes, wanted: bytes) -> None:
    if now != wanted and not saved_original(path, now)[0]:
        raise InvalidValue(str(path), "is not as Herdbook writes it. Nothing was changed")
