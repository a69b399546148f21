"""Random ids."""

import secrets
from base64 import b32encode


def random_ids() -> str:
    """Twenty characters of a-z and 2-7: a hundred random bits."""
    return b32encode(secrets.token_bytes(13))[:20].decode().lower()
