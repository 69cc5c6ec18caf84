"""Checks the JSON Schemas that users write, so that mistakes are reported before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from backedge.config.problems import Trail, shown_trail
from backedge.core.value import Json

LONGEST = 200
"""The most characters of a message: the validator quotes the value, which may be large."""


def schema_problems(schema: Json) -> Iterator[tuple[Trail, str]]:
    """The problems of a JSON Schema, each with its trail. The validator is imported only when it is needed."""
    from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped,unused-ignore]  # its types are a package of their own
    from jsonschema.validators import validator_for  # type: ignore[import-untyped,unused-ignore]  # its types are a package of their own

    named = schema.get("$schema")
    kind = validator_for(schema, default=None if named is not None else Draft202012Validator)
    if kind is None:
        yield (
            ("$schema",),
            f"got {str(named)[:LONGEST]!r}, which is not a version of JSON Schema: remove it, or correct it",
        )
        return
    checker = kind(kind.META_SCHEMA, format_checker=FormatChecker(["regex"]))
    flawed = False
    for error in sorted(checker.iter_errors(schema), key=lambda error: [str(part) for part in error.absolute_path]):
        flawed = True
        yield tuple(error.absolute_path), f"is not legal in a JSON Schema: {_short(_deepest(error).message)}"
    if not flawed:
        yield from _lost_references(schema, kind)


def with_trail(trail: Trail, text: str) -> str:
    """A problem with its location in a schema that has its own file."""
    return f"{shown_trail(trail)}: {text}" if trail else text


def _lost_references(schema: Json, kind: Any) -> Iterator[tuple[Trail, str]]:
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    specification = specification_with(kind.META_SCHEMA["$schema"], default=DRAFT202012)
    resource = specification.create_resource(schema)
    home = resource.id() or ""
    resolver = Registry().with_resource(home, resource).resolver(home)
    for trail, reference in _references(schema, ()):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            yield (
                trail,
                f"got {reference[:LONGEST]!r}, which the schema does not contain: add it to the schema (nothing is downloaded)",
            )


def _references(part: Json, trail: Trail) -> Iterator[tuple[Trail, str]]:
    if isinstance(part, dict):
        if trail and "$id" in part:
            return  # its references are relative to its own $id, and are resolved when they are used
        for key, each in part.items():
            if key == "$ref" and isinstance(each, str):
                yield (*trail, key), each
            elif key not in ("const", "enum", "default", "examples"):
                yield from _references(each, (*trail, key))
    elif isinstance(part, list):
        for index, each in enumerate(part):
            yield from _references(each, (*trail, index))


def _deepest(error: Any) -> Any:
    """The most helpful reason why no alternative fits: the one that lists the legal words."""
    return next((each for each in error.context or () if each.validator == "enum"), error)


def _short(message: str) -> str:
    return message if len(message) <= LONGEST else f"{message[:LONGEST]}…"
