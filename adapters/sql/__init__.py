"""What DuckDB and Postgres have in common: rows in typed columns, queries as statements.

`layout` makes tables, `statements` writes SQL, `session` runs it. A `Dialect` holds only what the
two engines disagree on. No text from outside ever becomes SQL: names come from the dictionary and
values travel as parameters.
"""
