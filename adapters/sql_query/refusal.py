"""The errors by which a query is refused."""

from herdbook.domain.errors import InvalidValue

ONE_QUERY = "must be one query that only reads (SELECT, WITH, VALUES or TABLE)"
TOO_MUCH_MEMORY = "needs more memory than a query may use; ask for less"


def query_error(reason: str) -> InvalidValue:
    """The error of a query that is refused, or that the engine does not understand."""
    return InvalidValue("sql", reason)


def timeout_error(patience: float) -> InvalidValue:
    """The error of a query that was stopped: it would keep others from the store."""
    return query_error(f"was stopped after {patience:g} s; ask for less")


def first_line(error: Exception) -> str:
    """The first line of an engine's error; the rest quotes the query."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
