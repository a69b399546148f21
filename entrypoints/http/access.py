"""Who may ask: programs that know the token, and browsers that were handed a ticket once.

The token is in a file that only this account can read. A browser never sees it: it gets a ticket in
the fragment of the address that the person opens, and exchanges it, once, for a cookie. Cookies
are signed with the token, so they outlive a restart of the server, and end when the token is
renewed.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256

TICKET_SECONDS = 600
COOKIE_SECONDS = 7 * 86_400
MOST_TICKETS = 64
"""Tickets that may be open at once; the oldest is given up for a new one."""


class Access:
    """Checks tokens, tickets and cookies; all comparisons take the same time for any value."""

    def __init__(
        self,
        token: str,
        cookie_name: str,
        *,
        secure: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cookie_name = f"__Host-{cookie_name}" if secure else cookie_name
        self._token = token.encode()
        self._secure = secure
        self._clock = clock
        self._tickets: dict[bytes, float] = {}

    def knows_token(self, header: str | None) -> bool:
        """Whether an `Authorization` header shows the token."""
        scheme, _, shown = (header or "").partition(" ")
        is_equal = hmac.compare_digest(shown.strip().encode(), self._token)
        return scheme.lower() == "bearer" and is_equal

    def issue_ticket(self) -> str:
        """A new ticket for one browser; it is accepted once, within ten minutes."""
        ticket = secrets.token_urlsafe(32)
        while len(self._tickets) >= MOST_TICKETS:
            self._tickets.pop(next(iter(self._tickets)), None)
        self._tickets[_digest(ticket)] = self._clock() + TICKET_SECONDS
        return ticket

    def exchange(self, ticket: str) -> str | None:
        """The `Set-Cookie` header for a ticket; None for an unknown, used or old one."""
        # Looked up by its digest, so the time it takes says nothing about any ticket.
        until = self._tickets.pop(_digest(ticket), 0.0)
        if until < self._clock():
            return None
        session = f"{secrets.token_hex(16)}.{int(self._clock()) + COOKIE_SECONDS}"
        value = f"{session}.{self._sign(session)}"
        kind = f"Max-Age={COOKIE_SECONDS}; Path=/; HttpOnly; SameSite=Strict"
        return f"{self.cookie_name}={value}; {kind}{'; Secure' if self._secure else ''}"

    def session_of(self, header: str | None) -> str | None:
        """The browser that a `Cookie` header belongs to; None if it shows no valid cookie.

        Other programs of this machine have set cookies too, which may be anything, even ours.
        """
        pairs = (each.partition("=") for each in (header or "").split(";"))
        values = [value.strip() for name, _, value in pairs if name.strip() == self.cookie_name]
        return next(filter(None, map(self._check_cookie, values)), None)

    def _check_cookie(self, value: str) -> str | None:
        """The browser that was given this cookie; None if it was given to nobody, or has ended."""
        session, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(session).encode()):
            return None
        name, _, until = session.partition(".")
        return name if until.isdigit() and int(until) > self._clock() else None

    def _sign(self, session: str) -> str:
        return hmac.new(self._token, session.encode(), sha256).hexdigest()


def _digest(ticket: str) -> bytes:
    return sha256(ticket.encode(errors="replace")).digest()
