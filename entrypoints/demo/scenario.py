"""The plan of the demo and the agents that work on it."""

from typing import Final, NamedTuple

from herdbook.domain.grading import Grade
from herdbook.domain.plan.model import ExecutionMode, Initiative, Phase, Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

INITIATIVE: Final = "let people sign in"
MAIN: Final = "main"
WORKTREES: Final = ("service", "page")
"""The worktrees beside the main one; their branches have the same names."""
PROJECT: Final = "app"
PROVIDER: Final = "demo"
TRAILER: Final = "Herdbook-Task"
"""The trailer of a commit message with the id of its task."""


class PlannedTask(NamedTuple):
    """A task: its name, phase, the file that it makes, and the files it needs before it begins."""

    name: str
    phase: str
    file: str
    needs: tuple[str, ...] = ()


TASKS: Final = (
    PlannedTask("write the users table", "groundwork", "users.sql"),
    PlannedTask("choose how long a session lasts", "groundwork", "session.md"),
    PlannedTask("pick the hash for passwords", "groundwork", "hash.md"),
    PlannedTask("sketch the sign-in page", "groundwork", "sketch.md"),
    PlannedTask("collect what can go wrong", "groundwork", "errors.md"),
    PlannedTask("write the migration", "service", "migration.sql", ("users.sql",)),
    PlannedTask("store passwords", "service", "passwords.py", ("hash.md", "users.sql")),
    PlannedTask("open a session", "service", "sessions.py", ("session.md", "migration.sql")),
    PlannedTask("stop after five tries", "service", "tries.py", ("passwords.py", "sessions.py")),
    PlannedTask("build the sign-in page", "page", "sign_in.html", ("sketch.md",)),
    PlannedTask("show what went wrong", "page", "messages.html", ("errors.md", "sign_in.html")),
    PlannedTask("walk through a sign-in", "page", "walk.md", ("tries.py", "messages.html")),
)
"""As many of them can begin at once as there are agents, so that each agent gets one."""


class DemoAgent(NamedTuple):
    """An agent: where it works, whom it asks, and the grades that it and you give its work."""

    name: str
    worktree: str
    asks: str
    grades: tuple[Grade, Grade]


KILLED: Final = DemoAgent("hasty-stoat", MAIN, "brisk-otter", (Grade.NEUTRAL, Grade.NEUTRAL))
"""Its process is killed while it holds a task."""
HALTED: Final = DemoAgent("proud-magpie", "page", "calm-heron", (Grade.EXCELLENT, Grade.BAD))
"""Bugs are found in its first task until it is halted, so its second claim is refused."""
AGENTS: Final = (
    KILLED,
    HALTED,
    DemoAgent("brisk-otter", MAIN, "quick-lynx", (Grade.GOOD, Grade.EXCELLENT)),
    DemoAgent("calm-heron", "service", "brisk-otter", (Grade.GOOD, Grade.GOOD)),
    DemoAgent("quick-lynx", "page", "calm-heron", (Grade.NEUTRAL, Grade.GOOD)),
)
"""In the order in which they may begin. Only the last three are asked: they stay to the end."""
BY_NAME: Final = {agent.name: agent for agent in AGENTS}
QUESTIONS: Final = {
    "hasty-stoat": ("how long can an email address get?", "254 characters, says the standard"),
    "proud-magpie": ("may a session last a year?", "no, a month is long enough"),
    "brisk-otter": ("who reads the sketch when it is done?", "I do, and then it is built"),
    "calm-heron": ("do we keep old hashes?", "until their owners sign in again"),
    "quick-lynx": ("do we say which of the two was wrong?", "no, that helps whoever guesses"),
}
"""What each agent asks, and the reply it gets."""
REPLIES: Final = dict(QUESTIONS.values())


class Pace(NamedTuple):
    """Durations in seconds: of one task, and between two looks at what is new."""

    work: float
    look: float


PACES: Final = {"fast": Pace(0.1, 0.05), "normal": Pace(3.0, 0.2), "slow": Pace(18.0, 0.3)}


def add_plan(uow: UnitOfWork) -> Initiative:
    """Add the initiative with its phases, tasks and dependencies."""
    initiative = uow.initiatives.add(
        Initiative(name=INITIATIVE, execution_mode=ExecutionMode.YOLO, branch=MAIN)
    )
    phases: dict[str, str] = {}
    ids: dict[str, str] = {}
    for order, (name, phase, file, _) in enumerate(TASKS):
        if phase not in phases:
            phases[phase] = uow.phases.add(Phase(initiative_id=initiative.id, name=phase)).id
        task = Task(phase_id=phases[phase], name=name, description=f"makes {file}", order=order)
        ids[file] = uow.tasks.add(task).id
    uow.tasks.add_dependencies((ids[task.file], ids[file]) for task in TASKS for file in task.needs)
    return initiative
