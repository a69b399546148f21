"""Text for people from the commands of the record."""

import shlex
from collections.abc import Sequence
from typing import Any

from herdbook.domain.grading import FIRST_COMMUNICATION_SCORE, Grade
from herdbook.domain.record.standing import Grader
from herdbook.domain.record.standing_reasons import compare_graders, describe_state
from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import plain, plural

WIDEST = 60
_LEGEND = (
    f"SCORE starts at {FIRST_COMMUNICATION_SCORE} and moves by each grade; GRADE is the mean of "
    "the commits that both of you graded (low..high with 95% confidence); a bug costs a SKILL "
    "point, and at 0 the agent is halted"
)


def grade(answer: dict[str, Any] | list[dict[str, Any]]) -> str:
    """How the grades changed the score and what is missing, or the commits that are not graded."""
    if isinstance(answer, list):
        return _list_ungraded(answer)
    retro, now, entry = answer["retrospective"], answer["standing"], answer["entry"]
    agent, score = plain(now["agent"]), now["communication_score"]
    if retro is None:
        given = _label(entry["points"])
        rest = "the other party's grade completes the retrospective"
        return f"{agent} stands at communication score {score} after this {given}; {rest}"
    both = f"{_label(retro['agent_grade'])} by itself, {_label(retro['user_grade'])} by you"
    return f"{agent} {retro['commit_hash'][:12]}: {both}; score {retro['score_before']} to {score}"


def _list_ungraded(answer: list[dict[str, Any]]) -> str:
    """Each commit with the command that grades it."""
    if not answer:
        known = "commits are recorded where `herdbook hooks install git` was run"
        return f"no commit of this repository waits for your grade; {known}"
    lines = [f"{plural(len(answer), 'commit')} without your grade, newest first:"]
    for each in answer:
        mine = each["missing"] == Grader.AGENT
        other = each["user_grade" if mine else "agent_grade"]
        by = "the user" if mine else "itself"
        graded = "" if other is None else f" (graded {_label(other)} by {by})"
        option = "--self" if mine else "--user"
        agent = shlex.quote(plain(each["agent"]))
        lines += [
            "",
            f"{_time(each['at'])}  {plain(each['agent'])}: {_short(plain(each['task']))}{graded}",
            f"  herdbook grade {agent} {plain(each['commit_hash'])[:12]} {option} good",
        ]
    grades = ", ".join(each.label for each in Grade)
    return "\n".join([*lines, "", f"grades: {grades}; `--limit` lists more commits"])


def standings(answer: Sequence[dict[str, Any]]) -> str:
    """A line for each agent, what the columns mean, and who is halted and why."""
    if not answer:
        return "the record knows of no agent yet"
    header = (
        "AGENT",
        "SETUP",
        "SKILL",
        "EXPERIENCE",
        "SCORE",
        "GRADE",
        "COMMITS",
        "BUGS",
        "STATE",
    )
    alone = len(answer) == 1
    lines = [table(header, [_row(each) for each in answer]), ""]
    lines += [line for each in answer for line in _reasons(each, alone=alone)]
    return "\n".join(lines if alone else [*lines, _LEGEND])


def standing(answer: dict[str, Any]) -> str:
    """What a bug or a reinstatement has made of one agent."""
    points = plural(answer["skill_points"], "skill point")
    return "\n".join([f"{plain(answer['agent'])} has {points} now", *_state(answer)])


def _reasons(each: dict[str, Any], *, alone: bool) -> list[str]:
    """The sentences on one agent; of several, only on those that are halted."""
    if not alone:
        return [] if each["active"] else _state(each)
    return [*_state(each), *map(plain, each["sentences"][1:])]


def _state(each: dict[str, Any]) -> list[str]:
    agent = plain(each["agent"])
    state = describe_state(agent, each["skill_points"], active=each["active"])
    if each["active"]:
        return [state]
    return [f"{state}; `herdbook reinstate {shlex.quote(agent)}` ends that"]


def activities(answer: Sequence[dict[str, Any]]) -> str:
    """A line for each activity."""
    rows = [
        (_time(each["at"]), each["agent"], _short(each["task"]), _short(each["outcome"]))
        for each in answer
    ]
    return table(("AT", "AGENT", "TASK", "OUTCOME"), rows, "there are none")


def retrospectives(answer: Sequence[dict[str, Any]]) -> str:
    """A line for each retrospective."""
    if not answer:
        return "there are none"
    rows = [
        (
            _time(each["at"]),
            each["agent"],
            each["commit_hash"][:12],
            _label(each["agent_grade"]),
            _label(each["user_grade"]),
            f"{each['score_before']} to {each['score_after']}",
            _short(each["user_note"] or each["agent_note"] or each["task"]),
        )
        for each in answer
    ]
    header = ("AT", "AGENT", "COMMIT", "SELF", "USER", "SCORE", "NOTE")
    return "\n".join([table(header, rows), "", *_compare_graders(answer)])


def _compare_graders(answer: Sequence[dict[str, Any]]) -> list[str]:
    """How each agent's own grades differ from the person's, in what is listed."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    for each in answer:
        pairs.setdefault(each["agent"], []).append((each["agent_grade"], each["user_grade"]))
    return [f"{plain(agent)}: {compare_graders(its)}" for agent, its in sorted(pairs.items())]


def flush(answer: dict[str, Any]) -> str:
    """How many events were written into the record, and which were set aside."""
    lines = [f"{answer['applied']} events are in the record now"]
    if answer["doubled"]:
        lines.append(f"{answer['doubled']} were there before")
    if answer["dropped"]:
        lines.append(f"{answer['dropped']} commits named no agent and count for nobody")
    lines += [
        f"set aside {plain(each['event'])}: {plain(each['reason'])}" for each in answer["aside"]
    ]
    lines += [f"wrote {plain(path)}" for path in answer["exported"]]
    return "\n".join(lines)


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    setup = " ".join(filter(None, (each["provider"], each["model"], each["mode"])))
    return (
        each["agent"],
        setup,
        str(each["skill_points"]),
        str(each["experience_points"]),
        str(each["communication_score"]),
        _mean(each["mean_grade"], each["graded"]),
        str(each["commits"]),
        str(each["bugs"]),
        "active" if each["active"] else "halted",
    )


def _mean(grade: dict[str, float] | None, graded: int) -> str:
    if grade is None:
        return "-"
    return f"{grade['estimate']:.1f} ({grade['low']:.1f}..{grade['high']:.1f}) of {graded}"


def _label(grade: int) -> str:
    return Grade(grade).label


def _time(text: str) -> str:
    return f"{text[:16].replace('T', ' ')}Z"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…"
