"""The words of problems: what was got and what was expected, for people who write a workflow file."""

from __future__ import annotations

import re

from backedge.config.pieces import SOME_TIME, Schema
from backedge.config.problems import Trail, quoted
from backedge.core.suggestions import closest, did_you_mean
from backedge.core.value import Json
from backedge.core.workflow.limits import LARGEST, OF_THE_RUN

_SWITCHES = {"on": "true", "yes": "true", "off": "false", "no": "false"}
_OTHER_NAMES = {
    "depends_on": "needs",
    "depends": "needs",
    "after": "needs",
    "command": "run",
    "cmd": "run",
    "script": "run",
    "exec": "run",
    "judges": "reviews",
    "max_rounds": "rounds_per_loop",
    "max_iterations": "rounds_per_loop",
    "budget": "cost_usd",
    "cwd": "workspace",
    "environment": "env",
    "tools": "allowed_tools",
    "secrets": "redact",
}
_SIMPLE = re.compile(r"[\w./=+-]+")


def kinds_of(value: Json) -> tuple[str, ...]:
    """The types of JSON Schema that a value has."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case float():
            return ("integer", "number") if value.is_integer() else ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case _:
            return ("object",)


def got(value: Json, trail: Trail) -> str:
    """A value as its author knows it. Values that may be secrets are not repeated."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str() if {"env", "redact"} & set(trail):
            return "a text"
        case str():
            return f"the text {quoted(value)}" if value else "an empty text"
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return "a mapping" if value else "an empty mapping"


def expected(schema: Schema) -> str:
    """What a schema expects."""
    if "anyOf" in schema:
        return ", or ".join(expected(each) for each in schema["anyOf"])
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "title" in schema:
        return str(schema["title"])
    match schema.get("type"):
        case "integer" | "number" as kind:
            noun = "a whole number" if kind == "integer" else "a number"
            return f"{noun} of {schema['minimum']} or more" if "minimum" in schema else f"{noun} above 0"
        case "boolean":
            return "true or false"
        case "array":
            least = schema.get("minItems", 0)
            some = "one entry" if least == 1 else f"{least} entries"
            return f"a list with at least {some}" if least else "a list"
        case _:
            return "a mapping (key: value)"


def hint(value: Json, schema: Schema, written: str) -> str:
    """How to write what was probably meant; empty if there is no suggestion."""
    wanted = _kinds_wanted(schema)
    if _is_duration(schema) and (isinstance(value, bool) or value in (0, "0", "0s", "0m", "0h", "0d")):
        return "" if "boolean" in wanted else "leave it out if nothing should be stopped"
    if isinstance(value, str):
        if "boolean" in wanted and value.lower() in _SWITCHES:
            meant = _SWITCHES[value.lower()]
            return f"write {meant}" if meant in _switches_wanted(schema) else ""
        if wanted & {"integer", "number"} and "string" not in wanted and value.isascii() and value.isdigit():
            return f"write {value} without quotes"
        if "array" in wanted and value.strip():
            parts = re.split(r"[,\s]+", value.strip())
            simple = len(parts) <= 6 and all(_SIMPLE.fullmatch(part) for part in parts)
            example = parts if simple else schema.get("examples", [["first", "second"]])[0]
            return f"write a list: [{', '.join(example)}]"
    elif isinstance(value, dict):
        if "string" in wanted and list(value.values()) == [None]:
            return f'write "{{{next(iter(value))}}}" in quotes'
    elif isinstance(value, list):
        if wanted == {"object"}:
            return "write `name: …` lines, without dashes"
    elif isinstance(value, int | float) and not isinstance(value, bool) and value > LARGEST:
        return f"the largest is {LARGEST}"
    elif "string" in wanted and value is not None and written and not _is_duration(schema):
        return f'write "{written}" in quotes'
    return ""


def unknown_key(key: str, known: list[str], trail: Trail) -> str:
    """The problem with an unknown key, with the key that was probably meant."""
    if key in OF_THE_RUN and trail[-1:] == ("limits",):
        return "unknown key: it limits the whole run, so set it in `limits` at the top"
    meant = meant_key(key, known)
    return f"unknown key: did you mean {meant!r}?" if meant else f"unknown key: {did_you_mean(key, known)}"


def meant_key(key: str, known: list[str]) -> str:
    """The valid key that an unknown one probably means; empty if none is similar."""
    other = _OTHER_NAMES.get(key.lower().replace("-", "_"), "")
    if other in known:
        return other
    return closest(key.replace("-", "_"), known)


def _is_duration(schema: Schema) -> bool:
    return any(each.get("title") == SOME_TIME for each in schema.get("anyOf", ()))


def _kinds_wanted(schema: Schema) -> set[str]:
    if "anyOf" in schema:
        return set().union(*(_kinds_wanted(each) for each in schema["anyOf"]))
    kind = schema.get("type", ())
    return {kind} if isinstance(kind, str) else set(kind)


def _switches_wanted(schema: Schema) -> set[str]:
    switches = [each for each in schema.get("anyOf", [schema]) if each.get("type") == "boolean"]
    return {str(each["const"]).lower() for each in switches if "const" in each} or {"true", "false"}
