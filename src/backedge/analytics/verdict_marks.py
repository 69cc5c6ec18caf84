"""What a verdict says about a finding, in one short word, for tables of findings and verdicts."""

from __future__ import annotations

MARKS = {
    "open": "new",
    "not_fixed": "still",
    "regressed": "back",
    "unconfirmed": "?",
    "deferred": "later",
    "withdrawn": "drawn",
    "duplicate": "same",
    "contested": "denied",
    "accepted": "ok",
    "rolled_back": "undone",
}
"""Others are shown as they are."""
LEGEND = {"?": "not mentioned, so not confirmed as fixed", "·": "not asked about"}
BAD = frozenset({"open", "not_fixed", "regressed", "contested"})
"""The statuses with which work goes on."""
GOOD = frozenset({"fixed", "withdrawn", "duplicate"})
