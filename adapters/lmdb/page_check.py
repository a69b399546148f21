"""Verifies that the pages of a data file fit together, before LMDB reads them.

LMDB trusts its pages: a flipped bit or a crafted file makes it read and write where it should not,
and ends the process with a signal. So a file that is not known to be whole is verified in a
separate process (`page_check_process`), at some 80 MB a second.
"""

import os
import sys
from pathlib import Path

import lmdb

from herdbook.domain.errors import StoreDamaged, StoreUnavailable

LEAST_SECONDS = 60.0
BYTES_A_SECOND = 4 << 20
"""Far slower than any machine, so that only a file made to keep us busy exceeds the limit."""
_PROGRAM = Path(__file__).with_name("page_check_process.py")
_LEAKS = "neither reachable nor in the freeDB"


class VerificationTimedOut(StoreUnavailable):
    """A data file could not be verified within its time limit."""


def time_limit(data: os.stat_result) -> float:
    """How many seconds verifying a file may take, by its size on the disk."""
    return LEAST_SECONDS + min(data.st_size, data.st_blocks * 512) / BYTES_A_SECOND


def verify_pages(data: Path, seconds: float) -> None:
    """Raise StoreDamaged if the pages of a data file do not fit together.

    Raises VerificationTimedOut if that takes more than `seconds`, and StoreUnavailable if it cannot
    be verified at all. Nobody may write in the file meanwhile, or a reader must keep the pages of
    its last commit.
    """
    import subprocess  # noqa: PLC0415 - seldom needed, and no command should wait for it

    place = str(data)
    command = [sys.executable, "-I", "-S", str(_PROGRAM), str(_verifier(place)), place]
    try:
        ended = subprocess.run(  # noqa: S603 - our own program
            [*command, str(int(seconds) + 1)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=seconds,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        reason = f"its pages could not be verified within {seconds:g} s. Nothing was changed"
        raise VerificationTimedOut(place, reason) from error
    except OSError as error:
        raise _unverifiable_error(place, error.strerror or str(error)) from error
    if ended.returncode:
        last = ended.stderr.strip().rpartition("\n")[2]
        raise _unverifiable_error(place, last or f"the verifier ended with {ended.returncode}")
    output = ended.stdout.splitlines()
    if len(output) != 2 or not output[0].isdecimal():  # noqa: PLR2004 - a number and a problem
        raise _unverifiable_error(place, "the verifier did not say what it found")
    number, problem = int(output[0]), output[1]
    if number == 1 and _LEAKS in problem:
        # Pages that LMDB will never use again waste space and harm nobody.
        return
    if number:
        more = f" (and {number - 1} more)" if number > 1 else ""
        raise StoreDamaged(place, f"its pages do not fit together: {problem}{more}")


def _verifier(place: str) -> Path:
    """The path of py-lmdb's verifier."""
    path = Path(lmdb.__file__).with_name("verify.py")
    if not path.is_file():
        raise _unverifiable_error(place, "the package lmdb has no verifier; version 3 brings one")
    return path


def _unverifiable_error(place: str, reason: str) -> StoreUnavailable:
    text = f"its pages could not be verified: {reason}. Nothing was changed"
    return StoreUnavailable(place, text)
