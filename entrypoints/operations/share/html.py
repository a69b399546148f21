"""HTML as text: whatever is not an element already is escaped."""

import re
from html import escape
from typing import Any

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""What no page shows as it is: control characters, and those that turn the text around them."""
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VOID = frozenset({"meta", "br"})


class Html(str):
    """Text that is HTML already; only this module and a picture of ours make it."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as text in HTML."""
    return Html(escape(_CONTROL.sub(lambda found: repr(found[0])[1:-1], str(value)), quote=True))


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """An element; None and False among children and attributes are nothing, a list is each of it.

    A trailing underscore of an attribute is left out, other underscores are hyphens. Raises
    ValueError for a name that is none: names are ours, values are anybody's.
    """
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    for name in (tag, *named):
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name in HTML")
    told = "".join(
        f" {name}" if value is True else f' {name}="{text(value)}"'
        for name, value in named.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Html(f"<{tag}{told}>")
    return Html(f"<{tag}{told}>{join(children)}</{tag}>")


def join(children: Any) -> Html:
    """Children one after the other, texts escaped."""
    parts = []
    for each in children:
        if each is None or each is False:
            continue
        if isinstance(each, list | tuple):
            parts.append(join(each))
        else:
            parts.append(each if isinstance(each, Html) else text(each))
    return Html("".join(parts))
