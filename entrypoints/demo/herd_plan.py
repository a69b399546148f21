"""The herd that `serve --demo` shows: its agents, its plan, and what they ask and say.

The plan grows: when little is left, the next of `PLANS` is imported, and after the last one the
first again, under another name.
"""

from typing import Final, NamedTuple

from herdbook.domain.grading import Grade

_BAD, _NEUTRAL, _GOOD, _EXCELLENT = Grade


class HerdAgent(NamedTuple):
    """An agent: its setup, where it works, how its work is graded, and how often it fails.

    `grades` are drawn from, each the agent's own and the person's; `failing` is a share of tasks.
    """

    name: str
    provider: str
    model: str
    worktree: str
    grades: tuple[tuple[Grade, Grade], ...]
    failing: float = 0.06


AGENTS: Final = (
    HerdAgent(
        "brisk-otter",
        "claude",
        "opus",
        "main",
        ((_GOOD, _EXCELLENT), (_GOOD, _GOOD), (_EXCELLENT, _EXCELLENT)),
    ),
    HerdAgent("calm-heron", "claude", "sonnet", "service", ((_GOOD, _GOOD), (_GOOD, _NEUTRAL))),
    HerdAgent(
        "quick-lynx", "codex", "gpt-5", "page", ((_NEUTRAL, _GOOD), (_GOOD, _GOOD)), failing=0.1
    ),
    HerdAgent(
        "deft-mole", "codex", "gpt-5", "service", ((_GOOD, _NEUTRAL), (_GOOD, _GOOD)), failing=0.15
    ),
    HerdAgent("wary-stork", "claude", "sonnet", "page", ((_NEUTRAL, _NEUTRAL), (_GOOD, _GOOD))),
    HerdAgent(
        "hasty-stoat", "gemini", "pro", "main", ((_GOOD, _NEUTRAL), (_GOOD, _BAD)), failing=0.3
    ),
)
HALTED: Final = HerdAgent("proud-magpie", "gemini", "flash", "page", ((_EXCELLENT, _BAD),))
"""It was halted for bugs before anybody looks; the visitor may reinstate it."""
ALL: Final = (*AGENTS, HALTED)
BY_NAME: Final = {agent.name: agent for agent in ALL}

SIGN_IN: Final = """\
# Let people sign in
branch: main
execution_mode: yolo

## Groundwork
- [ ] Write the users table ^users
- [ ] Choose how long a session lasts ^length
- [ ] Pick the hash for passwords ^hash
- [ ] Sketch the sign-in page ^sketch
- [ ] Collect what can go wrong ^errors

## Sessions
- [ ] Write the migration ^migration {priority: high} after: ^users
- [ ] Store passwords ^passwords after: ^hash, ^users
- [ ] Open a session ^session after: ^length, ^migration
- [ ] Stop after five tries ^tries after: ^passwords, ^session
- [ ] Sign out everywhere ^out after: ^session
- [ ] Send the mail that resets a password ^reset after: ^passwords

## Pages
- [ ] Build the sign-in page ^page after: ^sketch
- [ ] Show what went wrong ^messages after: ^errors, ^page
- [ ] Remember where people came from ^return after: ^page
- [ ] Make the form work without a mouse ^keys after: ^page
- [ ] Walk through a sign-in ^walk after: ^tries, ^messages, ^return
"""
SEARCH: Final = """\
# Find things faster
branch: main

## Measure
- [ ] Collect the slowest queries ^slow {priority: high}
- [ ] Record how long a search takes ^times
- [ ] Write down what people look for ^words

## Index
- [ ] Choose the fields of the index ^fields after: ^slow, ^words
- [ ] Build the index in the background ^build {priority: high} after: ^fields
- [ ] Keep it up to date ^fresh after: ^build
- [ ] Rank exact names first ^rank after: ^build
- [ ] Forgive a typing error ^typos after: ^rank

## Page
- [ ] Show results while typing ^live after: ^rank
- [ ] Say why something was found ^why after: ^live
- [ ] Compare with the times of before after: ^fresh, ^live, ^times
"""
OTHERS: Final = (
    """\
# Send receipts
branch: main
execution_mode: yolo

## Paper
- [ ] Draw the receipt ^draw
- [ ] Number receipts without gaps ^number {priority: high}
- [ ] Round as the law says ^round
- [ ] Print it on one page ^print after: ^draw, ^round

## Mail
- [ ] Choose who sends mail ^sender
- [ ] Send the receipt after a payment ^send after: ^print, ^number, ^sender
- [ ] Try again when a mail bounces ^bounce after: ^send
- [ ] Let people ask for it once more after: ^send
- [ ] Keep receipts for ten years after: ^number
""",
    """\
# Show what is in stock
branch: main
execution_mode: yolo

## Count
- [ ] Read the numbers of the warehouse ^read
- [ ] Reserve what is in a basket ^basket after: ^read
- [ ] Free it after half an hour ^free after: ^basket
- [ ] Report differences at night after: ^read

## Pages
- [ ] Say how many are left ^left after: ^read
- [ ] Offer what is similar ^similar {priority: low}
- [ ] Write when it is back ^back after: ^left
- [ ] Test with a thousand baskets after: ^free, ^left
""",
    """\
# Move to the new host
branch: main
execution_mode: yolo

## Prepare
- [ ] List what runs where ^list
- [ ] Copy the images ^images after: ^list
- [ ] Lower the lifetime of names ^names {priority: high}
- [ ] Rehearse with yesterday's backup ^rehearse after: ^list

## Move
- [ ] Stop writes for ten minutes ^stop after: ^rehearse, ^names
- [ ] Copy the rest ^copy after: ^stop, ^images
- [ ] Send people to the new host ^send after: ^copy
- [ ] Watch errors for a day after: ^send
- [ ] Turn the old host off {priority: low} after: ^send
""",
)
PLANS: Final = (SIGN_IN, SEARCH, *OTHERS)

TO_PERSON: Final = (
    ("May I merge? All tests pass.", ("Yes", "No")),
    ("Two libraries do the same here. Which one do we keep?", ("The older", "The newer")),
    ("The migration takes a minute. Now, or tonight?", ("Now", "Tonight")),
    ("An old test expects the old text. May I change it?", ("Change it", "Leave it")),
    ("This needs a column that nobody planned. Shall I add it?", ("Add it", "Not yet")),
    ("How many results fit on a page?", ("10", "25", "50")),
)
"""What agents ask the person, with the answers to choose from."""
TO_EACH_OTHER: Final = (
    ("How long can an email address get?", "254 characters, says the standard."),
    ("Do we keep old hashes?", "Until their owners sign in again."),
    ("Who reads the sketch when it is done?", "I do, and then it is built."),
    ("Do we say which of the two was wrong?", "No, that would help attackers."),
    ("Is the clock in UTC everywhere?", "In the store, yes; pages show local time."),
    ("Do you still write to sessions.py?", "No, it is yours."),
)
MESSAGES: Final = (
    "The tests of the shop take twice as long since Monday. I measured, but changed nothing.",
    "I left a note in the page about names: two teams use the same one.",
    "The index needs 40 MB more than planned. Tell me if that is too much.",
)
"""What agents write to the person."""
PROPOSALS: Final = (
    ("Test the form with a screen reader", "The walk-through covers the mouse and keys only."),
    ("Warn before a session ends", "People lose what they have written."),
    ("Delete the old export", "Nothing has read it for a year."),
)
"""New tasks that agents propose, and why."""
REASONS: Final = (
    "a test that has nothing to do with it fails",
    "the change grew larger than the task",
    "it needs what another task changes",
)
"""Why attempts fail."""
STEPS: Final = (
    ("reads the code", "Read"),
    ("writes a test", "Write"),
    ("changes the code", "Edit"),
    ("runs the tests", "Bash"),
)
"""What an agent logs while it works, and the tool that its hooks tell of."""


def reply_to(question: str) -> str:
    """What an agent answers another; the visitor may ask it something that is not in the list."""
    return dict(TO_EACH_OTHER).get(question, "I do not know; the code says more.")


def file_of(task: str) -> str:
    """The file that a task is done in."""
    words = "".join(c if c.isalnum() else " " for c in task.lower()).split()
    return f"{'_'.join(words[:4])[:60] or 'notes'}.py"


def code_of(task: str, agent: str) -> str:
    """What is in that file once the task is done: small, but code."""
    name = file_of(task).removesuffix(".py")
    return (
        f'"""{task}."""\n\n\n'
        f"def {name}(given: dict[str, str]) -> dict[str, str]:\n"
        f'    """{task}; first written by {agent}."""\n'
        '    if not given:\n        raise ValueError("nothing was given")\n'
        f'    return {{**given, "done": "{name}"}}\n'
    )
