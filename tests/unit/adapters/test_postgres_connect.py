"""Names of Postgres servers, and how long to try: without a server."""

import socket
import threading
import time
from typing import Any

import psycopg
import pytest

from herdbook.adapters.postgres import connect, errors
from herdbook.domain.errors import StoreUnavailable
from herdbook.ports.engine import retry as retrying
from herdbook.ports.engine.retry import Retry
from herdbook.ports.engine.store import TryAgain
from tests.cases import for_each

ADDRESSES = {"one": ["192.0.2.1", "2001:db8::1"], "two": ["192.0.2.2"]}


@pytest.fixture
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network in which two hosts have addresses."""

    def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        if host not in ADDRESSES:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(2, 1, 6, "", (address, 0)) for address in [*ADDRESSES[host]] * 2]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_names")
@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"host": "/run/postgresql"}, {}),
        ({"host": "localhost"}, {}),
        ({"host": "192.0.2.9", "port": "1"}, {}),
        ({"host": "::1%eth0"}, {}),
        ({"host": "one", "hostaddr": "192.0.2.7"}, {}),
        ({"host": "two"}, {"host": "two", "hostaddr": "192.0.2.2", "port": "5432"}),
        (
            {"host": "one,/socket,two", "port": "1,2,3"},
            {
                "host": "one,one,/socket,two",
                "hostaddr": "192.0.2.1,2001:db8::1,,192.0.2.2",
                "port": "1,1,2,3",
            },
        ),
        (
            {"host": "nobody,two", "port": "7"},
            {"host": "two", "hostaddr": "192.0.2.2", "port": "7"},
        ),
    ],
)
def test_hosts_are_looked_up(given: dict[str, str], found: dict[str, str]) -> None:
    """Those that have names, each with its port; the others stay as they are."""
    assert connect._resolve(given, 9.0) == found


@pytest.mark.usefixtures("_names")
def test_a_host_of_the_environment_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver would take it from there itself."""
    monkeypatch.setenv("PGHOST", "two")
    monkeypatch.setenv("PGPORT", "8")
    assert connect._resolve({}, 9.0) == {"host": "two", "hostaddr": "192.0.2.2", "port": "8"}


@pytest.mark.usefixtures("_names")
def test_a_host_that_nobody_knows_is_no_matter_of_time() -> None:
    """It is told at once and not tried again."""
    with pytest.raises(psycopg.OperationalError, match="nobody: Name or service") as failure:
        connect._resolve({"host": "nobody"}, 9.0)
    told = errors.translate_connect_error(failure.value, "place", 9.0)
    assert type(told) is StoreUnavailable


def test_a_silent_name_server_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked in a thread that is left behind."""
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(60) and [])
    began = time.monotonic()
    with pytest.raises(psycopg.errors.ConnectionTimeout):
        connect._resolve({"host": "one"}, 0.1)
    assert time.monotonic() - began < 30
    over.set()


def test_pauses_grow_until_patience_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is longer than what is left, and after the last there is none."""
    now = [100.0]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(retrying.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(retrying.time, "sleep", sleep)
    retry = Retry(10.0)
    now[0] += 500
    while retry.pause():
        pass
    assert sum(pauses) == pytest.approx(10.0)
    assert 20 < len(pauses) < 60
    assert pauses[0] <= retrying.FIRST_PAUSE * 1.5
    assert max(pauses) <= retrying.LONGEST_PAUSE * 1.5


def test_some_failures_deserve_less_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """They end earlier, counted from the same beginning; more than all there is not."""
    now = [0.0]
    monkeypatch.setattr(retrying.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(retrying.time, "sleep", lambda _: None)
    retry = Retry(10.0)
    assert retry.pause()
    now[0] = 6.0
    assert not retry.pause(5.0)
    assert retry.pause(50.0)
    assert retry.pause()
    now[0] = 10.0
    assert not retry.pause(50.0)


@for_each(
    ("error", "unknown"),
    [
        (psycopg.OperationalError("server closed the connection unexpectedly"), True),
        (errors.NoAnswer("no answer within 3 s"), True),
        (psycopg.errors.AdminShutdown("terminating connection"), True),
        (psycopg.errors.SerializationFailure("could not serialize"), False),
        (psycopg.errors.InvalidSqlStatementName("no such statement"), False),
        (psycopg.errors.DiskFull("no space"), False),
    ],
)
def test_what_became_of_a_commit_is_known_or_told_to_be_unknown(
    error: psycopg.Error, unknown: bool
) -> None:
    """An error of the server's says that nothing was written; silence says nothing."""
    told = errors.translate_commit_error(error, "place", 3.0)
    assert ("the answer to a commit was lost" in str(told)) is unknown
    assert isinstance(told, TryAgain) or not unknown
