"""Reads the URLs of stores: the paths of files, and passwords that nobody may see."""

import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from herdbook.adapters.stores.engine_spec import Medium
from herdbook.adapters.stores.registry import find_spec
from herdbook.domain.errors import InvalidValue


def path_of(url: str) -> Path:
    """The path in a file's URL.

    Raises InvalidValue, which does not repeat the URL: people put passwords into URLs.
    """
    scheme, _, rest = url.partition("://")
    if re.search("[?#]", rest):
        reason = "has something after its path; a ? or # in it is written %3F or %23"
        raise InvalidValue("url", reason)
    host, _, path = rest.partition("/")
    if host not in ("", "localhost"):
        reason = f"names a host; a file's URL has three slashes, as in {scheme}:///path"
        raise InvalidValue("url", reason)
    # A name may hold bytes that are no text.
    path = unquote(path, errors="surrogateescape")
    if not path.strip("/"):
        raise InvalidValue("url", f"names no path, as {scheme}:///path does")
    if "\0" in path:
        raise InvalidValue("url", "has the character NUL in its path")
    return Path(f"/{path}")


def shown_url(url: str) -> str:
    """A URL as it may be shown: without a password, wherever in it one was written."""
    spec = find_spec(url)
    if spec is None or spec.medium is not Medium.SERVER:
        return url
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True)
    except ValueError:
        return f"{url.partition('://')[0]}://…"
    user, at, hosts = parts.netloc.rpartition("@")
    kept = urlencode([(name, value) for name, value in query if name in spec.shown_url_options])
    netloc = f"{user.partition(':')[0]}{at}{hosts}"
    return f"{parts.scheme}://{netloc}{parts.path}{'?' if kept else ''}{kept}"
