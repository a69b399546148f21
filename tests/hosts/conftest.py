"""A person with a repository, as the tests of the installed program have."""

from tests.e2e.conftest import app, person, warm

__all__ = ["app", "person", "warm"]
