"""The branch of an initiative, named after it."""

import re
from collections.abc import Container
from itertools import count

PREFIX = "herd/"
LONGEST = 60
"""How many characters of an initiative's name a branch has, at most."""


def branch_for(name: str, taken: Container[str | None] = ()) -> str:
    """A branch for an initiative of this name that is not taken: `herd/user-auth`.

    Only letters, digits and hyphens are left of the name, so git takes it and no shell reads more
    into it.
    """
    words = re.sub(r"[\W_]+", "-", name.casefold())[:LONGEST].strip("-") or "initiative"
    numbered = (f"{PREFIX}{words}{f'-{number}' if number > 1 else ''}" for number in count(1))
    return next(branch for branch in numbered if branch not in taken)
