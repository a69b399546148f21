"""Files that are ours as a whole, and whether somebody has changed one since.

Their first lines say who wrote them and seal the rest, so that a file in which somebody wrote
something of their own is never taken for ours.
"""

import re
from hashlib import sha256

_SEAL = re.compile(rb"^(#![^\n]*\n)?(?://|#) Written by `herdbook hooks install`; seal (\w{16})\n")


def sealed(text: str, comment: str, shebang: str = "") -> bytes:
    """The text with its seal in front, in a comment of its language."""
    digest = sha256((shebang + text).encode()).hexdigest()[:16]
    return f"{shebang}{comment} Written by `herdbook hooks install`; seal {digest}\n{text}".encode()


def is_sealed(data: bytes) -> bool:
    """Whether this is a file of ours that nobody has changed."""
    match = _SEAL.match(data)
    if match is None:
        return False
    rest = (match[1] or b"") + data[match.end() :]
    return sha256(rest).hexdigest()[:16].encode() == match[2]
