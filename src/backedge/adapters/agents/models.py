"""Declared shapes of inputs and outputs: pydantic models, or any type that pydantic understands."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

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
        """The value as the declared type."""
        return self._adapter.validate_python(value)

    def misfits(self, value: Any) -> list[tuple[str, str]]:
        """Where a value does not fit: (JSON pointer, problem)."""
        from pydantic import ValidationError

        try:
            self._adapter.validate_python(value)
        except ValidationError as error:
            return [
                ("".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in each["loc"]), each["msg"])
                for each in error.errors(include_url=False)
            ]
        return []
