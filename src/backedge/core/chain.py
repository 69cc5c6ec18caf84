"""The hash chain of a run: each link covers its event and, through the link before it, all earlier events.

It shows whether an event was changed, dropped or reordered, unless every later link was recomputed too. Keep the last
link somewhere else to detect even that.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256


def genesis(run: str) -> str:
    """The link before the first event. It contains the run id, so that events cannot be moved between runs."""
    return sha256(b"backedge:" + run.encode()).hexdigest()


def link(previous: str, body: bytes) -> str:
    return sha256(previous.encode() + body).hexdigest()


def links(previous: str, bodies: Iterable[bytes]) -> list[str]:
    """The links of several events that follow `previous`."""
    result = []
    for body in bodies:
        previous = link(previous, body)
        result.append(previous)
    return result
