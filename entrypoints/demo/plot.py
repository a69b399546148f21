"""What the demo is about: the initiative, its tasks, and who works on them."""

from enum import StrEnum
from typing import Final, NamedTuple

from herdbook.domain.grading import Grade
from herdbook.domain.plan.model import ExecutionMode, Initiative, Phase, Priority, Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

INITIATIVE: Final = "let people sign in"
MAIN: Final = "main"
WORKTREES: Final = ("service", "page")
"""The worktrees beside the main one; their branches are called the same."""


class Step(NamedTuple):
    """A task of the plan: what it is called, its phase, the file it makes, what it waits for."""

    name: str
    phase: str
    file: str
    after: tuple[str, ...] = ()
    priority: Priority = Priority.MEDIUM


STEPS: Final = (
    Step("write the users table", "groundwork", "users.sql", priority=Priority.HIGH),
    Step("choose how long a session lasts", "groundwork", "session.md", priority=Priority.HIGH),
    Step("pick the hash for passwords", "groundwork", "hash.md"),
    Step("sketch the sign-in page", "groundwork", "sketch.md"),
    Step("collect what can go wrong", "groundwork", "errors.md"),
    Step("write the migration", "service", "migration.sql", ("write the users table",)),
    Step(
        "store passwords",
        "service",
        "passwords.py",
        ("pick the hash for passwords", "write the users table"),
    ),
    Step(
        "open a session",
        "service",
        "sessions.py",
        ("choose how long a session lasts", "write the migration"),
    ),
    Step("stop after five tries", "service", "tries.py", ("store passwords", "open a session")),
    Step("build the sign-in page", "page", "sign_in.html", ("sketch the sign-in page",)),
    Step(
        "show what went wrong",
        "page",
        "messages.html",
        ("collect what can go wrong", "build the sign-in page"),
    ),
    Step(
        "walk through a sign-in",
        "page",
        "walk.md",
        ("stop after five tries", "show what went wrong"),
    ),
)
"""As many of them can begin at once as there are agents, so that each agent gets one."""


class Fate(StrEnum):
    """What becomes of an agent."""

    FINE = "fine"
    KILLED = "killed"
    HALTED = "halted"


class Member(NamedTuple):
    """An agent of the story: where it works, whom it asks what and is told, what becomes of it.

    Only those that nothing happens to are asked, because only they are there to the end.
    """

    name: str
    worktree: str
    asks: str
    question: str
    reply: str
    grades: tuple[Grade, Grade]
    fate: Fate = Fate.FINE


CAST: Final = (
    Member(
        "hasty-stoat",
        MAIN,
        "brisk-otter",
        "how long can an email address get?",
        "254 characters, says the standard",
        (Grade.NEUTRAL, Grade.NEUTRAL),
        Fate.KILLED,
    ),
    Member(
        "proud-magpie",
        "page",
        "calm-heron",
        "may a session last a year?",
        "no, a month is long enough",
        (Grade.EXCELLENCE, Grade.BAD),
        Fate.HALTED,
    ),
    Member(
        "brisk-otter",
        MAIN,
        "quick-lynx",
        "who reads the sketch when it is done?",
        "I do, and then it is built",
        (Grade.GOOD, Grade.EXCELLENCE),
    ),
    Member(
        "calm-heron",
        "service",
        "brisk-otter",
        "do we keep old hashes?",
        "until their owners sign in again",
        (Grade.GOOD, Grade.GOOD),
    ),
    Member(
        "quick-lynx",
        "page",
        "calm-heron",
        "do we say which of the two was wrong?",
        "no, that helps whoever guesses",
        (Grade.NEUTRAL, Grade.GOOD),
    ),
)
"""In the order in which they may begin."""
NAMED: Final = {member.name: member for member in CAST}
REPLIES: Final = {member.question: member.reply for member in CAST}


class Pace(NamedTuple):
    """How long things take, in seconds: a task, a look at what is new."""

    work: float
    look: float


PACES: Final = {"fast": Pace(0.1, 0.05), "normal": Pace(3.0, 0.2), "slow": Pace(18.0, 0.3)}


def of_fate(fate: Fate) -> Member:
    """The one that something happens to."""
    return next(member for member in CAST if member.fate is fate)


def add_plan(uow: UnitOfWork) -> Initiative:
    """Write the initiative down, with its phases, its tasks and what waits for what."""
    initiative = uow.initiatives.add(
        Initiative(name=INITIATIVE, execution_mode=ExecutionMode.YOLO, branch=MAIN)
    )
    phases = {
        name: uow.phases.add(Phase(initiative_id=initiative.id, name=name))
        for name in dict.fromkeys(step.phase for step in STEPS)
    }
    tasks = {
        step.name: uow.tasks.add(
            Task(
                phase_id=phases[step.phase].id,
                name=step.name,
                description=f"It ends with {step.file}.",
                priority=step.priority,
                order=order,
            )
        )
        for order, step in enumerate(STEPS)
    }
    uow.tasks.add_dependencies(
        (tasks[step.name].id, tasks[name].id) for step in STEPS for name in step.after
    )
    return initiative
