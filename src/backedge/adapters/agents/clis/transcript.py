"""The messages of an agent CLI while it works, as text: its stream is JSON, which is hard to read."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from backedge.adapters.agents.clis.cli import Event
from backedge.adapters.agents.clis.folder import CliFolder
from backedge.adapters.agents.clis.registry import CLIS
from backedge.core.model import Usage


def cli_of(folder: CliFolder) -> str | None:
    """The CLI of the attempt; None if it is a command."""
    name = folder.begun.cli
    return name if name in CLIS else None


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
