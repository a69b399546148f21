"""Random ids."""

import os


def random_id() -> str:
    """Twenty characters of 0-9 and a-f: eighty random bits."""
    return os.urandom(10).hex()
