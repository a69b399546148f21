"""Text for people from `advise` and `recall`."""

from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import plain, shorten

HEADER = ("#", "SETUP", "COMMITS", "BUGS", "BUG RATE", "GRADE", "PER TEN COMMITS", "MERIT", "SEEN")
RANKED = (
    *("#", "SETUP", "SEEN", "MERIT", "BAD NEUTRAL GOOD EXCELLENT", "BUGS"),
    *("MEAN GRADE PER WEEK", "WHICH IS"),
)
LISTS = (
    ("good", "went well"),
    ("mistakes", "were mistakes"),
    ("unjudged", "not judged"),
)
_LONGEST_TEXT = 300
_LONGEST_HEAD = 80
_COUNTS = 12
"""How many projects and languages are listed."""
_WEEKS = 6
_TERMS = 8
"""How many of the shared terms are shown."""


def advise(answer: dict[str, Any]) -> str:
    """The verdict and its reasons, the setups with their numbers, and the evidence on each."""
    if not answer["setups"]:
        lines = [_about(answer), "not enough data: the record holds no work of any setup yet"]
        return "\n".join([*lines, *_reasons(answer)[-1:], *_skipped_sources(answer)])
    rows = [_setup(each) for each in answer["setups"]]
    lines = [f"{_about(answer)}: {plain(answer['words'])}", *_reasons(answer)]
    lines += _skipped_sources(answer)
    lines += ["", table(HEADER, rows), ""]
    for each in answer["setups"]:
        lines += _evidence(each)
    return "\n".join([*lines, answer["explanation"]])


def _about(answer: dict[str, Any]) -> str:
    return f"by {plain(answer['scope'])}"


def _reasons(answer: dict[str, Any]) -> list[str]:
    reasons = answer["reasons"]
    titles = (("why", "why"), ("certainty", "how sure"), ("change", "what would change it"))
    return [f"{title}: {plain(reasons[name])}" for name, title in titles]


def _skipped_sources(answer: dict[str, Any]) -> list[str]:
    return [f"not by {plain(each)}" for each in answer["passed_over"]]


def _setup(each: dict[str, Any]) -> tuple[str, ...]:
    rate = each["bug_rate"]
    return (
        f"{each['place']}{'*' if each['is_leader'] else ''}",
        _name(each),
        str(each["commits"]),
        str(each["bugs"]),
        f"{rate['estimate']:.0%} ({rate['low']:.0%}..{rate['high']:.0%})",
        _interval(each["mean_grade"], ""),
        _interval(each["trend"], "+"),
        f"{each['merit']:.2f}",
        str(each["observations"]) if each["is_enough"] else f"{each['observations']}, too few",
    )


def _interval(interval: dict[str, float] | None, sign: str) -> str:
    if interval is None:
        return "-"
    low, estimate, high = (f"{interval[key]:{sign}.1f}" for key in ("low", "estimate", "high"))
    return f"{estimate} ({low}..{high})"


def _name(each: dict[str, Any]) -> str:
    return plain(" ".join(part for part in (each["provider"], each["model"], each["mode"]) if part))


def _evidence(each: dict[str, Any]) -> list[str]:
    sides = (("for", each["evidence_for"]), ("against", each["evidence_against"]))
    quotes = [f"  {side}: {_quote(quote)}" for side, quote in sides if quote is not None]
    return [_name(each), *quotes, ""] if quotes else []


def _quote(quote: dict[str, Any]) -> str:
    words = shorten(plain(" ".join(quote["note"].split())), _LONGEST_TEXT)
    bug = ", with a bug" if quote["bug"] else ""
    where = plain(quote["project"] or "no project")
    return f'"{words}" (grade {quote["grade"]:g}{bug}, {where}, {quote["at"][:10]})'


def leaderboard(answer: dict[str, Any]) -> str:
    """The verdict and its reasons, a line for each setup, and what the list can be narrowed to."""
    if not answer["setups"]:
        return f"{_about(answer)}: the record holds no work of any setup yet"
    rows = [_describe_rank(each) for each in answer["setups"]]
    lines = [f"{_about(answer)}: {plain(answer['words'])}", *_reasons(answer)]
    lines += ["", table(RANKED, rows), "", answer["explanation"]]
    for name, noun in (("languages", "language"), ("projects", "project")):
        found = answer[name][:_COUNTS]
        counts = [f"{plain(each['name'])} ({each['observations']})" for each in found]
        rest = len(answer[name]) - len(found)
        more = [f"and {rest} more"] if rest else []
        if counts:
            lines.append(f"{name} (--{noun}): {', '.join([*counts, *more])}")
    return "\n".join(lines)


def _describe_rank(each: dict[str, Any]) -> tuple[str, ...]:
    mix = each["grade_mix"]
    weeks = [week["mean_grade"] for week in each["weeks"][-_WEEKS:]]
    return (
        f"{each['place']}{'*' if each['is_leader'] else ''}",
        _name(each),
        str(each["observations"]),
        _interval(each["merit_interval"], ""),
        " ".join(str(mix[name]) for name in ("bad", "neutral", "good", "excellent")),
        str(each["bugs"]),
        " ".join("-" if mean is None else f"{mean:.1f}" for mean in weeks),
        each["tells"],
    )


def recall(answer: dict[str, Any]) -> str:
    """Successes, mistakes and unjudged work, each with the reason why it was found."""
    found = [(title, answer[name]) for name, title in LISTS if answer[name]]
    if not found:
        return f"nothing resembles it among {answer['searched']} entries of the record"
    lines: list[str] = []
    for title, hits in found:
        lines += [f"{title}:", ""]
        for hit in hits:
            lines += [*_hit(hit), ""]
    return "\n".join([*lines, f"searched {answer['searched']} entries of the record"])


def _hit(hit: dict[str, Any]) -> list[str]:
    first, *rest = [" ".join(line.split()) for line in hit["text"].splitlines() if line.strip()]
    where = "this project" if hit["is_ours"] else plain(hit["project"] or "no project")
    commit = f", commit {plain(hit['commit_hash'])[:12]}" if hit["commit_hash"] else ""
    lines = [
        f"  {hit['score']:.1f}  {shorten(plain(first), _LONGEST_HEAD)}",
        f"       {hit['kind']} of {plain(hit['agent'])}, {where}, {hit['at'][:10]}{commit}",
        f"       {plain(hit['because'])}; shares {_terms(hit['why'])}",
    ]
    more = shorten(plain(" / ".join(rest)), _LONGEST_TEXT)
    return [*lines, f"       {more}"] if more else lines


def _terms(terms: list[str]) -> str:
    shown = plain(", ".join(terms[:_TERMS]))
    rest = len(terms) - _TERMS
    return f"{shown} and {rest} more" if rest > 0 else shown
