"""Declared shapes of inputs and outputs: pydantic models, or any type that pydantic understands."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from backedge.core.value import Json

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Model:
    """One declared type. pydantic is imported when it is first used: workflows without declared types start faster."""

    def __init__(self, type_: Any) -> None:
        self._type = type_

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter

        return TypeAdapter(self._type)

    def fitted(self, value: Json) -> Any:
        """A value from a journal as the declared type."""
        # By the rules of JSON: a strict model takes a date from a text there, and a tuple from a list.
        return self._adapter.validate_json(msgspec.json.encode(value))

    def misfits(self, value: Any, stored: bool = True) -> list[tuple[str, str]]:
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
