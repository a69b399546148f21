"""The error of the agent-tracker reader."""


class MalformedTracker(ValueError):
    """The bytes of an agent-tracker's database are malformed; the message says which and why."""
