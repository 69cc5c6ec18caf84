"""What tokens cost."""

from __future__ import annotations

import pytest

from backedge.core.prices import Price, cost_of


@pytest.mark.parametrize(
    ("price", "cached", "cost"),
    [
        (Price(2, 10), 0, 2 + 5),
        (Price(2, 10), 500_000, 2 + 5),
        (Price(2, 10, 0.2), 500_000, 1 + 0.1 + 5),
        (Price(2, 10, 0), 1_000_000, 5),
        (Price(2, 10, 0), 9_000_000, 5),
    ],
)
def test_the_cost_of_a_million_tokens_in_and_half_a_million_out(price: Price, cached: int, cost: float) -> None:
    assert cost_of(price, 1_000_000, 500_000, cached) == pytest.approx(cost)
