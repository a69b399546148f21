"""Finds similar texts: tokenization of prose and identifiers, ranked by BM25.

A text is split into terms: words of any script, in one case and without accents; the parts of
identifiers such as `parseJsonFile` and `parse_json_file` beside the identifiers themselves; English
plurals as their singulars; and pairs of characters where a script has no spaces between words.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, pairwise
from math import log
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K")

SATURATION = 1.2
"""BM25's k1: how soon repeating a term adds nothing."""
LENGTH_WEIGHT = 0.75
"""BM25's b: how much more a long text must repeat a term than a short one to score the same."""
STOP_WORDS = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is", "it"}
    | {"its", "of", "on", "or", "that", "the", "this", "to", "was", "with"}
)
"""Words that are not searched for; not `not` and its kin, because they invert the meaning."""

_LONGEST_WORD = 64
_SHORTEST_PLURAL = 4
_ASCII_WORDS = re.compile(rf"[A-Za-z0-9_]{{1,{_LONGEST_WORD}}}")
# Chinese, Japanese and Korean, then Thai, Lao, Burmese and Khmer.
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_WORDS = re.compile(rf"[{_UNSPACED}]+|[^\s{_UNSPACED}]{{1,{_LONGEST_WORD}}}")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_ACCENTS = re.compile("[\u0300-\u036f]")
_NUMBERED = re.compile(r"(\D+)(\d+)")


class _WordCharacters(dict[int, int]):
    """For `str.translate`: every character that belongs to no word becomes a space."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        # Unicode calls a vowel sign a mark, and it is still a part of its word.
        belongs = character.isalnum() or unicodedata.category(character)[0] == "M"
        self[code] = code if belongs or character == "_" else ord(" ")
        return self[code]


_WORD_CHARACTERS = _WordCharacters()


class Match(NamedTuple, Generic[K]):
    """A text that shares terms with the query; the terms with the highest scores come first."""

    key: K
    score: float
    terms: tuple[str, ...]


def terms(text: str) -> list[str]:
    """The terms of a text in order, duplicates included."""
    return list(chain.from_iterable(map(_terms_of, _words(text))))


def search_terms(text: str) -> tuple[str, ...]:
    """The terms to search for, each once; stop words only where there is nothing else."""
    found = tuple(dict.fromkeys(terms(text)))
    return tuple(term for term in found if term not in STOP_WORDS) or found


def rank_documents(text: str, documents: Iterable[tuple[K, str]]) -> list[Match[K]]:
    """The documents that share a term with the text, by descending BM25 score.

    Terms that are rare among all documents count most. Equal scores stay in input order. Each
    document is read once, and only matching ones are held in memory.
    """
    wanted = frozenset(search_terms(text))
    held: list[tuple[K, int, dict[str, int]]] = []
    known: Counter[str] = Counter()
    count = total = 0
    for key, document in documents:
        its = terms(document)
        count += 1
        total += len(its)
        if shared := wanted.intersection(its):
            known.update(shared)
            held.append((key, len(its), {term: its.count(term) for term in shared}))
    rarity = {term: log(1 + (count - n + 0.5) / (n + 0.5)) for term, n in known.items()}
    average = total / count if count else 0.0
    matches = [_match(key, length / average, found, rarity) for key, length, found in held]
    return sorted(matches, key=lambda each: -each.score)


def _match(key: K, length: float, found: dict[str, int], rarity: dict[str, float]) -> Match[K]:
    damping = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length)
    parts = {
        term: rarity[term] * times * (SATURATION + 1) / (times + damping)
        for term, times in found.items()
    }
    telling = sorted(parts, key=lambda term: (-parts[term], term))
    return Match(key, sum(parts[term] for term in telling), tuple(telling))


def _words(text: str) -> list[str]:
    """The words of a text as they are written, without apostrophes."""
    text = text.replace("'", "")
    if text.isascii():
        return _ASCII_WORDS.findall(text)
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.replace("\u2019", "")))
    runs = _WORDS.findall(unicodedata.normalize("NFC", bare).translate(_WORD_CHARACTERS))
    return [word for run in runs for word in _split_unspaced(run)]


def _split_unspaced(run: str) -> Iterator[str]:
    if len(run) > 1 and _IS_UNSPACED.match(run):
        yield from (first + second for first, second in pairwise(run))
    else:
        yield run


@lru_cache(maxsize=1 << 16)
def _terms_of(word: str) -> tuple[str, ...]:
    """A word as a term, followed by its parts if it is an identifier of several."""
    parts = [part for piece in word.split("_") for part in _split_camel_case(piece)]
    parts = [each for part in parts for each in _split_number(part)]
    whole = _singular("".join(parts).casefold())
    if len(parts) == 1:
        return (whole,)
    return (whole, *(_singular(part.casefold()) for part in parts)) if parts else ()


def _split_camel_case(piece: str) -> Iterator[str]:
    """Split `parseJSONFile` into parse, JSON and File."""
    start = 0
    for at in range(1, len(piece)):
        rises = piece[at].isupper() and not piece[at - 1].isupper()
        falls = piece[at].isupper() and piece[at + 1 : at + 2].islower()
        if rises or falls:
            yield piece[start:at]
            start = at
    if piece:
        yield piece[start:]


def _split_number(part: str) -> tuple[str, ...]:
    """Split `utf8`, which others write `utf-8`, but nothing like `a1b2c3`."""
    match = _NUMBERED.fullmatch(part)
    return (part,) if match is None else (match[1], match[2])


def _singular(word: str) -> str:
    if len(word) < _SHORTEST_PLURAL or word[-1] != "s" or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > _SHORTEST_PLURAL:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "tches", "nches", "rches", "xes")):
        return word[:-2]
    return word[:-1]
