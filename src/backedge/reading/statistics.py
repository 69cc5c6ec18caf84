"""The statistics of all runs of a journal."""

from __future__ import annotations

from collections.abc import AsyncIterator

from backedge.analytics.facts import RunFacts
from backedge.analytics.run_facts import run_facts
from backedge.analytics.stats import Stats, Tally
from backedge.core.errors import NotFound
from backedge.core.suggestions import did_you_mean
from backedge.engine.store import events_of
from backedge.ports import Journal, RunHead


async def statistics(
    journal: Journal, run: str | None = None, workflow: str | None = None, since: float | None = None
) -> Stats:
    """The statistics of all runs, of one, of those of a workflow, or of those that started since a time. Raises NotFound for
    an unknown workflow."""
    tally = Tally()
    async for facts in _facts(journal, await _heads(journal, run, workflow), since):
        tally.add(facts)
    return tally.stats()


async def _heads(journal: Journal, run: str | None, workflow: str | None) -> list[RunHead]:
    """The runs to count. Raises NotFound for an unknown name."""
    heads = list(await journal.runs())
    if run is not None:
        heads = [head for head in heads if head.run == run]
    if workflow is not None:
        names = {head.workflow for head in heads}
        if workflow not in names:
            raise NotFound(
                f"there is no run of workflow {workflow!r}: {did_you_mean(workflow, sorted(names)) if names else 'none yet'}"
            )
        heads = [head for head in heads if head.workflow == workflow]
    return heads


async def _facts(journal: Journal, heads: list[RunHead], since: float | None) -> AsyncIterator[RunFacts]:
    """The facts of each run, one after the other, so that only one run is in memory."""
    for head in heads:
        events = await events_of(journal, head.run)
        if since is not None and events[0].at < since:
            continue
        facts = run_facts(events)
        if facts is not None:
            yield facts
