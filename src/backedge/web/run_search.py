"""Finds runs by a word, an outcome and a workflow, page by page, without reading their events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backedge.ports import Journal, RunHead

OUTCOMES = ("running", "waiting", "verified", "done", "accepted", "failed", "cancelled", "imported")
AT_ONCE = 200
"""How many heads are read at once."""
SCANNED = 2_000
"""How many runs one search looks at. A page that ends there has a cursor for the rest."""


@dataclass(frozen=True)
class RunSearch:
    """What to search for. The word is part of the id or of the workflow, in any case."""

    outcome: str | None = None
    workflow: str | None = None
    word: str = ""
    cursor: str | None = None
    """The run after which to begin."""

    def fits(self, head: RunHead) -> bool:
        folded = self.word.casefold()
        return (
            (self.outcome is None or head.outcome == self.outcome)
            and (self.workflow is None or head.workflow == self.workflow)
            and (not folded or folded in head.run.casefold() or folded in head.workflow.casefold())
        )


async def search_runs(journal: Journal, wanted: RunSearch, limit: int) -> tuple[list[RunHead], str | None]:
    """The newest runs that fit, and the cursor for more; None if there are no more."""
    found: list[RunHead] = []
    after, looked, more = wanted.cursor, 0, True
    while more and len(found) < limit and looked < SCANNED:
        heads: Sequence[RunHead] = await journal.runs(AT_ONCE, after)
        more, looked = len(heads) == AT_ONCE, looked + len(heads)
        for place, head in enumerate(heads):
            after = head.run
            if wanted.fits(head):
                found.append(head)
                if len(found) == limit:
                    more = more or place + 1 < len(heads)
                    break
    return found, after if more else None
