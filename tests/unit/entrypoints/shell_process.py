"""A process that opens the SQL prompt of a store: the program that test_shell.py starts.

`python shell_process.py URL read|write [PATIENCE]` ends as `shell` says, or with 3 and one line on
its standard error when it is refused. A terminal on its standard input becomes its own.
"""

import fcntl
import sys
import termios

from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.cli.sql_shell import shell

REFUSED = 3


def main(url: str, mode: str, patience: str = "600") -> int:
    """Be the process."""
    if sys.stdin.isatty():
        fcntl.ioctl(sys.stdin, termios.TIOCSCTTY, 0)
    try:
        return shell(url, write=mode == "write", patience=float(patience))
    except HerdbookError as error:
        sys.stderr.write(f"{error}\n")
        return REFUSED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
