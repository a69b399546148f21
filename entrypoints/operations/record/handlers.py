"""The record: grades, bugs, standings, activities, and the spool of the hooks."""

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict, TypeVar

from herdbook.adapters.git import folder_for_git
from herdbook.adapters.git.event_folders import FAILURES, find_commit
from herdbook.adapters.git.git_process import without_repository_variables
from herdbook.adapters.hosts import parse_event
from herdbook.adapters.user_state import backup_schedule, spool
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.grading import Grade
from herdbook.domain.location.areas import Area
from herdbook.domain.record.events import SessionSetup, name_after_session, name_of_agent
from herdbook.domain.record.intervals import Interval
from herdbook.domain.record.model import Activity, Standing
from herdbook.domain.record.standing_reasons import describe_standing
from herdbook.entrypoints.cli.text import plain
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.hooks import spool_flush
from herdbook.entrypoints.hooks.spool_flush import FlushAnswer
from herdbook.entrypoints.operations.record import export_files
from herdbook.entrypoints.operations.serialize import row_to_data, to_data
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.engine.paging import PAGE
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.git_history import CommitFacts
from herdbook.services.agents import agent_lifecycle
from herdbook.services.record import grading, record_ingest

R = TypeVar("R")


def grade(
    app: AppContext,
    *,
    agent: str | None,
    commit: str | None,
    self: str | None,
    user: str | None,
    task: str | None,
    self_note: str | None,
    user_note: str | None,
    limit: int,
) -> grading.GradeResult | list[grading.UngradedCommit]:
    """Grade an agent's commit; without a commit, list those that wait for the caller's grade.

    On a terminal, missing grades and notes are asked for. An agent is not asked for the user's
    grade, which is not its to give.
    """
    if agent is None or commit is None:
        if self is not None or user is not None:
            raise InvalidValue("commit", "is needed with a grade; `herdbook grade` lists commits")
        return _grade_listed(app, agent, limit)
    revision = _find_commit(app, commit)
    crew = _read_crew(app)
    if _may_prompt(app) and (self is None or user is None):
        self = _prompt("the agent's own grade", self, grade=True)
        user = _prompt("your grade", user, grade=True) if crew.acting is None else user
        if self is not None and user is not None:
            self_note = _prompt("the agent's note", self_note)
            user_note = _prompt("your note", user_note)
    spool_flush.flush_if_any(app)
    return _judge(
        app,
        crew,
        grading.grade,
        agent,
        _project(app),
        revision.commit_hash,
        agent_grade=None if self is None else Grade.parse(self),
        user_grade=None if user is None else Grade.parse(user),
        task=task,
        subject=revision.subject,
        agent_note=self_note or "",
        user_note=user_note or "",
    )


def _may_prompt(app: AppContext) -> bool:
    return app.is_command and sys.stdin.isatty() and sys.stderr.isatty()


def _grade_listed(app: AppContext, agent: str | None, limit: int) -> list[grading.UngradedCommit]:
    """The commits that wait for the caller's grade; a person at a terminal is asked for each.

    Those that are graded then are not listed any more.
    """
    project, crew = _project(app), _read_crew(app)
    spool_flush.flush_if_any(app)

    def question(uow: UnitOfWork) -> list[grading.UngradedCommit]:
        if crew.acting is not None:
            uow.act_as(crew.acting)
        return grading.ungraded_commits(uow, project, agent=agent, limit=limit, crew=crew.setups)

    waiting = app.read(Area.RECORD, question)
    if crew.acting is not None or not (_may_prompt(app) and sys.stdout.isatty()):
        return waiting
    for each in waiting:
        title = plain(f"{each.agent} {each.commit_hash[:12]} {each.task}")
        given = _prompt(f"{title}\nyour grade", None, grade=True)
        if given is not None:
            work = (each.agent, project, each.commit_hash)
            _judge(app, crew, grading.grade, *work, user_grade=Grade.parse(given))
    return app.read(Area.RECORD, question) if waiting else []


