"""Attacks on the installed program: hostile repositories, files, servers and input.

Each test does what an attacker would do with real git, real engines and the installed `herdbook`,
and states what must not happen. `docs/security.md` says what is promised against whom.
"""

from tests.e2e.conftest import PROGRAM, Person, app, everything_in, person, postgres_url

__all__ = ["PROGRAM", "Person", "app", "everything_in", "person", "postgres_url"]
