"""A persistent map: `set` returns a new map that shares everything with the old one except the path to the change.

Findings, closed loops and rejected digests accumulate over a run. If each event copied a dict, the cost of an event
would grow with the history; with this map it stays flat. A small map is a plain dict that is copied, which is fastest;
a larger one is a hash trie of small dicts, with 32 branches per level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar, overload

K = TypeVar("K", int, str)
V = TypeVar("V")
D = TypeVar("D")

_BITS = 5
_MASK = 31
_SMALL = 32
"""Entries up to which copying a dict beats walking a trie."""

# A node maps 5 bits of the hash to a node below or to a leaf. A leaf holds all pairs of one hash.
_Node = dict[int, Any]

_MISSING: Any = object()


class Map(Generic[K, V]):
    """An immutable mapping with a cheap `set`. It iterates in the order of its keys, never of their hashes."""

    __slots__ = ("_root", "_size", "_small")

    def __init__(self) -> None:
        self._small: dict[K, V] | None = {}
        self._root: _Node = {}
        self._size = 0

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        if self._small is not None:
            return self._small.get(key, default)
        code = hash(key)
        node: Any = self._root
        shift = 0
        while type(node) is dict:
            node = node.get((code >> shift) & _MASK)
            shift += _BITS
        if node is not None and node[0] == code:
            for existing, value in node[1]:
                if existing == key:
                    return value
        return default

    def __getitem__(self, key: K) -> V:
        if self._small is not None:
            return self._small[key]
        value: Any = self.get(key, _MISSING)
        if value is _MISSING:
            raise KeyError(key)
        found: V = value
        return found

    def __contains__(self, key: K) -> bool:
        if self._small is not None:
            return key in self._small
        return self.get(key, _MISSING) is not _MISSING

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Map) and self._size == other._size and dict(self.items()) == dict(other.items())

    def set(self, key: K, value: V) -> Map[K, V]:
        """The map with one entry added or replaced."""
        return self.merged({key: value})

    def merged(self, entries: dict[K, V]) -> Map[K, V]:
        """The map with these entries added or replaced."""
        if not entries:
            return self
        new: Map[K, V] = Map()
        if self._small is not None:
            small = {**self._small, **entries}
            if len(small) <= _SMALL:
                new._small, new._size = small, len(small)
                return new
            root: _Node = {}
            entries, size = small, len(small)
        else:
            root, size = self._root, self._size + sum(key not in self for key in entries)
        for key, value in entries.items():
            root = _set(root, hash(key), 0, key, value)
        new._small, new._root, new._size = None, root, size
        return new

    def items(self) -> list[tuple[K, V]]:
        pairs = self._small.items() if self._small is not None else _pairs(self._root)
        return sorted(pairs, key=lambda pair: pair[0])

    def values(self) -> list[V]:
        return [value for _, value in self.items()]

    def __repr__(self) -> str:
        return f"Map({dict(self.items())!r})"


def _set(node: _Node, code: int, shift: int, key: Any, value: Any) -> _Node:
    slot = (code >> shift) & _MASK
    below = node.get(slot)
    new = dict(node)
    if below is None:
        new[slot] = (code, ((key, value),))
    elif type(below) is dict:
        new[slot] = _set(below, code, shift + _BITS, key, value)
    elif below[0] == code:
        new[slot] = (code, (*(pair for pair in below[1] if pair[0] != key), (key, value)))
    else:
        # Two hashes share this slot: move the existing leaf one level down and insert there.
        deeper: _Node = {(below[0] >> (shift + _BITS)) & _MASK: below}
        new[slot] = _set(deeper, code, shift + _BITS, key, value)
    return new


def _pairs(node: _Node) -> Iterator[tuple[Any, Any]]:
    for below in node.values():
        if type(below) is dict:
            yield from _pairs(below)
        else:
            yield from below[1]