def bug(app: AppContext, *, agent: str, note: str | None) -> Standing:
    """Record a bug against an agent at once, and mark it as halted if that halts it."""
    crew = _read_crew(app)
    spool_flush.flush_if_any(app)
    project = app.workspace.repository_id
    standing = _judge(app, crew, grading.report_bug, agent, note, project=project)
    spool_flush.mark_halted(app, _sessions_waiting(app))
    return standing


def reinstate(app: AppContext, *, agent: str, skill_points: int) -> Standing:
    """Reinstate a halted agent."""
    crew = _read_crew(app)
    spool_flush.flush_if_any(app)
    standing = _judge(app, crew, grading.reinstate, agent, skill_points)
    spool_flush.mark_halted(app, _sessions_waiting(app))
    return standing


class StandingAnswer(TypedDict):
    """A standing with its fields, and what explains it, as `StandingReasons` has it."""

    id: str
    agent: str
    provider: str
    model: str | None
    mode: str | None
    skill_points: int
    experience_points: int
    communication_score: int
    commits: int
    bugs: int
    active: bool
    last_event_at: datetime | None
    last_event_id: str | None
    experience_missing: int | None
    bugs_until_halt: int
    graded: int
    mean_grade: Interval | None
    sentences: list[str]


def standing(
    app: AppContext, *, agent: str | None
) -> Annotated[list[dict[str, Any]], list[StandingAnswer]]:
    """The standings of agents, including spooled events, and what explains them."""
    events = spool_flush.read_waiting(app)
    crew = grading.NO_CREW if agent is None else _read_crew(app).setups

    def question(uow: UnitOfWork) -> list[dict[str, Any]]:
        found = grading.standings(uow, events, agent, crew=crew)
        reasons = grading.standing_reasons(uow, found, agent)
        return [
            {
                **row_to_data(each),
                **to_data(why),
                "sentences": list(describe_standing(each, why)),
            }
            for each, why in zip(found, reasons, strict=True)
        ]

    return app.read(Area.RECORD, question)


class _CrewHere(NamedTuple):
    """The agents that this repository or the spool knows, and the name of the one that acts."""

    acting: str | None
    setups: grading.Crew


def _read_crew(app: AppContext) -> _CrewHere:
    """The agents of this repository and of the spool; a work store out of reach is a warning.

    An agent acts if HERDBOOK_AGENT or a session is set, also a session that the host has named: one
    that no agent is registered for has the agent to whom its hooks count what it does.
    """
    name = app.identity.agent_name
    session = app.identity.session

    def question(uow: UnitOfWork) -> _CrewHere:
        acting = agent_lifecycle.find_acting_agent(uow, name, session)
        setups = {
            each.name: SessionSetup(each.provider, each.model, each.mode)
            for each in uow.agents.select_all(find(AGENTS, limit=PAGE))
        }
        return _CrewHere(None if acting is None else acting.name, setups)

    try:
        found = app.read(Area.WORK, question)
    except HerdbookError as error:
        app.warn(f"it is not known which agents are registered here: {error}")
        found = _CrewHere(None, grading.NO_CREW)
    if found.acting is None and name is None and session is not None:
        name = name_after_session(session)
    spooled = (name_of_agent(parse_event(*each)) for each in spool.read_buffered().events)
    seen = {each: SessionSetup() for each in spooled if each is not None}
    return _CrewHere(found.acting or name, {**seen, **found.setups})


def _judge(
    app: AppContext, crew: _CrewHere, use_case: Callable[..., R], *args: Any, **kwargs: Any
) -> R:
    """Run a use case of grading on the record, as the agent that acts."""

    def inside(uow: UnitOfWork) -> R:
        if crew.acting is not None:
            uow.act_as(crew.acting)
        return use_case(uow, *args, crew=crew.setups, **kwargs)

    return app.run(Area.RECORD, inside)


