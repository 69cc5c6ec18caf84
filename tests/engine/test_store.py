"""Between the rules and the journal: decisions as entries, and runs that are read once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from backedge import Engine, MemoryJournal, Step
from backedge.core import events as e
from backedge.engine.codec import decode_events, encode_events, put_back, set_aside_in
from backedge.engine.store import open_escalations
from backedge.ports import Record
from tests.engine.parts import flow, play


def test_a_key_is_part_of_every_event_and_events_without_one_stay_as_they_were() -> None:
    events = [e.AnswerGiven(1.0, "L-1", "a", "short"), e.AnswerGiven(1.0, "L-1", "a", "long " * 2_000)]
    plain, large = encode_events(events)
    keyed, same = encode_events(events, 'decision "7"')
    assert same == large
    assert len(large) == 1
    for body, before in zip(keyed, plain, strict=True):
        told = json.loads(body)
        assert told.pop("key") == 'decision "7"'
        assert told == json.loads(before)
        assert b"key" not in before
    records = [
        Record(seq, put_back(body, large) if set_aside_in(body) else body, "") for seq, body in enumerate(keyed, 1)
    ]
    assert decode_events(records) == events


def test_a_run_that_is_read_several_times_is_loaded_once() -> None:
    class Counting(MemoryJournal):
        reads: list[int]

        async def read(self, run: str, after: int = 0) -> Sequence[Record]:
            self.reads.append(after)
            return await super().read(run, after)

    def breaks(briefing: object) -> None:
        raise OSError("no")

    async def scenario() -> None:
        journal = Counting()
        journal.reads = []
        async with Engine(journal) as engine:
            work = flow(Step("a", breaks), limits={"errors_in_a_row": 1})
            await (await engine.start(work, run="r")).result()
        journal.reads = []
        async with Engine(journal) as engine:
            run = await engine.find("r")
            assert open_escalations(await run.state()) == ("E-1",)
            await run.decide("E-1", "cancel")
            assert (await run.report()).outcome == "cancelled"
            assert (await run.state()).ended is not None
        assert journal.reads.count(0) == 2, "the state, and the events for the history of its errors"
        assert list(await journal.open_escalations()) == []

    play(scenario())
