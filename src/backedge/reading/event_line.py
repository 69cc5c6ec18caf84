"""A stored event as programs read it."""

from __future__ import annotations

import msgspec

from backedge.core.errors import JournalDamaged
from backedge.core.text import escaped
from backedge.engine.codec import set_aside_in
from backedge.engine.store import whole
from backedge.ports import Journal, Record


async def event_line(journal: Journal, run: str, record: Record) -> bytes:
    """A stored event as a line of JSON, with its number, its link, its large values and their digests, which the link
    covers."""
    names = set_aside_in(record.body)
    more = {"large": names} if names else {}
    head = msgspec.json.encode({"seq": record.seq, "run": run, "link": record.link, **more})
    body = (await whole(journal, record)).body
    if record.seq == 1:  # the first event names the run itself
        body = body.replace(b'"run":' + msgspec.json.encode(run) + b",", b"", 1)
    try:
        return escaped(head[:-1] + b"," + body[1:])
    except UnicodeDecodeError as error:
        raise JournalDamaged(
            f"event {record.seq} of run {run!r} is damaged: got {error.object[error.start : error.end]!r}, expected text "
            "in UTF-8; restore a backup"
        ) from error


def stored_line(run: str, record: Record) -> bytes:
    """The same without its large values, for those who want many events: `large` has their digests."""
    head, body = msgspec.json.encode({"seq": record.seq, "run": run, "link": record.link}), record.body
    if record.seq == 1:  # the first event names the run itself
        body = body.replace(b'"run":' + msgspec.json.encode(run) + b",", b"", 1)
    return escaped(head[:-1] + b"," + body[1:])