def add_activity(
    app: AppContext,
    *,
    task: str,
    agent: str | None,
    actions: str | None,
    outcome: str | None,
    decisions: str | None,
) -> Activity:
    """Record an activity of an agent, by default of the acting agent."""
    if agent is not None:
        app.act_as(agent)
    spool_flush.flush_if_due(app)
    return app.run(
        Area.RECORD,
        grading.add_activity,
        agent or _acting_agent_name(app),
        task,
        actions=actions or "",
        outcome=outcome or "",
        decisions=decisions or "",
        project=app.workspace.repository_id,
    )


def flush(app: AppContext, *, if_due: bool, gently: bool) -> FlushAnswer:
    """Write the spooled events into the record, and the exports if the settings ask for them.

    With `gently`, a store that cannot be written is a warning: the events stay in the spool.
    """
    app.workspace.disregard_broken_repository()
    if if_due and not spool_flush.is_due(app):
        return spool_flush.as_answer(spool_flush.EMPTY)
    try:
        report, places = spool_flush.flush(app)
        written = [str(path) for path in _export(app, app)]
        for folder in places - {app.workspace.paths.worktree}:
            written += [str(path) for path in _export_folder(app, folder)]
    except HerdbookError as error:
        if not gently:
            raise
        app.warn(f"{error}. What the hooks left is safe and waits in the spool")
        return {**spool_flush.as_answer(spool_flush.EMPTY), "failed": str(error)}
    for area in backup_schedule.areas_in_use(app.workspace):
        app.after_write(area)  # this process is awake: what was written last may be backed up
    return spool_flush.as_answer(report, written)


def _export(app: AppContext, there: AppContext) -> list[Path]:
    """Export the record of a worktree's project into it, if its settings ask for that.

    Returns the files that changed.
    """
    project, root = there.workspace.repository_id, there.workspace.paths.worktree
    if project is None or root is None or not there.workspace.setting("exports"):
        return []
    return export_files.write(Path(root), app.read(Area.RECORD, export_files.read_project, project))


def _export_folder(app: AppContext, folder: str) -> list[Path]:
    """Write the exports of another folder's worktree; an error there is a warning."""
    try:
        return _export(
            app,
            AppContext.at(Path(folder), without_repository_variables(app.workspace.variables)),
        )
    except FAILURES as error:
        app.warn(f"{text_of(folder)} gets no exports: {error}")
        return []


def _sessions_waiting(app: AppContext) -> list[tuple[str, str]]:
    def question(uow: UnitOfWork) -> dict[str, str]:
        return record_ingest.sessions(uow, spool_flush.read_waiting(app))

    return list(app.read(Area.RECORD, question).items())


def _acting_agent_name(app: AppContext) -> str:
    agent = app.read(Area.WORK, app.identity.find_agent)
    if agent is None:
        named = app.identity.agent_name
        if not named:
            raise app.identity.describe_nobody()
        return named
    return agent.name


def _project(app: AppContext) -> str:
    if app.workspace.repository_id is None:
        raise InvalidValue("commit", "is graded inside its repository, and this folder is in none")
    return app.workspace.repository_id


def _find_commit(app: AppContext, commit: str) -> CommitFacts:
    _project(app)
    folder = (
        str(app.workspace.folder)
        if app.workspace.facts is None
        else folder_for_git(app.workspace.facts)
    )
    found = find_commit(folder, commit, app.workspace.variables)
    if found is None:
        raise InvalidValue("commit", f"{commit!r} is not a commit of this repository")
    return found


def _prompt(what: str, given: str | None, *, grade: bool = False) -> str | None:
    """Ask on the terminal for a value that was not given; an empty answer means none."""
    if given is not None:
        return given
    allowed = f" ({', '.join(each.label for each in Grade)})" if grade else ""
    while True:
        sys.stderr.write(f"{what}{allowed}, empty for none: ")
        sys.stderr.flush()
        line = sys.stdin.readline().strip()
        try:
            if line and grade:
                Grade.parse(line)
        except InvalidValue as error:
            sys.stderr.write(f"{error}\n")
        else:
            return line or None
