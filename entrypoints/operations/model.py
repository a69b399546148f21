"""The types of the table of operations, and functions that make its rows."""

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

    A `local` operation is for the person at the keyboard and never offered to another program. One
    about rows of an `entity` also has parameters made from its fields (see `parameters`), of which
    one may be `positional`. An operation that only calls a use case names it in `use_case`, with
    the area it works in and whether it only `reads`. An `alias` is for commands that are typed
    daily. An operation that `follows` gives one answer after the other until it is stopped; so does
    one with a `live` view, which draws each answer in the place of the one before.
    """

    name: str
    help: str
    code: str
    view: str
    example: str
    parameters: tuple[Parameter, ...] = ()
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


NAMED = frozenset({"initiatives", "phases", "tasks", "projects", "agents"})
"""The kinds whose rows can be named by their names too, as long as those are unique."""
TITLES = {"review": "review comment"}
"""What the rows of a noun are called in help texts, where the noun does not say it."""


def crud_operations(
    noun: str, entity: str, positional: str, example: str, *, add: bool = True
) -> tuple[Operation, ...]:
    """The operations that every kind of rows has; without `add` if a use case does that."""
    title = TITLES.get(noun, noun.replace("-", " "))
    named = ", or its name" if entity in NAMED else ""
    one = argument("id", f"its id or a unique prefix of it{named}")
    adding = Operation(
        f"{noun}.add",
        f"add {article(title)} {title}",
        "crud.handlers:add",
        "crud.views:saved_row",
        f"herdbook {noun} add {example}",
        entity=entity,
        positional=positional,
    )
    return (
        *([adding] if add else []),
        Operation(
            f"{noun}.list",
            f"list {title}s, a page at a time",
            "crud.handlers:list_",
            "crud.views:many",
            f"herdbook {noun} list --limit 20",
            (
                Parameter("limit", "the maximum number of rows", kind="number", default=100),
                Parameter("after", "start after the row with this id"),
                AT,
            ),
            entity=entity,
        ),
        Operation(
            f"{noun}.show",
            f"show {article(title)} {title} with all its fields",
            "crud.handlers:show",
            "crud.views:one",
            f"herdbook {noun} show a1b2",
            (one, AT),
            entity=entity,
        ),
        Operation(
            f"{noun}.set",
            f"change fields of {article(title)} {title}",
            "crud.handlers:set_",
            "crud.views:saved_row",
            f"herdbook {noun} set a1b2 --clear branch",
            (one, Parameter("clear", "the names of fields to clear, separated by commas")),
            entity=entity,
        ),
        Operation(
            f"{noun}.rm",
            f"remove {title}s and everything that belongs to them",
            "crud.handlers:rm",
            "crud.views:removed_rows",
            f"herdbook {noun} rm a1b2",
            (
                one._replace(name="ids", many=True),
                flag("yes", "remove what goes with them too, and what an agent holds"),
            ),
            entity=entity,
        ),
    )


def article(word: str) -> str:
    """The indefinite article of a word."""
    return "an" if word[0] in "aeiou" else "a"


def argument(name: str, help_: str) -> Parameter:
    """A required positional parameter."""
    return Parameter(name, help_, positional=True, required=True)


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
    example: str,
    *parameters: Parameter,
    alias: str = "",
    reads: bool = False,
    area: str = "work",
    past: bool = True,
) -> Operation:
    """An operation that only calls a use case.

    One that reads the work store can read the `past` too, unless the journal does not tell of it.
    """
    if reads and past and area == "work":
        parameters = (*parameters, AT)
    return Operation(
        name,
        help_,
        "call_use_case:call",
        "crud.views:anything" if reads else "crud.views:result",
        f"herdbook {example}",
        parameters,
        alias=alias,
        use_case=f"herdbook.services.{use_case}",
        reads=reads,
        area=area,
    )
