"""The laws of telling in which language a project is written."""

from herdbook.domain.record.languages import LANGUAGES, find_language, main_language
from tests.cases import for_each


@for_each("name", LANGUAGES)
def test_every_language_is_known_by_its_name(name: str) -> None:
    """In any case, and with spaces around it."""
    assert find_language(f" {name.upper()} ") == name


@for_each(
    ("text", "language"),
    [("py", "python"), (".ts", "typescript"), ("golang", "go"), ("cpp", "c++"), ("cobol", None)],
)
def test_a_language_is_known_by_other_names(text: str, language: str | None) -> None:
    """By a suffix of its files, or by what else people call it."""
    assert find_language(text) == language


@for_each(
    ("text", "language"),
    [
        ("src/a.py\nsrc/b.py\nmain.rs", "python"),
        ("Port parser.py to lexer.rs and ast.rs.", "rust"),
        ("a C++ parser", "c++"),
        ("Rewrite it in Rust", "rust"),
        ("go swift to the shell", None),
        ("notes.txt, data.json and a.py.orig", None),
        ("b.go a.rs", "go"),
        ("", None),
    ],
)
def test_files_and_words_tell_the_language(text: str, language: str | None) -> None:
    """The one named most often, and no name that is a word of English too."""
    assert main_language([text]) == language
