"""One worktree's workflow: `python -m tests.e2e.checkpointer FOLDER`, a process of its own.

It says `ready`, waits for a line, and then keeps what it has come to, step by step, in the
checkpoints of its worktree. Which store that was comes out as one line of JSON.
"""

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from herdbook.domain.journal import Operation
from herdbook.domain.places import Area
from herdbook.entrypoints.bootstrap import Here
from herdbook.ports.run import run


def main(folder: str) -> None:
    """Keep ten steps."""
    here = Here(Path(folder), os.environ)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    with here.opened(Area.CHECKPOINTS, create=True) as store:
        for number in range(10):
            step = Operation(
                operation_id=f"step {number}",
                result={"worktree": here.worktree_id},
                at=datetime.now(UTC),
            )
            space = here.space(Area.CHECKPOINTS)
            run(store, space, lambda uow, step: uow.operations.add(step), step, actor=here.actor)
        sys.stdout.write(json.dumps({"uuid": [store.uuid]}))


if __name__ == "__main__":
    main(sys.argv[1])
