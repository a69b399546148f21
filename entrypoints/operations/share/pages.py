"""The pages that can be shared, from the answers of operations."""

from collections.abc import Callable, Sequence
from typing import Any

from herdbook.entrypoints.cli.text import duration, plural, short_id
from herdbook.entrypoints.operations.share.health_page import health
from herdbook.entrypoints.operations.share.html import Html, element, join
from herdbook.entrypoints.operations.share.parts import (
    Content,
    Data,
    Shared,
    list_of,
    mark,
    section,
    state,
    table,
)
from herdbook.entrypoints.operations.share.progress_part import progress_section
from herdbook.entrypoints.operations.share.record_page import record
from herdbook.entrypoints.operations.share.review_page import review
from herdbook.entrypoints.operations.share.talk_page import talk

WITH_KEY = frozenset({"task", "talk", "review"})
"""The pages that can be about one of their rows; that of a task always is."""
WITHOUT_PAST = frozenset({"record", "health", "review"})
"""The pages about what no journal of the plan tells."""
ABOUT_NOW = frozenset({"standing", "leaderboard"})
STATES = ("ready", "held", "waiting", "blocked", "review", "completed")
MOST_CARDS = 200
"""How many tasks of one phase and state are shown."""
MOST_ROWS = 1_000
MOST_CHANGES = 500


def now(shown: Shared, _: str | None) -> Content:
    """What waits for a person, who works, what comes next, and how far the plan is."""
    waiting, (space,) = shown.ask("waiting"), shown.ask("status")["spaces"][:1]
    ready = shown.ask("task.ready", limit=10)
    queue = [
        element(
            "li",
            element("h3", each["title"]),
            element("p", each["text"], class_="prose"),
            element("p", f"for {shown.ago(each['since'])}", class_="mute"),
            class_="entry",
        )
        for each in waiting
    ]
    more = "+" if any(each.get("cut") for each in waiting) else ""
    tasks = space["tasks"]
    counts = f"{tasks['ready']} ready, {tasks['held']} held, {tasks['waiting']} waiting"
    return "Now", join(
        [
            section(
                f"Waiting for a person ({len(waiting)}{more})",
                list_of(queue, "Nothing waits for anybody."),
            ),
            section("Agents", _workers(shown, space["rows"])),
            section(
                f"Next to be claimed ({counts})",
                list_of([element("li", each["name"]) for each in ready], "No task is ready."),
            ),
            progress_section(shown),
        ]
    )


def _workers(shown: Shared, rows: Sequence[Data]) -> Html:
    lines = [
        (
            row["agent"] or "nobody known",
            state(row["status"] or "crashed"),
            row["task"] or "-",
            shown.ago(row["since"]),
            ", ".join(row["waiting_for"]) or "-",
        )
        for row in rows
    ]
    return table("Agents", ("agent", "status", "task", "for", "waits for"), lines, "No agents.")


def board(shown: Shared, _: str | None) -> Content:
    """The tasks by state."""
    answer = shown.ask("board", limit=MOST_CARDS)
    cards: dict[str, list[Html]] = {name: [] for name in STATES}
    for initiative in answer["initiatives"]:
        for phase in initiative["phases"]:
            for name, lane in phase["tasks"].items():
                cards[name] += [_card(each, phase["name"]) for each in lane["shown"]]
    parts = []
    for name in STATES:
        total = answer["tasks"].get(name, 0)
        rest = total - len(cards[name])
        parts.append(
            section(
                (mark(name), f"{name} {total:,}"),
                list_of(cards[name], "None.") if total else element("p", "None.", class_="mute"),
                element("p", f"and {rest:,} more", class_="mute") if rest else None,
            )
        )
    return "Board", element("div", *parts, class_="states")


def _card(card: Data, phase: str | None) -> Html:
    why = ""
    if card["agent"]:
        left = card["lease_seconds"]
        lease = "lease not known" if left is None else f"{duration(left)} left"
        if left is not None and left < 0:
            lease = f"lease over for {duration(-left)}"
        why = f"{card['agent']}{' waits for you' if card['waits_for_you'] else ''}, {lease}"
    elif card["waits_for"]:
        names = [each["name"] for each in card["waits_for"][:3]]
        more = len(card["waits_for"]) - len(names) + card["waits_for_more"]
        why = f"waits for {', '.join(names)}{f' and {more} more' if more else ''}"
    facts = [
        short_id(card["id"]),
        phase,
        card["priority"],
        "critical" if card["critical"] else None,
    ]
    return element(
        "li",
        element("strong", card["name"]),
        element("p", why) if why else None,
        element("p", " · ".join(filter(None, facts)), class_="mute"),
        class_="entry",
    )


def graph(shown: Shared, _: str | None) -> Content:
    """The unfinished tasks as a picture, and as a table for those who do not see it."""
    answer = shown.ask("plan", svg=True)
    phases = {each["id"]: each["name"] for each in answer["phases"]}
    names = {each["id"]: each["name"] for each in answer["tasks"]}
    rows = [
        (
            str(each["wave"]),
            each["name"],
            state(each["state"]),
            phases.get(each["phase_id"], "-"),
            ", ".join(names[key] for key in each["after"] if key in names) or "-",
        )
        for each in sorted(answer["tasks"], key=lambda each: each["wave"])
    ]
    picture = element(
        "div",
        Html(answer["text"]),
        class_="drawing",
        tabindex="0",
        role="group",
        aria_label="The plan as a picture; the table below says the same",
    )
    header = ("wave", "task", "state", "phase", "waits for")
    rest = table("Unfinished tasks", header, rows, "Nothing is left to do.")
    title = f"{plural(len(rows), 'unfinished task')} in {plural(answer['waves'], 'wave')}"
    return "Graph", join([section(title, picture if rows else None, rest)])


