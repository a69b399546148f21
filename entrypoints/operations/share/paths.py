"""Texts without the paths of this machine."""

import re
from collections.abc import Mapping

_PATH = re.compile(
    r"(?:(?<=://)|(?<![\w.~…/]))/(?![/\s]|$)"
    r"(?:[^\s'\"`<>,:;()/]+/)*([^\s'\"`<>,:;()/]*)"
)


def shorten_paths(text: str, places: Mapping[str, str]) -> str:
    """The text with these folders by their names, and of any other path its last name.

    A folder that holds another one of them is named after it. What is no absolute path, or the root
    of all, is no name of a folder in a text.
    """
    for place in sorted(places, key=len, reverse=True):
        if place.startswith("/") and place.rstrip("/"):
            end = re.escape(place.rstrip("/")) + r"(?![\w-]|\.\w)"
            text = re.sub(end, lambda _: places[place], text)  # noqa: B023 - called at once
    return _PATH.sub(r"…/\1", text)
