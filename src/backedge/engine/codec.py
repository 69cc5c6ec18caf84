"""Events as JSON text and back; outputs as canonical JSON with their digests.

Large values are stored once, by their digests, beside the events that name them. An event whose JSON is small is stored
as it is. In a larger one, every text, list or object above `INLINE` bytes is taken out and named by its digest, in a
member of its own that comes first:

    {"large":{"/answer":"9f86d0…"},"type":"answer_given/1","at":1.0,"loop":"L-1","target":"plan","answer":null}

The hash chain covers the digest, and so the value. What is taken out depends on the value alone: the same answer in two
events is stored once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import isfinite
from pathlib import PurePath
from typing import Any

import msgspec

from backedge.core.diff import changes
from backedge.core.errors import AgentError, JournalDamaged, JournalTooNew
from backedge.core.events import Event
from backedge.core.model import OutputDigest
from backedge.core.scheduling.staleness import part
from backedge.core.upcast import is_old, upcast
from backedge.core.value import Json
from backedge.core.workflow.values import values_at
from backedge.ports import Record

INLINE = 4_096
"""The most bytes of a value inside an event. A larger value is stored once, by its digest."""
DEEPEST_LOOK = 12
"""Levels of an event that are searched for large values; one below them is taken out with the value that holds it."""
LONGEST_VALUE = 65_536
"""The most bytes of a value that a condition, a check or a gate refers to: it is stored in the event."""
DEEPEST = 200
"""The most levels of nested lists and objects in a value: every JSON reader can handle that many."""

_Path = tuple[str | int, ...]
_MARK = b'{"large":'


class _Named(msgspec.Struct):
    large: dict[str, str] = {}


_TAG = re.compile(rb'\{"type":"([a-z_]+/\d+)"')
_encoder = msgspec.json.Encoder()
_named = msgspec.json.Decoder(_Named)
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_events(events: Iterable[Event], key: str | None = None) -> tuple[tuple[bytes, ...], dict[str, bytes]]:
    """Events as JSON, and their large values by digest, to be stored with them. With a key, each event carries it as its
    first member, or as its second after `large`."""
    bodies: list[bytes] = []
    payloads: dict[str, bytes] = {}
    for event in events:
        body = _encoder.encode(event)
        if len(body) > INLINE:
            body, large = set_aside(event, body)
            payloads |= large
        bodies.append(body if key is None else _with_key(body, key))
    return tuple(bodies), payloads


def decode_events(records: Iterable[Record]) -> list[Event]:
    """The events of complete records, as `store.records_of` returns them. Raises JournalTooNew or JournalDamaged, naming
    the record, if one is not an event."""
    events = []
    for record in records:
        try:
            events.append(_decode(record.body))
        except msgspec.ValidationError as error:
            raise JournalTooNew(
                f"event {record.seq} is unknown to this version ({error}): a newer backedge wrote it; upgrade this one"
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise JournalDamaged(
                f"event {record.seq} is not JSON ({error}): restore the journal from a backup"
            ) from error
    return events


def _decode(body: bytes) -> Event:
    if body.startswith(_KEY):
        body = _without_key(body)
    tag = _TAG.match(body)
    if tag is not None and is_old(tag[1].decode()):
        old: Event = msgspec.convert(upcast(msgspec.json.decode(body)), Event)
        return old
    return _decoder.decode(body)


def set_aside(event: msgspec.Struct, body: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The JSON of a large event without its large values, and these values by digest."""
    taken = _taken(event)
    if not taken:
        return body, {}
    rest, names, payloads = msgspec.json.decode(body), {}, {}
    for path, text in taken.items():
        _put(rest, path, None)
        names[_pointer(path)] = digest = digest_of(text)
        payloads[digest] = text
    return _encoder.encode({"large": names, **rest}), payloads


def set_aside_in(body: bytes) -> Mapping[str, str]:
    """The digests of the large values that were taken out of an event, by JSON pointer; empty for text that is not an
    event."""
    try:
        return _named.decode(body).large if body.startswith(_MARK) else {}
    except msgspec.DecodeError:
        return {}


def put_back(body: bytes, values: Mapping[str, bytes]) -> bytes:
    """The JSON of an event with its large values, given by digest, put back in. Raises JournalDamaged if the event has
    no such position."""
    rest = msgspec.json.decode(body)
    for pointer, digest in rest.pop("large").items():
        try:
            _put(rest, _path(pointer), msgspec.json.decode(values[digest]))
        except (LookupError, TypeError, ValueError) as error:
            raise JournalDamaged(
                f"an event names the large value {digest} at {pointer!r}, which does not exist in it: restore a backup"
            ) from error
    return _encoder.encode(rest)


