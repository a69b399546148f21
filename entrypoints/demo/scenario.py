"""The plan of the demo and the agents that work on it."""

from typing import Final, NamedTuple

from herdbook.domain.grading import Grade

MAIN: Final = "main"
WORKTREES: Final = ("service", "page")
"""The worktrees beside the main one; their branches have the same names."""
TRAILER: Final = "Herdbook-Task"
"""The trailer of a commit message with the id of its task."""
PLAN: Final = b"""\
# let people sign in
branch: main
execution_mode: yolo

## groundwork
- [ ] write the users table ^users {description: users.sql}
- [ ] choose how long a session lasts ^length {description: session.md}
- [ ] pick the hash for passwords ^hash {description: hash.md}
- [ ] sketch the sign-in page ^sketch {description: sketch.md}
- [ ] collect what can go wrong ^errors {description: errors.md}

## service
- [ ] write the migration ^migration {description: migration.sql} after: ^users
- [ ] store passwords ^passwords {description: passwords.py} after: ^hash, ^users
- [ ] open a session ^session {description: sessions.py} after: ^length, ^migration
- [ ] stop after five tries ^tries {description: tries.py} after: ^passwords, ^session

## page
- [ ] build the sign-in page ^page {description: sign_in.html} after: ^sketch
- [ ] show what went wrong ^messages {description: messages.html} after: ^errors, ^page
- [ ] walk through a sign-in {description: walk.md} after: ^tries, ^messages
"""
"""The description of a task is the file that it makes.

As many tasks can begin at once as there are agents, so that each agent gets one.
"""


class DemoAgent(NamedTuple):
    """An agent: where it works, the grades that it and you give its work, and whom it asks."""

    name: str
    worktree: str
    grades: tuple[Grade, Grade]
    asks: str


_OTTER, _HERON, _LYNX = "brisk-otter", "calm-heron", "quick-lynx"
_BAD, _NEUTRAL, _GOOD, _EXCELLENT = Grade
KILLED: Final = DemoAgent("hasty-stoat", MAIN, (_NEUTRAL, _NEUTRAL), _OTTER)
"""Its process is killed while it holds a task."""
HALTED: Final = DemoAgent("proud-magpie", "page", (_EXCELLENT, _BAD), _HERON)
"""Bugs are found in its first task until it is halted, so its second claim is refused."""
AGENTS: Final = (
    KILLED,
    HALTED,
    DemoAgent(_OTTER, MAIN, (_GOOD, _EXCELLENT), _LYNX),
    DemoAgent(_HERON, "service", (_GOOD, _GOOD), _OTTER),
    DemoAgent(_LYNX, "page", (_NEUTRAL, _GOOD), _HERON),
)
"""In the order in which they may begin. Only the last three are asked: they stay to the end."""
BY_NAME: Final = {agent.name: agent for agent in AGENTS}
QUESTIONS: Final = {
    KILLED.name: ("how long can an email address get?", "254 characters, says the standard"),
    HALTED.name: ("may a session last a year?", "no, a month is long enough"),
    _OTTER: ("who reads the sketch when it is done?", "I do, and then it is built"),
    _HERON: ("do we keep old hashes?", "until their owners sign in again"),
    _LYNX: ("do we say which of the two was wrong?", "no, that would help attackers"),
}
"""What each agent asks, and the reply it gets."""
PACES: Final = {"fast": (0.1, 0.05), "normal": (3.0, 0.2), "slow": (18.0, 0.3)}
"""Durations in seconds: of one task, and between two looks at what is new."""
