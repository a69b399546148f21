"""The types of the table of operations, and functions that make its rows."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """One parameter of an operation: an option, unless it is `positional`.

    Its kind is text, texts, number, flag, yesno, moment, duration, position, path, json or secret;
    `many` takes several values of that kind. A parameter made from a `field` of an entity is passed
    among the values of a row. One that `refers` to a kind of rows is an id, or the beginning of
    one. `option` is its name on the command line where that differs, `short` a letter for it.
    """

    name: str
    help: str
    kind: str = "text"
    positional: bool = False
    required: bool = False
    choices: tuple[str, ...] = ()
    default: str | int | None = None
    many: bool = False
    field: str = ""
    refers: str = ""
    option: str = ""
    short: str = ""


AT = Parameter(
    "at", "as it was after this entry of the journal (a number), or at this time", kind="position"
)
"""A parameter of operations that only read what is journalled."""


EXACT = frozenset({"journal", "diff", "checkpoint", "sql", "config"})
"""The first words of operations whose answers hold what others stored, also where it is null."""


class Operation(NamedTuple):
    """One row of the table: something that Herdbook can be asked to do.

    Its `code` handles a call, and its `view` writes the answer for people; `rows_of` fills them in.
    A `local` operation is for the person at the keyboard and never offered to another program. One
    about rows of an `entity` also has parameters made from its fields (see `parameters`), of which
    one may be `positional`. An operation that only calls a use case names it in `use_case`, with
    the area it works in and whether it only `reads`. An `alias` is for commands that are typed
    daily. An operation that `follows` gives one answer after the other until it is stopped; so does
    one with a `live` view, which draws each answer in the place of the one before.
    """

    name: str
    help: str
    example: str
    parameters: tuple[Parameter, ...] = ()
    code: str = ""
    view: str = ""
    local: bool = False
    entity: str = ""
    positional: str = ""
    alias: str = ""
    follows: bool = False
    live: str = ""
    use_case: str = ""
    reads: bool = False
    area: str = "work"

    @property
    def is_exact(self) -> bool:
        """Whether its JSON holds values as they are stored, of which none is left out."""
        return self.words[0] in EXACT

    @property
    def words(self) -> tuple[str, ...]:
        """The words that call it on the command line."""
        return tuple(self.name.split("."))


def parameters_of(operation: Operation) -> tuple[Parameter, ...]:
    """All parameters of an operation, those that follow from its entity too."""
    if not operation.entity or operation.words[-1] not in ("add", "list", "set"):
        return operation.parameters
    from herdbook.entrypoints.operations import parameters  # noqa: PLC0415 - brings the dictionary

    return (*operation.parameters, *parameters.entity_parameters(operation))


def has_past(operation: Operation) -> bool:
    """Whether it can be asked for an earlier position of the journal of the work store."""
    if AT not in operation.parameters or operation.local:
        return False
    if not operation.entity:
        return True
    from herdbook.domain.location.areas import Area  # noqa: PLC0415 - as below
    from herdbook.ports.engine.dictionary import DICTIONARY  # noqa: PLC0415 - it is large

    return DICTIONARY.kinds[operation.entity].area is Area.WORK


def option_name(parameter: Parameter) -> str:
    """What a parameter is called on the command line: `phase` for `phase_id`."""
    name = parameter.name.removesuffix("_id") if parameter.refers else parameter.name
    return parameter.option or name.replace("_", "-")


def json_name(parameter: Parameter) -> str:
    """What a parameter is called over JSON-RPC: as on the command line, in snake_case."""
    return option_name(parameter).replace("-", "_")


def code_of(name: str) -> Any:
    """Import and return the function that a row names as `module:function`.

    Modules of operations are named from this package on; those of use cases in full.
    """
    module, _, function = name.partition(":")
    if not module.startswith("herdbook."):
        module = f"{__package__}.{module}"
    return getattr(import_module(module), function)


def rows_of(area: str, *rows: Operation) -> tuple[Operation, ...]:
    """The rows of an area; one that names no code or view has those of its last word there."""
    return tuple(each if each.code and each.view else _fill_in(area, each) for each in rows)


def _fill_in(area: str, row: Operation) -> Operation:
    word = row.words[-1].replace("-", "_")
    name = "list_" if word == "list" else word
    return row._replace(
        code=row.code or f"{area}.handlers:{name}", view=row.view or f"{area}.views:{name}"
    )


NAMED = frozenset({"initiatives", "phases", "tasks", "projects", "agents"})
"""The kinds whose rows can be named by their names too, as long as those are unique."""
TITLES = {"review": "review comment"}
"""What the rows of a noun are called in help texts, where the noun does not say it."""


def crud_operations(
    noun: str,
    entity: str,
    positional: str = "",
    example: str = "",
    *,
    add: bool = True,
    changes: Mapping[str, Mapping[str, Any]] = {},
) -> tuple[Operation, ...]:
    """The operations that every kind of rows has; without `add` if a use case does that.

    `changes` has by its last word what an operation of this kind has instead.
    """
    title = TITLES.get(noun, noun.replace("-", " "))
    named = ", or its name" if entity in NAMED else ""
    one = argument("id", f"its id or a unique prefix of it{named}")
    adding = Operation(
        f"{noun}.add",
        f"add {article(title)} {title}",
        f"herdbook {noun} add {example}",
        code="crud.handlers:add",
        view="crud.views:saved_row",
        entity=entity,
        positional=positional,
    )
    rows = (
        *([adding] if add else []),
        Operation(
            f"{noun}.list",
            f"list {title}s, a page at a time",
            f"herdbook {noun} list --limit 20",
            (
                Parameter("limit", "the maximum number of rows", kind="number", default=100),
                Parameter("after", "start after the row with this id"),
                AT,
            ),
            code="crud.handlers:list_",
            view="crud.views:many",
            entity=entity,
        ),
        Operation(
            f"{noun}.show",
            f"show {article(title)} {title} with all its fields",
            f"herdbook {noun} show a1b2",
            (one, AT),
            code="crud.handlers:show",
            view="crud.views:one",
            entity=entity,
        ),
        Operation(
            f"{noun}.set",
            f"change fields of {article(title)} {title}",
            f"herdbook {noun} set a1b2 --clear branch",
            (one, Parameter("clear", "the names of fields to clear, separated by commas")),
            code="crud.handlers:set_",
            view="crud.views:saved_row",
            entity=entity,
        ),
        Operation(
            f"{noun}.rm",
            f"remove {title}s and everything that belongs to them",
            f"herdbook {noun} rm a1b2",
            (
                one._replace(name="ids", many=True),
                flag("yes", "remove what goes with them too, and what an agent holds"),
            ),
            code="crud.handlers:rm",
            view="crud.views:removed_rows",
            entity=entity,
        ),
    )
    if not changes:
        return rows
    return tuple(each._replace(**changes.get(each.words[-1], {})) for each in rows)


def article(word: str) -> str:
    """The indefinite article of a word."""
    return "an" if word[0] in "aeiou" else "a"


def argument(name: str, help_: str, *, required: bool = True, **more: Any) -> Parameter:
    """A positional parameter."""
    return Parameter(name, help_, positional=True, required=required, **more)


def flag(name: str, help_: str) -> Parameter:
    """A parameter that is given or not."""
    return Parameter(name, help_, kind="flag")


def id_argument(name: str, kind: str, help_: str = "", *, many: bool = False) -> Parameter:
    """A required positional parameter that names a row of a kind."""
    return id_option(name, kind, help_)._replace(positional=True, required=True, many=many)


def id_option(name: str, kind: str, help_: str = "", *, required: bool = False) -> Parameter:
    """An option that names a row of a kind."""
    what = kind.removesuffix("s").replace("_", " ")
    named = ", or its name" if kind in NAMED else ""
    help_ = help_ or f"{article(what)} {what}: its id or a unique prefix of it{named}"
    return Parameter(name, help_, required=required, refers=kind)


def use_case_operation(
    name: str,
    help_: str,
    use_case: str,
    *parameters: Parameter,
    example: str = "",
    alias: str = "",
    reads: bool = False,
    area: str = "work",
    past: bool = True,
    code: str = "call_use_case:call",
    view: str = "",
) -> Operation:
    """An operation that only calls a use case, or whose `code` adds something to that.

    Its `example` names a row if it needs one, and nothing else, unless it is given. One that reads
    the work store can read the `past` too, unless the journal does not tell of it.
    """
    needs_row = any(each.positional and each.required for each in parameters)
    example = example or f"{name.replace('.', ' ')}{' a1b2' if needs_row else ''}"
    if reads and past and area == "work":
        parameters = (*parameters, AT)
    return Operation(
        name,
        help_,
        f"herdbook {example}",
        parameters,
        code,
        view or ("crud.views:anything" if reads else "crud.views:result"),
        alias=alias,
        use_case=f"herdbook.services.{use_case}",
        reads=reads,
        area=area,
    )
