"""The prices of models in a workflow file, and whether a `cost_usd` limit can be reached at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backedge.catalog import TOKENS_ONLY
from backedge.config.agents import AgentSpec
from backedge.config.source import Source
from backedge.core.prices import Price
from backedge.core.value import Json


def prices_of(value: Mapping[str, Json]) -> dict[str, Price]:
    """The prices by model, of a file whose shape was checked."""
    return {
        model: Price(float(each["input"]), float(each["output"]), _number(each.get("cached_input")))
        for model, each in value.get("prices", {}).items()
    }


def _number(value: Json) -> float | None:
    return None if value is None else float(value)


def check_costs(source: Source, agents: Iterable[AgentSpec], prices: Mapping[str, Price]) -> None:
    """Refuse a `cost_usd` limit that nothing can reach, because no agent reports what it costs; warn if only some do."""
    limit = source.value.get("limits", {}).get("cost_usd")
    if limit is None or limit is False:
        return
    paid = [agent for agent in agents if agent.kind != "human"]
    uncounted = [agent for agent in paid if _uncounted(agent, prices)]
    if not uncounted:
        return
    agent = uncounted[0]
    names = ", ".join(dict.fromkeys(each.name for each in uncounted))
    model = agent.model or agent.cli
    instead = f"add its price (`prices: {{{model}: {{input: …, output: …}}}}`), or use limits.tokens"
    if len(uncounted) == len(paid):
        source.refuse(("limits", "cost_usd"), f"nothing can reach it: {names} reports tokens and no cost; {instead}")
    else:
        source.warn(("limits", "cost_usd"), f"does not count {names}, which reports tokens and no cost: {instead}")


def _uncounted(agent: AgentSpec, prices: Mapping[str, Price]) -> bool:
    return agent.kind == "cli" and agent.cli in TOKENS_ONLY and not prices.keys() & {agent.model, agent.cli}
