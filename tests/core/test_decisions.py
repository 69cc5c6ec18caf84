"""A person's answer to an escalation: what each choice does, and which answers are refused."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.escalation.options import choice_words
from backedge.core.escalation.packet import packet as told
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, Finding, Option, Resolution, Status
from backedge.core.state.evolve import replay
from backedge.core.state.run import Escalation
from backedge.core.workflow.definition import Step
from tests.core.play import Play, Reply, ask, failed, flow, grows, out, passed, step, texts

WORK = (
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("review", reviews="design"),
    step("code", "design", phase="code"),
)


def stuck(*replies: Reply, **more: Any) -> Play:
    """A review whose loop was stopped after its first round."""
    limits = more.pop("limits", {"rounds_per_loop": 1})
    reviews = list(replies) or [failed("x"), failed("y"), passed()]
    return Play(flow(*WORK, limits=limits, **more), {"plan": grows, "design": grows, "review": reviews}).run()


def packet(play: Play, id: str = "E-1") -> Escalation:
    found = play.s.escalation(id)
    assert found is not None
    return found


def test_an_escalation_has_a_reason_and_options() -> None:
    escalation = packet(stuck())
    assert escalation.reason == "limit rounds_per_loop (1/1)"
    assert escalation.options == (
        "continue",
        "revise",
        "reassign",
        "reclassify",
        "rollback",
        "resolve",
        "accept",
        "skip",
        "cancel",
    )
    assert escalation.loop == "L-1"


def test_the_words_that_answer_are_those_of_the_question_with_the_recommended_one_first() -> None:
    same = [failed("x", "z"), failed("x", "z")]
    play = stuck(*same)
    assert choice_words(play.s, packet(play))[:2] == ("revise", "continue")
    phase = next(each for each in told(play.s, "E-1").options if each.choice == "reclassify")
    assert phase.next == "F-1, F-2 go to the phase that you name as their cause"
    asked = Play(flow(step("deploy", approval=HUMAN))).run()
    assert choice_words(asked.s, packet(asked)) == ("approve", "skip", "reject")


def test_a_loop_without_findings_has_nothing_to_reclassify() -> None:
    play = Play(flow(*WORK, limits={"rounds_total": 0}))
    play.finish("plan")
    play.raises("design", ask("plan"))
    assert "reclassify" not in packet(play).options


def test_continue_grants_three_rounds_by_default() -> None:
    fails: list[Reply] = [failed(f"{n}") for n in range(9)]
    play = stuck(*fails, limits={"rounds_per_loop": 1, "rounds_total": 20})
    play.decide("continue").run()
    assert (play.loop().round, play.breach()) == (4, "rounds_per_loop")
    play.decide("continue", rounds=2).run()
    assert (play.loop().round, play.loop().granted) == (6, 5)


def test_continue_of_rounds_total_grants_rounds_to_the_run() -> None:
    fails: list[Reply] = [failed(f"{n}") for n in range(9)]
    play = stuck(*fails, limits={"rounds_per_loop": None, "rounds_total": 1})
    play.decide("continue", rounds=2).run()
    assert (play.s.rounds, play.s.grants) == (3, {"rounds_total": 2})


def test_continue_of_a_budget_grants_its_size_again_or_the_given_amount() -> None:
    play = Play(flow(step("a"), step("b", "a"), step("c", "b"), limits={"attempts": 1})).run()
    assert packet(play).options == ("continue", "cancel")
    play.decide("continue").run()
    assert play.s.grants == {"attempts": 1}
    play.decide("continue", amount=5.0).run()
    assert (play.outcome, play.s.grants) == ("done", {"attempts": 6})


def test_continue_of_errors_grants_more_tries() -> None:
    play = Play(flow(step("a")), {"a": [Exception("x")]}).run()
    assert packet(play).options == ("continue", "skip", "cancel")
    assert "keeps ending with an error: x" in packet(play).reason
    play.decide("continue", rounds=2).run()
    assert (play.attempts()["a"], play.breach()) == (5, "errors_in_a_row")


def test_revise_gives_the_new_approach_to_the_target_and_the_judge() -> None:
    play = stuck().decide("revise", note="use a queue", by="ann").run()
    assert play.briefings["design"][2].feedback.advice == ("use a queue",)
    assert play.briefings["review"][2].feedback.advice == ("use a queue",)
    assert play.of(e.EscalationDecided)[0].by == "ann"


def test_reassign_sends_it_to_another_step_and_grants_rounds() -> None:
    play = stuck().decide("reassign", target="plan").run()
    assert texts(play.briefings["plan"][1].feedback.findings) == ["y"]
    assert play.loop().routed_by == "decision"
    assert (play.loop().granted, play.outcome) == (3, "verified")


def test_reassign_to_a_person_puts_it_into_the_inbox() -> None:
    play = stuck().decide("reassign", target=HUMAN)
    assert packet(play, "E-2").reason == "reassigned to a person"
    assert play.loop().targets == (HUMAN,)
    play.decide("resolve", note="done by hand").run()
    assert play.outcome == "verified"


def test_a_loop_reassigned_to_a_person_can_continue_as_a_question() -> None:
    play = stuck().decide("reassign", target=HUMAN).decide("continue")
    assert packet(play, "E-3").reason == "asked"


@pytest.mark.parametrize(("target", "step"), [(HUMAN, "design"), ("plan", "plan")])
def test_a_finding_is_introduced_by_a_step_even_if_a_person_fixes_it(target: str, step: str) -> None:
    play = stuck().decide("reassign", target=target)
    assert play.finding(2).introduced_by == (step,)


@pytest.mark.parametrize("target", [None, "review", "nobody"])
def test_reassign_needs_a_step_that_can_do_the_rework(target: str | None) -> None:
    with pytest.raises(IllegalCommand, match="reassign needs a target"):
        stuck().decide("reassign", target=target)


def test_reassign_to_the_source_is_refused() -> None:
    play = Play(flow(*WORK, limits={"rounds_total": 0}))
    play.finish("plan")
    play.raises("design", ask("plan"))
    with pytest.raises(IllegalCommand, match="reassign needs a target: got 'design'"):
        play.decide("reassign", target="design")


def test_reassign_to_a_step_after_the_one_under_judgement_is_refused() -> None:
    """Steps after the one under judgement did not make what was judged."""
    scoped = "reassign needs a target: 'code' runs after the step that 'review' complains about: use one of plan, design, human"
    with pytest.raises(IllegalCommand, match=scoped):
        stuck().decide("reassign", target="code")
    play = stuck(scope="any").decide("reassign", target="code")
    assert play.loop().targets == ("code",)


def test_reassign_may_go_to_a_peer_of_the_step_under_judgement() -> None:
    work = flow(*WORK, step("api", "plan", phase="design"), limits={"rounds_per_loop": 1})
    scripts: dict[str, Any] = {
        "plan": grows,
        "design": grows,
        "api": grows,
        "review": [failed("x"), failed("y"), passed()],
    }
    play = Play(work, scripts).run().decide("reassign", target="api").run()
    assert (play.attempts()["api"], play.outcome) == (2, "verified")


def test_a_person_can_reassign_their_own_feedback_to_any_step() -> None:
    play = Play(flow(*WORK, limits={"rounds_per_loop": 0})).run().person_raises("plan")
    assert play.decide("reassign", target="code").loop().targets == ("code",)


def test_reclassify_records_the_phase_and_sends_the_finding_there() -> None:
    play = stuck().decide("reclassify", phase="planning", by="ann").run()
    assert texts(play.briefings["plan"][1].feedback.findings) == ["y"]
    assert play.finding(2).reclassified == ("planning",)
    assert (play.loop().granted, play.outcome) == (3, "verified")


def test_reclassifying_changes_introduced_by_at_any_time() -> None:
    work = flow(step("plan", phase="planning"), step("code", "plan", phase="code"), step("r", reviews="code"))
    play = Play(work, {"code": grows, "r": [failed("x"), passed()]}).run()
    assert (play.outcome, play.finding().introduced_by) == ("verified", ("code",))
    play.do(c.Reclassify("F-1", "planning", by="ann"))
    assert play.finding().introduced_by == ("plan",)


@pytest.mark.parametrize(
    ("phase", "problem"), [(None, "needs a phase: use --phase with one of"), ("plan", "unknown phase 'plan'")]
)
def test_reclassify_needs_a_phase(phase: str | None, problem: str) -> None:
    with pytest.raises(IllegalCommand, match=problem):
        stuck().decide("reclassify", phase=phase)


def test_reassign_without_a_target_names_the_option() -> None:
    with pytest.raises(IllegalCommand, match="needs a target: use --target STEP"):
        stuck().decide("reassign")


def test_resolve_needs_an_answer_for_a_loop_too() -> None:
    with pytest.raises(IllegalCommand, match="resolve needs an answer"):
        stuck().decide("resolve")


def test_accept_counts_the_judge_as_passed_and_records_the_debt() -> None:
    play = stuck().decide("accept", note="later", by="ann").run()
    assert play.outcome == "accepted"
    assert play.attempts() == {"plan": 1, "design": 2, "review": 2, "code": 1}
    # What the judge left unconfirmed is debt too.
    assert [each.status for each in play.s.findings.values()] == [Status.ACCEPTED, Status.ACCEPTED]
    assert play.loop().resolution == Resolution("accepted", "ann", "later")


def test_an_accepted_version_that_changes_is_judged_again() -> None:
    play = stuck().decide("accept").run()
    play.person_raises("design").run()
    assert play.attempts()["review"] == 3


def test_accepting_feedback_that_a_judge_raised_does_not_make_its_verdict_pass() -> None:
    play = Play(flow(*WORK, limits={"rounds_total": 1}), {"design": grows, "review": [failed("x"), failed("y")]})
    play.finish("plan")
    play.finish("design")
    play.raises("review", ask(HUMAN))
    play.finish("review")
    play.decide("accept", "E-1")
    assert play.s.steps["code"].running is None


def test_skip_defers_the_findings_and_skips_the_source() -> None:
    play = stuck().decide("skip").run()
    assert play.outcome == "accepted"
    assert {each.status for each in play.s.findings.values()} == {Status.DEFERRED}
    assert play.s.steps["review"].skipped_by_decision
    play.person_raises("design").run()
    assert play.attempts()["review"] == 2


def test_skipping_a_failing_step_continues_without_it() -> None:
    play = Play(flow(step("a"), step("b", "a")), {"a": [Exception("x")]}).run()
    play.decide("skip", by="ann").run()
    assert play.outcome == "accepted"
    assert play.of(e.StepSkipped) == [e.StepSkipped(play.now - 1, "a", "skipped by ann")]


def test_skipping_a_failing_step_closes_the_loops_that_wait_for_it() -> None:
    replies: list[Reply] = [out("v1"), Exception("x")]
    work = flow(step("design"), step("r1", reviews="design"), step("r2", reviews="design"))
    play = Play(work, {"design": replies, "r1": [failed("1")], "r2": [failed("2")]}).run()
    assert play.loop().state is LoopState.ESCALATING
    play.decide("skip").run()
    assert play.outcome == "accepted"
    assert play.loop().state is LoopState.ACCEPTED and play.loop("L-2").state is LoopState.ACCEPTED


def test_skipping_a_step_closes_the_loops_that_it_raised() -> None:
    play = Play(flow(*WORK), {"plan": grows, "design": [Exception("x")]})
    play.finish("plan")
    play.raises("design", ask("plan")).run()
    play.decide("skip").run()
    assert play.outcome == "accepted"
    assert play.loop().state is LoopState.ACCEPTED


def test_skipping_a_step_closes_human_feedback_to_it() -> None:
    play = Play(flow(step("a")), {"a": [out("v1"), Exception("x")]}).run()
    play.person_raises("a").run()
    play.decide("skip").run()
    assert (play.outcome, play.loop().state) == ("accepted", LoopState.ACCEPTED)


def test_skipping_a_judge_defers_its_unresolved_findings() -> None:
    play = stuck(failed("x"), Exception("broken"), limits={"rounds_per_loop": 0}).decide("resolve", note="fixed").run()
    play.decide("skip").run()
    assert (play.outcome, play.finding().status) == ("accepted", Status.DEFERRED)


def test_skipping_a_step_without_output_skips_its_judges() -> None:
    steps = step("a"), step("t", reviews="a"), step("z", "a")
    play = Play(flow(*steps), {"a": [Exception("x")], "t": [failed("there is nothing")]}).run().decide("skip").run()
    assert (play.outcome, play.attempts()) == ("accepted", {"a": 3, "t": 0, "z": 1})
    assert play.s.steps["t"].skipped_by_decision


def test_a_judge_of_several_steps_judges_the_rest_when_one_is_skipped() -> None:
    steps = step("a"), step("b"), Step("t", judges=("a", "b"))
    play = Play(flow(*steps), {"a": [Exception("x")], "t": [passed()]}).run().decide("skip").run()
    assert (play.outcome, play.attempts()["t"]) == ("accepted", 1)


def test_findings_are_not_routed_to_a_step_that_was_skipped_before_it_made_anything() -> None:
    steps = step("a"), step("b"), Step("t", judges=("a", "b"))
    agents: dict[str, Any] = {"a": [Exception("x")], "b": grows, "t": [failed("b is wrong"), passed()]}
    play = Play(flow(*steps), agents).run().decide("skip").run()
    assert (play.outcome, play.attempts(), play.loop().targets) == ("accepted", {"a": 3, "b": 2, "t": 2}, ("b",))


def test_skipping_a_rework_keeps_the_passes_on_the_current_version() -> None:
    steps = step("a"), step("t", reviews="a"), step("u", reviews="a")
    play = Play(flow(*steps), {"a": [out("a1"), Exception("x")], "t": [failed("x")], "u": [passed()]})
    play.run().decide("skip").run()
    assert [name for name, each in play.s.steps.items() if each.skipped_by_decision] == ["a", "t"]


def test_feedback_to_a_skipped_step_makes_it_due_again() -> None:
    play = Play(flow(step("a"), step("b", "a")), {"a": [Exception("x")] * 3 + [out("at last")]}).run()
    play.decide("skip").run()
    play.person_raises("a").run()
    assert play.breach() == "errors_in_a_row"
    play.decide("continue").run()
    assert play.attempts()["a"] == 4


def test_cancel_ends_the_run_and_keeps_the_work() -> None:
    play = stuck().decide("cancel", note="not worth it")
    assert play.outcome == "cancelled"
    assert play.loop().state is LoopState.CANCELLED
    artifact = play.s.steps["design"].artifact
    assert artifact is not None and artifact.output == "design 2"
    assert play.of(e.RunEnded) == [e.RunEnded(play.now, "cancelled", "not worth it")]


def test_cancel_closes_questions_about_steps_too() -> None:
    play = Play(flow(step("a"), step("b")), {"a": [Exception("x")], "b": [Exception("y")]}).run()
    assert len(play.s.escalations) == 2
    play.decide("cancel")
    assert (play.s.escalations, packet(play, "E-2").decided is not None) == ({}, True)


def test_resolve_closes_the_loop_and_the_judge_runs_once_more() -> None:
    play = stuck().decide("resolve", note="I fixed it", by="ann").run()
    assert (play.outcome, play.attempts()["review"]) == ("verified", 3)
    assert play.briefings["review"][2].feedback.resolutions[0].text == "I fixed it"


@pytest.mark.parametrize("choice", ["continue", "revise"])
def test_a_person_can_reject_a_fix_and_ask_for_another(choice: str) -> None:
    play = Play(flow(step("a")), {"a": grows}).run()
    play.person_raises("a").run()
    assert packet(play).reason == "the fix waits for your verification"
    play.decide(choice, note="not yet").run()
    assert (play.attempts()["a"], play.loop().round) == (3, 2)
    play.decide("resolve").run()
    assert play.outcome == "done"


class TestRefused:
    def test_deciding_twice_names_the_first_decision(self) -> None:
        play = stuck().decide("accept", by="ann")
        with pytest.raises(AlreadyClosed, match="E-1 was already decided: accept by ann; the first decision stands"):
            play.decide("cancel", "E-1")

    def test_an_anonymous_decision_is_named_too(self) -> None:
        play = stuck().decide("accept")
        with pytest.raises(AlreadyClosed, match="E-1 was already decided: accept; the first"):
            play.decide("accept", "E-1")

    @pytest.mark.parametrize("name", ["E-9", "L-1", "x"])
    def test_an_unknown_escalation_is_not_found(self, name: str) -> None:
        with pytest.raises(NotFound, match="open escalations: E-1"):
            stuck().decide("accept", name)
        with pytest.raises(NotFound, match="no escalations are open"):
            stuck().decide("accept").decide("accept", "L-1")

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ({"choice": "acept"}, "'acept' is not a valid choice for E-1: did you mean 'accept'?"),
            ({"choice": "continue", "rounds": 0}, "rounds is 0: expected 1 or more"),
            ({"choice": "continue", "amount": 0.0}, "amount is 0.0: expected more than 0"),
            ({"choice": "continue", "amount": float("inf")}, "expected more than 0"),
            ({"choice": "revise"}, "revise needs a note"),
            ({"choice": "revise", "note": " "}, "revise needs a note"),
        ],
    )
    def test_bad_arguments_are_refused_and_nothing_happens(self, more: dict[str, Any], why: str) -> None:
        play = stuck()
        before = play.s
        with pytest.raises(IllegalCommand) as error:
            play.decide(**more)
        assert why in str(error.value)
        assert play.s is before

    @pytest.mark.parametrize("answer", [{}, {"note": " ", "option": " "}])
    def test_a_question_needs_an_answer(self, answer: dict[str, Any]) -> None:
        play = Play(flow(step("a"))).raises("a", ask(HUMAN))
        with pytest.raises(IllegalCommand, match="resolve needs an answer"):
            play.decide("resolve", **answer)

    def test_an_option_is_one_of_those_offered(self) -> None:
        play = Play(flow(step("a"))).raises("a", ask(HUMAN, options=(Option("polling"), Option("push"))))
        with pytest.raises(IllegalCommand, match="option 'poling' was not offered: did you mean 'polling'"):
            play.decide("resolve", option="poling")
        play.decide("resolve", option="push")
        assert play.loop().state is LoopState.RESOLVED

    def test_showing_the_history_changes_nothing(self) -> None:
        play = stuck()
        before = play.s
        assert packet(play).reason and play.loop().past_rounds
        assert play.s is before


def test_accepting_a_finding_of_two_phases_accepts_it_once() -> None:
    both = Finding("x", affected_phase=("planning", "design"))
    play = Play(flow(*WORK, limits={"rounds_per_loop": 0}), {"review": [failed(both)]}).run()
    play.decide("accept").run()
    assert play.of(e.FindingsSettled)[0].findings == (1,)


def test_the_decision_is_the_first_event_that_it_causes() -> None:
    play = stuck()
    (event,) = play.do(c.Decide("E-1", "cancel"))[:1]
    assert isinstance(event, e.EscalationDecided)


def test_findings_of_a_judge_that_was_skipped_while_it_ran_are_deferred() -> None:
    play = Play(flow(step("code"), step("review", reviews="code")))
    play.finish("code")
    play.raises("review", ask(HUMAN, message="which standard?")).decide("skip")
    play.finish("review", failed("rough"))
    assert (play.finding().status, play.opened(), play.outcome) == (Status.DEFERRED, 1, "accepted")
    assert play.s.steps["review"].open_findings == ()
    assert replay(play.events) == play.s
