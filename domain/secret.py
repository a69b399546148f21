"""A value that must not be seen: credentials and the like."""

from attrs import field, frozen

HIDDEN = "***"


@frozen(repr=False)
class Secret:
    """Text that prints, formats and serialises as `***`; only `reveal()` gives it away."""

    _value: str = field()

    def reveal(self) -> str:
        """The value itself, for the one place that needs it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN
