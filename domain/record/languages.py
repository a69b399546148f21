"""In which language a project is written, as far as names of files and words about it tell."""

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
_ALSO = {"bash": "shell", "cpp": "c++", "csharp": "c#", "fsharp": "f#", "golang": "go"}
# These names are words of English too, or letters, and prove nothing in a sentence.
_AMBIGUOUS = {"c", "dart", "elm", "go", "julia", "r", "shell", "swift"}
_NAMED = {name: name for name in _SUFFIXES if name not in _AMBIGUOUS} | _ALSO
_FILE = re.compile(r"[\w)\]*-]\.([A-Za-z]{1,5})(?!\w|\.\w)")
_WORD = re.compile(r"(?<![\w.])[a-z]+(?:\+\+|#)?(?!\w)")

LANGUAGES = tuple(_SUFFIXES)


def language_named(text: str) -> str | None:
    """The language somebody means by its name, another name or a suffix of its files."""
    name = text.strip().casefold().removeprefix(".")
    if name in _SUFFIXES:
        return name
    return _ALSO.get(name) or _BY_SUFFIX.get(name)


def main_language(texts: Iterable[str]) -> str | None:
    """The language most files and words in some texts speak of; None where none is named."""
    found: Counter[str] = Counter()
    for text in texts:
        lowered = text.casefold()
        found.update(_BY_SUFFIX[each] for each in _FILE.findall(lowered) if each in _BY_SUFFIX)
        found.update(_NAMED[each] for each in _WORD.findall(lowered) if each in _NAMED)
    return min(found, key=lambda name: (-found[name], name)) if found else None
