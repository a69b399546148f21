"""Text for people from `board`: every initiative with its phases, and their tasks by state."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from herdbook.entrypoints.cli import terminal
from herdbook.entrypoints.cli.terminal import Line, Span
from herdbook.entrypoints.cli.text import duration, pad, plain, shorten, width
from herdbook.entrypoints.operations.board.plan_tree import CRITICAL, MARK, MAX_NAMES, STYLES

MAX_WIDTH = 50
"""The maximum number of terminal columns of a task's name."""
ID = 6
"""How many characters of an id are shown: enough to identify a task."""
STEPS = 6
"""How many tasks of a critical path are named."""
COLUMN = max(map(len, STYLES))

Data = dict[str, Any]


def board(answer: Data) -> str:
    """The board at the time it was read."""
    return terminal.render_lines(lines(answer, datetime.fromisoformat(answer["now"])))


def live(answers: Iterator[Data]) -> None:
    """The board as it changes, on the whole terminal, with keys; lease times are updated too."""
    from herdbook.entrypoints.operations.board import interactive  # noqa: PLC0415 - starts programs

    interactive.show(answers, lambda answer: lines(answer, datetime.now(UTC)))


class CardLine(list[Span]):
    """The line of a task on the board, and the id of that task."""

    def __init__(self, spans: Sequence[Span], key: str) -> None:
        super().__init__(spans)
        self.key = key


def lines(answer: Data, now: datetime) -> list[Line]:
    """The board, line by line."""
    found: list[Line] = [_head(answer)]
    for initiative in answer["initiatives"]:
        found += [[], _title(initiative)]
        for phase in initiative["phases"]:
            found += _phase(phase, now, alone=initiative["id"] is None)
        if initiative["more_phases"]:
            found.append([(f"  and {initiative['more_phases']} more phases", "dim")])
        found += _path(initiative)
    if not answer["initiatives"]:
        found += [[], [("the plan is empty", "")]]
    return [*found, *_rest(answer)]


def _head(answer: Data) -> Line:
    spans: list[Span] = []
    for state, count in answer["tasks"].items():
        text = f"{count} in review" if state == "review" else f"{count} {state}"
        spans += [(", " if spans else "", ""), (text, STYLES[state] if count else "dim")]
    return [("tasks: ", "bold"), *spans, (f"   (change #{answer['seq']})", "dim")]


def _title(initiative: Data) -> Line:
    if initiative["id"] is None:
        return [("without an initiative", "bold underline")]
    mode = f"{initiative['status']}, {initiative['execution_mode']}"
    return [(plain(initiative["name"]), "bold underline"), (f"  {mode}", "dim")]


def _phase(phase: Data, now: datetime, *, alone: bool) -> Iterator[Line]:
    tasks: Data = phase["tasks"]
    total = sum(lane["total"] for lane in tasks.values())
    done = tasks.get("completed", {"total": 0})["total"]
    if not alone:
        name = "without a phase" if phase["id"] is None else plain(phase["name"])
        text = f"  {phase['status']}, " if phase["status"] else "  "
        spans: list[Span] = [(f"  {name}", "bold"), (f"{text}{done} of {total} done", "dim")]
        open_ = [plain(each["name"]) for each in phase["waits_for"] if not _is_completed(each)]
        if open_:
            spans.append((f", after {_list(open_)}", "dim"))
        yield spans
    if total == done and not alone:
        return
    shown = [card for lane in tasks.values() for card in lane["shown"]]
    broadest = max((width(_name(card)) for card in shown), default=0)
    for state, lane in sorted(tasks.items(), key=lambda each: each[0] != "held"):
        if state == "completed":
            yield _completed_lane(lane)
            continue
        word = state
        for card in lane["shown"]:
            detail = list(_detail(card, state, phase["id"], now))
            yield _card(card, word, state, broadest, detail)
            word = ""
        rest = lane["total"] - len(lane["shown"])
        if rest:
            yield [_lane(word, state), (f"  and {rest} more", "dim")]


def _is_completed(phase: Data) -> bool:
    return bool(phase["status"] == "completed")


def _lane(word: str, state: str) -> Span:
    return (f"    {pad(word, COLUMN)}  ", STYLES[state])


def _name(card: Data) -> str:
    return shorten(plain(card["name"]), MAX_WIDTH)


def _card(card: Data, word: str, state: str, broadest: int, detail: Line) -> Line:
    critical = card["critical"]
    spans = [
        _lane(word, state),
        (f"{MARK if critical else ' '} ", CRITICAL),
        (f"{_short(card['id'])}  ", "dim"),
        (_name(card), CRITICAL if critical else ""),
        (" " * (broadest - width(_name(card))), ""),
        *detail,
    ]
    return CardLine(spans, card["id"])


def _short(key: str) -> str:
    return plain(key.removeprefix("tsk_")[:ID])


def _detail(card: Data, state: str, phase_id: str | None, now: datetime) -> Iterator[Span]:
    """The holder of a task and its remaining lease, or what the task waits for."""
    if state == "held":
        who = plain(card["agent"] or ("somebody" if card["for_review"] else "nobody known"))
        yield f"  {who}{' reviews it' if card['for_review'] else ''}", STYLES["held"]
        if card["waits_for_you"]:
            yield " waits for you", STYLES["blocked"]
        if card["lease_until"] is not None:
            left = (datetime.fromisoformat(card["lease_until"]) - now).total_seconds()
            if left > 0:
                yield f", {duration(left)} left", "dim"
            else:
                yield f", lease over for {duration(-left)}", STYLES["blocked"]
        else:
            yield ", lease not known", "dim"
    elif card["waits_for"] or card["waits_for_more"]:
        named = list(_blocker_names(card["waits_for"], phase_id))
        yield f"  for {_list(named, card['waits_for_more'])}", "dim"


def _blocker_names(blockers: list[Data], phase_id: str | None) -> Iterator[str]:
    """The names of the tasks in the way; only without any, what keeps the whole phase waiting."""
    tasks = [plain(each["name"]) for each in blockers if each["kind"] == "task"]
    yield from tasks
    for each in [] if tasks else blockers:
        name = "its phase" if each["id"] == phase_id else f"{each['kind']} {plain(each['name'])}"
        yield f"{name} ({each['status']})"


def _list(names: list[str], more: int = 0) -> str:
    more += max(0, len(names) - MAX_NAMES)
    return ", ".join([*names[:MAX_NAMES], *([f"+{more}"] if more else [])])


def _completed_lane(lane: Data) -> Line:
    names = [_name(card) for card in lane["shown"]]
    text = f"  {lane['total']}{'; last: ' if names else ''}{', '.join(names)}"
    return [_lane("completed", "completed"), (text, "dim")]


def _path(initiative: Data) -> Iterator[Line]:
    path = initiative["critical_path"]
    if path is None:
        yield [("  too many unfinished tasks to look for the critical path", "dim")]
    elif path:
        names = [plain(each["name"]) for each in path[:STEPS]]
        more = f" → +{len(path) - STEPS}" if len(path) > STEPS else ""
        yield [(f"  {MARK} critical path: ", CRITICAL), (f"{' → '.join(names)}{more}", "")]


def _rest(answer: Data) -> Iterator[Line]:
    """How much there is that is not shown."""
    counts = [
        (answer["more_initiatives"], "more initiatives: name one with --initiative"),
        (answer["unseen_tasks"], "more tasks without a phase, not shown"),
        (answer["closed_initiatives"], "initiatives completed or archived"),
    ]
    rest = [f"{count} {what}" for count, what in counts if count]
    if rest:
        yield []
        yield [("; ".join(rest), "dim")]
