"""A SQL prompt on a DuckDB file with the arguments of DuckDB's own program, on the same engine.

DuckDB publishes no program of version 2 that could be installed for the tests, so this one stands
in for it: `duckdb --version`, `duckdb [-readonly] FILE`, one statement a line, its rows in answer.
"""

import os
import sys

import duckdb


def main(arguments: list[str]) -> None:
    """Be the program."""
    if arguments == ["--version"]:
        sys.stdout.write(os.environ.get("DUCKDB_PROGRAM_VERSION", "v2.0.0 (stand-in) abc\n"))
        return
    *options, path = arguments
    with duckdb.connect(path, read_only=options == ["-readonly"]) as connection:
        sys.stdout.write(f"open {os.getpid()} {options}\n")
        sys.stdout.flush()
        for line in sys.stdin:
            if line.strip() == ".quit":
                break
            try:
                told = str(connection.execute(line).fetchall())
            except duckdb.Error as error:
                told = f"Error: {error}"
            sys.stdout.write(f"{told}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
