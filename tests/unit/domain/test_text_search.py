"""The laws of finding similar texts: how they are taken apart, and how they are ranked."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.record.text_search import STOP_WORDS, rank_documents, search_terms, terms
from tests.cases import for_each

texts = st.text(st.sampled_from("abAB zZ_9.'éß語日कि้ \n"), max_size=40)


def keys(text: str, *documents: str) -> list[int]:
    """Give the places of the documents found, the best first."""
    return [each.key for each in rank_documents(text, enumerate(documents))]


@for_each(
    ("text", "expected"),
    [
        ("Fix the parser", ["fix", "the", "parser"]),
        ("parseJSONFile", ["parsejsonfile", "parse", "json", "file"]),
        ("parse_json_file", ["parsejsonfile", "parse", "json", "file"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("__init__", ["init"]),
        ("utf8", ["utf8", "utf", "8"]),
        ("UTF-8", ["utf", "8"]),
        ("a1b2c3", ["a1b2c3"]),
        ("3.11", ["3", "11"]),
        ("don't", ["dont"]),
        ("don\u2019t", ["dont"]),
        ("Café", ["cafe"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("\uff26ull", ["full"]),
        ("кот Кот", ["кот", "кот"]),
        ("हिन्दी", ["हिन्दी"]),
        ("検索機能", ["検索", "索機", "機能"]),
        ("語", ["語"]),
        ("テストtest", ["テス", "スト", "test"]),
        ("한국어", ["한국", "국어"]),
        ("tasks retries caches branches boxes", ["task", "retry", "cache", "branch", "box"]),
        ("status class analysis bus", ["status", "class", "analysis", "bus"]),
        ("", []),
        ("… -- _", []),
    ],
)
def test_a_text_is_taken_apart_into_terms(text: str, expected: list[str]) -> None:
    """Words of every script, names with their parts, and pairs where there are no spaces."""
    assert terms(text) == expected


@given(texts)
def test_the_case_of_plain_words_does_not_matter(text: str) -> None:
    """A text without capitals has the terms of its own casefolded form, each in one case."""
    assert all(term == term.casefold() for term in terms(text))
    assert terms(text.lower()) == terms(text.lower().casefold())


@given(texts, texts)
def test_texts_apart_have_the_terms_of_both(one: str, other: str) -> None:
    """A space between two texts parts their terms as well."""
    assert terms(f"{one} {other}") == terms(one) + terms(other)


def test_a_word_of_any_length_is_taken_apart() -> None:
    """What has no end is cut into pieces and found by the same pieces."""
    endless = "x" * 1_000
    assert set(map(len, terms(endless))) == {64, 1_000 % 64}
    assert keys(endless, "y", endless) == [1]


def test_stop_words_are_not_looked_for() -> None:
    """Each term is looked for once, without what is in every sentence."""
    assert search_terms("the task of the task") == ("task",)
    assert keys("the task", "the end of the day", "a task") == [1]


def test_stop_words_alone_are_looked_for() -> None:
    """Where there is nothing else, they are better than nothing."""
    assert search_terms("to be or") == ("to", "be", "or")
    assert keys("to be", "a day", "be here") == [1]


def test_what_turns_the_sense_around_is_no_stop_word() -> None:
    """Work that was not done differs from work that was."""
    assert STOP_WORDS.isdisjoint({"not", "no", "never", "without"})


def test_a_score_computed_by_hand() -> None:
    """One of two texts has the term: ln(1 + 1.5 / 1.5), length 2 of 1.5, times 2.2 / 2.5."""
    (match,) = rank_documents("cat", [("x", "cat sat"), ("y", "dog")])
    assert match.key == "x"
    assert match.terms == ("cat",)
    assert match.score == pytest.approx(log(2) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 1.5)))
    assert match.score == pytest.approx(0.609970, abs=1e-6)


def test_rare_terms_count_more() -> None:
    """What few texts say tells more than what many say, and is named first."""
    found = rank_documents(
        "common rare", enumerate(["common x", "rare x", "common y", "common rare"])
    )
    assert [each.key for each in found] == [3, 1, 0, 2]
    assert found[0].terms == ("rare", "common")


def test_short_texts_count_more() -> None:
    """The same term in fewer words tells more."""
    assert keys("lease", "lease and much more beside it", "lease", "x") == [1, 0]


def test_saying_it_again_counts_less_each_time() -> None:
    """A second time adds less than the first, and a third less than the second."""
    documents = ["lease x x x", "lease lease x x", "lease lease lease x", "y y y y"]
    third, second, first = (each.score for each in rank_documents("lease", enumerate(documents)))
    assert 0 < third - second < second - first < first


def test_equal_texts_stay_in_their_order() -> None:
    """Chance decides nothing."""
    assert keys("lease", "lease", "x", "lease", "lease") == [0, 2, 3]


def test_names_are_found_by_their_parts_and_in_any_style() -> None:
    """`parseJson`, `parse_json` and `parse json` find one another; whole names score higher."""
    documents = ["x", "call parse_json", "parse some json"]
    assert keys("parseJson", *documents) == [1, 2]
    assert set(keys("json to parse", *documents)) == {1, 2}


def test_nothing_is_found_where_nothing_is() -> None:
    """No documents, no shared term or no word to look for make an empty answer."""
    assert keys("lease") == []
    assert keys("lease", "x", "", "y") == []
    assert keys("…", "x", "…") == []


@given(texts, st.lists(texts, max_size=6))
def test_what_is_found_shares_a_term(text: str, documents: list[str]) -> None:
    """All texts that share a term worth looking for are found, no others, by falling scores."""
    found = rank_documents(text, enumerate(documents))
    wanted = set(search_terms(text))
    sharing = {at: wanted & set(terms(each)) for at, each in enumerate(documents)}
    assert {each.key: set(each.terms) for each in found} == {
        at: shared for at, shared in sharing.items() if shared
    }
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
