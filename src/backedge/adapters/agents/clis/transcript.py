"""The messages of an agent CLI while it works, as text: its stream is JSON, which is hard to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from backedge.adapters.agents.clis.cli import Event
from backedge.adapters.agents.clis.folder import CliFolder
from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.agents.clis.tool_calls import DENIED_LINE
from backedge.core.model import Usage

CONTEXT = 4
"""How many events before a piece are read with it."""


def cli_of(folder: CliFolder) -> str | None:
    """The CLI of the attempt; None if it is a command."""
    name = folder.begun.cli
    return name if name in CLIS else None


class Transcript:
    """The transcript of a stream that is read piece by piece, while it grows."""

    def __init__(self, cli: str) -> None:
        self._cli = cli
        self._last: list[bytes] = []
        """The end of the piece before: a denial names its call, which may be there."""
        self._denied: set[str] = set()

    def lines(self, piece: Sequence[bytes]) -> Iterator[str]:
        known = len(transcript_lines(self._cli, self._last))
        found = transcript_lines(self._cli, [*self._last, *piece])[known:]
        # Gemini joins the parts of a message: there, a piece is read on its own.
        self._last = [*self._last, *piece][-CONTEXT:] if self._cli != "gemini" else []
        for line in found:
            # A denial is reported when it happens, and again at the end.
            if not line.startswith(DENIED_LINE):
                yield line
            elif line not in self._denied:
                self._denied.add(line)
                yield line


def transcript_lines(cli: str, lines: Iterable[bytes]) -> list[str]:
    """Lines of a CLI's stream as text: its messages and tool calls, one line each."""
    events: list[Event] = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            event = msgspec.json.decode(line)
            if isinstance(event, dict):
                events.append(event)
    return [
        line for each in CLIS[cli].read(events, "", Usage()).transcript for line in each.splitlines() if line.strip()
    ]
