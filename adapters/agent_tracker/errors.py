"""How the reader says that bytes do not make sense."""


class MalformedTracker(ValueError):
    """Some bytes are not what they should be; the reason says which and why."""
