"""A crash before or after any append changes nothing but time.

Every workflow here is run once to its end, and then once for every append that it makes, each time with a crash just
before or just after that append, and with a second engine that goes on where the journal ends. The agents are
functions of their briefing alone, so the end must be the same: the same outcome, artifacts, findings and loops.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backedge import (
    Attempt,
    Briefing,
    Engine,
    Feedback,
    Finding,
    MemoryJournal,
    Outcome,
    Report,
    Run,
    SqliteJournal,
    Step,
    Workflow,
    failed,
    passed,
)
from backedge.adapters.journals.audit import verify
from backedge.core import events as e
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.testing import Crashed, CrashingJournal, FakeClock
from tests.engine.parts import PATIENCE, flow, only, play

When = Literal["before", "after"]
Delivered = tuple[str, str, str]


class World:
    """The workflows and what their agents did. No outcome depends on how often an agent was executed."""

    def __init__(self, idempotent: bool = True) -> None:
        self.idempotent = idempotent
        self.executed: list[tuple[str, int]] = []
        self.delivered: dict[tuple[str, int], list[str]] = {}

    def step(self, name: str, agent: Callable[..., Any], **more: Any) -> Step:
        async def noted(briefing: Briefing, attempt: Attempt) -> Any:
            self.executed.append((briefing.step, briefing.attempt))
            self.delivered[briefing.step, briefing.attempt] = [
                issue.description for issue in briefing.feedback.findings
            ] + [request.message for request in briefing.feedback.requests]
            said = agent(briefing, attempt)
            return await said if asyncio.iscoroutine(said) else said

        return Step(name, noted, idempotent=self.idempotent, **more)

    def growing(self, name: str, **more: Any) -> Step:
        """Makes a new version whenever feedback asks for one."""

        def agent(briefing: Briefing, attempt: Attempt) -> Any:
            before = (briefing.previous or {}).get("version", 0)
            version = before + 1 if briefing.feedback or not before else before
            return {"version": version, "from": {n: v["version"] for n, v in briefing.inputs.items() if "version" in v}}

        return self.step(name, agent, **more)

    def judging(self, name: str, subject: str, until: int, phase: str = "", also: str = "", **more: Any) -> Step:
        """Fails until the version is high enough."""

        def agent(briefing: Briefing, attempt: Attempt) -> Outcome:
            made = briefing.inputs[subject]
            version = made["from"].get(also, 0) if also else made["version"]
            if version >= until:
                return passed(summary="fine")
            defect = Finding(f"{name}: defect {version}", affected_phase=phase or (), category="logic")
            return failed(defect, Finding(f"{name}: also {version}", "low"))

        return self.step(name, agent, reviews=subject, **more)

    # The workflows

    def loops(self) -> Workflow:
        return flow(self.growing("code"), self.judging("review", "code", until=3))

    def cascade(self) -> Workflow:
        return flow(
            self.growing("plan", phase="planning"),
            self.growing("design", phase="design", needs="plan"),
            self.growing("docs", phase="design", needs="plan"),
            self.judging("design_review", "design", until=2, phase="planning", also="plan"),
            self.growing("code", phase="code", needs=["design", "docs"]),
            self.judging("code_review", "code", until=2),
            self.judging("test", "code", until=2, phase="design", also="design"),
        )

    def escalation(self) -> Workflow:
        return flow(self.growing("code"), self.judging("review", "code", until=4), limits={"rounds_per_loop": 1})

    def mid_work(self) -> Workflow:
        async def code(briefing: Briefing, attempt: Attempt) -> Any:
            first = await attempt.raise_feedback(Feedback("context_request", "plan", "which currency?"))
            answer = await attempt.wait_for(first)
            second = await attempt.raise_feedback(Feedback("missing_requirement", "plan", "what about refunds?"))
            fixed = await attempt.wait_for(second)
            plan = attempt.inputs["plan"]["version"]
            return {"version": 1, "told": [answer.answers, fixed.state], "from": {"plan": plan}}

        def plan(briefing: Briefing, attempt: Attempt) -> Any:
            if briefing.mode == "answer":
                return "EUR"
            return {"version": (briefing.previous or {}).get("version", 0) + 1 if briefing.feedback else 1}

        return flow(self.step("plan", plan), self.step("code", code, needs="plan"), self.growing("last", needs="code"))

    def asks_a_person(self) -> Workflow:
        async def code(briefing: Briefing, attempt: Attempt) -> Any:
            loop = await attempt.raise_feedback(Feedback("fix_request", "human", "push or polling?"))
            resolution = await attempt.wait_for(loop)
            return {"version": 1, "chosen": resolution.option}

        limits = {"response_timeout": False}  # the clock of these tests runs ahead
        return flow(self.step("code", code), self.growing("last", needs="code"), limits=limits)

    def without_waiting(self) -> Workflow:
        async def code(briefing: Briefing, attempt: Attempt) -> Any:
            plan = briefing.inputs["plan"]["version"]
            if plan < 2:
                await attempt.raise_feedback(Feedback("missing_requirement", "plan", "refunds"))
            return {"version": plan}

        return flow(self.growing("plan"), self.step("code", code, needs="plan"), self.growing("last", needs="code"))

    def input_errors(self) -> Workflow:
        def plan(briefing: Briefing, attempt: Attempt) -> Any:
            return {"version": "1"} if briefing.feedback else {"version": [1]}

        def code(briefing: Briefing, attempt: Attempt) -> Any:
            return {"version": 1}

        return flow(self.step("plan", plan), self.step("code", code, needs="plan", accepts=dict[str, str]))

    def errors(self) -> Workflow:
        broken = Counter[str]()

        def code(briefing: Briefing, attempt: Attempt) -> Any:
            broken["code"] += 1
            if broken["code"] < 3:
                raise OSError("down")
            return {"version": 1}

        return flow(self.step("code", code), self.growing("last", needs="code"), limits={"errors_in_a_row": 9})


WORKFLOWS = (
    "loops",
    "cascade",
    "escalation",
    "mid_work",
    "asks_a_person",
    "without_waiting",
    "input_errors",
    "errors",
)


async def answered(run: Run) -> Report:
    """The end of a run, with a person who answers every question at once."""
    while (state := await run.state()).ended is None:
        for id, packet in state.escalations.items():
            if packet.reason == "asked":
                await run.decide(id, "resolve", option="polling", by="maria")
            else:
                await run.decide(id, "continue", rounds=1, by="maria")
        if not state.escalations:
            await run.changed()
    return await run.result()


async def life(journal: Any, work: Workflow) -> tuple[Report, RunState] | None:
    """One process: it starts or continues the run; None if it died."""
    engine = Engine(journal, clock=FakeClock(auto=True))
    try:
        await engine.__aenter__()
        exists = bool(await engine.runs())
        run = await (engine.resume("r", work) if exists else engine.start(work, {"story": 1}, run="r"))
        report = await answered(run)
        return report, await run.state()
    except (Crashed, RuntimeError):
        assert getattr(journal, "crashed", False)
        return None
    finally:
        with suppress(Crashed):
            await engine.close()


def essence(report: Report) -> Any:
    """What must be the same after a crash: everything but times, doubts, and the numbers of attempts and versions (of
    what was provisional when the crash came, there may be one less)."""
    return (
        report.outcome,
        {name: (step.state, step.output, step.verdict) for name, step in report.steps.items()},
        [(f.id, f.description, f.status, f.introduced_by, f.rounds_seen, f.loop) for f in report.findings],
        [(p.id, p.kind, p.source, p.targets, p.state, p.rounds, p.routed_by, p.findings) for p in report.loops],
        [(p.loop, p.reason, p.decided) for p in report.escalations if "in doubt" not in p.reason],
        report.refused,
    )


def delivered(world: World, events: Sequence[e.Event]) -> Counter[tuple[str, tuple[str, ...]]]:
    """The feedback that completed attempts had to address."""
    done = [(event.step, event.attempt) for event in only(e.AttemptSucceeded, events)]
    return Counter((step, tuple(world.delivered[step, n])) for step, n in done if world.delivered[step, n])


async def told(journal: Any) -> list[e.Event]:
    async with Engine(journal) as engine:
        return await (await engine.find("r")).events()


async def sound(journal: Any, world: World, report: Report, state: RunState) -> list[e.Event]:
    """The invariants of every run, however many processes wrote it."""
    await verify(journal, "r")
    events = await told(journal)
    assert replay(events) == state, "the record says what the last process had in mind"
    started = Counter((event.step, event.attempt) for event in only(e.AttemptStarted, events))
    over = Counter(
        (event.step, event.attempt)
        for event in events
        if isinstance(event, e.AttemptSucceeded | e.AttemptFailed | e.AttemptDropped)
    )
    assert set(started.values()) == {1}
    assert started == over, "each attempt starts once and ends once"
    for kind, name in ((e.LoopOpened, "loop"), (e.LoopClosed, "loop"), (e.EscalationDecided, "escalation")):
        ids = [getattr(event, name) for event in only(kind, events)]
        assert len(ids) == len(set(ids)), "no event is doubled"
    assert max(Counter(world.executed).values()) == 1, "no attempt is executed twice under one number"
    return events


async def undisturbed(name: str, journal: Any) -> tuple[Any, Counter[tuple[str, tuple[str, ...]]], int]:
    world = World()
    counting = CrashingJournal(journal, dies_at=10_000)
    end = await life(counting, getattr(world, name)())
    assert end is not None
    report, state = end
    assert report.outcome in ("verified", "done")
    return essence(report), delivered(world, await sound(journal, world, report, state)), counting.appends


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_crash_at_any_append_changes_nothing_but_time(name: str, when: When) -> None:
    async def scenario() -> int:
        expected, given_to, appends = await undisturbed(name, MemoryJournal())
        for dies_at in range(1, appends + 1):
            world, journal = World(), MemoryJournal()
            work = getattr(world, name)()
            assert await life(CrashingJournal(journal, dies_at, when), work) is None
            end = await life(journal, work)
            assert end is not None
            events = await sound(journal, world, *end)
            assert essence(end[0]) == expected, f"append {dies_at}"
            assert delivered(world, events) == given_to, f"append {dies_at}"
            assert not [p for p in end[0].escalations if "in doubt" in p.reason]
        return appends

    assert play(scenario()) >= 4


@pytest.mark.parametrize("name", ["cascade", "mid_work"])
def test_a_crash_at_any_append_on_disk_changes_nothing_but_time(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        first = SqliteJournal(tmp_path / "first.db", durability="normal")
        expected, given_to, appends = await undisturbed(name, first)
        await first.close()
        for dies_at in range(1, appends + 1):
            when: When = "before" if dies_at % 2 else "after"
            world, path = World(), tmp_path / f"{dies_at}.db"
            work = getattr(world, name)()
            journal = SqliteJournal(path, durability="normal")
            assert await life(CrashingJournal(journal, dies_at, when), work) is None
            await journal.close()
            journal = SqliteJournal(path, durability="normal")
            end = await life(journal, work)
            assert end is not None
            events = await sound(journal, world, *end)
            await journal.close()
            assert essence(end[0]) == expected
            assert delivered(world, events) == given_to

    play(scenario())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", WORKFLOWS)
def test_steps_that_must_not_run_twice_ask_and_end_the_same(name: str, when: When) -> None:
    async def scenario() -> int:
        expected, given_to, appends = await undisturbed(name, MemoryJournal())
        asked = 0
        for dies_at in range(1, appends + 1):
            world, journal = World(idempotent=False), MemoryJournal()
            work = getattr(world, name)()
            assert await life(CrashingJournal(journal, dies_at, when), work) is None
            before = await journal.runs()
            lost = replay(await told(journal)) if before else None
            in_doubt = [step for step, s in lost.steps.items() if s.running is not None] if lost else []
            end = await life(journal, work)
            assert end is not None
            events = await sound(journal, world, *end)
            doubts = [p.step for p in end[0].escalations if "in doubt" in p.reason]
            if lost and lost.ended is None:
                assert sorted(map(str, doubts)) == sorted(in_doubt), "each of them, and nothing else"
            asked += len(doubts)
            assert essence(end[0]) == expected, f"append {dies_at}"
            assert delivered(world, events) == given_to, f"append {dies_at}"
        return asked

    assert play(scenario()) > 0


@settings(max_examples=80)
@given(
    name=st.sampled_from(WORKFLOWS),
    crashes=st.lists(st.tuples(st.integers(1, 12), st.sampled_from(["before", "after"])), min_size=1, max_size=6),
    idempotent=st.booleans(),
)
def test_any_number_of_crashes_changes_nothing_but_time(
    name: str, crashes: list[tuple[int, When]], idempotent: bool
) -> None:
    async def scenario() -> None:
        expected, given_to, _ = await undisturbed(name, MemoryJournal())
        world, journal = World(idempotent), MemoryJournal()
        work = getattr(world, name)()
        end = None
        for dies_at, when in crashes:
            end = await life(CrashingJournal(journal, dies_at, when), work)
            if end is not None:
                break
        end = end or await life(journal, work)
        assert end is not None
        events = await sound(journal, world, *end)
        assert essence(end[0]) == expected
        assert delivered(world, events) == given_to

    play(scenario(), PATIENCE)
