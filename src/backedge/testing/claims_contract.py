"""What everything that keeps claims must do, as tests; part of the journal contract."""

from __future__ import annotations

import pytest

from backedge.core.errors import RunHeld
from backedge.ports import Claims


class ClaimsContract:
    """The tests. The fixture `journal` gives each one something that holds no claim yet."""

    def test_a_claimed_run_is_refused_to_others_until_it_is_released(self, journal: Claims) -> None:
        journal.claim("r")
        with pytest.raises(RunHeld, match="'r'") as refusal:
            journal.claim("r")
        assert refusal.value.holder
        assert refusal.value.holder == journal.holder("r")
        journal.claim("other")
        journal.release("r")
        journal.claim("r")
        journal.release("r")
        journal.release("other")

    def test_a_run_says_who_holds_it_and_asking_changes_nothing(self, journal: Claims) -> None:
        assert journal.holder("r") is None
        journal.claim("r")
        assert journal.holder("r")
        assert journal.holder("other") is None
        with pytest.raises(RunHeld):
            journal.claim("r")
        journal.release("r")
        assert journal.holder("r") is None

    def test_releasing_what_is_not_held_does_nothing(self, journal: Claims) -> None:
        journal.release("r")
        journal.claim("r")
        journal.release("r")
        journal.release("r")
        journal.claim("r")
        journal.release("r")

    def test_a_thousand_claims_are_possible(self, journal: Claims) -> None:
        names = [f"run-{number}" for number in range(1000)]
        for name in names:
            journal.claim(name)
        with pytest.raises(RunHeld):
            journal.claim("run-500")
        for name in names:
            journal.release(name)
