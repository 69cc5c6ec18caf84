"""Large values in events: stored once, by their digests, beside the events that tell them.

An event whose JSON is small stands as it is. In a larger one, every text, list or object above `INLINE` bytes is taken out
and named by its digest, in a member of its own that comes first:

    {"large":{"/answer":"9f86d0…"},"type":"answer_given/1","at":1.0,"loop":"L-1","target":"plan","answer":null}

The chain covers the digest, and so the value. What is taken out depends on the value alone: the same answer in two events
is stored once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

import msgspec

from backedge.core.errors import JournalDamaged
from backedge.core.value import Json

INLINE = 4_096
"""Bytes up to which a value stands in its event; a larger one is stored once, by its digest."""
DEEPEST_LOOK = 12
"""Levels of an event that are looked into; a large value below them is taken out with what holds it."""

_Path = tuple[str | int, ...]
_MARK = b'{"large":'
_encode = msgspec.json.Encoder().encode


class _Named(msgspec.Struct):
    large: dict[str, str] = {}


_named = msgspec.json.Decoder(_Named)


def set_aside(event: msgspec.Struct, body: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The JSON of a large event without its large values, and these by their digests."""
    taken = _taken(event)
    if not taken:
        return body, {}
    rest, names, payloads = msgspec.json.decode(body), {}, {}
    for path, text in taken.items():
        _put(rest, path, None)
        names[_pointer(path)] = digest = sha256(text).hexdigest()
        payloads[digest] = text
    return _encode({"large": names, **rest}), payloads


def set_aside_in(body: bytes) -> Mapping[str, str]:
    """The digests of the large values that were taken out of an event, by where they belong; none for a text that is no
    event."""
    try:
        return _named.decode(body).large if body.startswith(_MARK) else {}
    except msgspec.DecodeError:
        return {}


def put_back(body: bytes, values: Mapping[str, bytes]) -> bytes:
    """The JSON of an event with the large values, by their digests, that were taken out of it. Raises JournalDamaged for
    one that has no place in the event."""
    rest = msgspec.json.decode(body)
    for pointer, digest in rest.pop("large").items():
        try:
            _put(rest, _path(pointer), msgspec.json.decode(values[digest]))
        except (LookupError, TypeError, ValueError) as error:
            raise JournalDamaged(
                f"an event names the large value {digest} at {pointer!r}, where it has no place: restore a backup"
            ) from error
    return _encode(rest)


def _taken(value: Json, path: _Path = ()) -> dict[_Path, bytes]:
    """What is large in a value, by where it is: parts of it, or the whole where these leave too much."""
    text = _encode(value)
    if len(text) <= INLINE:
        return {}
    inside: dict[_Path, bytes] = {}
    if not isinstance(value, str) and len(path) < DEEPEST_LOOK:
        for key, part in _parts(value):
            inside |= _taken(part, (*path, key))
    left = len(text) - sum(map(len, inside.values()))
    # What has fields of its own stays: they say what happened, and which outputs and logs belong to it.
    return inside if left <= INLINE or isinstance(value, msgspec.Struct) else {path: text}


def _parts(value: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(value, msgspec.Struct):
        yield from ((name, getattr(value, name)) for name in value.__struct_fields__)
    else:
        yield from value.items() if isinstance(value, dict) else enumerate(value)


def _put(value: Json, path: _Path, part: Json) -> None:
    for key in path[:-1]:
        value = value[key if isinstance(value, dict) else int(key)]
    value[path[-1] if isinstance(value, dict) else int(path[-1])] = part


def _pointer(path: _Path) -> str:
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _path(pointer: str) -> _Path:
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])
