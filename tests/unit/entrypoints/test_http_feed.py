"""The queue of a reader of the feed, and the tickets and cookies of browsers."""

import asyncio
import json

import pytest

from herdbook.entrypoints.http import access as accesses
from herdbook.entrypoints.http import feed_reader
from herdbook.entrypoints.http.access import Access
from herdbook.entrypoints.http.feed_reader import FeedReader, QueuedEvent, parse_positions

TOKEN = "0123456789abcdef" * 4


def test_a_reader_that_does_not_keep_up_is_told_and_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After 256 events: one that says so, without an id, and then the end."""
    monkeypatch.setattr(feed_reader, "FAREWELL", 0)
    left: list[str] = []

    async def run() -> list[bytes]:
        reader = FeedReader(None, lambda: left.append("disconnected"))
        accepted = [reader.put(QueuedEvent("journal", "{}", "a", n)) for n in range(258)]
        assert accepted == [True] * 256 + [False, True]
        found = []
        while (data := await reader.next_bytes()) is not None:
            found.append(data)
        await asyncio.sleep(0.01)
        return found

    (told,) = asyncio.run(run())
    lines = told.decode().splitlines()
    assert lines[0] == "event: reset"
    assert not any(line.startswith("id:") for line in lines)
    assert json.loads(lines[1].removeprefix("data: "))["reason"] == "overflow"
    assert left == ["disconnected"]


def test_a_reader_without_news_gets_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that both sides notice when the other has gone."""
    monkeypatch.setattr(feed_reader, "HEARTBEAT", 0.001)

    async def run() -> list[bytes | None]:
        reader = FeedReader(None, lambda: None)
        first = await reader.next_bytes()
        reader.put(QueuedEvent("pulse", "[]"))
        second = await reader.next_bytes()
        reader.end()
        return [first, second, await reader.next_bytes()]

    comment, news, end = asyncio.run(run())
    assert comment is not None
    assert comment.startswith(b":")
    assert (news, end) == (b"event: pulse\ndata: []\n\n", None)


def test_an_id_is_the_position_of_what_was_sent() -> None:
    """Whoever comes back with it gets all that was queued and never sent, and nothing twice."""

    async def run() -> list[bytes | None]:
        reader = FeedReader(None, lambda: None)
        reader.sent = {"a": 5, "b": 0}
        for space, seq in (("a", 6), ("b", 3), ("a", 7)):
            assert reader.put(QueuedEvent("journal", "{}", space, seq))
        caught_up = reader.describe_sent("journal", "{}", "b", 2)
        return [caught_up, *[await reader.next_bytes() for _ in range(3)]]

    found = asyncio.run(run())
    ids = [(each or b"").decode().splitlines()[1] for each in found]
    assert ids == ["id: a:5,b:2", "id: a:6,b:2", "id: a:6,b:3", "id: a:7,b:3"]


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("", {}),
        ("ab:1,cd:22", {"ab": 1, "cd": 22}),
        ("ab:-1,cd:x,ef", {}),
        ("ab:1\u0661", {"ab": 11}),
        (f"ab:{'9' * 30}", {}),
        (",,:,", {}),
    ],
)
def test_whatever_an_id_says_only_positions_are_read(text: str, positions: dict[str, int]) -> None:
    """It comes from a client."""
    assert parse_positions(text) == positions


def test_tickets_end_with_their_time_and_cookies_with_theirs() -> None:
    """Ten minutes, and a week."""
    now = 1_000_000.0
    access = Access(TOKEN, "herdbook-1", secure=False, clock=lambda: now)
    late, ticket = access.issue_ticket(), access.issue_ticket()
    cookie = access.exchange(ticket)
    assert cookie is not None
    shown = cookie.partition(";")[0]
    assert access.session_of(shown) is not None
    assert access.session_of(f"other=1; {shown}") is not None
    now += accesses.TICKET_SECONDS + 1
    assert access.exchange(late) is None
    assert access.session_of(shown) is not None
    now += accesses.COOKIE_SECONDS
    assert access.session_of(shown) is None
    other = Access(TOKEN[::-1], "herdbook-1", secure=False, clock=lambda: now)
    assert other.session_of(shown) is None


def test_only_so_many_tickets_are_open_at_once() -> None:
    """The oldest are given up; under TLS the cookie is for this host alone."""
    access = Access(TOKEN, "herdbook-1", secure=True)
    tickets = [access.issue_ticket() for _ in range(accesses.MOST_TICKETS + 1)]
    assert access.exchange(tickets[0]) is None
    cookie = access.exchange(tickets[-1])
    assert cookie is not None
    assert cookie.startswith("__Host-herdbook-1=")
    assert "; Secure" in cookie


FOREIGN_COOKIES = [
    'preferences={"theme": "dark"}',
    "two words=1",
    'half="quoted',
    "na\xefve=\xe9",
    "path=/elsewhere",
    "flag",
    "=nameless",
    "herdbook-1=tossed",
    "herdbook-1=a.b.c",
]
"""What other programs of this machine have browsers send: cookies know no ports."""


@pytest.mark.parametrize("foreign", FOREIGN_COOKIES)
def test_cookies_of_other_programs_do_not_hide_ours(foreign: str) -> None:
    """Wherever they stand, and whatever they are."""
    access = Access(TOKEN, "herdbook-1", secure=False)
    shown = (access.exchange(access.issue_ticket()) or "").partition(";")[0]
    assert access.session_of(foreign) is None
    for header in (f"{foreign}; {shown}", f"{shown}; {foreign}", f"{foreign};{shown};{foreign}"):
        assert access.session_of(header) is not None, header
