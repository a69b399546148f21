"""The program that verifies the pages of a data file, in a separate process.

Run as `python -I -S page_check_process.py VERIFIER DATA SECONDS`, where VERIFIER is py-lmdb's own
`verify.py`: it reads the file as bytes and never hands it to LMDB, so that nothing in the file can
make LMDB crash. Prints how many problems the file has, and the first of them. A file may be made to
keep it busy, so it has a limit of memory and of time, and ends by itself after that time.

It imports little of the standard library and nothing of Herdbook, because somebody waits for it.
"""

import resource
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType

MEMORY = 2 << 30
CANNOT = 3


def main() -> int:
    """Verify one file; returns 0 if that was possible, whatever the result."""
    verifier, data, seconds = sys.argv[1:]
    for limit, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, int(seconds) + 1)):
        _, hard = resource.getrlimit(limit)
        fits = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (fits, hard))
    module = ModuleType("verifier")
    # By its loader, which has it compiled already.
    SourceFileLoader(module.__name__, verifier).exec_module(module)
    try:
        problems = module.verify(data, subdir=False)
    except (OSError, MemoryError) as error:
        sys.stderr.write(f"{type(error).__name__} {error}\n")
        return CANNOT
    except Exception as error:  # noqa: BLE001 - a whole file raises nothing
        problems = [f"{type(error).__name__}: {error}"]
    sys.stdout.write(f"{len(problems)}\n{' '.join(problems[0].split()) if problems else ''}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
