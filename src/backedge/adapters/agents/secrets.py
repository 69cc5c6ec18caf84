"""Removes secrets from everything that is written: texts, values and files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from backedge.adapters.agents.regular_file import opened
from backedge.adapters.agents.stream_filter import CHUNK, Stream, masks
from backedge.engine.codec import plain
from backedge.engine.unique_keys import duplicate_key

SHORTEST = 6
"""Characters that a secret must have: a shorter one would match inside ordinary words."""
LARGEST = 16 * 1024 * 1024
"""Bytes of a file that is read as JSON; a larger one is copied piece by piece."""


class Secrets:
    """The secrets, by the names of their variables. Without any, everything stays as it is."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self.values = {name: os.fsencode(value) for name, value in (values or {}).items()}
        self._masks = masks(self.values) if self.values else {}
        self._data = re.compile(b"|".join(map(re.escape, self._masks)))
        self._texts = {_text(secret): _text(shown) for secret, shown in self._masks.items()}
        self._text = re.compile("|".join(map(re.escape, self._texts)))

    @property
    def names(self) -> tuple[str, ...]:
        """The environment variables that hold the secrets."""
        return tuple(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def text(self, text: str) -> str:
        return self._text.sub(lambda found: self._texts[found[0]], text) if self else text

    def data(self, data: bytes) -> bytes:
        return self._data.sub(lambda found: self._masks[found[0]], data) if self else data

    def value(self, value: Any) -> Any:
        """The same value without secrets: JSON, or a value of an agent or the engine. A number that is a secret becomes a
        text. Raises RecursionError for a value that is nested too deeply."""
        return self._value(value) if self else value

    def content(self, data: bytes) -> bytes:
        """The content of a file without secrets. JSON stays JSON."""
        if not self:
            return data
        if duplicate_key(data) is not None:
            return self.data(data)  # as JSON one of the two values would be lost, and nobody would notice
        try:
            value = msgspec.json.decode(data)
            shown = self.value(value)
            return data if shown == value else msgspec.json.format(msgspec.json.encode(shown), indent=2)
        except (msgspec.DecodeError, RecursionError):
            return self.data(data)

    def scrub(self, path: Path) -> None:
        """Remove secrets from a file that an agent wrote, if there is one."""
        if not self:
            return
        draft = path.with_name(f".{path.name}.new")
        try:
            with opened(path, follow=False) as file, draft.open("wb") as shown:
                if os.fstat(file.fileno()).st_size <= LARGEST:
                    shown.write(self.content(file.read()))
                else:
                    stream = Stream(self._masks)
                    while piece := file.read(CHUNK):
                        shown.write(stream.fed(piece))
                    shown.write(stream.ended())
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)  # if it is needed, the reader reports that it cannot be read

    def _value(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case None | bool():
                return value
            case int() | float():
                shown = self.text(repr(value))
                return value if shown == repr(value) else shown
            case dict():
                return {
                    self._value(key) if isinstance(key, str) else key: self._value(each) for key, each in value.items()
                }
            case list():
                return [self._value(each) for each in value]
            case tuple():
                return tuple(self._value(each) for each in value)
            case msgspec.Struct():
                return self._struct(value)
            case _:
                return self._foreign(value)

    def _struct(self, value: msgspec.Struct) -> msgspec.Struct:
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        # A field that is a number must stay a number.
        texts = {name: each for name, each in fields.items() if not isinstance(each, int | float)}
        shown = {name: self._value(each) for name, each in texts.items()}
        changed = {name: each for name, each in shown.items() if each != texts[name]}
        return msgspec.structs.replace(value, **changed) if changed else value

    def _foreign(self, value: Any) -> Any:
        """An object of another type as the JSON that is stored of it; unchanged if it has no secrets."""
        try:
            stored = msgspec.json.decode(msgspec.json.encode(value, enc_hook=plain))
        except (TypeError, ValueError):
            return value  # storing it will say what is wrong with it
        shown = self._value(stored)
        return value if shown == stored else shown


NO_SECRETS = Secrets()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
