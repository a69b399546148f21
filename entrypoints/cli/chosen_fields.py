"""`--fields`: only some fields of a JSON answer."""

from collections.abc import Sequence
from typing import Any

from herdbook.domain.errors import InvalidValue


def choose_fields(answer: Any, names: Sequence[str]) -> Any:
    """An object with only these fields, or a list of such objects.

    Raises InvalidValue, which lists the fields there are, for a name that no object has.
    """
    objects = answer if isinstance(answer, list) else [answer]
    known = dict.fromkeys(name for each in objects if isinstance(each, dict) for name in each)
    missing = [name for name in names if name not in known]
    if missing and (known or not isinstance(answer, list)):
        raise InvalidValue("fields", f"{missing[0]!r} is none of {', '.join(known) or 'none'}")
    chosen = [
        {name: each[name] for name in names if name in each} if isinstance(each, dict) else each
        for each in objects
    ]
    return chosen if isinstance(answer, list) else chosen[0]
