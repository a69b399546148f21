"""Another process that shares a DuckDB file: the program that test_duckdb_file_access.py starts.

`python duckdb_process.py ROLE PATH …` plays one of the roles below. It says how far it is in words
on its standard output, and waits for lines on its standard input.
"""

import multiprocessing
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import duckdb

from herdbook.adapters.duckdb.errors import translate_errors
from herdbook.adapters.duckdb.file_access import Attachment, SharedFile
from herdbook.domain.errors import HerdbookError

FOR_EVER = 3_600.0


def say(*words: object) -> None:
    """Tell the test something."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def tables(attachment: Attachment) -> duckdb.DuckDBPyConnection:
    """The cursor, with the file's tables at hand by their bare names."""
    return attachment.cursor.execute(f"USE {attachment.catalog}")


def add(attachment: Attachment, row: int) -> None:
    """Commit a row, as a session would."""
    with translate_errors("the file"):
        cursor = tables(attachment).execute("BEGIN")
        cursor.execute("INSERT INTO rows VALUES (?)", [row])
        cursor.execute("COMMIT")
    attachment.acknowledge(str(row))


def rows(attachment: Attachment) -> list[int]:
    """The rows that are there."""
    with translate_errors("the file"):
        found = tables(attachment).execute("SELECT i FROM rows ORDER BY i")
        return [row for (row,) in found.fetchall()]


