"""Which large values an event names. They are stored beside the events, by their digests."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class _Made(msgspec.Struct):
    payload: str | None = None


class _Names(msgspec.Struct):
    """The fields of events that name a large value. All other fields are ignored."""

    input_payload: str | None = None
    files: dict[str, str] = {}
    log: str | None = None
    made: _Made | None = None


_decoder = msgspec.json.Decoder(_Names)


def payloads_of(body: bytes) -> Iterator[str]:
    """The digests of the large values that an event, given as JSON text, names; empty for text that is not an event."""
    try:
        names = _decoder.decode(body)
    except msgspec.DecodeError:
        return
    for digest in (names.input_payload, *names.files.values(), names.made.payload if names.made else None, names.log):
        if digest is not None:
            yield digest
