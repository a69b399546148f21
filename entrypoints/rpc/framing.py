"""Message framing: bytes in, messages out.

Two framings are understood: `Content-Length` headers, as editors send, and one message per line.
The first bytes tell which. Nothing here reads or writes, and no byte of a message that is too large
is stored.
"""

import re
from typing import NamedTuple

MOST_HEADERS = 8_192
"""More bytes of headers than this are no headers."""
_LINES = re.IGNORECASE | re.MULTILINE
_NAME = re.compile(rb"[A-Za-z][A-Za-z0-9-]*")
_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:")
_ENDS = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*(\d{1,10})[ \t]*\r?$", _LINES)
_CHARSET = re.compile(rb"^content-type[ \t]*:.*charset[ \t]*=[ \t]*\"?([^\s;\"]+)", _LINES)
_AGAIN = re.compile(rb"content-(?:length|type)[ \t]*:", re.IGNORECASE)
_SPACE = b" \t\r\n"


class Fault(NamedTuple):
    """Bytes that are no message; `too_large` if they exceed the limit."""

    reason: str
    too_large: bool = False


Frame = bytes | Fault


def add_framing(payload: bytes, *, headers: bool) -> bytes:
    """The bytes of a message with its framing."""
    if headers:
        return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)
    return payload + b"\n"


class Framer:
    """Splits a stream of bytes into messages."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.headers: bool | None = None
        self._held = bytearray()
        self._seen = 0
        self._skip = 0
        self._skips_line = False
        self._lost = False

    def feed(self, data: bytes) -> list[Frame]:
        """The messages that these bytes complete."""
        self._held += data
        if self.headers is None and not self._detect_framing():
            return []
        return self._by_headers() if self.headers else self._by_lines()

    def end(self) -> list[Frame]:
        """The last line, or a Fault for an unfinished message, when the input ends."""
        left, self._held = bytes(self._held), bytearray()
        self._seen = 0
        if self.headers:
            cut_off = bool(left.strip(_SPACE)) or self._skip > 0
            return [Fault("the input ended in the middle of a message")] if cut_off else []
        if self._skips_line or not left.strip(_SPACE):
            return []
        return [left.strip(_SPACE)]

    def _detect_framing(self) -> bool:
        """Whether the first bytes tell the framing: headers begin with a name and a colon."""
        start = bytes(self._held[:MOST_HEADERS]).lstrip(_SPACE)
        if not start:
            self._held.clear()
            return False
        name = _NAME.match(start)
        if name is not None and name.end() == len(start) and len(start) < MOST_HEADERS:
            return False
        self.headers = _HEADER.match(start) is not None
        return True

    def _by_lines(self) -> list[Frame]:
        found: list[Frame] = []
        start = 0
        held = self._held
        while (end := held.find(b"\n", max(start, self._seen))) >= 0:
            if self._skips_line:
                self._skips_line = False
            elif end - start > self.limit:
                found.append(self._too_large())
            elif line := bytes(held[start:end]).strip(_SPACE):
                found.append(line)
            start = end + 1
        del held[:start]
        if self._skips_line or len(held) > self.limit:
            if not self._skips_line:
                found.append(self._too_large())
            self._skips_line = True
            held.clear()
        self._seen = len(held)
        return found

    def _by_headers(self) -> list[Frame]:
        found: list[Frame] = []
        held = self._held
        while held:
            if self._skip:
                gone = min(self._skip, len(held))
                del held[:gone]
                self._skip -= gone
                continue
            if self._lost and not self._resynchronize():
                break
            if held[0] in _SPACE:
                held[:] = held.lstrip(_SPACE)
                continue
            ends = _ENDS.search(held, 0, MOST_HEADERS + 4)
            if ends is None:
                if len(held) <= MOST_HEADERS:
                    break
                found.append(self._lose_sync("there is no end to the headers"))
                continue
            if not self._take(ends, found):
                break
        return found

    def _take(self, ends: "re.Match[bytes]", found: list[Frame]) -> bool:
        """Take one message with its headers; False while it is incomplete."""
        head = bytes(self._held[: ends.start()])
        length = _LENGTH.search(head)
        if length is None:
            found.append(self._lose_sync("the headers say no Content-Length"))
            return True
        size = int(length[1])
        charset = _CHARSET.search(head)
        if size > self.limit:
            found.append(self._too_large())
        elif charset is not None and charset[1].lower() not in (b"utf-8", b"utf8"):
            found.append(Fault("the charset must be utf-8"))
        else:
            if len(self._held) < ends.end() + size:
                return False
            found.append(bytes(self._held[ends.end() : ends.end() + size]))
        del self._held[: ends.end()]
        self._skip = size
        return True

    def _lose_sync(self, reason: str) -> Fault:
        """Go on after the first byte, at the next thing that looks like a header."""
        del self._held[:1]
        self._lost = True
        return Fault(reason)

    def _resynchronize(self) -> bool:
        again = _AGAIN.search(self._held)
        if again is None:
            # The last bytes may be the beginning of a header.
            del self._held[: max(0, len(self._held) - MOST_HEADERS)]
            return False
        del self._held[: again.start()]
        self._lost = False
        return True

    def _too_large(self) -> Fault:
        reason = f"a message may have {self.limit} bytes; this one has more and was passed over"
        return Fault(reason, too_large=True)
