"""Prices of models: what an attempt costs whose agent reports tokens and no cost."""

from __future__ import annotations

from backedge.core.value import Value

PER = 1_000_000
"""Prices are for so many tokens."""


class Price(Value, frozen=True):
    """What a model costs, in US dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None = None
    """For input that was read from a cache; None means the same as other input."""


def cost_of(price: Price, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
    """The cost of these tokens, of which `cached` are part of `tokens_in`."""
    cached = min(cached, tokens_in)
    cached_price = price.input if price.cached_input is None else price.cached_input
    return ((tokens_in - cached) * price.input + cached * cached_price + tokens_out * price.output) / PER
