"""The checks and gates of a file: the commands that compare, and the reports that are read."""

from __future__ import annotations

from backedge.config.agents import AgentSpec, warn_of_misspelt_placeholders
from backedge.config.problems import quoted
from backedge.config.source import Source
from backedge.config.steps import leaves


def comparing_agents(source: Source) -> dict[str, AgentSpec]:
    """The commands that checks use to compare values, by the names of the checks. A gate's report outside the folder of
    the file is refused."""
    found: dict[str, AgentSpec] = {}
    for name, given in source.value.get("checks", {}).items():
        run = given.get("compatible", {}).get("run", ())
        if run:
            trail = ("checks", name, "compatible", "run")
            words = tuple(source.written((*trail, index), word) for index, word in enumerate(run))
            warn_of_misspelt_placeholders(source, trail, words)
            found[name] = AgentSpec(name, "command", run=words)
    for name, given in source.value.get("gates", {}).items():
        metric = given["metric"]
        if isinstance(metric, dict) and leaves(metric["report"]):
            why = f"got {quoted(metric['report'])}, which leaves the folder of this file: use a path inside it"
            source.refuse(("gates", name, "metric", "report"), why)
    return found
