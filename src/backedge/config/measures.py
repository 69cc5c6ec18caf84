"""The checks and gates of a file: who compares, and which reports are read."""

from __future__ import annotations

from backedge.config.agents import AgentSpec, look_at_placeholders
from backedge.config.problems import quoted
from backedge.config.source import Source
from backedge.config.steps import leaves


def comparing_agents(source: Source) -> dict[str, AgentSpec]:
    """The commands that compare what checks refer to, by the names of the checks. A report outside the folder of the
    file is refused."""
    found: dict[str, AgentSpec] = {}
    for name, given in source.value.get("checks", {}).items():
        run = given.get("compatible", {}).get("run", ())
        if run:
            trail = ("checks", name, "compatible", "run")
            words = tuple(source.written((*trail, place), word) for place, word in enumerate(run))
            look_at_placeholders(source, trail, words)
            found[name] = AgentSpec(name, "command", run=words)
    for name, given in source.value.get("gates", {}).items():
        metric = given["metric"]
        if isinstance(metric, dict) and leaves(metric["report"]):
            why = f"got {quoted(metric['report'])}, which leaves the folder of this file: use a path inside it"
            source.refuse(("gates", name, "metric", "report"), why)
    return found
