"""Declared types of inputs and outputs: pydantic models, or any type that pydantic understands."""

from __future__ import annotations

from typing import Any

import msgspec

from backedge.core.value import Json
from backedge.core.workflow.parsing import shown


class Model:
    """One declared type; `what` names it in the TypeError for anything else.

    pydantic is imported when the first one is made: workflows without declared types start faster.
    """

    def __init__(self, type_: Any, what: str) -> None:
        from pydantic import PydanticSchemaGenerationError, TypeAdapter
        from pydantic_core import SchemaError

        wrong = f"{what} is {shown(type_)}: expected a type, such as a pydantic model or list[str]"
        if isinstance(type_, str | dict):  # pydantic would read them as a name and as a schema of its own
            raise TypeError(wrong)
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(type_)
        except (PydanticSchemaGenerationError, SchemaError) as error:
            raise TypeError(wrong) from error

    def fitted(self, value: Json) -> Any:
        """A value from a journal as the declared type."""
        # By the rules of JSON: there a strict model accepts a text as a date and a list as a tuple.
        return self._adapter.validate_json(msgspec.json.encode(value))

    def input_errors(self, value: Any, stored: bool = True) -> list[tuple[str, str]]:
        """Where a value, as a journal stores it or as Python made it, does not fit: (JSON pointer, problem)."""
        from pydantic import ValidationError

        try:
            self.fitted(value) if stored else self._adapter.validate_python(value)
        except ValidationError as error:
            return [
                ("".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in each["loc"]), each["msg"])
                for each in error.errors(include_url=False)
            ]
        return []
