"""People and outsiders at the Python API: they raise feedback, acknowledge, reclassify and decide."""

from __future__ import annotations

import asyncio

import pytest

from backedge import Briefing, Engine, Feedback, Finding, MemoryJournal, Report, Step, failed, passed
from backedge.core import events as e
from backedge.core.errors import IllegalCommand, NotFound
from backedge.errors import FeedbackRefused, WorkflowError
from backedge.testing import FakeClock, ScriptedAgent
from tests.engine.parts import flow, named, only, play


def test_a_person_sends_feedback_and_the_judges_of_the_target_verify_the_fix() -> None:
    code, review = ScriptedAgent("v1", "v2"), ScriptedAgent(passed())

    async def scenario() -> Report:
        async with Engine() as engine:
            run = await engine.start(flow(Step("code", code), Step("review", review, reviews="code")))
            await run.result()
            loop = await run.raise_feedback(Feedback("missing_requirement", "code", "it must log in"))
            assert loop == "L-1"
            return await run.result()

    report = play(scenario())
    assert report.outcome == "verified"
    assert report.steps["code"].output == "v2"
    assert code.briefings[1].feedback.requests[0].source == "human"
    assert [(loop.source, loop.state) for loop in report.loops] == [("human", "resolved")]
    assert len(review.briefings) == 2


def test_a0_02_invalid_human_feedback_is_refused_with_the_reason_and_one_event() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("code", named)))
            await run.result()
            for feedback, reason in (
                (Feedback("fix_request", "nobody", "x"), "nobody"),
                (Feedback("fix_request", (), "x"), "target|to"),
                (Feedback("", "code", "x"), "kind"),
                (Feedback("fix_request", "code", ""), "message"),
            ):
                before = len(await run.events())
                with pytest.raises(FeedbackRefused, match=reason):
                    await run.raise_feedback(feedback)
                assert len(await run.events()) == before + 1
            with pytest.raises(TypeError, match=r"feedback is a str: expected backedge.Feedback"):
                await run.raise_feedback("please fix")  # type: ignore[arg-type]
            with pytest.raises(NotFound, match="unknown source 'nobody'"):
                await run.raise_feedback(Feedback("fix_request", "code", "x"), source="nobody")
            assert (await run.report()).outcome == "done", "the run is as it was"

    play(scenario())


def test_a0_14_an_acknowledgement_is_for_targets_only() -> None:
    go = asyncio.Event()

    async def code(briefing: Briefing) -> str:
        if briefing.mode == "rework":
            await go.wait()
        return f"v{briefing.attempt}"

    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("code", code), Step("review", lambda b: passed(), reviews="code")))
            await run.result()
            loop = await run.raise_feedback(Feedback("fix_request", "code", "x"))
            await run.acknowledge(loop, "code", message="on it", action="rework", eta="1 h")
            with pytest.raises(IllegalCommand, match="'review' is not a target of L-1"):
                await run.acknowledge(loop, "review")
            [notice] = await run.notices("code")
            assert notice.acknowledged
            assert not notice.resolved
            go.set()
            assert (await run.result()).outcome == "verified"
            with pytest.raises(IllegalCommand, match="nothing left to acknowledge"):
                await run.acknowledge(loop, "code")

    play(scenario())


def test_a_reclassified_finding_goes_where_the_person_says() -> None:
    plan, code = ScriptedAgent("p1", "p2"), ScriptedAgent("c1", "c2")
    review = ScriptedAgent(failed(Finding("no login", category="security")), failed("no login"), passed())

    async def scenario() -> Report:
        async with Engine() as engine:
            run = await engine.start(
                flow(
                    Step("plan", plan, phase="planning"),
                    Step("code", code, phase="code", needs="plan"),
                    Step("review", review, reviews="code"),
                    limits={"rounds_total": 0},
                )
            )
            await run.result()
            with pytest.raises(IllegalCommand, match="unknown phase 'plannig': did you mean 'planning'"):
                await run.reclassify("F-1", "plannig")
            with pytest.raises(NotFound, match="unknown finding 'F-7'"):
                await run.reclassify("F-7", "planning")
            await run.decide("E-1", "reclassify", phase="planning", rounds=2, by="maria")
            return await run.result()

    report = play(scenario())
    assert report.outcome == "verified"
    assert report.steps["plan"].attempts == 2
    assert report.findings[0].introduced_by == "plan"


