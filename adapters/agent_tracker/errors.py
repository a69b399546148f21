"""The error of the agent-tracker reader."""

NO_WORD_LIST = (
    "it is compressed with the word list of the npm package lmdb, which was not found; "
    "name the package's file dict/dict.txt"
)
"""Why a value cannot be read that can be once the word list is there."""


class MalformedTracker(ValueError):
    """The bytes of an agent-tracker's database are malformed; the message says which and why."""
