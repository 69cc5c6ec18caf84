"""A number or another value from a JSON report in the workspace, for a gate."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from backedge.adapters.agents.outcome import require_unique_keys
from backedge.adapters.agents.regular_file import opened
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.value import Json
from backedge.core.workflow.values import Missing, value_at
from backedge.engine.protocol import Outcome
from backedge.ports import Attempt

MOST = 64 * 1024 * 1024
"""Bytes of a report that are read."""


class ReportValue:
    """Reads one value of a report file, each time it is called. What a judge left there counts, whatever others write."""

    def __init__(
        self, folder: Path, report: str, pointer: str, left: Callable[[str, str], bytes | None] = lambda *_: None
    ) -> None:
        """`left` gives a report of a run as a judge left it; None if no judge writes it."""
        self._folder, self._report, self._pointer, self._left = folder.absolute(), report, pointer, left

    async def work(self, briefing: Briefing, attempt: Attempt) -> Outcome:  # noqa: ARG002 - it has no outcome of its own
        return Outcome(await asyncio.to_thread(self._value, briefing.run))

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:  # noqa: ARG002 - it takes no inputs
        return ()

    def _content(self, run: str) -> bytes:
        left = self._left(run, self._report)
        if left is not None:
            return left
        home = os.path.realpath(self._folder)
        path = os.path.realpath(os.path.join(home, self._report))
        if not path.startswith(home.rstrip(os.sep) + os.sep):
            raise AgentError(f"the report {self._report!r} leaves the workspace: use a path inside it")
        try:
            with opened(path) as file:
                return file.read(MOST + 1)
        except OSError as error:
            why = error.strerror or str(error)
            raise AgentError(
                f"the report {self._report!r} cannot be read: {why}; a step has to write it, and a judge "
                "that writes it has to name it in its `keeps`"
            ) from error

    def _value(self, run: str) -> Json:
        data = self._content(run)
        if len(data) > MOST:
            raise AgentError(f"the report {self._report!r} has more than {MOST:,} bytes: write a smaller one")
        try:
            whole = json.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise AgentError(f"the report {self._report!r} is not JSON: {error}") from error
        require_unique_keys(data, f"the report {self._report!r}")
        value = value_at(whole, self._pointer)
        if isinstance(value, Missing):
            raise AgentError(f"the report {self._report!r} has nothing at {self._pointer}: correct the path")
        return value
