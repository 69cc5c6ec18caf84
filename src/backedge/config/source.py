"""A checked document that is being turned into a workflow: its valid parts, and the problems found so far."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NoReturn

from backedge.config.own_schema import schema_problems, with_trail
from backedge.config.problems import Flaw, Problem, Trail, quoted
from backedge.config.scalars import resolved
from backedge.config.yaml import MAX_BYTES, Document
from backedge.core.value import Json

MOST_PROBLEMS = 5
"""The most problems of one schema that are reported at once."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Source:
    """The contents of a file, and the flaws found so far. Parts with a flaw are left out, so that the rest can be checked."""

    def __init__(
        self, document: Document, flaws: list[Flaw], folder: Path, copies: Mapping[str, str] | None = None
    ) -> None:
        self.document, self.flaws, self.folder = document, list(flaws), folder
        self.warnings: list[Flaw] = []
        self.notes: tuple[Problem, ...] = ()
        """Notes about other files."""
        self._copies = copies or {}
        self.files: dict[str, str] = {}
        """The contents of the files that were read, by their paths from the folder."""
        self.value: dict[str, Json] = valid_parts(document.value, flaws)
        self.flawed = {str(flaw.trail[1]) for flaw in flaws if len(flaw.trail) > 1 and flaw.trail[0] == "steps"}
        """Steps with a flaw: further problems with them may only be consequences."""
        self.flawed_top = frozenset(str(flaw.trail[0]) for flaw in flaws if flaw.trail)

    def refuse(self, trail: Trail, text: str, at_key: bool = False) -> None:
        self.flaws.append(Flaw(trail, text, at_key))

    def warn(self, trail: Trail, text: str) -> None:
        self.warnings.append(Flaw(trail, text))

    def written(self, trail: Trail, value: Json) -> str:
        """A text, or a number exactly as the file has it."""
        return value if isinstance(value, str) else self.document.written(trail)

    def path(self, trail: Trail, text: str, expected: Literal["file", "folder"]) -> Path | None:
        """A path in the folder of the workflow file, with links followed. A file must exist."""
        home = os.path.realpath(self.folder)
        found = os.path.realpath(os.path.join(home, text))
        if found != home and not found.startswith(home.rstrip(os.sep) + os.sep):
            self.refuse(trail, f"got {quoted(text)}, which leaves the folder of this file: use a path inside it")
        elif expected == "file" and not os.path.isfile(found):
            self.refuse(trail, f"got {quoted(text)}, which is not a file here: create it, or correct the path")
        elif expected == "folder" and os.path.exists(found) and not os.path.isdir(found):
            self.refuse(trail, f"got {quoted(text)}, which is not a folder: name a folder")
        else:
            return Path(found)
        return None

    def file(self, trail: Trail, text: str) -> str | None:
        """The contents of a file beside the workflow file, or its contents when the run started if the run keeps a copy;
        None if it cannot be read."""
        name = os.path.relpath(os.path.join(self.folder, text), self.folder)
        found = self._copies.get(name)
        if found is None:
            found = self._read(trail, text)
        if found is not None:
            self.files[name] = found
        return found

    def has_file(self, text: str) -> bool:
        name = os.path.relpath(os.path.join(self.folder, text), self.folder)
        return name in self._copies or (self.folder / text).exists()

    def _read(self, trail: Trail, text: str) -> str | None:
        path = self.path(trail, text, "file")
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
            if len(data) <= MAX_BYTES:
                return data.decode("utf-8-sig")
            self.refuse(trail, f"{quoted(text)} has more than {MAX_BYTES} bytes: use a smaller file")
        except (OSError, ValueError) as error:
            self.refuse(trail, f"{quoted(text)} cannot be read: {_reason(error)}")
        return None

    def own_schema(self, trail: Trail, value: Json) -> Json:
        """A JSON Schema of the user, from the workflow file or a file beside it; None if it is missing or not valid."""
        if not isinstance(value, str):
            return value if self._is_schema(trail, value) else None
        text = self.file(trail, value)
        if text is None:
            return None
        try:
            found = json.loads(text, parse_constant=_not_json, parse_float=resolved, parse_int=resolved)
        except json.JSONDecodeError as error:
            self.refuse(trail, f"{quoted(value)} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}")
        except (ValueError, RecursionError) as error:
            self.refuse(trail, f"{quoted(value)} cannot be read as JSON: {_reason(error)}")
        else:
            if not isinstance(found, dict):
                self.refuse(trail, f"{quoted(value)} is not a JSON Schema: expected an object")
            elif self._is_schema(trail, found, value):
                return found
        return None

    def _is_schema(self, trail: Trail, schema: Json, file: str = "") -> bool:
        """Whether a mapping is a JSON Schema. Problems are reported where they are, or at the name of the schema's file."""
        problems = list(schema_problems(schema))
        for inside, text in problems[:MOST_PROBLEMS]:
            if file:
                self.refuse(trail, f"{quoted(file)}: {with_trail(inside, text)}")
            else:
                self.refuse((*trail, *inside), text)
        return not problems


def valid_parts(value: dict[str, Json], flaws: list[Flaw]) -> dict[str, Json]:
    """A document without its wrong parts. A part is a key at the top, of a step, of an agent or of limits."""
    cut = {flaw.trail[: _depth(flaw.trail)] for flaw in flaws if flaw.trail}

    def valid_part(part: Json, trail: Trail) -> dict[str, Json]:
        # A step that is not a mapping stays, but empty: other steps may name it.
        return {key: each for key, each in part.items() if (*trail, key) not in cut} if isinstance(part, dict) else {}

    valid = valid_part(value, ())
    for key in ("limits", "new_findings", "stories"):
        if isinstance(valid.get(key), dict):
            valid[key] = valid_part(valid[key], (key,))
    for key in ("agents", "steps"):
        if key in valid:
            valid[key] = {name: valid_part(part, (key, name)) for name, part in valid[key].items()}
    return valid


def seconds(value: str | float) -> float:
    """A duration, as the schema allows it, in seconds."""
    return float(value[:-1]) * _UNITS[value[-1]] if isinstance(value, str) else float(value)


def listed(value: str | list[str] | None) -> tuple[str, ...]:
    """A word or a list of words, as words."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def _depth(trail: Trail) -> int:
    return 3 if trail[0] in ("steps", "agents") else 2 if trail[0] in ("limits", "new_findings", "stories") else 1


def _reason(error: Exception) -> str:
    match error:
        case OSError():
            return error.strerror or "it cannot be opened"
        case RecursionError():
            return "it is nested too deep"
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case _:
            return str(error)


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")
