"""The columns of a table as a query may see them."""

from typing import Any

from herdbook.adapters.sql.dialect import quote_name
from herdbook.domain.secret import HIDDEN
from herdbook.ports.engine.kinds import Kind


def redacted_columns(kind: Kind[Any]) -> str:
    """A kind's space and columns as SQL, with stars for secrets."""
    columns = [
        f"CASE WHEN {quote_name(name)} IS NULL THEN NULL ELSE '{HIDDEN}' END AS {quote_name(name)}"
        if name in kind.secrets
        else quote_name(name)
        for name in kind.columns
    ]
    return ", ".join(["space", *columns])
