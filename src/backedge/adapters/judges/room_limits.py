"""What a tool could not do in its room although it could do it outside, found in what it reported and printed."""

from __future__ import annotations

from collections.abc import Iterator

from backedge.adapters.judges.judge_program import PartResult, cannot_rename


def room_limits(part: PartResult) -> Iterator[str]:
    """A hint for people: a producer cannot fix what only the room forbids."""
    if cannot_rename(part):
        yield (
            "the room may be why it fails: folders that were there before cannot be renamed in an overlay; rename new "
            "folders only, or set `room: auto`"
        )
