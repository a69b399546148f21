"""Files that Herdbook owns as a whole, and how a changed one is recognised.

Their first line names Herdbook and a digest of the rest (the seal), so that a file that somebody
edited is never taken for ours.
"""

import re
from hashlib import sha256

_SEAL = re.compile(rb"^(#![^\n]*\n)?(?://|#) Written by `herdbook hooks install`; seal (\w{16})\n")


def seal(text: str, comment: str, shebang: str = "") -> bytes:
    """The text with its seal as its first line, in a comment of its language."""
    digest = sha256((shebang + text).encode()).hexdigest()[:16]
    return f"{shebang}{comment} Written by `herdbook hooks install`; seal {digest}\n{text}".encode()


def is_sealed(data: bytes) -> bool:
    """Whether this is a file of ours that nobody has changed."""
    match = _SEAL.match(data)
    if match is None:
        return False
    rest = (match[1] or b"") + data[match.end() :]
    return sha256(rest).hexdigest()[:16].encode() == match[2]
