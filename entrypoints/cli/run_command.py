"""The command line, made from the table of operations."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.entrypoints.cli.parser import Call, named, parsed
from herdbook.entrypoints.context import AppContext, Progress, no_progress
from herdbook.entrypoints.operations import error_table
from herdbook.entrypoints.operations.model import Operation, code_of

COMPLETE = "--complete"
"""How a shell asks what could come next; see `completion`."""
HELP = ("-h", "--help", "help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: the `herdbook` program."""
    gc.disable()  # a command is over before there is anything worth collecting
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has seen enough; nothing may complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


def _run(words: list[str]) -> int:
    as_json = "--json" in words
    try:
        if words[:1] == [COMPLETE]:
            from herdbook.entrypoints.cli.complete import candidates  # noqa: PLC0415

            print("\n".join(candidates(words[1:])))
            return 0
        operation, rest = named(words)
        if operation is None:
            return _guided(rest)
        return _call(operation, parsed(operation, rest))
    except HerdbookError as error:
        _tell(error, as_json=as_json)
        return error_table.exit_code(error)
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("HERDBOOK_DEBUG"):
            raise
        reason = f"{type(error).__name__}: {error}"
        _say(
            f"this should not have happened ({reason}). Nothing is known to be lost; "
            "HERDBOOK_DEBUG=1 shows where it was"
        )
        return error_table.DEFECT


def _call(operation: Operation, call: Call) -> int:
    here = AppContext.at(
        Path(call.folder), os.environ, call.places, progress=_progress(), warn=_say
    )
    with here.stores.hold():
        answer = code_of(operation.code)(here, **call.arguments)
        if isinstance(answer, Iterator):
            if operation.live and not call.as_json and sys.stdout.isatty():
                return _exit_code(code_of(operation.live)(answer))
            return _follow(operation, answer, as_json=call.as_json)
    _print(operation, answer, as_json=call.as_json, indent=2)
    return _exit_code(answer)


def _follow(operation: Operation, answers: Iterator[Any], *, as_json: bool) -> int:
    """Print answer after answer; what is there to be watched ends well when somebody has enough."""
    code = 0
    try:
        for each in answers:
            _print(operation, each, as_json=as_json, indent=None)
            sys.stdout.flush()
            code = _exit_code(each)
    except KeyboardInterrupt:
        if operation.follows:
            raise
    return code


def _exit_code(answer: Any) -> int:
    return error_table.REFUSED if isinstance(answer, dict) and answer.get("ok") is False else 0


def _print(operation: Operation, answer: Any, *, as_json: bool, indent: int | None) -> None:
    if as_json:
        import json  # noqa: PLC0415

        print(json.dumps(answer, ensure_ascii=False, indent=indent, default=str))
        return
    text = code_of(operation.screen)(answer)
    if text:
        print(text)


def _guided(words: list[str]) -> int:
    """Help for who named no operation; InvalidValue with a hint if they meant one."""
    from herdbook.entrypoints.cli import help_text  # noqa: PLC0415

    if not words or words[0] in HELP:
        print(help_text.overview(words[1:]))
    elif words[0] in ("-V", "--version"):
        print(help_text.version())
    elif (len(words) == 1 or words[1] in HELP) and help_text.is_group(words[0]):
        print(help_text.overview(words[:1]))
    else:
        raise InvalidValue(" ".join(words[:2]), help_text.unknown(words))
    return 0


def _tell(error: HerdbookError, *, as_json: bool) -> None:
    if not as_json:
        _say(str(error))
        return
    import json  # noqa: PLC0415

    print(json.dumps(error_table.as_data(error), ensure_ascii=False, default=str), file=sys.stderr)


def _say(sentence: str) -> None:
    print(f"herdbook: {sentence}", file=sys.stderr)


def _progress() -> Progress:
    if not sys.stderr.isatty():
        return no_progress
    from herdbook.entrypoints.cli.progress import on_terminal  # noqa: PLC0415

    return on_terminal
