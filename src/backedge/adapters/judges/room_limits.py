"""What a tool could not do in its room although it could do it outside, found in what it reported and printed."""

from __future__ import annotations

from collections.abc import Iterator

from backedge.adapters.judges.judge_program import PartResult

_NOT_RENAMED = ("Invalid cross-device link", "cross-device link not permitted", "EXDEV")


def room_limits(part: PartResult) -> Iterator[str]:
    """A hint for people: a producer cannot fix what only the room forbids."""
    outcome = part.reading.outcome
    if part.room not in ("overlay", "copy") or outcome.verdict == "pass":
        return
    said = part.log.decode("utf-8", "replace") + "".join(
        f"{each.description}{each.evidence}" for each in outcome.findings
    )
    if any(words in said for words in _NOT_RENAMED):
        yield (
            "the room may be why it fails: folders that were there before cannot be renamed in a room; rename new "
            "folders only, or set `room: off`"
        )
