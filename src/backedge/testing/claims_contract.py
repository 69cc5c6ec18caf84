"""Tests that every implementation of claims must pass; part of the journal contract."""

from __future__ import annotations

import asyncio

import pytest

from backedge.core.errors import JournalConflict, RunHeld, RunLost
from backedge.ports import Append, Claim, JournalWithClaims

SOON = 5.0
"""Seconds in which a hint has to arrive on a loaded machine; on an idle one it takes milliseconds."""


class ClaimsContract:
    """The tests. The fixture `journal` gives each one something that holds no claim yet, and `other` a second instance of
    the same journal, as another process would open it."""

    async def take_over(self, other: JournalWithClaims, run: str) -> Claim:
        """Take a run through `other` that `journal` has claimed, as another machine would when the first is cut off.

        Override it if claims of your journal can be lost while their process lives, as with leases.
        """
        pytest.skip("claims of this journal are not lost while their process lives")

    def test_a_claimed_run_is_refused_to_others_until_it_is_released(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            claim = await journal.claim("r")
            assert claim.run == "r"
            with pytest.raises(RunHeld, match="'r'") as refusal:
                await journal.claim("r")
            assert refusal.value.holder
            assert refusal.value.holder == await journal.holder("r")
            second = await journal.claim("other")
            await journal.release(claim)
            await journal.release(await journal.claim("r"))
            await journal.release(second)

        asyncio.run(scenario())

    def test_a_claimed_run_is_refused_to_another_instance(
        self, journal: JournalWithClaims, other: JournalWithClaims
    ) -> None:
        async def scenario() -> None:
            claim = await journal.claim("r")
            assert await other.holder("r")
            with pytest.raises(RunHeld, match="'r'"):
                await other.claim("r")
            assert await journal.holds(claim)
            await journal.release(claim)
            assert not await journal.holds(claim)
            assert await other.holds(await other.claim("r"))

        asyncio.run(scenario())

    def test_a_run_says_who_holds_it_and_asking_changes_nothing(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            assert await journal.holder("r") is None
            claim = await journal.claim("r")
            assert await journal.holder("r")
            assert await journal.holder("other") is None
            with pytest.raises(RunHeld):
                await journal.claim("r")
            await journal.release(claim)
            assert await journal.holder("r") is None

        asyncio.run(scenario())

    def test_releasing_what_is_not_held_does_nothing(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            first = await journal.claim("r")
            await journal.release(first)
            await journal.append(Append("r", 0, (b"{}",)))
            second = await journal.claim("r")
            await journal.append(Append("r", 1, (b"{}",), fence=second.fence))
            await journal.release(first)
            assert await journal.holds(second), "an old claim gives nothing back"
            await journal.release(second)
            await journal.release(second)
            assert await journal.holder("r") is None

        asyncio.run(scenario())

    def test_a_thousand_claims_are_possible(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            claims = [await journal.claim(f"run-{number}") for number in range(1000)]
            with pytest.raises(RunHeld):
                await journal.claim("run-500")
            for claim in claims:
                await journal.release(claim)

        asyncio.run(scenario())

    def test_an_entry_under_an_old_claim_is_refused(self, journal: JournalWithClaims, other: JournalWithClaims) -> None:
        async def scenario() -> None:
            old = await journal.claim("r")
            await journal.append(Append("r", 0, (b"{}",), fence=old.fence))
            await journal.release(old)
            new = await other.claim("r")
            with pytest.raises(RunLost, match="'r'"):
                await journal.append(Append("r", 1, (b"{}",), fence=old.fence))
            await other.append(Append("r", 1, (b"{}",), fence=new.fence))
            assert new.fence > old.fence
            for late in (1, 2):  # whether or not it knows how far the run has come
                with pytest.raises(RunLost):
                    await journal.append(Append("r", late, (b"{}",), fence=old.fence))
            with pytest.raises(JournalConflict):
                await other.append(Append("r", 1, (b"{}",), fence=new.fence))
            await journal.append(Append("r", 2, (b"{}",)))  # outsiders need no claim
            assert len(await other.read("r")) == 3

        asyncio.run(scenario())

    def test_a_claim_that_was_taken_over_is_lost_and_its_holder_is_told(
        self, journal: JournalWithClaims, other: JournalWithClaims
    ) -> None:
        async def scenario() -> None:
            lost: list[Claim] = []
            notified = asyncio.Event()

            def listener(claim: Claim) -> None:
                lost.append(claim)
                notified.set()

            journal.on_lost(listener)
            old = await journal.claim("r")
            kept = await journal.claim("kept")
            await journal.append(Append("r", 0, (b"{}",), fence=old.fence))
            new = await self.take_over(other, "r")
            assert new.fence > old.fence
            await other.append(Append("r", 1, (b"{}",), fence=new.fence))
            await asyncio.wait_for(notified.wait(), SOON)
            assert set(lost) == {old}
            assert (await journal.holds(old), await other.holds(new), await journal.holds(kept)) == (False, True, True)
            with pytest.raises(RunLost):
                await journal.append(Append("r", 2, (b"{}",), fence=old.fence))
            await journal.release(old)
            assert await other.holds(new)
            assert len(await other.read("r")) == 2

        asyncio.run(scenario())
