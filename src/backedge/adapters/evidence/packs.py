"""Many contents in one file, with an index: a file for each takes too long.

A pack is written once. Its index is written last, so that a killed process leaves no half of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

Place = tuple[str, int, int]
"""The pack of a content, its first byte, and how many there are."""


class Packs:
    """The packs in one folder. Those of other processes are found too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[str] = set()
        self._places: dict[str, Place] = {}

    @staticmethod
    def packed(contents: Sequence[bytes]) -> tuple[str, bytes, bytes]:
        """The name of a pack with these contents, the pack itself, and its index."""
        index: dict[str, tuple[int, int]] = {}
        offset = 0
        for content in contents:
            index[sha256(content).hexdigest()] = offset, len(content)
            offset += len(content)
        return sha256("".join(index).encode()).hexdigest(), b"".join(contents), msgspec.json.encode(index)

    def look(self) -> None:
        """Read the indexes of packs that are new."""
        for path in self._folder.glob("*.json"):
            if path.stem not in self._known:
                index = msgspec.json.decode(path.read_bytes(), type=dict[str, tuple[int, int]])
                self._places |= {digest: (path.stem, *place) for digest, place in index.items()}
                self._known.add(path.stem)

    def __contains__(self, digest: str) -> bool:
        return digest in self._places

    def get(self, digest: str) -> bytes | None:
        """A content; None if no pack has it."""
        if digest not in self._places:
            self.look()
        place = self._places.get(digest)
        if place is None:
            return None
        name, offset, length = place
        with (self._folder / name).open("rb") as file:
            file.seek(offset)
            return file.read(length)
