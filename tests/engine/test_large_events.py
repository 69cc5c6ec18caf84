"""Long texts of people and agents: stored once, outside the events, and read back unchanged."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge import Attempt, Briefing, Engine, Feedback, Finding, MemoryJournal, Report, Step, failed, passed
from backedge.adapters.journals.audit import verify, verify_all
from backedge.adapters.journals.pruning import prune_payloads
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core import events as e
from backedge.core.chain import genesis, link
from backedge.core.errors import JournalDamaged, JournalTooNew
from backedge.core.feedback.loop import LoopState
from backedge.core.model import OutputDigest, Resolution
from backedge.engine.codec import INLINE, decode_events, encode_events, put_back, set_aside_in
from backedge.engine.store import events_of
from backedge.ports import Append, Record
from backedge.reading.event_line import event_line
from backedge.testing import ScriptedAgent
from tests.core.strategies import effort
from tests.engine.parts import flow, only, play

LONG = "a line of what was said\n" * 600
"""14 KB."""


def written_and_read(event: e.Event) -> tuple[bytes, dict[str, bytes]]:
    """An event as it is stored, after checking that it is read back byte for byte."""
    [body], payloads = encode_events([event])
    if payloads:
        assert put_back(body, payloads) == msgspec.json.encode(event)
    else:
        assert body == msgspec.json.encode(event)
    return body, payloads


words = st.sampled_from(["", "x", "a/b", "~", "~1", "0", "ключ", "long" * 50])
texts = st.one_of(words, st.integers(0, 9_000).map(lambda size: "é" * size))
values = st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=40), st.dictionaries(words, inner, max_size=8)),
    max_leaves=60,
)


@effort(150)
@given(st.dictionaries(words, values, max_size=4), texts)
def test_every_event_is_read_back_as_it_was_written(answers: dict[str, Any], text: str) -> None:
    for event in (
        e.AnswerGiven(1.0, "L-1", "plan", answers),
        e.LoopClosed(2.0, "L-1", LoopState.RESOLVED, Resolution("resolved", text=text, answers=answers)),
        e.ValueSet(3.0, "a.b", answers),
        e.AttemptSucceeded(4.0, "plan", 1, OutputDigest("d", values=answers), summary=text),
    ):
        body, payloads = written_and_read(event)
        fields = len(event.__struct_fields__) + len(OutputDigest.__struct_fields__)
        assert len(body) <= INLINE * fields
        assert all(len(value) > INLINE for value in payloads.values())


def test_the_same_answer_in_several_events_is_stored_once() -> None:
    answer = {"text": LONG, "more": [LONG + "!", 1]}
    _, told = written_and_read(e.AnswerGiven(1.0, "L-1", "plan", answer))
    _, closed = written_and_read(
        e.LoopClosed(2.0, "L-1", LoopState.RESOLVED, Resolution("resolved", answers={"plan": answer}))
    )
    assert set(told) == set(closed)
    assert len(told) == 2


def test_a_value_of_many_small_parts_is_taken_out_as_a_whole() -> None:
    many = {f"name {n}": n for n in range(1_000)}
    body, payloads = written_and_read(e.AnswerGiven(1.0, "L-1", "plan", {"many": many, "few": 1}))
    assert list(payloads.values()) == [msgspec.json.encode(many)]
    assert body.startswith(b'{"large":{"/answer/many":"')


def test_a_value_that_is_nested_very_deeply_is_taken_out_as_a_whole() -> None:
    deep: Any = LONG
    for _ in range(190):
        deep = [deep]
    body, payloads = written_and_read(e.ValueSet(1.0, "a", deep))
    assert len(payloads) == 1
    assert len(body) < 300


def test_a_small_event_is_stored_as_it_is() -> None:
    text = "x" * (INLINE - 100)
    body, payloads = written_and_read(e.AnswerGiven(1.0, "L-1", "plan", text))
    assert (payloads, set_aside_in(body)) == ({}, {})
    assert set_aside_in(b'{"large":7}') == {}, "not one of ours"


def test_an_older_version_says_that_it_needs_a_newer_one() -> None:
    [body], _ = encode_events([e.AnswerGiven(1.0, "L-1", "plan", LONG)])
    with pytest.raises(JournalTooNew, match="unknown field `large`"):
        decode_events([Record(1, body, "")])


def test_a_large_value_without_a_place_in_its_event_is_damage() -> None:
    for pointer in ("/nowhere/else", "/answer/0", ""):
        body = msgspec.json.encode({"large": {pointer: "d"}, "type": "answer_given/1", "answer": None})
        with pytest.raises(JournalDamaged, match=r"names the large value d at .*, which does not exist in it"):
            put_back(body, {"d": b"1"})


# A run in which everybody speaks at length


async def asks(briefing: Briefing, attempt: Attempt) -> object:
    asked = Feedback("context_request", "plan", "which?", details={"log": LONG})
    told = await attempt.wait_for(await attempt.raise_feedback(asked))
    return told.answers["plan"]["text"] == LONG


def plans(briefing: Briefing) -> object:
    return {"text": LONG, "n": 1} if briefing.mode == "answer" else "plan"


async def spoken(engine: Engine, judge: ScriptedAgent) -> Report:
    work = flow(
        Step("plan", plans),
        Step("code", asks, needs="plan", idempotent=True),
        Step("review", judge, reviews="code"),
        limits={"rounds_per_loop": 1},
    )
    run = await engine.start(work, run="r")
    assert (await run.result()).outcome == "waiting"
    await run.decide("E-1", "revise", note=LONG)
    return await run.result()


def a_judge() -> ScriptedAgent:
    return ScriptedAgent(failed(Finding("wrong", evidence=LONG)), failed(Finding("wrong", evidence=LONG)), passed())


def test_a_run_of_long_texts_has_short_events_and_every_text_once(tmp_path: Path) -> None:
    async def scenario() -> tuple[Report, list[e.Event], list[e.Event]]:
        async with Engine(tmp_path / "j.db") as engine:
            told: list[e.Event] = []
            engine.subscribe(lambda run, event: told.append(event))
            report = await spoken(engine, a_judge())
        async with Engine(tmp_path / "j.db") as engine:  # with nothing in memory
            await verify_all(engine.journal)
            return report, told, await (await engine.find("r")).events()

    report, told, read = play(scenario())
    assert report.outcome == "verified"
    assert report.steps["code"].output is True
    assert read == told
    found = only(e.VerdictGiven, read)[0].findings[0].finding
    assert found is not None
    assert found.evidence == LONG
    database = sqlite3.connect(tmp_path / "j.db")
    assert database.execute("SELECT max(length(body)) FROM events").fetchone()[0] < 1_500
    stored = [body for (body,) in database.execute("SELECT body FROM payloads")]
    assert sum(body.count(b"a line of what was said") for body in stored) == 600
    database.close()


def test_a_journal_in_memory_reads_the_same() -> None:
    async def scenario() -> None:
        journal = MemoryJournal()
        async with Engine(journal) as engine:
            told: list[e.Event] = []
            engine.subscribe(lambda run, event: told.append(event))
            await spoken(engine, a_judge())
            await verify(journal, "r")
            assert await events_of(journal, "r") == told

    play(scenario())


def test_pruning_leaves_what_events_are_made_of(tmp_path: Path) -> None:
    async def scenario() -> list[e.Event]:
        async with Engine(tmp_path / "j.db") as engine:
            # An output with the same contents as the answer: what one event may lose, another one needs.
            run = await engine.start(flow(Step("a", lambda b: LONG), Step("b", lambda b: LONG + "b")), run="r")
            await run.result()
            await engine.journal.append(
                Append("q", 0, *_stored([e.AnswerGiven(1.0, "L-1", "a", LONG), e.RunEnded(2.0, "done")]))
            )
            return await run.events()

    events = play(scenario())
    assert prune_payloads(tmp_path / "j.db", {"r", "q"}).count == 1
    journal = SqliteJournal(tmp_path / "j.db")
    assert asyncio.run(events_of(journal, "r")) == events
    assert only(e.AnswerGiven, asyncio.run(events_of(journal, "q")))[0].answer == LONG
    asyncio.run(journal.close())


def _stored(events: list[e.Event]) -> tuple[tuple[bytes, ...], str, str, dict[str, bytes]]:
    bodies, payloads = encode_events(events)
    return bodies, "w", "done", payloads


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE payloads SET body = zeroblob(length(body))", "has other contents than its digest says"),
        ("DELETE FROM payloads", "it was never stored"),
        (
            "CREATE TABLE pruned (digest TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;"
            "INSERT INTO pruned SELECT digest FROM payloads; DELETE FROM payloads",
            "is listed as pruned, but no part of an event ever is",
        ),
    ],
    ids=["changed", "missing", "pruned"],
)
def test_an_inconsistent_part_of_an_event_is_detected(tmp_path: Path, change: str, problem: str) -> None:
    async def scenario() -> None:
        async with Engine(tmp_path / "j.db") as engine:
            run = await engine.start(flow(Step("a", lambda b: 1)), run="r")
            await run.result()
            await run.raise_feedback(Feedback("fix_request", "a", "see details", details=LONG))
            await run.result()

    play(scenario())
    journal = SqliteJournal(tmp_path / "j.db")
    asyncio.run(verify_all(journal))
    # By the library that has the file open already: two of them in one process would lose each other's locks.
    database = apsw.Connection(str(tmp_path / "j.db"))
    database.execute(change)
    database.close()
    with pytest.raises(JournalDamaged, match=f"event .* of run 'r' names .*{problem}"):
        asyncio.run(verify_all(journal))
    with pytest.raises(JournalDamaged):
        asyncio.run(events_of(journal, "r"))
    asyncio.run(journal.close())


def test_a_journal_whose_events_hold_everything_is_still_read(tmp_path: Path) -> None:
    """Journals were written like this before large values were stored outside events."""

    async def scenario() -> None:
        async with Engine() as engine:
            await spoken(engine, a_judge())
            events = await events_of(engine.journal, "r")
        old = SqliteJournal(tmp_path / "old.db")
        await old.append(Append("r", 0, tuple(msgspec.json.encode(event) for event in events), "flow", "verified"))
        assert await verify_all(old) == 1
        assert await events_of(old, "r") == events
        await old.close()
        async with Engine(tmp_path / "old.db") as engine:
            assert (await (await engine.find("r")).report()).outcome == "verified"

    play(scenario())


def _at(value: Any, way: list[str]) -> Any:
    for key in way:
        value = value[int(key) if isinstance(value, list) else key]
    return value


def test_an_export_is_complete_and_the_chain_can_be_recomputed_from_it() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            await spoken(engine, a_judge())
            lines = [
                msgspec.json.decode(await event_line(engine.journal, "r", each))
                for each in await engine.journal.read("r")
            ]
            assert [line["answer"]["text"] for line in lines if line["type"] == "answer_given/1"] == [LONG] * 3
            previous = genesis("r")
            for number, line in enumerate(lines):
                told = {key: line[key] for key in line if key not in ("seq", "run", "link", "large")}
                if "large" in line:
                    for pointer in line["large"]:
                        *way, last = pointer.split("/")[1:]
                        _at(told, way)[last] = None
                    told = {"large": line["large"], **told}
                if number > 0:
                    assert line["link"] == link(previous, msgspec.json.encode(told))
                previous = line["link"]

    play(scenario())


def test_the_chain_covers_what_was_taken_out() -> None:
    [one], _ = encode_events([e.AnswerGiven(1.0, "L-1", "plan", LONG)])
    [other], _ = encode_events([e.AnswerGiven(1.0, "L-1", "plan", LONG.replace("said", "sung", 1))])
    assert link(genesis("r"), one) != link(genesis("r"), other)
