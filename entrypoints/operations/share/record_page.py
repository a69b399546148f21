"""The record as a page: which setup works best, how sure that is, and what agents earned."""

from typing import Any

from herdbook.entrypoints.cli.text import plural
from herdbook.entrypoints.operations.share.html import Html, element, join
from herdbook.entrypoints.operations.share.parts import Content, Data, Shared, section, table

REASONS = {"why": "Why", "certainty": "How sure", "change": "What would change it"}
GRADES = ("bad", "neutral", "good", "excellent")


def record(shown: Shared, _: str | None) -> Content:
    """The setups by rank with what is known of each, and what each agent has earned."""
    ranked, earned = shown.ask("leaderboard"), shown.ask("standing")
    header = ("place", "setup", "merit", "seen", "your grades", "trend", "what that tells")
    setups = [
        (
            str(each["place"]) if each["is_enough"] else "-",
            " ".join(filter(None, (each["provider"], each["model"], each["mode"]))) or "not known",
            _merit(each["merit_interval"]),
            _seen(each),
            ", ".join(
                f"{each['grade_mix'][name]} {name}" for name in GRADES if each["grade_mix"][name]
            )
            or "none",
            _trend(each),
            each["tells"],
        )
        for each in ranked["setups"]
    ]
    agents = [
        (
            each["agent"],
            str(each["skill_points"]),
            str(each["commits"]),
            str(each["bugs"]),
            "works" if each["active"] else "halted",
        )
        for each in earned
    ]
    points = ("agent", "skill points", "commits", "bugs", "status")
    return "Record", join(
        [
            section(
                f"Setups, judged by {ranked['scope']}",
                _verdict(ranked) if setups else None,
                table("Setups", header, setups, "Nothing is recorded yet."),
                _explanation(ranked) if setups else None,
            ),
            section("Agents", table("Agents", points, agents, "Nothing is recorded yet.")),
        ]
    )


def _seen(setup: Data) -> str:
    commits, bugs = plural(setup["observations"], "commit"), plural(setup["bugs"], "bug")
    return f"{commits}, {setup['grades']} graded, {bugs}"


def _merit(merit: dict[str, Any]) -> str:
    return f"{merit['estimate']:.1f}, between {merit['low']:.1f} and {merit['high']:.1f}"


def _trend(setup: Data) -> str:
    """What the weeks tell, and the mean grade of those that have one."""
    known = [each for each in setup["weeks"] if each["mean_grade"] is not None]
    weeks = ", ".join(f"{each['begin']}: {each['mean_grade']:.1f}" for each in known)
    return f"{setup['trend_tells']}{f' (mean grades by week, {weeks})' if weeks else ''}"


def _verdict(ranked: Data) -> Html:
    few = "Too little to tell. " if ranked["verdict"] == "too_little_data" else ""
    reasons = [
        (element("dt", title), element("dd", ranked["reasons"][name]))
        for name, title in REASONS.items()
    ]
    return join(
        [element("p", f"{few}{ranked['words']}."), element("dl", reasons, class_="details")]
    )


def _explanation(ranked: Data) -> Html:
    words = ranked["explanation"].replace("low..high", "The interval")
    return element("p", f"Merit is in grades. {words}.", class_="mute")
