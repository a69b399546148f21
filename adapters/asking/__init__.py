"""SQL over any store: one read-only query, and how to start an engine's own prompt.

`stores.ask` is the way in. `duckdb_file` asks a DuckDB file under our lock, `lending` lends the
rows of a store that knows no SQL to a DuckDB in this process, and both ask through `sandbox`, which
holds back whatever `syntax` does not know as harmless. `postgres` asks a server, `words` reads its
SQL, `masks` hides secrets, and `programs` says how to start `psql` or `duckdb`. None of this is an
engine: it stands on them.

In every answer the fields of the dictionary that are secret read `***`. The engines' own prompts
show what the engine shows.
"""

from herdbook.adapters.asking.answer import Answer
from herdbook.adapters.asking.stores import ask

__all__ = ["Answer", "ask"]
