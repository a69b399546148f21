"""Text for people from the commands of the record."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from herdbook.domain.grading import Grade
from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import duration, plain, size

WIDEST = 60


def grade(answer: dict[str, Any]) -> str:
    """How the grades changed the score."""
    retro, now = answer["retrospective"], answer["standing"]
    agent, score = plain(now["agent"]), now["communication_score"]
    if retro is None:
        rest = "the other party's grade completes the retrospective"
        return f"{agent} stands at communication score {score}; {rest}"
    both = f"{_label(retro['agent_grade'])} by itself, {_label(retro['user_grade'])} by you"
    return f"{agent} {retro['commit_hash'][:12]}: {both}; score {retro['score_before']} to {score}"


def standings(answer: Sequence[dict[str, Any]]) -> str:
    """A line for each agent."""
    if not answer:
        return "the record knows of no agent yet"
    header = ("AGENT", "SETUP", "SKILL", "EXPERIENCE", "SCORE", "COMMITS", "BUGS", "STATE")
    return table(header, [_row(each) for each in answer])


def standing(answer: dict[str, Any]) -> str:
    """One agent, as in the list of all agents."""
    return standings([answer])


def activities(answer: Sequence[dict[str, Any]]) -> str:
    """A line for each activity."""
    if not answer:
        return "there are none"
    rows = [
        (_time(each["at"]), each["agent"], _short(each["task"]), _short(each["outcome"]))
        for each in answer
    ]
    return table(("AT", "AGENT", "TASK", "OUTCOME"), rows)


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
    return table(("AT", "AGENT", "COMMIT", "SELF", "USER", "SCORE", "NOTE"), rows)


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


def doctor(answer: dict[str, Any]) -> str:
    """The state of the spool and the record, and every problem."""
    waiting, store = answer["waiting"], answer["store"]
    since = waiting["since"]
    age = "" if since is None else f" since {datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M}Z"
    lines = [
        f"spool   {plain(answer['spool'])}",
        f"waiting {waiting['events']} events, {size(waiting['bytes'])}{age}",
        f"record  {plain(store['url'])}",
    ]
    if answer["last_failure"]:
        lines.append(f"the last flush did not work: {plain(answer['last_failure'])}")
    if store["trouble"]:
        lines.append(f"the record cannot be read: {plain(store['trouble'])}")
    lines += [
        f"set aside {plain(each['place'])}: {plain(each['reason'])}" for each in answer["aside"]
    ]
    lines += [
        f"{each['events']} events in {plain(each['folder'])} are recorded without their project: "
        f"{plain(each['reason'])}"
        for each in answer["without_project"]
    ]
    lines += [
        f"{each['commits']} commits in {plain(each['folder'])} are counted for nobody: "
        f"{plain(each['reason'])}"
        for each in answer["dropped"]
    ]
    if answer["halted"]:
        kept = "kept from tools" if answer["enforce_halt"] else "not kept from tools"
        lines.append(f"halted, {kept}: {plain(', '.join(answer['halted']))}")
    lines += [plain(each["told"]) for each in answer["merged"]]
    lines += [
        f"the journal of {plain(each['space'])} is {duration(each['seconds'])} ahead of this "
        "machine's clock: one of its writers had a wrong time. Order holds, and new entries tell "
        "the right time"
        for each in answer["clocks_ahead"]
    ]
    lines += [f"hook.log: {plain(line)}" for line in answer["log"]]
    if answer["ok"]:
        lines.append("OK")
    return "\n".join(lines)


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    setup = " ".join(filter(None, (each["provider"], each["model"], each["mode"])))
    return (
        each["agent"],
        setup,
        str(each["skill_points"]),
        str(each["experience_points"]),
        str(each["communication_score"]),
        str(each["commits"]),
        str(each["bugs"]),
        "active" if each["active"] else "halted",
    )


def _label(grade: int) -> str:
    return Grade(grade).label


def _time(text: str) -> str:
    return f"{text[:16].replace('T', ' ')}Z"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…"
