"""Health as a page: what is wrong, what to do, and the stores in numbers, without paths."""

from herdbook.entrypoints.cli.text import plural, size
from herdbook.entrypoints.operations.share.html import Html, element, join
from herdbook.entrypoints.operations.share.parts import (
    Content,
    Data,
    Shared,
    list_of,
    mark,
    section,
    table,
)

WORDS = {"problem": "does not work", "warning": "should be looked at"}
MARKS = {"problem": "crashed", "warning": "waiting_for_input"}


def health(shown: Shared, _: str | None) -> Content:
    """What does not work or should be looked at, the stores in numbers, and what is well."""
    found = shown.ask("doctor")
    checks = found["checks"]
    troubles = [each for name in WORDS for each in checks if each["health"] == name]
    well = [
        (each["check"], shown.without_paths(each["says"]))
        for each in checks
        if each["health"] == "ok"
    ]
    counts = [
        (sum(each["health"] == name for each in checks), noun)
        for name, noun in (("problem", "problem"), ("warning", "warning"))
    ]
    summary = ", ".join(plural(count, noun) for count, noun in counts if count) or "All is well"
    return "Health", join(
        [
            section(
                summary,
                list_of([_trouble(shown, each) for each in troubles], "Nothing is to be done."),
            ),
            section("Stores", _stores(found)),
            section(
                f"{plural(len(well), 'check')} well",
                table("Checks that are well", ("check", "what it says"), well, "None."),
            ),
        ]
    )


def _trouble(shown: Shared, found: Data) -> Html:
    advice = found["advice"] and f"What to do: {shown.without_paths(found['advice'])}"
    return element(
        "li",
        element("h3", mark(MARKS[found["health"]]), f" {found['check']}: {WORDS[found['health']]}"),
        element("p", shown.without_paths(found["says"]), class_="prose"),
        element("p", advice, class_="prose") if advice else None,
        class_="entry",
    )


def _stores(found: Data) -> Html:
    """The stores with their engines and sizes; their addresses are of this machine."""
    rows = [
        (
            each["area"],
            each["engine"] or "-",
            "no store yet" if each["exists"] is False else _size(each["bytes"]),
            _or_nothing(each["schema_version"]),
            _or_nothing(each["head"]),
        )
        for each in found["stores"]
    ]
    header = ("store", "engine", "size", "schema", "last change")
    return table("Stores", header, rows, "None.")


def _size(number: int | None) -> str:
    return "-" if number is None else size(number)


def _or_nothing(value: int | None) -> str:
    return "-" if value is None else str(value)
