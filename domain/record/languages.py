"""Detects the programming language of a project from file names and words in texts."""

import re
from collections import Counter
from collections.abc import Iterable

_SUFFIXES = {
    "c": "c h",
    "c#": "cs",
    "c++": "cpp cc cxx hpp hh",
    "clojure": "clj cljs",
    "css": "css scss sass less",
    "dart": "dart",
    "elixir": "ex exs",
    "elm": "elm",
    "erlang": "erl",
    "f#": "fs fsx",
    "go": "go",
    "haskell": "hs",
    "html": "html htm",
    "java": "java",
    "javascript": "js jsx mjs cjs",
    "julia": "jl",
    "kotlin": "kt kts",
    "lua": "lua",
    "nix": "nix",
    "ocaml": "ml mli",
    "perl": "pl pm",
    "php": "php",
    "python": "py pyi ipynb",
    "r": "r",
    "ruby": "rb",
    "rust": "rs",
    "scala": "scala",
    "shell": "sh bash zsh",
    "sql": "sql",
    "swift": "swift",
    "terraform": "tf",
    "typescript": "ts tsx mts",
    "zig": "zig",
}
_BY_SUFFIX = {suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_ALIASES = {"bash": "shell", "cpp": "c++", "csharp": "c#", "fsharp": "f#", "golang": "go"}
# These names are also English words, or letters, and prove nothing in a sentence.
_AMBIGUOUS = {"c", "dart", "elm", "go", "julia", "r", "shell", "swift"}
_BY_WORD = {name: name for name in _SUFFIXES if name not in _AMBIGUOUS} | _ALIASES
_FILE = re.compile(r"[\w)\]*-]\.([A-Za-z]{1,5})(?!\w|\.\w)")
_WORD = re.compile(r"(?<![\w.])[a-z]+(?:\+\+|#)?(?!\w)")

LANGUAGES = tuple(_SUFFIXES)


def find_language(text: str) -> str | None:
    """The language with this name, alias or file suffix; None if there is none."""
    name = text.strip().casefold().removeprefix(".")
    if name in _SUFFIXES:
        return name
    return _ALIASES.get(name) or _BY_SUFFIX.get(name)


def main_language(texts: Iterable[str]) -> str | None:
    """The language named most often in some texts, by files and words; None if there is none."""
    found: Counter[str] = Counter()
    for text in texts:
        lowered = text.casefold()
        found.update(_BY_SUFFIX[each] for each in _FILE.findall(lowered) if each in _BY_SUFFIX)
        found.update(_BY_WORD[each] for each in _WORD.findall(lowered) if each in _BY_WORD)
    return min(found, key=lambda name: (-found[name], name)) if found else None
