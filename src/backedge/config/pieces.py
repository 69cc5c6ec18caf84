"""Builders for the schema of the workflow file. The checker uses a `title` to say what it expected."""

from __future__ import annotations

from typing import Any, assert_never

from backedge.core.workflow.limits import LARGEST, LimitSpec

Schema = dict[str, Any]

# Letters and digits of any language, and after the first also dots and hyphens: names are used in paths, commands and
# diagrams.
_NEVER = r"\x00-,/:-@\[-^`{-\xa0\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
NAME = f"^[^{_NEVER}.-][^{_NEVER}]*$"
VARIABLE = "^(?!BACKEDGE_)[A-Za-z_][A-Za-z0-9_]*$"
FUNCTION = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
_DURATION = r"[0-9]{1,9}(\.[0-9]{1,9})?[smhd]$"
_SOME_TIME = f"^(?=[0-9.]*[1-9]){_DURATION}"
_ANY_TIME = f"^{_DURATION}"

NAMES: Schema = {"pattern": NAME, "title": "a name of letters, digits, _ - and ."}


def text(description: str, *examples: str, title: str = "text", pattern: str = "") -> Schema:
    more: Schema = {"pattern": pattern} if pattern else {"minLength": 1}
    return _with(examples, {"description": description, "title": title, "type": "string", **more})


def path(description: str, *examples: str) -> Schema:
    return text(description, *examples, title="a path relative to the folder of this file")


def choice(description: str, *words: str) -> Schema:
    return {"description": description, "type": "string", "enum": list(words)}


def flag(description: str) -> Schema:
    return {"description": description, "type": "boolean"}


def number(description: str, *examples: object, least: int | None = None, whole: bool = False) -> Schema:
    """A number, more than 0 unless `least` says otherwise."""
    bound = {"exclusiveMinimum": 0} if least is None else {"minimum": least}
    kind = "integer" if whole else "number"
    return _with(examples, {"description": description, "type": kind, **bound, "maximum": LARGEST})


def listed(description: str, item: Schema, *examples: object, least: int = 0) -> Schema:
    made: Schema = {"description": description, "type": "array", "items": item}
    return _with(examples, {**made, "minItems": least} if least else made)


def mapped(description: str, value: Schema, *examples: object, keys: Schema | None = None, least: int = 0) -> Schema:
    """A mapping whose keys the user chooses."""
    made: Schema = {"description": description, "type": "object", "additionalProperties": value}
    if keys:
        made["propertyNames"] = keys
    return _with(examples, {**made, "minProperties": least} if least else made)


def record(description: str, properties: dict[str, Schema], *examples: object, **more: Any) -> Schema:
    """A mapping with these keys and no others."""
    made: Schema = {"description": description, "type": "object", "properties": properties}
    return _with(examples, {**made, "additionalProperties": False, **more})


def either(description: str, *alternatives: Schema, examples: tuple[object, ...] = ()) -> Schema:
    """One of several kinds of value, distinguished by their types."""
    return _with(examples, {"description": description, "anyOf": list(alternatives)})


def words(description: str, *examples: object) -> Schema:
    """A word or a list of words."""
    word = text("One of them.")
    return either(description, word, listed("All of them.", word), examples=examples)


def arguments(description: str, *examples: object) -> Schema:
    """A program and its arguments. Numbers become the text they are written as."""
    return listed(description, plain("The program, or one of its arguments."), *examples, least=1)


def plain(description: str) -> Schema:
    """Text, or a number that stands for the text it is written as."""
    return {"description": description, "title": "text", "type": ["string", "number"]}


SOME_TIME = "text like 90s, 10m or 1h"


def duration(description: str, *examples: object) -> Schema:
    """A length of time above 0."""
    return either(description, *_times(_SOME_TIME), examples=examples)


def limit(spec: LimitSpec) -> Schema:
    """What a limit may be set to: `false` switches it off."""
    match spec.unit:
        case "flag":
            return flag(spec.meaning)
        case "seconds":
            times = _times(_ANY_TIME, least=0) if spec.zero else _times(_SOME_TIME)
            return either(spec.meaning, *times, _off())
        case "dollars":
            return either(spec.meaning, number("The bound.", least=0 if spec.zero else None), _off())
        case "count":
            return either(spec.meaning, number("The bound.", least=0 if spec.zero else 1, whole=True), _off())
        case _:
            assert_never(spec.unit)


def required_one(*keys: str) -> list[Schema]:
    return [{"required": [key]} for key in keys]


def _times(pattern: str, least: int | None = None) -> tuple[Schema, Schema]:
    return (
        number("Seconds.", least=least),
        text("A number with s, m, h or d.", "90s", "10m", "1h", title=SOME_TIME, pattern=pattern),
    )


def _off() -> Schema:
    return {"description": "Switches it off.", "title": "false to switch it off", "type": "boolean", "const": False}


def _with(examples: tuple[object, ...], schema: Schema) -> Schema:
    return {**schema, "examples": list(examples)} if examples else schema
