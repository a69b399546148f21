"""Herdbook's own SQL prompt, for stores whose engine has no shell."""

import importlib
import sys

from herdbook.adapters.sql_query import ask
from herdbook.adapters.stores.registry import is_on_server
from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.cli.tabular import as_table
from herdbook.ports.engine.store import Store

PROMPT = "herdbook> "
HELP = "A query on one line, .tables or .quit. Nothing can be changed here."


def run_prompt(store: Store, url: str) -> int:
    """Answer a query per line until the input ends; an error is printed on one line.

    `url` names the store with its password, which the store's own URL leaves out. On a terminal
    an interrupt drops the typed line or the running query; elsewhere it ends the prompt.
    """
    on_terminal = sys.stdin.isatty()
    if on_terminal:
        importlib.import_module("readline")  # lets `input` edit and remember lines
        sys.stderr.write(f"{store.url}\n{HELP}\n")
    place = url if is_on_server(url) else store
    while True:
        try:
            line = _next_line(on_terminal=on_terminal)
            if line is None or line.strip() in {".quit", ".exit"}:
                return 0
            _reply(place, store, line.strip())
            sys.stdout.flush()
        except KeyboardInterrupt:
            if not on_terminal:
                raise
            sys.stderr.write("\n")


def _next_line(*, on_terminal: bool) -> str | None:
    if not on_terminal:
        return sys.stdin.readline() or None
    try:
        return input(PROMPT)
    except EOFError:
        sys.stderr.write("\n")
        return None


def _reply(place: str | Store, store: Store, line: str) -> None:
    match line:
        case "":
            pass
        case ".help":
            sys.stdout.write(f"{HELP}\n")
        case ".tables":
            sys.stdout.write("".join(f"{name}\n" for name in sorted(store.dictionary.kinds)))
        case query:
            _answer(place, query)


def _answer(place: str | Store, query: str) -> None:
    try:
        answer = ask(place, query)
    except HerdbookError as error:
        sys.stdout.flush()
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return
    sys.stdout.write(as_table(answer))
    if answer.cut:
        sys.stdout.write(f"(the first {len(answer.rows)} rows; there are more)\n")