def count(path: Path, threads: str, times: str) -> None:
    """Raise the counter, from several threads."""
    file = SharedFile(path)

    def work() -> None:
        for _ in range(int(times)):
            with file.attach(write=True) as attachment:
                ((n,),) = tables(attachment).execute("SELECT n FROM counter").fetchall()
                attachment.cursor.execute("UPDATE counter SET n = ?", [n + 1])

    workers = [threading.Thread(target=work) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    file.close()


def add_for_ever(path: Path, first: str) -> None:
    """Commit one row after the other until killed, telling each."""
    file = SharedFile(path)
    row = int(first)
    while True:
        with file.attach(write=True) as attachment:
            add(attachment, row)
        say(row)
        row += 1


def read_for_ever(path: Path) -> None:
    """Read again and again until killed."""
    file = SharedFile(path)
    say("reading")
    while True:
        with file.attach(write=False) as attachment:
            rows(attachment)


def hold(path: Path, mode: str) -> None:
    """Be in the middle of a use until told to end it."""
    file = SharedFile(path)
    with file.attach(write=mode == "write") as attachment:
        if mode == "write":
            tables(attachment).execute("BEGIN")
            attachment.cursor.execute("INSERT INTO rows VALUES (-1)")
        say("holding")
        sys.stdin.readline()
    file.close()


def linger(path: Path, mode: str) -> None:
    """Keep the file after a use as long as nobody else wants it."""
    file = SharedFile(path, linger=FOR_EVER)
    with file.attach(write=mode == "write") as attachment:
        rows(attachment)
    say("lingering")
    sys.stdin.readline()
    file.close()


def be_busy(path: Path) -> None:
    """Use the file again and again, keeping it in between."""
    file = SharedFile(path, linger=FOR_EVER)
    for turn in range(10**9):
        with file.attach(write=True) as attachment:
            rows(attachment)
        if turn == 0:
            say("busy")


def die(path: Path, row: str) -> None:
    """Commit a row and be killed before the file is put down."""
    file = SharedFile(path, linger=FOR_EVER)
    with file.attach(write=True) as attachment:
        add(attachment, int(row))
    os.kill(os.getpid(), signal.SIGKILL)


def die_creating(path: Path) -> None:
    """Be killed in the middle of creating the file."""

    def fill(attachment: Attachment) -> None:
        tables(attachment).execute("CREATE TABLE rows (i BIGINT)")
        os.kill(os.getpid(), signal.SIGKILL)

    SharedFile(path).create(fill)


def create(path: Path, row: str) -> None:
    """Create the file when told, with a row that tells whose it is."""

    def fill(attachment: Attachment) -> None:
        tables(attachment).execute("CREATE TABLE rows (i BIGINT)")
        attachment.cursor.execute("INSERT INTO rows VALUES (?)", [int(row)])

    file = SharedFile(path)
    say("ready")
    sys.stdin.readline()
    say(file.create(fill))
    file.close()


def run_out_of_room(path: Path) -> None:
    """Write more than the limit on file sizes lets through, then something small."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    file = SharedFile(path)
    limit = 2 * path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        with file.attach(write=True) as attachment, translate_errors(str(path)):
            cursor = tables(attachment)
            cursor.execute("INSERT INTO rows SELECT hash(i) // 2 FROM range(1000000) r(i)")
    except HerdbookError as error:
        say(type(error).__name__)
    with file.attach(write=True) as attachment:
        add(attachment, 7)
    file.close()


def try_as_nobody(path: Path) -> None:
    """Use the file without the rights of whoever runs the tests."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65_534)
        os.setuid(65_534)
    try:
        with SharedFile(path).attach(write=True) as attachment:
            add(attachment, 1)
    except HerdbookError as error:
        say(type(error).__name__, error)


def leave_by_exit() -> None:
    """End as a script ends."""
    sys.exit(0)


def leave_at_once() -> None:
    """End without cleaning up."""
    os._exit(0)


def leave_by_error() -> None:
    """End with a traceback."""
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - closed with the process
    raise RuntimeError


def forked(then: Callable[[], None]) -> None:
    """Fork, let the child do that and end, and wait for it."""
    child = os.fork()
    if child == 0:
        then()
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        say("the child was killed by", os.WTERMSIG(status))


def fork_in_every_way() -> None:
    """Fork children that end in all the ways there are."""
    for leave in (leave_by_exit, leave_at_once, leave_by_error):
        forked(leave)
    process = multiprocessing.get_context("fork").Process(target=os.getpid)
    process.start()
    process.join()


def fork(path: Path, where: str) -> None:
    """Fork inside a transaction or while the file is kept, and go on using it."""
    file = SharedFile(path, linger=FOR_EVER)
    with file.attach(write=True) as attachment:
        add(attachment, 1)
        attachment.cursor.execute("BEGIN")
        attachment.cursor.execute("INSERT INTO rows VALUES (2)")
        if where == "inside":
            log = Path(f"{path}.wal").read_bytes()
            size = path.stat().st_size
            fork_in_every_way()
            if Path(f"{path}.wal").read_bytes() != log or path.stat().st_size != size:
                say("a child touched the file")
        attachment.cursor.execute("COMMIT")
    if where == "lingering":
        fork_in_every_way()
    with file.attach(write=True) as attachment:
        add(attachment, 3)
        say(*rows(attachment))
    file.close()


def fork_and_both_write(path: Path) -> None:
    """After a fork, parent and child each write for themselves."""
    file = SharedFile(path)
    with file.attach(write=True) as attachment:
        add(attachment, 1)

    def in_child() -> None:
        with file.attach(write=True) as attachment:
            add(attachment, 2)

    forked(in_child)
    with file.attach(write=True) as attachment:
        add(attachment, 3)
        say(*rows(attachment))
    file.close()


def fork_inside_and_use(path: Path) -> None:
    """In a child forked inside a transaction: that one is refused, one of its own is waited for."""
    file = SharedFile(path, patience=0.2)

    def in_child(attachment: Attachment) -> None:
        for use in (lambda: attachment.cursor, file.attach(write=True).__enter__):
            try:
                use()
            except HerdbookError as error:
                say(type(error).__name__, error)

    with file.attach(write=True) as attachment:
        forked(lambda: in_child(attachment))
        add(attachment, 1)
    with file.attach(write=False) as attachment:
        say(*rows(attachment))
    file.close()


def fork_beside_a_thread(path: Path) -> None:
    """Fork in one thread while another is in a transaction: the fork waits for it."""
    file = SharedFile(path)
    inside, over = threading.Event(), threading.Event()

    def work() -> None:
        with file.attach(write=True) as attachment:
            inside.set()
            threading.Timer(0.2, over.set).start()
            over.wait()
            add(attachment, 1)

    worker = threading.Thread(target=work)
    worker.start()
    inside.wait()
    forked(lambda: say("forked after" if over.is_set() else "forked before"))
    worker.join()
    with file.attach(write=False) as attachment:
        say(*rows(attachment))
    file.close()


def fork_and_die(path: Path) -> None:
    """Be killed inside a transaction, leaving a child behind that lives on."""
    file = SharedFile(path)
    with file.attach(write=True) as attachment:
        add(attachment, 1)
        if os.fork() == 0:
            say(os.getpid())
            sys.stdin.readline()
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)


ROLES: dict[str, Callable[..., None]] = {
    role.__name__: role
    for role in (
        add_for_ever,
        be_busy,
        count,
        create,
        die,
        die_creating,
        fork,
        fork_and_both_write,
        fork_and_die,
        fork_beside_a_thread,
        fork_inside_and_use,
        hold,
        linger,
        read_for_ever,
        run_out_of_room,
        try_as_nobody,
    )
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
