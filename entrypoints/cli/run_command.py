"""The `herdbook` program: finds the operation, calls its handler, prints its answer."""

import gc
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.entrypoints.cli.parser import ParsedCommand, command_help, find_operation, parse
from herdbook.entrypoints.context import AppContext, Progress, no_progress
from herdbook.entrypoints.operations import error_table
from herdbook.entrypoints.operations.model import Operation, code_of
from herdbook.entrypoints.operations.serialize import to_data

COMPLETE = "--complete"
"""How a shell asks for completions; see `complete`."""
HELP = ("-h", "--help", "help")
ALL = "--all"


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
        # The reader has closed the pipe; nothing may complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


def _run(words: list[str]) -> int:
    as_json = any(each.startswith(("--json", "--full", "--fields")) for each in words)
    try:
        if words[:1] == [COMPLETE]:
            from herdbook.entrypoints.cli.complete import candidates  # noqa: PLC0415

            print("\n".join(candidates(words[1:])))
            return 0
        operation, rest = find_operation(words)
        if operation is None:
            return _print_help(rest)
        return _call(operation, parse(operation, rest))
    except HerdbookError as error:
        _print_error(error, as_json=as_json)
        return error_table.row_of(error).exit_code
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("HERDBOOK_DEBUG"):
            raise
        reason = f"{type(error).__name__}: {error}"
        _warn(
            f"internal error ({reason}). Your data was not changed by it, as far as is known; "
            "HERDBOOK_DEBUG=1 shows where it was"
        )
        return error_table.DEFECT


def _call(operation: Operation, call: ParsedCommand) -> int:
    folder = _existing_folder(call.folder)
    app = AppContext.at(
        folder,
        os.environ,
        call.places,
        agent_name=call.agent,
        progress=_progress(),
        warn=_warn,
    )
    app.is_command = True
    with app.stores.hold():
        answer = code_of(operation.code)(app, **call.arguments)
        if isinstance(answer, Iterator):
            answers = _serialize_each(answer, operation, call)
            if operation.live and not call.as_json and sys.stdout.isatty():
                return _exit_code(code_of(operation.live)(answers))
            return _follow(operation, answers, as_json=call.as_json)
        data = _serialize(answer, operation, call)
    if app.past_note:
        _warn(app.past_note)
    note = getattr(answer, "note", "")
    if note and not data and not call.as_json:
        print(note)
        return 0
    _print(operation, data, as_json=call.as_json, indent=2 if sys.stdout.isatty() else None)
    if app.written:
        from herdbook.adapters.user_state import backup_schedule  # noqa: PLC0415 - for writers

        backup_schedule.start_if_due(app.workspace, app.written)
    if footer := getattr(answer, "footer", ""):
        print(footer, file=sys.stderr if call.as_json else sys.stdout)
    return error_table.REFUSED if app.is_missed else _exit_code(data)


def _serialize(answer: Any, operation: Operation, call: ParsedCommand) -> Any:
    """The answer for a view, which takes every field; as JSON it is lean unless asked otherwise."""
    if call.fields:
        from herdbook.entrypoints.cli.chosen_fields import choose_fields  # noqa: PLC0415

        return choose_fields(to_data(answer), call.fields)
    return to_data(answer, lean=call.as_json and not call.full and not operation.is_exact)


def _existing_folder(name: str) -> Path:
    """The folder to work in; raises InvalidValue if the current one has been removed."""
    try:
        os.getcwd()  # noqa: PTH109 - pathlib costs more
    except FileNotFoundError:
        if not os.path.isabs(name):  # noqa: PTH117
            reason = "the current folder has been removed; change to another one, or name one: -C"
            raise InvalidValue("folder", reason) from None
    return Path(name)


def _serialize_each(
    answers: Iterator[Any], operation: Operation, call: ParsedCommand
) -> Generator[Any]:
    """Each answer as JSON data; closing this closes the answers."""
    try:
        for each in answers:
            yield _serialize(each, operation, call)
    finally:
        if close := getattr(answers, "close", None):
            close()


def _follow(operation: Operation, answers: Generator[Any], *, as_json: bool) -> int:
    """Print answer after answer; Ctrl-C ends an operation that does not follow with 0.

    However it ends, the answers are closed, so that whoever follows gives up what it holds.
    """
    from herdbook.entrypoints.cli.end_by_exit import end_by_exit  # noqa: PLC0415 - only for several

    code = 0
    try:
        with end_by_exit(), closing(answers):
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

        separators = None if indent else (",", ":")
        print(
            json.dumps(
                answer, ensure_ascii=False, indent=indent, separators=separators, default=str
            )
        )
        return
    text = code_of(operation.view)(answer)
    if text:
        print(text)


def _print_help(words: list[str]) -> int:
    """Print help if no operation is named; InvalidValue for an unknown one."""
    from herdbook.entrypoints.cli import help_text  # noqa: PLC0415

    is_help = not words or words[0] in HELP
    named = [word for word in words if word not in HELP and word != ALL]
    operation, rest = find_operation(named) if is_help and named else (None, named)
    if operation is not None and not rest:
        print(command_help(operation), end="")
    elif is_help and not named:
        print(help_text.every_command() if ALL in words else help_text.overview())
    elif words[0] in ("-V", "--version"):
        print(help_text.version())
    elif len(named) == 1 and help_text.is_group(named[0]):
        print(help_text.every_command(named[0]))
    else:
        raise InvalidValue(" ".join(named[:2]), help_text.describe_unknown(named))
    return 0


def _print_error(error: HerdbookError, *, as_json: bool) -> None:
    if not as_json:
        _warn(str(error))
        return
    import json  # noqa: PLC0415

    described = {"error": error_table.describe_error(error)}
    print(json.dumps(described, ensure_ascii=False, default=str), file=sys.stderr)


def _warn(sentence: str) -> None:
    print(f"herdbook: {sentence}", file=sys.stderr)


def _progress() -> Progress:
    if not sys.stderr.isatty():
        return no_progress
    from herdbook.entrypoints.cli.progress import draw_progress  # noqa: PLC0415

    return draw_progress
