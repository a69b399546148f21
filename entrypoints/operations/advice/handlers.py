"""Advice from the record: `advise` ranks setups, `recall` finds earlier work like a task."""

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.record.intervals import Interval
from herdbook.domain.record.languages import LANGUAGES, find_language, main_language
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.hooks import spool_flush
from herdbook.entrypoints.operations.advice.rows import EVERYTHING
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.services.record import prior_art as recalling
from herdbook.services.record import setup_advice as advising

if TYPE_CHECKING:
    from herdbook.domain.record.advice_reasons import AdviceReasons
    from herdbook.domain.record.observations import Observation
    from herdbook.domain.record.setup_advice import Advice, TrackRecord


class AdviceTarget(NamedTuple):
    """What advice is for: a project by its names, a language, or neither."""

    names: tuple[str, ...] = ()
    language: str | None = None
    languages: dict[str, str] | None = None


class RecallAnswer(NamedTuple):
    """The query, and the result as in `services.record.prior_art.Recall`."""

    text: str
    project: str | None
    searched: int
    good: tuple[recalling.Hit, ...]
    mistakes: tuple[recalling.Hit, ...]
    unjudged: tuple[recalling.Hit, ...]


def recall(app: AppContext, *, text: str, project: str | None, limit: int) -> RecallAnswer:
    """Find earlier work similar to a task: successes, mistakes, and work that nobody judged."""
    names = (project,) if project is not None else names_of(app)
    spool_flush.flush_if_any(app)
    found = app.read(
        Area.RECORD, recalling.recall, text, project=names[0], also=names[1:], limit=limit
    )
    return RecallAnswer(text, names[0], *found)


class QuotedObservation(TypedDict):
    """A note about a piece of work."""

    note: str
    grade: float | None
    bug: bool
    project: str | None
    at: datetime


class SetupAnswer(TypedDict):
    """The rank of a setup and what is known of it, as `TrackRecord` has it."""

    place: int
    provider: str | None
    model: str | None
    mode: str | None
    is_leader: bool
    is_enough: bool
    observations: int
    commits: int
    bugs: int
    grades: int
    bug_rate: Interval | None
    mean_grade: Interval | None
    trend: Interval | None
    merit: float
    uncertainty: float
    evidence_for: QuotedObservation | None
    evidence_against: QuotedObservation | None


class NeededAnswer(TypedDict):
    """So many more commits of a setup; its fields are null for one that has none yet."""

    provider: str | None
    model: str | None
    mode: str | None
    commits: int


class ReasonsAnswer(TypedDict):
    """Why the first is first, how certain that is, and what would change it.

    `lead` is how far it is ahead of the next, in merit; `effect` is what the commits that are
    `needed` would do: compare, separate or catch_up.
    """

    why: str
    certainty: str
    change: str
    lead: Interval | None
    effect: str
    needed: list[NeededAnswer]


AdviceAnswer = TypedDict(
    "AdviceAnswer",
    {
        "for": str | None,
        "scope": str,
        "projects": int,
        "passed_over": list[str],
        "verdict": str,
        "words": str,
        "reasons": ReasonsAnswer,
        "explanation": str,
        "setups": list[SetupAnswer],
    },
)
"""The setups by rank, the part of the record they were compared in, and how far that goes."""


def advise(app: AppContext, *, goal: str | None) -> AdviceAnswer:
    """Rank the setups for the project one is in, for a folder, a language or all projects."""
    target = _resolve_goal(app, goal)
    spool_flush.flush_if_any(app)
    found = app.read(
        Area.RECORD,
        advising.advise,
        project=target.names[0] if target.names else None,
        also=target.names[1:],
        language=target.language,
        languages=target.languages,
    )
    return answer_from(
        AdviceAnswer,
        found,
        found.advice,
        reasons=describe_reasons(found.reasons),
        setups=[
            describe_setup(place, each, found.advice)
            for place, each in enumerate(found.advice.ranked, 1)
        ],
        **{"for": goal},
    )


def names_of(app: AppContext) -> tuple[str, ...]:
    """The names under which the record may know the project of a folder, most reliable first."""
    paths = app.workspace.paths
    folders = [paths.repository, paths.worktree, str(app.workspace.folder.resolve())]
    return tuple(
        dict.fromkeys(text_of(each) for each in (app.workspace.repository_id, *folders) if each)
    )


def _resolve_goal(app: AppContext, text: str | None) -> AdviceTarget:
    if text == EVERYTHING or (text is None and app.workspace.repository_id is None):
        return AdviceTarget()
    text = text or "."
    # A language takes precedence over a folder of the same name; `./go` is always the folder.
    language = find_language(text)
    if language is not None:
        spoken = main_language_of(app)
        return AdviceTarget(
            (), language, {} if spoken is None else dict.fromkeys(names_of(app), spoken)
        )
    try:
        path = (app.workspace.folder / text).resolve(strict=True)
        there = AppContext.at(
            path if path.is_dir() else path.parent,
            app.workspace.variables,
            app.workspace.arguments,
        )
        return AdviceTarget(names_of(there), main_language_of(there))
    except (OSError, ValueError) as error:
        if isinstance(error, HerdbookError):
            raise
        known = ", ".join(LANGUAGES)
        reason = f"{text!r} is no folder that can be read here, and no language of {known}"
        raise InvalidValue("for", reason) from error


def main_language_of(app: AppContext) -> str | None:
    """The main language of a folder, by its tracked files if it is in a repository."""
    if app.workspace.facts is None or app.workspace.facts.top_level is None:
        return main_language(text_of(each.name) for each in app.workspace.folder.iterdir())
    from herdbook.adapters.git import folder_for_git  # noqa: PLC0415
    from herdbook.adapters.git.git_process import (  # noqa: PLC0415
        ask_git,
        raise_complaint,
        without_repository_variables,
    )

    folder = app.workspace.folder.resolve()
    below = ["--", str(folder)] if folder.is_relative_to(app.workspace.facts.top_level) else []
    command = [
        "--literal-pathspecs",
        "-C",
        folder_for_git(app.workspace.facts),
        "ls-files",
        "-z",
        *below,
    ]
    status, listed, complaint = ask_git(
        command, without_repository_variables(app.workspace.variables)
    )
    if status:
        raise_complaint("for", status, complaint)
    return main_language(listed.decode("utf-8", "backslashreplace").split("\0"))


def describe_reasons(reasons: "AdviceReasons") -> ReasonsAnswer:
    """Reasons as an answer has them."""
    needed = [answer_from(NeededAnswer, each, each.setup) for each in reasons.needed]
    return answer_from(ReasonsAnswer, reasons, needed=needed)


def describe_setup(place: int, record: "TrackRecord", advice: "Advice") -> SetupAnswer:
    """A ranked setup as an answer has it."""
    return answer_from(
        SetupAnswer,
        record,
        record.setup,
        place=place,
        is_leader=record.setup in advice.leaders,
        is_enough=record.enough,
        evidence_for=_quote(record.praise),
        evidence_against=_quote(record.blame),
    )


def _quote(observation: "Observation | None") -> QuotedObservation | None:
    return None if observation is None else answer_from(QuotedObservation, observation)
