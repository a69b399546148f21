"""Run a program for as long as the process that wants it lives, then remove its folder.

`python -I guarded_process.py PARENT ACCOUNT FOLDER PROGRAM ARGUMENT…` runs it in the folder, as the
account if one is named, until the parent says something on standard input, hangs up or ends.
"""

import os
import pwd
import select
import shutil
import subprocess
import sys


def main(parent: str, account: str, folder: str, *command: str) -> None:
    """Start it, wait for the parent, end it."""
    user = pwd.getpwnam(account) if account else None
    program = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        **({"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}),
    )
    # A child that the parent forked may hold the pipe open after it.
    while os.getppid() == int(parent) and not select.select([sys.stdin], [], [], 1)[0]:
        pass
    program.kill()
    program.wait()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
