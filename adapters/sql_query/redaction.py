"""The columns of a table as a query may see them."""

from typing import Any

from herdbook.adapters.sql.dialect import quoted
from herdbook.domain.secret import HIDDEN
from herdbook.ports.engine.kinds import Kind


def visible(kind: Kind[Any]) -> str:
    """A kind's space and columns, as SQL, with stars for what is secret."""
    columns = [
        f"CASE WHEN {quoted(name)} IS NULL THEN NULL ELSE '{HIDDEN}' END AS {quoted(name)}"
        if name in kind.secrets
        else quoted(name)
        for name in kind.columns
    ]
    return ", ".join(["space", *columns])