def _taken(value: Json, path: _Path = ()) -> dict[_Path, bytes]:
    """The large parts of a value by path; the whole value if it is large even without them."""
    text = _encoder.encode(value)
    if len(text) <= INLINE:
        return {}
    inside: dict[_Path, bytes] = {}
    if not isinstance(value, str) and len(path) < DEEPEST_LOOK:
        for key, part in _parts(value):
            inside |= _taken(part, (*path, key))
    left = len(text) - sum(map(len, inside.values()))
    # A struct stays in the event: its fields say what happened, and which outputs and logs belong to it.
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


_KEY = b'{"key":'


def _with_key(body: bytes, key: str) -> bytes:
    names = set_aside_in(body)
    start = _encoder.encode({"large": names, "key": key} if names else {"key": key})
    done = len(_encoder.encode({"large": names})) if names else 1
    return start[:-1] + b"," + body[done:]


def _without_key(body: bytes) -> bytes:
    event = msgspec.json.decode(body)
    del event["key"]
    return _encoder.encode(event)


def canonical(value: Any, most: int, what: str = "the output") -> bytes:
    """A value as JSON with sorted keys. Raises AgentError for what is not JSON, is nested too deeply, or is larger than
    `most` bytes."""
    try:
        text = _canonical_encoder.encode(value)
        suspect = value is not None and b"null" in text
        if len(text) <= most and (suspect or text.count(b"[") + text.count(b"{") > DEEPEST):
            _refuse_odd(msgspec.to_builtins(value, enc_hook=plain), what)
    except (TypeError, ValueError, RecursionError) as error:
        # The encoder's own message is about its options.
        why = "a key of an object is not text: use text" if "str keys" in str(error) else error
        raise AgentError(f"{what} is not JSON: {why}") from error
    if len(text) > most:
        raise AgentError(f"{what} has {len(text):,} bytes, at most {most:,} are allowed: write files instead")
    return text


def _refuse_odd(value: Json, what: str) -> None:
    """Refuse numbers that JSON cannot represent (they would silently become null) and values that are nested too
    deeply."""
    rest: list[tuple[str, int, Json]] = [("", 0, value)]
    while rest:
        where, depth, each = rest.pop()
        if isinstance(each, float) and not isfinite(each):
            raise AgentError(f"{what} has {each} at {where or 'its root'}: JSON has no such number; use null or text")
        if depth == DEEPEST and isinstance(each, dict | list | tuple):
            raise AgentError(f"{what} is nested more than {DEEPEST} levels deep: write a file instead")
        if isinstance(each, dict):
            rest += [(f"{where}/{key}", depth + 1, inner) for key, inner in each.items()]
        elif isinstance(each, list | tuple):
            rest += [(f"{where}/{index}", depth + 1, inner) for index, inner in enumerate(each)]


def copied(value: Json) -> Json:
    """A copy of a JSON value that its reader may change."""
    return msgspec.to_builtins(value)


def plain(value: Any) -> Json:
    """A value of a type that the encoder does not know, as JSON. Raises TypeError."""
    if isinstance(value, PurePath):
        return str(value)
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is not JSON, a pydantic model or a dataclass")
    return dump(mode="json")


_canonical_encoder = msgspec.json.Encoder(enc_hook=plain, order="sorted")


def digest_of(text: bytes) -> str:
    return sha256(text).hexdigest()


def describe_output(text: bytes, before: Json, has_before: bool) -> tuple[OutputDigest, dict[str, bytes]]:
    """An output as an attempt reports it, with the payload to store if it is large."""
    value = msgspec.json.decode(text)
    digest = digest_of(text)
    large = len(text) > INLINE
    made = OutputDigest(
        digest=digest,
        output=None if large else value,
        payload=digest if large else None,
        size=len(text),
        changed=changes(before, value) if has_before else (),
    )
    return made, {digest: text} if large else {}


def parts_of(value: Json, pointers: Sequence[str]) -> dict[str, str]:
    """Digests of the parts of an output that consumers read."""
    return {pointer: digest_of(msgspec.json.encode(part(value, pointer), order="sorted")) for pointer in pointers}


def values_for_rules(value: Json, pointers: Sequence[str]) -> dict[str, Json]:
    """The values at these pointers, for the rules to decide on. Raises AgentError if one is too large."""
    found = dict(values_at(value, tuple(pointers))) if pointers else {}
    for pointer, each in found.items():
        size = len(msgspec.json.encode(each))
        if size > LONGEST_VALUE:
            raise AgentError(
                f"the value at {pointer or 'the whole output'} has {size:,} bytes, and a condition, check or gate refers "
                f"to it: at most {LONGEST_VALUE:,} are allowed; refer to a smaller part"
            )
    return found
