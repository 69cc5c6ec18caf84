"""The steps of a large run by name: a mapping in pages, so that changing one entry copies one page and not them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

PAGE = 32

V = TypeVar("V")


class Pages(Mapping[str, V]):
    """An immutable mapping whose names are fixed and keep their order; `set` gives a new one."""

    __slots__ = ("_page_of", "_pages")

    def __init__(self, entries: Mapping[str, V]) -> None:
        names = list(entries)
        self._page_of = {name: place // PAGE for place, name in enumerate(names)}
        self._pages = tuple(
            {name: entries[name] for name in names[first : first + PAGE]} for first in range(0, len(names), PAGE)
        )

    def __getitem__(self, name: str) -> V:
        return self._pages[self._page_of[name]][name]

    def __contains__(self, name: object) -> bool:
        return name in self._page_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._page_of)

    def __len__(self) -> int:
        return len(self._page_of)

    def __repr__(self) -> str:
        return f"Pages({dict(self)!r})"

    def set(self, name: str, value: V) -> Pages[V]:
        """The mapping with another value for one of its names. Raises KeyError for any other name."""
        at = self._page_of[name]
        new: Pages[V] = Pages.__new__(Pages)
        new._page_of = self._page_of
        new._pages = (*self._pages[:at], {**self._pages[at], name: value}, *self._pages[at + 1 :])
        return new

    def changed_since(self, before: Pages[V]) -> list[str]:
        """The names whose values are others than in an earlier version of this mapping."""
        found: list[str] = []
        for old, new in zip(before._pages, self._pages, strict=True):
            if old is not new:
                found += [name for name, value in new.items() if value is not old[name]]
        return found
