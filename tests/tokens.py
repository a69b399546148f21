"""How many tokens a text takes at most, counted offline.

No vocabulary can be downloaded where the tests run, so this is a bound, not a count: a word of
letters is one token for each seven letters begun, and one more if it mixes cases; up to three
digits are one, and so are up to three characters of JSON's punctuation in a row; every other
character that is not a space is one for each of its bytes, except for an ellipsis. On the texts
that Herdbook gives to models it is never below the vocabulary o200k_base, as the package
bpe-openai counts it, and at most a third above it: `make clients` compares them.
"""

import math
import re

_PIECE = re.compile(r"""[A-Za-z]+|\d{1,3}|\n+|[":{}\[\],]{1,3}|[^\sA-Za-z\d]""")
_LETTERS = 7
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def estimate_tokens(text: str) -> int:
    """The most tokens that a text is expected to take."""
    return sum(map(_tokens, _PIECE.findall(text)))


def _tokens(piece: str) -> int:
    if piece == _ELLIPSIS:
        return 1
    if not piece.isascii():
        return len(piece.encode("utf-8", "replace"))
    if not piece.isalpha():
        return 1
    mixed = not (piece.islower() or piece.isupper() or piece.istitle())
    return math.ceil(len(piece) / _LETTERS) + mixed