def test_control_characters_from_agents_are_stored_as_data_and_do_no_harm() -> None:
    nasty = "\x00 \x1b[31mred\x1b[0m \r\n\u202e ` $(rm -rf /) ' \" \\"
    code, review = ScriptedAgent(nasty, nasty + "2"), ScriptedAgent(failed(nasty, summary=nasty), passed(summary=nasty))

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine() as engine:
            run = await engine.start(flow(Step("code", code), Step("review", review, reviews="code")), nasty)
            return await run.result(), await run.events()

    report, events = play(scenario())
    assert report.outcome == "verified"
    assert report.findings[0].description == nasty
    assert code.briefings[1].feedback.findings[0].description == nasty
    assert code.briefings[0].input == nasty
    assert report.steps["code"].output == nasty + "2"
    assert only(e.AttemptSucceeded, events)[1].summary == nasty


def test_a_long_text_is_truncated_and_says_how_much_is_missing() -> None:
    code, review = ScriptedAgent("a", "b"), ScriptedAgent(failed("x" * 50_000), passed())

    async def scenario() -> Report:
        async with Engine(clock=FakeClock()) as engine:
            run = await engine.start(flow(Step("code", code), Step("review", review, reviews="code")))
            return await run.result()

    text = play(scenario()).findings[0].description
    assert len(text) < 17_000
    assert text.endswith("… (34000 more characters)")


# A step that a person does


def test_a_step_for_a_person_is_a_question_in_the_inbox_and_done_by_the_decision() -> None:
    last = ScriptedAgent("released")

    async def scenario() -> Report:
        async with Engine() as engine:
            work = flow(
                Step("plan", named), Step("approve", "human", needs="plan"), Step("ship", last, needs="approve")
            )
            assert set(work.agents) == {"plan", "ship"}
            run = await engine.start(work)
            assert (await run.result()).outcome == "waiting"
            [question] = await engine.inbox()
            assert (question.run, question.step, question.reason) == (run.id, "approve", "asked")
            assert "resolve" in [option.choice for option in question.options]
            await run.decide(question.escalation, "resolve", note="go ahead", by="ann")
            report = await run.result()
            assert await engine.inbox() == []
            return report

    report = play(scenario())
    assert (report.outcome, report.steps["approve"].output) == ("done", "go ahead")
    assert last.briefings[0].inputs == {"approve": "go ahead"}


def test_a_person_may_judge_and_may_be_the_last_of_a_ladder() -> None:
    code = ScriptedAgent("v1", "v2")
    asked: list[str | None] = []

    async def scenario() -> Report:
        async with Engine() as engine:
            run = await engine.start(flow(Step("code", [code, "human"]), Step("review", "human", reviews="code")))
            for option, note in (("fail", "no login"), ("fail", "no logout"), (None, "v3 by hand"), ("pass", "")):
                await run.result()
                [question] = await engine.inbox()
                asked.append(question.step)
                await run.decide(question.escalation, "resolve", option=option, note=note)
            return await run.result()

    report = play(scenario())
    assert (report.outcome, report.steps["code"].output) == ("verified", "v3 by hand")
    assert asked == ["review", "review", "code", "review"]


@pytest.mark.parametrize("agent", ["robot", ["human", "robot"], ""])
def test_a_word_that_is_not_an_agent_is_refused(agent: object) -> None:
    with pytest.raises(WorkflowError, match=r"step 'a': its agent is '\w*': expected a function .* or 'human'"):
        flow(Step("a", agent))  # type: ignore[arg-type] # that is what is tried


def test_the_inbox_shows_the_open_escalations_of_all_runs_and_processes() -> None:
    journal = MemoryJournal()

    async def scenario() -> None:
        async with Engine(journal) as engine, Engine(journal) as other:
            runs = [await engine.start(flow(Step("a", "human")), run=name) for name in ("r-1", "r-2", "r-3")]
            await other.start(flow(Step("a", named)), run="r-4")
            for run in runs:
                await run.result()
            await runs[2].release()
            assert [question.run for question in await other.inbox()] == ["r-1", "r-2", "r-3"]
            await runs[1].decide("E-1", "resolve", note="done")
            assert [question.run for question in await other.inbox()] == ["r-1", "r-3"]

    play(scenario())
