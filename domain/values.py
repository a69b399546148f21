"""Validation rules of field values, declared once per type and read from the annotation.

`Name`, `Text`, `Id` and the others are plain `str` (or `int`, `dict`, …) to a type checker; the
rule in the annotation raises InvalidValue with the field's name for what the domain does not allow,
before any store sees it. The dictionary reads the same rules to choose columns and key encodings.
"""

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from herdbook.domain.clock import Stamp
from herdbook.domain.errors import InvalidValue
from herdbook.domain.secret import Secret

LONGEST_ID = 64
LONGEST_NAME = 500
LONGEST_TEXT = 16 * 1024 * 1024
LONGEST_BYTES = 256 * 1024 * 1024
DEEPEST_DOCUMENT = 100
LONGEST_LABEL = 50
MOST_LABELS = 20
_LABEL = re.compile(r"[\w./:\-]+")
INTEGERS = range(-(2**63), 2**63)

Check = Callable[[str, Any], Any]


class Rule(NamedTuple):
    """The type of a value as stores see it, and the check that validates and normalizes it."""

    type_name: str
    check: Check
    python_type: type


def _check_unicode(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValue(field, f"must be text, not {type(value).__name__}")
    if "\0" in value:
        raise InvalidValue(field, "may not contain the character NUL")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(
                field, f"has half a surrogate pair at position {error.start}"
            ) from error
    return value


def _check_key(field: str, value: object) -> str:
    text = _check_unicode(field, value)
    if len(text) > LONGEST_ID or len(text.encode()) > LONGEST_ID:
        raise InvalidValue(field, f"may have at most {LONGEST_ID} bytes")
    return text


def _check_id(field: str, value: object) -> str:
    text = _check_key(field, value)
    if not text:
        raise InvalidValue(field, "may not be empty")
    return text


def _check_name(field: str, value: object) -> str:
    text = _check_unicode(field, value)
    if not 0 < len(text) <= LONGEST_NAME:
        raise InvalidValue(field, f"must have 1 to {LONGEST_NAME} characters, has {len(text)}")
    return text


def _check_text(field: str, value: object) -> str:
    text = _check_unicode(field, value)
    if len(text) * 4 > LONGEST_TEXT and len(text.encode()) > LONGEST_TEXT:
        raise InvalidValue(field, f"may have at most {LONGEST_TEXT} bytes")
    return text


def _check_integer(field: str, value: object) -> int:
    if type(value) is not int:
        raise InvalidValue(field, f"must be a whole number, not {type(value).__name__}")
    if value not in INTEGERS:
        raise InvalidValue(field, "does not fit into 64 bits")
    return value


def _at_least(least: int) -> Check:
    def check(field: str, value: object) -> int:
        number = _check_integer(field, value)
        if number < least:
            raise InvalidValue(field, f"must be at least {least}, is {number}")
        return number

    return check


def _check_flag(field: str, value: object) -> bool:
    if type(value) is not bool:
        raise InvalidValue(field, f"must be true or false, not {type(value).__name__}")
    return value


def _check_moment(field: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidValue(field, f"must be a date and time, not {type(value).__name__}")
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise InvalidValue(field, "needs a time zone")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValue(field, "is outside the years 1 to 9999 in UTC") from error


def _check_document(field: str, value: object, depth: int = 0) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _check_text(field, value)
    if isinstance(value, int):
        return _check_integer(field, value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidValue(field, f"may not contain {value}")
        return value
    if depth >= DEEPEST_DOCUMENT and isinstance(value, list | tuple | Mapping):
        raise InvalidValue(field, f"is nested deeper than {DEEPEST_DOCUMENT} levels")
    if isinstance(value, list | tuple):
        return [_check_document(field, each, depth + 1) for each in value]
    if isinstance(value, Mapping):
        return {
            _check_unicode(field, key): _check_document(field, value[key], depth + 1)
            for key in value
        }
    raise InvalidValue(field, f"must be JSON, not {type(value).__name__}")


def _check_mapping(field: str, value: object) -> object:
    if not isinstance(value, Mapping):
        raise InvalidValue(field, f"must be a JSON object, not {type(value).__name__}")
    return _check_document(field, value)


def _check_labels(field: str, value: object) -> list[str]:
    """Labels as a list, or as text with commas between them; each once, in order."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise InvalidValue(field, "must be a list of words")
    labels = list(
        dict.fromkeys(filter(None, (_check_unicode(field, each.strip()) for each in given)))
    )
    if len(labels) > MOST_LABELS:
        raise InvalidValue(field, f"may be at most {MOST_LABELS}, are {len(labels)}")
    for each in labels:
        if len(each) > LONGEST_LABEL or not _LABEL.fullmatch(each):
            reason = f"is not a label: at most {LONGEST_LABEL} letters, digits and any of . / : _ -"
            raise InvalidValue(field, f"{each[:LONGEST_LABEL]!r} {reason}")
    return labels


def _check_secret(field: str, value: object) -> Secret:
    if isinstance(value, Secret):
        _check_text(field, value.reveal())
        return value
    return Secret(_check_text(field, value))


def _check_bytes(field: str, value: object) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidValue(field, f"must be bytes, not {type(value).__name__}")
    if len(value) > LONGEST_BYTES:
        raise InvalidValue(field, f"may have at most {LONGEST_BYTES} bytes, has {len(value)}")
    return value


def _check_stamp(field: str, value: object) -> Stamp:
    if not isinstance(value, Stamp):
        raise InvalidValue(field, f"must be a clock stamp, not {type(value).__name__}")
    return value


KEY = Rule("id", _check_key, str)
ID = Rule("id", _check_id, str)
NAME = Rule("name", _check_name, str)
TEXT = Rule("text", _check_text, str)
INTEGER = Rule("integer", _check_integer, int)
COUNT = Rule("integer", _at_least(0), int)
POSITIVE = Rule("integer", _at_least(1), int)
FLAG = Rule("flag", _check_flag, bool)
MOMENT = Rule("moment", _check_moment, datetime)
DOCUMENT = Rule("document", _check_document, object)
MAPPING = Rule("document", _check_mapping, dict)
LABELS = Rule("document", _check_labels, list)
SECRET = Rule("secret", _check_secret, Secret)
STAMP = Rule("stamp", _check_stamp, Stamp)
BYTES = Rule("bytes", _check_bytes, bytes)

Key = Annotated[str, KEY]
"""The id of the row itself: empty until the unit of work sets it."""
Id = Annotated[str, ID]
Name = Annotated[str, NAME]
Text = Annotated[str, TEXT]
Count = Annotated[int, COUNT]
PositiveInt = Annotated[int, POSITIVE]
Document = Annotated[Any, DOCUMENT]
Labels = Annotated[list[str], LABELS]
JsonObject = Annotated[dict[str, Any], MAPPING]

_RULES_BY_TYPE: dict[object, Rule] = {
    int: INTEGER,
    bool: FLAG,
    datetime: MOMENT,
    Secret: SECRET,
    Stamp: STAMP,
    bytes: BYTES,
}


def _choice_rule(choices: type[Enum]) -> Rule:
    allowed = ", ".join(str(choice.value) for choice in choices)

    def check(field: str, value: object) -> Enum:
        if isinstance(value, choices):
            return value
        # An enum accepts anything equal to a value: True for 1, 2.0 for 2.
        if isinstance(value, str) or type(value) is int:
            with suppress(ValueError):
                return choices(value)
        raise InvalidValue(field, f"{value!r} is not one of {allowed}")

    numbers = issubclass(choices, int)
    return Rule("number choice" if numbers else "choice", check, choices)


def rule_of(annotation: object) -> tuple[Rule, bool]:
    """The rule of an annotation, and whether None is allowed too."""
    if get_origin(annotation) in (Union, UnionType):
        inner = [each for each in get_args(annotation) if each is not type(None)]
        (only,) = inner
        return rule_of(only)[0], True
    if get_origin(annotation) is Annotated:
        rule = next(each for each in get_args(annotation) if isinstance(each, Rule))
        return rule, False
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice_rule(annotation), False
    return _RULES_BY_TYPE[annotation], False
