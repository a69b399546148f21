"""How long an agent waits for a hook, as ratios to bare `python -c pass` in the same run.

The command that `herdbook hooks install` writes and the one a person types are started with a real
event on standard input, in turn with an interpreter that does nothing. Run with `make bench`.
"""

import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from herdbook.entrypoints.hooks.hosts import local_command

ROUNDS = 100
BARS = {"installed": 1.1, "typed": 2.0}


def main() -> int:
    """Print how long each command takes; say which bars were missed."""
    program = shutil.which("herdbook", path=str(Path(sys.executable).parent))
    assert program is not None, "`make setup` installs it"
    event = json.dumps(
        {
            "session_id": "b2a7c9e0-5f4e-4a52-9d6f-0c1f4a1f7b11",
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "make test"},
            "tool_response": {"stdout": "all tests pass\n" * 100},
        }
    ).encode()
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "installed": shlex.split(local_command("PostToolUse")),
        "typed": [program, "hook", "PostToolUse"],
    }
    times: dict[str, list[float]] = {each: [] for each in commands}
    with tempfile.TemporaryDirectory() as name:
        variables = {"PATH": os.environ["PATH"], "HOME": name, "HERDBOOK_AGENT": "brisk-otter"}
        for _ in range(ROUNDS):
            for each, words in commands.items():
                start = time.perf_counter()
                subprocess.run(words, check=True, cwd=name, env=variables, input=event)
                times[each].append((time.perf_counter() - start) * 1_000)
        spool = Path(name, ".local/state/herdbook/spool/events.jsonl")
        lines = [line for line in spool.read_bytes().split(b"\n") if line]
        assert len(lines) == 2 * ROUNDS, "every hook has left its line"
    bare = statistics.median(times["bare"])
    print(f"python -c pass: {bare:.1f} ms (median of {ROUNDS})")
    for each, bar in BARS.items():
        ratio = statistics.median(times[each]) / bare
        verdict = "" if ratio <= bar else "  missed"
        print(f"hook, {each}: {ratio:.2f} times that, bar {bar:g}{verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
