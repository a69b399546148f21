"""The program `herdbook` without its start: forked from a process that has imported it already.

A command takes 0.1 s of a processor, with DuckDB 0.3 s, of which Python and its imports take most,
and the tests of `tests/e2e` and `tests/attacks` take thousands of commands. A forked one is a
process with its own folder, variables, input and output, and it runs the same `main`. What it does
not show is how the installed program starts; `Person.starts` shows that. With
HERDBOOK_TEST_COLD the installed program takes commands from its start on: with `first`, as in CI,
the first of each kind in a run (`first_starts`), and with `1`, as in `make soak`, all of them.

`python -m tests.e2e.warm_program SOCKET PARENT` listens on the socket until its parent ends.
"""

import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("herdbook")
ROOT = Path(__file__).parents[2]
PACKAGES = ("adapters", "domain", "entrypoints", "ports", "services")
HERDBOOK = "herdbook.entrypoints.main"
AT_START = ("PYTHON", "LC_", "LANG", "TZ", "MALLOC_")
"""The beginnings of variables that decide how a process starts: with these it cannot be forked."""
LONGEST = 1 << 20
"""More bytes than a request has."""
LONGEST_RUN = 300.0
"""How many seconds a command may take."""

Ended = subprocess.CompletedProcess[str]


class WarmProgram:
    """Runs commands in processes that are forked from a warm one.

    `is_first` tells, for words and an engine, which of them the installed program is to run.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self.is_first: Callable[[Sequence[str], str], bool] = lambda _words, _engine: False

    def run(
        self,
        folder: Path,
        words: Sequence[str],
        variables: Mapping[str, str],
        given: str = "",
        module: str = HERDBOOK,
    ) -> Ended:
        """Run a command, the `main` of a module, in a folder to its end, as subprocess.run does."""
        request = json.dumps([module, str(folder), list(words), dict(variables)]).encode()
        with (
            tempfile.TemporaryFile() as into,
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
            closing(socket.socket(socket.AF_UNIX)) as line,
        ):
            into.write(given.encode())
            into.seek(0)
            line.settimeout(LONGEST_RUN)
            line.connect(self._address)
            files = [each.fileno() for each in (into, out, errors)]
            socket.send_fds(line, [len(request).to_bytes(8), request], files)
            code = os.waitstatus_to_exitcode(int(line.recv(16)))
            texts = []
            for file in (out, errors):
                file.seek(0)
                texts.append(file.read())
        return Ended([PROGRAM, *words], code, *texts)


@contextmanager
def warm_program(variables: Mapping[str, str]) -> Iterator[WarmProgram]:
    """Start a warm process with these variables; it ends with the block, or when we do."""
    with tempfile.TemporaryDirectory(prefix="herdbook-warm-") as folder:
        address = f"{folder}/socket"
        with subprocess.Popen(
            [sys.executable, "-m", __spec__.name, address, str(os.getpid())],
            cwd=ROOT,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"the warm process ended with {process.wait()}")
            try:
                yield WarmProgram(address)
            finally:
                process.kill()


def serve(address: str, parent: int) -> None:
    """Fork a child for each request, and tell who asked how it ended."""
    wake, woken = os.pipe()
    for end in (wake, woken):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    waiting: dict[int, socket.socket] = {}
    with closing(socket.socket(socket.AF_UNIX)) as door, selectors.DefaultSelector() as ready:
        door.bind(address)
        door.listen(64)
        ready.register(door, selectors.EVENT_READ)
        ready.register(wake, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while os.getppid() == parent:
            for key, _ in ready.select(timeout=1):
                if key.fileobj is door:
                    asker, _ = door.accept()
                    waiting[_fork(asker, [door, asker, *waiting.values()])] = asker
                else:
                    os.read(wake, 1_000)
            _reap(waiting)


def _reap(waiting: dict[int, socket.socket]) -> None:
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with closing(waiting.pop(pid)) as asker, suppress(BrokenPipeError):
            asker.sendall(str(status).encode())


def _fork(asker: socket.socket, ours: Sequence[socket.socket]) -> int:
    """Take a request and fork the process that serves it."""
    head, files, _, _ = socket.recv_fds(asker, 8, 3)
    request = b""
    while len(request) < int.from_bytes(head):
        request += asker.recv(LONGEST)
    module, *rest = json.loads(request)
    main = importlib.import_module(module).main  # here, so that the next child need not
    pid = os.fork()
    if pid:
        for file in files:
            os.close(file)
        return pid
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        for each in ours:
            each.close()
        _become(main, *rest)
    finally:
        os._exit(70)  # where even the end of the program failed


def _become(
    main: Callable[[], object], folder: str, words: list[str], variables: dict[str, str]
) -> None:
    """Do what the program does, and end as an interpreter does."""
    import atexit  # noqa: PLC0415
    import threading  # noqa: PLC0415

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = [str(PROGRAM), *words]
    code: object = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads, as the interpreter does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # it was closed
            stream.flush()
    os._exit(code if isinstance(code, int) else 0)


def import_everything() -> None:
    """Import all modules of Herdbook, so that no child has to."""
    for package in PACKAGES:
        root = importlib.import_module(f"herdbook.{package}")
        for found in pkgutil.walk_packages(root.__path__, f"herdbook.{package}."):
            if not found.name.endswith(".__main__"):
                importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    import_everything()
    serve(sys.argv[1], int(sys.argv[2]))
