"""Reads a Postgres URL: what the driver takes, and what may be shown of it."""

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import psycopg
from attrs import field, frozen
from psycopg.conninfo import make_conninfo

from herdbook.adapters.stores.urls import shown_url
from herdbook.domain.errors import InvalidValue

_HOST = re.compile(r"(\[[^][@]*]|[^][:@]*)(?::(\d*))?")
_UNREADABLE = (
    "is not the URL of a Postgres server; what has a meaning in URLs (/ ? # % @) "
    "is written as %2F %3F %23 %25 %40"
)


@frozen
class Address:
    """A server, a database and a schema in it."""

    driver: str = field(repr=False)
    seen: str
    schema: str


def read_address(url: str) -> Address:
    """Read a URL.

    Raises InvalidValue, which does not repeat the URL: a misspelt part may be the password.
    """
    try:
        parts = urlsplit(url)
        # A plus is a plus here, as it is for the driver.
        query = parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True)
        options = {**_options(parts), **dict(query)}
        schema = options.pop("schema", "herdbook")
        driver = make_conninfo(**{name: value for name, value in options.items() if value})
    except (ValueError, psycopg.ProgrammingError):
        raise InvalidValue("url", _UNREADABLE) from None
    if not re.fullmatch("[A-Za-z0-9_]{1,63}", schema):
        raise InvalidValue("url", f"{schema!r} cannot be the name of a schema")
    return Address(driver, shown_url(url), schema)


def _options(parts: SplitResult) -> dict[str, str]:
    if parts.fragment or "@" in parts.path:
        raise ValueError
    user, _, hosts = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    found = [_HOST.fullmatch(each) for each in hosts.split(",")]
    if None in found:
        raise ValueError
    groups = [each.groups("") for each in found if each]
    return {
        "user": unquote(name),
        "password": unquote(password),
        "host": ",".join(unquote(host.strip("[]")) for host, _ in groups),
        "port": ",".join(port for _, port in groups),
        "dbname": unquote(parts.path.removeprefix("/")),
    }
