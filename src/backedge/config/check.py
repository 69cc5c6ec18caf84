"""Checks a loaded document against the schema and reports every problem.

It understands only the keywords that the schema uses; a test compares it with a JSON Schema validator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from backedge.config.pieces import Schema
from backedge.config.problems import Flaw, Trail
from backedge.config.words import expected, got, hint, kinds_of, meant_key, unknown_key
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json

Written = Callable[[Trail], str]


def flaws_of(value: Json, schema: Schema, written: Written = lambda _: "", trail: Trail = ()) -> Iterator[Flaw]:
    """Everything that is wrong with a value. `written` gives scalars exactly as the file has them."""
    if "anyOf" in schema and "type" not in schema:
        yield from _either(value, schema, written, trail)
    elif not _fits_type(value, schema):
        yield Flaw(trail, _mismatch(value, schema, written, trail))
    elif isinstance(value, dict):
        yield from _mapping(value, schema, written, trail)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield Flaw(trail, _mismatch(value, schema, written, trail))
        for index, item in enumerate(value):
            yield from flaws_of(item, schema["items"], written, (*trail, index))
    elif "enum" in schema and value not in schema["enum"]:
        yield Flaw(trail, f"got {got(value, trail)}: {did_you_mean(value, schema['enum'])}")
    elif not _fits_bounds(value, schema):
        yield Flaw(trail, _mismatch(value, schema, written, trail))


def _either(value: Json, schema: Schema, written: Written, trail: Trail) -> Iterator[Flaw]:
    """Alternatives differ by type, so the one with the type of the value explains the problem."""
    fitting = [each for each in schema["anyOf"] if _fits_type(value, each)]
    if not fitting:
        yield Flaw(trail, _mismatch(value, schema, written, trail))
    elif isinstance(value, dict | list) or "enum" in fitting[0]:
        yield from flaws_of(value, fitting[0], written, trail)
    elif any(flaws_of(value, fitting[0], written, trail)):
        yield Flaw(trail, _mismatch(value, schema, written, trail))


def _mapping(value: dict[str, Json], schema: Schema, written: Written, trail: Trail) -> Iterator[Flaw]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    names = schema.get("propertyNames")
    if len(value) < schema.get("minProperties", 0):
        yield Flaw(trail, f"got {got(value, trail)}, expected at least one entry")
    for key, item in value.items():
        here = (*trail, key)
        if key in properties:
            yield from flaws_of(item, properties[key], written, here)
        elif others is False:
            yield Flaw(here, unknown_key(key, list(properties), trail), at_key=True)
        elif isinstance(others, dict):
            if names and not _matches(key, names):
                yield Flaw(here, f"got the name {key!r}, expected {names['title']}", at_key=True)
            yield from flaws_of(item, others, written, here)
    # A misspelt key is not reported as missing as well.
    there = set(value) | {meant_key(key, list(properties)) for key in value if key not in properties}
    yield from _missing(there, schema, trail)


def _missing(there: set[str], schema: Schema, trail: Trail) -> Iterator[Flaw]:
    for key in schema.get("required", ()):
        if key not in there:
            yield Flaw((*trail, key), f"missing: expected {expected(schema['properties'][key])}", at_key=True)
    for keyword in ("oneOf", "anyOf"):
        keys = [each["required"][0] for each in schema.get(keyword, ())]
        given = [key for key in keys if key in there]
        if keys and not given:
            yield Flaw(trail, f"missing: expected {'one of ' if len(keys) > 2 else ''}{_or(keys)}", at_key=True)
        if keyword == "oneOf" and len(given) > 1:
            yield Flaw((*trail, given[1]), f"cannot be combined with {given[0]}: keep one of {_or(keys)}", at_key=True)
    both = schema.get("not", {}).get("required", ())
    if both and there.issuperset(both):
        yield Flaw((*trail, both[1]), f"cannot be combined with {both[0]}: keep one, or make it two steps", at_key=True)


def _mismatch(value: Json, schema: Schema, written: Written, trail: Trail) -> str:
    suggestion = hint(value, schema, written(trail))
    if suggestion.startswith("write a list"):
        return f"got {got(value, trail)}: {suggestion}"
    return f"got {got(value, trail)}, expected {expected(schema)}" + (f": {suggestion}" if suggestion else "")


def _fits_type(value: Json, schema: Schema) -> bool:
    wanted = schema["type"]
    return not set(kinds_of(value)).isdisjoint([wanted] if isinstance(wanted, str) else wanted)


def _fits_bounds(value: Json, schema: Schema) -> bool:
    if isinstance(value, bool):
        return "const" not in schema or value is schema["const"]
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0) and _matches(value, schema)
    low, above, high = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")
    return (low is None or value >= low) and (above is None or value > above) and (high is None or value <= high)


def _matches(value: str, schema: Schema) -> bool:
    # In JSON Schema $ is the very end; in Python a line break may follow it.
    return "pattern" not in schema or bool(re.search(schema["pattern"].replace("$", r"\Z"), value))


def _or(keys: list[str]) -> str:
    return f"{', '.join(keys[:-1])} or {keys[-1]}"
