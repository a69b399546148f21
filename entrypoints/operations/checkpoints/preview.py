"""Previews of values as JSON, and as one line of text."""

import json
import math
from typing import Any

from herdbook.domain.checkpoints.preview import BytesPreview, ObjectPreview
from herdbook.entrypoints.cli.text import plain, shorten, size

CLASS, MADE_OF, BYTES, KIND, DIGEST = "$class", "$made_of", "$bytes", "$kind", "$digest"
ROOM = 4
"""How many characters are read per terminal column, because some have no width."""
NEAR = 12
"""How much of two texts is shown before their first difference."""


def as_json(value: Any) -> Any:
    """A preview as JSON data; objects and bytes are maps whose keys begin with `$`."""
    match value:
        case ObjectPreview(name, content):
            return {CLASS: name, MADE_OF: as_json(content)}
        case BytesPreview(kind, amount, digest):
            return {BYTES: amount, KIND: kind, DIGEST: digest}
        case dict():
            return _text_keys({key: as_json(value) for key, value in value.items()})
        case list() | tuple():
            return [as_json(each) for each in value]
        case float() if not math.isfinite(value):
            return str(value)
    return value


def _text_keys(pairs: dict[Any, Any]) -> dict[str, Any]:
    """A map with text keys; a key of another type never replaces an equal text key."""
    found = {key: value for key, value in pairs.items() if isinstance(key, str)}
    for key, value in pairs.items():
        if not isinstance(key, str):
            name = str(key)
            found[name if name not in found else f"{name} ({type(key).__name__})"] = value
    return found


def line(shown: Any, places: int) -> str:
    """The result of `as_json` in a line of at most so many terminal columns."""
    return shorten(plain(_brief(shown)[: places * ROOM]), places)


def _brief(shown: Any) -> str:
    match shown:
        case {"$class": str(name), "$made_of": made_of, **rest} if not rest:
            return f"{name.rpartition('.')[2]}({_brief(made_of)})"
        case {"$bytes": int(amount), "$kind": str(kind), "$digest": str(digest)}:
            return f"<{kind}, {size(amount)}, {digest}>"
        case dict():
            inner = (
                f"{json.dumps(key, ensure_ascii=False)}: {_brief(shown[key])}" for key in shown
            )
            return f"{{{', '.join(inner)}}}"
        case list():
            return f"[{', '.join(map(_brief, shown))}]"
    return json.dumps(shown, ensure_ascii=False)


def lines(before: Any, after: Any, places: int) -> tuple[str, str]:
    """Two values, a line each; of two long texts, the part near their first difference."""
    if isinstance(before, str) and isinstance(after, str):
        pairs = enumerate(zip(before, after, strict=False))
        unlike = (at for at, (one, other) in pairs if one != other)
        at = next(unlike, min(len(before), len(after)))
        if at > places // 2:
            start = at - NEAR
            return _from(before, start, places), _from(after, start, places)
    return line(before, places), line(after, places)


def _from(text: str, start: int, places: int) -> str:
    return f"…{line(text[start:], places - 1)}"
