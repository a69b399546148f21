"""Types the blocks of a document one after the other, as one person at one keyboard would.

The first argument is a file with the blocks: pairs of `sh` or `python` and a text. All blocks of a
language share one shell, or one interpreter. Prints as JSON what each has printed, up to the first
that failed, and the reason.
"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Self

END = "\0"


def main() -> int:
    """Run the blocks; the exit code tells whether all have ended well."""
    steps = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    printed: list[str] = []
    failure = None
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, Shell(Path(folder)) as shell:
        for language, text in steps:
            try:
                if language == "sh":
                    printed.append(shell.type(text))
                else:
                    with contextlib.redirect_stdout(io.StringIO()) as out:
                        exec(compile(text, "block", "exec"), names)  # noqa: S102 - what it is for
                    printed.append(out.getvalue())
            except Exception:  # noqa: BLE001 - it is reported
                failure = traceback.format_exc()
                break
    json.dump({"printed": printed, "failure": failure}, sys.stdout)
    return 0 if failure is None else 1


class Shell:
    """A shell that stays, so that a block sees what an earlier one has exported."""

    def __init__(self, folder: Path) -> None:
        self._block = folder / "block.sh"
        self._errors = folder / "errors"

    def __enter__(self) -> Self:
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                ["sh", "-eu"],  # noqa: S607 - the shell of the person whose PATH it is
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def type(self, text: str) -> str:
        """Type a block; what it prints. Raises AssertionError if a command of it fails."""
        self._block.write_text(text, encoding="utf-8")
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f". {self._block} </dev/null; printf '\\0'\n")
        stdin.flush()
        read = []
        while (character := stdout.read(1)) not in (END, ""):
            read.append(character)
        if character != END:
            said = self._errors.read_text(encoding="utf-8", errors="replace")
            raise AssertionError(f"a command of this block failed:\n{text}\n{said[-3000:]}")
        return "".join(read)


if __name__ == "__main__":
    sys.exit(main())
