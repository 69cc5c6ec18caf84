"""JSON Schemas of inputs and outputs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from backedge.core.errors import WorkflowError
from backedge.core.value import Json

MOST = 20
"""How many problems are reported at once."""
LONGEST = 300
"""Characters of one problem: its message quotes the value, which may be large."""


class Schema:
    """One JSON Schema. The validator is imported when it is first used: most workflows have no schemas."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema

    def input_errors(self, value: Json) -> list[tuple[str, str]]:
        """Where a value does not fit: (JSON pointer, problem)."""
        from referencing.exceptions import Unresolvable

        try:
            errors = sorted(self._validator.iter_errors(value), key=lambda error: [str(part) for part in error.path])
        except Unresolvable as error:
            raise WorkflowError(
                f"the schema refers to {error.ref!r}, which it does not contain: add it to the schema"
            ) from error
        return [(_pointer(error.absolute_path), _short(error.message)) for error in errors[:MOST]]

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped,unused-ignore]  # its types are a package of their own
        from jsonschema.validators import validator_for  # type: ignore[import-untyped,unused-ignore]  # its types are a package of their own
        from referencing import Registry

        kind = validator_for(self._schema, default=Draft202012Validator)
        try:
            kind.check_schema(self._schema)
        except SchemaError as error:
            where = _pointer(error.absolute_path) or "the whole"
            raise WorkflowError(f"the schema is not a JSON Schema: {where}: {_short(error.message)}") from error
        # An empty registry: a reference to the network is an error, not a download.
        return kind(self._schema, registry=Registry())


def _pointer(path: Any) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _short(message: str) -> str:
    return message if len(message) <= LONGEST else f"{message[:LONGEST]}…"
