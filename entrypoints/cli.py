"""The command line, made from the table of operations."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.entrypoints import failures
from herdbook.entrypoints.bootstrap import Here, Progress, no_progress
from herdbook.entrypoints.operations import OPERATIONS, Operation, Parameter

if TYPE_CHECKING:
    from argparse import ArgumentParser

PLACES = ("store", "work", "checkpoints", "record")
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
        operation, rest = _chosen(words)
        if operation is None:
            return 0
        options = _parser(operation).parse_args(rest)
        return _call(operation, options)
    except HerdbookError as error:
        _tell(error, as_json=as_json)
        return failures.exit_code(error)
    except Exception as error:
        if os.environ.get("HERDBOOK_DEBUG"):
            raise
        reason = f"{type(error).__name__}: {error}"
        _say(
            f"this should not have happened ({reason}). Nothing is known to be lost; "
            "HERDBOOK_DEBUG=1 shows where it was"
        )
        return failures.DEFECT


def _call(operation: Operation, options: Any) -> int:
    given = vars(options)
    here = Here(
        Path(given.pop("directory") or "."),
        os.environ,
        {key: given.pop(key) for key in PLACES},
        progress=_progress(),
        warn=_say,
    )
    as_json = given.pop("json")
    answer = _code(operation.code)(here, **given)
    if as_json:
        import json  # noqa: PLC0415

        print(json.dumps(answer, ensure_ascii=False, indent=2, default=str))
    else:
        text = _code(operation.screen)(answer)
        if text:
            print(text)
    return failures.REFUSED if isinstance(answer, dict) and answer.get("ok") is False else 0


def _code(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


def _chosen(words: list[str]) -> tuple[Operation | None, list[str]]:
    """The operation that the first words name, and the rest of the words."""
    if words[:1] == ["-C"]:  # as git has it, before the command
        words = [*words[2:], *words[:2]]
    named = [word for word in words[:2] if not word.startswith("-")]
    for operation in OPERATIONS:
        if tuple(named[: len(operation.words)]) == operation.words:
            return operation, words[len(operation.words) :]
    from herdbook.entrypoints import guide  # noqa: PLC0415

    if not words or words[0] in HELP:
        print(guide.overview(words[1:]))
        return None, []
    if words[0] in ("-V", "--version"):
        print(guide.version())
        return None, []
    if (len(words) == 1 or words[1] in HELP) and guide.is_group(words[0]):
        print(guide.overview(words[:1]))
        return None, []
    raise InvalidValue(" ".join(words[:2]), guide.unknown(words))


def _parser(operation: Operation) -> "ArgumentParser":
    import argparse  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog=f"herdbook {' '.join(operation.words)}",
        description=f"{operation.help[0].upper()}{operation.help[1:]}.",
        epilog=f"example: {operation.example}",
        # Without a width it would ask the terminal for one, in every command.
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=100),
        allow_abbrev=False,
    )
    for parameter in operation.parameters:
        _add(parser, parameter)
    parser.add_argument("--json", action="store_true", help="answer with JSON, for programs")
    common = parser.add_argument_group("where things are")
    common.add_argument("-C", "--directory", metavar="FOLDER", help="as if called from there")
    for key in PLACES:
        what = "every area" if key == "store" else f"the area {key}"
        common.add_argument(f"--{key}", metavar="VALUE", help=f"a URL, path or scope for {what}")
    return parser


def _add(parser: "ArgumentParser", parameter: Parameter) -> None:
    name = parameter.name.replace("_", "-")
    if parameter.kind == "flag":
        parser.add_argument(f"--{name}", action="store_true", help=parameter.help)
        return
    kinds: dict[str, Any] = {"text": str, "number": int}
    parser.add_argument(
        parameter.name if parameter.positional else f"--{name}",
        type=kinds[parameter.kind],
        choices=parameter.choices or None,
        default=parameter.default,
        metavar=None if parameter.choices else parameter.name.upper(),
        help=parameter.help,
    )


def _tell(error: HerdbookError, *, as_json: bool) -> None:
    if not as_json:
        _say(str(error))
        return
    import json  # noqa: PLC0415

    print(json.dumps(failures.as_data(error), ensure_ascii=False, default=str), file=sys.stderr)


def _say(sentence: str) -> None:
    print(f"herdbook: {sentence}", file=sys.stderr)


def _progress() -> Progress:
    if not sys.stderr.isatty():
        return no_progress
    from herdbook.entrypoints.progress import on_terminal  # noqa: PLC0415

    return on_terminal
