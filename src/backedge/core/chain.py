"""The hash chain of a run: each link covers its event and, through the link before, all that came earlier.

Whoever changes, drops or reorders an event without recomputing every later link is found out; whoever recomputes
them is found out by a head that was kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256


def genesis(run: str) -> str:
    """The link before the first event: it ties the chain to its run, so that events cannot move between runs."""
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