def task(shown: Shared, key: str | None) -> Content:
    """One task with its facts, what it waits for, and its changes."""
    found = shown.ask("task.show", id=key)
    facts = [
        ("state", found["state"]),
        ("id", found["id"]),
        ("initiative", found["initiative"]),
        ("phase", found["phase"]),
        ("holder", found["holder"]),
        ("priority", found["priority"]),
        ("labels", ", ".join(found["labels"] or []) or None),
        ("added", shown.time(found["created_at"])),
    ]
    pairs = [
        (element("dt", name), element("dd", value)) for name, value in facts if value is not None
    ]
    texts = [
        section(title, element("p", found[name], class_="prose"))
        for title, name in (
            ("What is to be done", "description"),
            ("Done when", "acceptance"),
            ("Result", "summary"),
        )
        if found[name]
    ]
    changes = [
        (f"#{each['seq']}", shown.time(each["at"]), each["who"] or "somebody", each["what"])
        for each in reversed(found["history"])
    ]
    return f"Task: {found['name']}", join(
        [
            section("Facts", element("dl", pairs, class_="details")),
            texts,
            section("Waits for", _related_rows(found["waits_for"], "It waits for nothing.")),
            section("Needed by", _related_rows(found["dependents"], "Nothing waits for it.")),
            section(
                f"Changes ({len(changes)} of {found['changes']})",
                table("Changes", ("number", "time", "who", "what"), changes, "None."),
            ),
        ]
    )


def _related_rows(rows: Sequence[Data], none: str) -> Html:
    told = [f"{e['kind']} {e['name']} ({e['state'].replace('_', ' ')})" for e in rows]
    return list_of([element("li", each) for each in told], none)


def agents(shown: Shared, _: str | None) -> Content:
    """Each agent with its task and its setup; now also with its skill points."""
    found = shown.ask("agent.list", limit=MOST_ROWS)
    (space,) = shown.ask("status")["spaces"][:1]
    work = {row["agent_id"]: row["task"] for row in space["rows"]}
    earned = {} if shown.is_past else {e["agent"]: e for e in shown.ask("standing")}
    rows = []
    for each in found:
        standing = earned.get(each["name"])
        points = "not known of then" if shown.is_past else "-"
        setup = " ".join(filter(None, (each.get("provider"), each.get("model"))))
        rows.append(
            (
                each["name"],
                state(each["status"]),
                work.get(each["id"]) or "-",
                setup or "-",
                points if standing is None else str(standing["skill_points"]),
                f"{shown.ago(each['updated_at'])} ago",
            )
        )
    header = ("agent", "status", "task", "setup", "skill points", "changed")
    return "Agents", section(plural(len(rows), "agent"), table("Agents", header, rows, "None."))


def lanes(shown: Shared, _: str | None) -> Content:
    """Who held which task from when to when."""
    found = shown.ask("lanes")
    parts = []
    for lane in found["lanes"]:
        rows = [
            (
                each["task"] or "-",
                str(each["state"]).replace("_", " "),
                shown.time(each["since"]),
                "until now" if each["until"] is None else shown.time(each["until"]),
                str(each["end"] or "").replace("_", " ") or "-",
            )
            for each in lane["spans"]
        ]
        if rows:
            name = lane["name"] or "not known"
            header = ("task", "state", "from", "to", "end")
            parts.append(section(name, table(f"Lane of {name}", header, rows, "")))
    about = element(
        "p",
        "From ",
        shown.time(found["since"]),
        " to ",
        shown.time(found["until"]),
        f", {len(found['lanes'])} of {plural(found['total'], 'lane')}",
        class_="mute",
    )
    return "Lanes", join([about, parts or element("p", "Nobody held a task.", class_="mute")])


def history(shown: Shared, _: str | None) -> Content:
    """What happened, transaction by transaction."""
    found = shown.ask("history", limit=MOST_CHANGES)
    rows = [
        (
            f"#{step['seq']}",
            shown.time(step["time"]),
            step["who"] or "somebody",
            element("ul", [element("li", text) for text in _change_texts(step)]),
        )
        for step in found["steps"]
    ]
    count = sum(len(step["entries"]) for step in found["steps"])
    total = found["last"] - found["first"] + 1
    title = f"{count:,} of {plural(total, 'change')}"
    header = ("number", "time", "who", "what")
    return "History", section(title, table("Changes", header, rows, "Nothing has happened yet."))


def _change_texts(step: dict[str, Any]) -> list[str]:
    """The changes of a transaction in words, with how many of a long one are left out."""
    texts = [entry["text"] for entry in step["entries"]]
    left = step["seq"] - step["before"] - len(texts)
    return [f"{left:,} earlier changes", *texts] if left else texts


PAGES: dict[str, Callable[[Shared, str | None], Content]] = {
    each.__name__: each
    for each in (now, board, graph, task, agents, lanes, history, record, health, talk, review)
}
