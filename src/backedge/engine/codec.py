"""Events as JSON text and back; outputs as canonical JSON with their digests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
from backedge.engine.large import INLINE, set_aside, set_aside_in
from backedge.ports import Record

LONGEST_VALUE = 65_536
"""Bytes of a value that a condition, a check or a gate refers to: it stands in the event."""
DEEPEST = 200
"""Levels of lists and objects inside each other that a value may have: every reader of JSON can follow these."""

_TAG = re.compile(rb'\{"type":"([a-z_]+/\d+)"')
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_events(events: Iterable[Event], key: str | None = None) -> tuple[tuple[bytes, ...], dict[str, bytes]]:
    """Events as JSON, and the large values in them by their digests, to be stored beside. With a key, each event carries
    it as its first member, or its second after `large`."""
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
    """The events of records that are whole, as `stored.records_of` gives them. Raises JournalTooNew or JournalDamaged,
    naming the event, for what is no event."""
    events = []
    for record in records:
        try:
            events.append(_decode(record.body))
        except msgspec.ValidationError as error:
            raise JournalTooNew(
                f"event {record.seq} is not one that this version knows ({error}): it was written by a newer backedge; "
                "upgrade this one"
            ) from error
        except msgspec.DecodeError as error:
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
        # The encoder says it in terms of its own options.
        why = "a key of an object is not text: use text" if "str keys" in str(error) else error
        raise AgentError(f"{what} is not JSON: {why}") from error
    if len(text) > most:
        raise AgentError(f"{what} has {len(text):,} bytes: at most {most:,} are kept; write files instead")
    return text


def _refuse_odd(value: Json, what: str) -> None:
    """Refuse numbers that JSON does not have (they would silently become null), and what is nested too deeply."""
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
            rest += [(f"{where}/{place}", depth + 1, inner) for place, inner in enumerate(each)]


def copied(value: Json) -> Json:
    """A JSON value of its own: whoever gets it may change it, and nobody else sees that."""
    return msgspec.to_builtins(value)


def plain(value: Any) -> Json:
    """A value that the encoder does not know, as it can be written. Raises TypeError."""
    if isinstance(value, PurePath):
        return str(value)
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is not JSON, a pydantic model or a dataclass")
    return dump(mode="json")


_canonical_encoder = msgspec.json.Encoder(enc_hook=plain, order="sorted")


def digest_of(text: bytes) -> str:
    return sha256(text).hexdigest()


def describe_output(
    text: bytes, before: Json, has_before: bool, pointers: Sequence[str], values: Sequence[str] = ()
) -> tuple[OutputDigest, dict[str, bytes]]:
    """An output as an attempt reports it, with the payload to store if it is large."""
    value = msgspec.json.decode(text)
    digest = digest_of(text)
    large = len(text) > INLINE
    made = OutputDigest(
        digest=digest,
        output=None if large else value,
        payload=digest if large else None,
        size=len(text),
        parts=parts_of(value, pointers),
        changed=changes(before, value) if has_before else (),
        values=values_for_rules(value, values),
    )
    return made, {digest: text} if large else {}


def parts_of(value: Json, pointers: Sequence[str]) -> dict[str, str]:
    """Digests of the parts of an output that consumers read."""
    return {pointer: digest_of(msgspec.json.encode(part(value, pointer), order="sorted")) for pointer in pointers}


def values_for_rules(value: Json, pointers: Sequence[str]) -> dict[str, Json]:
    """The values at these places, for the rules to decide on. Raises AgentError for one that is too large."""
    found = dict(values_at(value, tuple(pointers))) if pointers else {}
    for pointer, each in found.items():
        size = len(msgspec.json.encode(each))
        if size > LONGEST_VALUE:
            raise AgentError(
                f"the value at {pointer or 'the whole output'} has {size:,} bytes, and a condition, check or gate refers "
                f"to it: at most {LONGEST_VALUE:,} are looked at; refer to a smaller part"
            )
    return found
