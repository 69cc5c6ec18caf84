"""Choices: options, positions, agreement, and what the chosen option does."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.briefing import notices
from backedge.core.errors import IllegalCommand
from backedge.core.escalation.packet import packet
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, ChosenOption, Decision, Option, Resolution
from backedge.core.state.evolve import replay
from backedge.core.wording import feedback_text
from backedge.core.workflow.validate import problems_of
from tests.core.play import Feedback, Kind, Play, Reply, ask, flow, grows, out, step

STEPS = (
    step("pm", phase="planning"),
    step("architect", "pm", phase="design"),
    step("code", "architect", phase="code"),
)
POLLING = Option("polling", "low", "slower", rework=("architect",))
QUEUE = Option("queue", "high", "faster")
LIVE_WITH_IT = Option("live with it", accept=True)
OFFER = (POLLING, QUEUE, LIVE_WITH_IT)


def limits_it(*to: str, options: tuple[Option, ...] = OFFER, **more: Any) -> Feedback:
    message = more.pop("message", "no websockets here")
    return Feedback(Kind.CONSTRAINT_VIOLATION, to or ("architect", "pm"), message, options=options, **more)


def chooses(*options: str) -> Any:
    """A script of a step that chooses these options one after the other, and works otherwise."""
    wanted = iter(options)

    def script(play: Play, name: str) -> Reply:
        running = play.s.steps[name].running
        assert running is not None
        if running.mode == "decide":
            return out("not kept", decision=Decision(next(wanted), f"{name} knows"))
        return grows(play, name)

    return script


def choosing(feedback: Feedback | None = None, wait: bool = False, **scripts: Any) -> Play:
    """The code is being written and hits a constraint."""
    more = scripts.pop("flow", {})
    play = Play(flow(*STEPS, **more), {"pm": grows, "architect": grows, "code": grows, **scripts})
    play.finish("pm")
    play.finish("architect")
    play.raises("code", feedback or limits_it())
    if wait:
        play.do(c.BeginWait("L-1", "code", 1))
    return play


def choice_of(play: Play) -> ChosenOption:
    choice = play.loop().choice
    assert choice is not None
    return choice


def test_each_target_is_asked_and_the_agreed_option_is_carried_out() -> None:
    play = choosing(architect=chooses("polling"), pm=chooses("Polling ")).run()
    loop = play.loop()
    assert (choice_of(play).option, choice_of(play).by) == ("polling", "architect, pm")
    assert [(each.who, each.option, each.reason) for each in loop.positions] == [
        ("pm", "polling", "pm knows"),
        ("architect", "polling", "architect knows"),
    ]
    # pm: work, decide; architect: work, decide, rework; code: twice.
    assert play.attempts() == {"pm": 2, "architect": 3, "code": 2}
    assert (loop.state, loop.round, loop.targets) == (LoopState.RESOLVED, 1, ("architect", "pm"))
    assert play.s.rounds == 3
    assert play.outcome == "done"


def test_a_choice_leaves_artifacts_as_they_are() -> None:
    play = choosing(architect=chooses("queue"), pm=chooses("queue")).run()
    assert [step.artifact.version for step in play.s.steps.values() if step.artifact] == [1, 1, 2]
    assert [event.mode for event in play.of(e.AttemptStarted) if event.step == "architect"] == ["work", "decide"]


def test_the_options_and_every_earlier_position_are_in_the_briefing() -> None:
    play = choosing(architect=chooses("queue", "polling"), pm=chooses("polling", "polling")).run()
    first, second = (briefing.feedback.requests[0] for briefing in play.briefings["pm"][1:])
    assert [briefing.mode for briefing in play.briefings["pm"]] == ["work", "decide", "decide"]
    assert first.options == OFFER
    assert [(each.round, each.who, each.option) for each in second.positions][:2] == [
        (1, "pm", "polling"),
        (1, "architect", "queue"),
    ]


def test_the_briefing_of_a_chosen_rework_names_the_option() -> None:
    play = choosing(architect=chooses("polling"), pm=chooses("polling")).run()
    request = play.briefings["architect"][-1].feedback.requests[0]
    assert play.briefings["architect"][-1].mode == "rework"
    assert request.choice is not None
    assert (request.choice.option, request.message) == ("polling", "no websockets here")


def test_the_source_continues_with_the_resolution() -> None:
    play = choosing(architect=chooses("queue"), pm=chooses("queue")).run()
    resolution = play.briefings["code"][1].feedback.resolutions[0]
    assert (resolution.state, resolution.option, resolution.by, resolution.text) == (
        "chosen",
        "queue",
        "architect, pm",
        "architect knows; pm knows",
    )
    assert resolution.answers == {
        "architect": {"option": "queue", "reason": "architect knows"},
        "pm": {"option": "queue", "reason": "pm knows"},
    }
    assert play.loop().resolution == Resolution(
        "resolved", "architect, pm", resolution.text, "queue", resolution.answers
    )


def test_a_waiting_attempt_gets_the_choice_without_being_rerun() -> None:
    play = choosing(architect=chooses("polling"), pm=chooses("polling"), wait=True)
    for name in ("architect", "pm", "architect"):
        play.finish(name)
    assert play.loop().result_delivered
    play.finish("code")
    assert play.attempts()["code"] == 1
    assert play.loop().state is LoopState.RESOLVED


def test_disagreement_causes_one_more_round_and_then_an_escalation() -> None:
    play = choosing(architect=chooses("queue", "queue"), pm=chooses("polling", "polling")).run()
    assert play.loop().state is LoopState.ESCALATING
    assert (play.loop().round, play.loop().routed_by) == (2, "explicit")
    packet = play.s.escalations["E-1"]
    assert packet.reason == (
        "the targets do not agree: architect is for 'queue' (architect knows); pm is for 'polling' (pm knows)"
    )
    play.decide("resolve", option="polling", note="cheap", by="eva").run()
    assert choice_of(play).by == "eva"
    assert play.attempts() == {"pm": 3, "architect": 4, "code": 2}
    assert (play.loop().state, play.outcome) == (LoopState.RESOLVED, "done")


def test_an_option_itself_is_an_answer() -> None:
    play = choosing(architect=chooses("queue", "queue"), pm=chooses("polling", "polling")).run()
    play.decide("Polling").run()
    assert (choice_of(play).option, play.loop().state) == ("polling", LoopState.RESOLVED)


def test_after_a_disagreement_a_person_can_let_the_targets_choose_again() -> None:
    play = choosing(architect=chooses("queue", "queue", "polling"), pm=chooses("polling", "polling", "polling")).run()
    play.decide("continue", note="think of the price").run()
    assert play.briefings["pm"][3].feedback.advice == ("think of the price",)
    assert play.loop().state is LoopState.RESOLVED
    assert play.loop().round == 3


def test_a_disagreement_escalates_with_the_limit_that_forbids_another_round() -> None:
    play = choosing(architect=chooses("queue"), pm=chooses("polling"), flow={"limits": {"rounds_per_loop": 1}}).run()
    assert play.breach() == "rounds_per_loop"


def test_a_position_taken_while_a_person_decides_waits_for_the_decision() -> None:
    play = choosing(architect=chooses("queue"), pm=chooses("queue"))
    play.do(c.EscalateLoop("L-1"))
    play.finish("architect")
    play.finish("pm")
    assert (play.loop().choice, len(play.loop().current_positions)) == (None, 2)
    play.decide("resolve", option="live with it")
    assert play.loop().state is LoopState.ACCEPTED


def breaks(play: Play, name: str) -> Play:
    """Let a target break until a person is asked about it."""
    for _ in range(3):
        play.finish(name, RuntimeError("broken"))
        play.now += 60
        play.do(c.Proceed())
    return play


def replayed(play: Play) -> Play:
    assert replay(play.events) == play.s
    return play


@pytest.mark.parametrize("agreement", ["first", "all", "authority"])
def test_a_broken_target_does_not_take_the_choice_from_the_others(agreement: str) -> None:
    more = {"agreement": agreement, "authority": ("architect", "pm")}
    play = breaks(choosing(pm=chooses("queue"), flow=more), "architect")
    assert (play.loop().state, play.s.escalations["E-1"].step) == (LoopState.RESOLVING, "architect")
    play.finish("pm")
    assert choice_of(play) == ChosenOption("queue", "pm", "pm knows")
    assert play.s.escalations == {}
    assert play.of(e.EscalationDecided)[0].note == "the choice in L-1 is made without it"
    assert replayed(play.run()).outcome == "done"


def test_a_target_that_breaks_last_leaves_the_choice_to_those_that_answered() -> None:
    play = choosing(pm=chooses("queue"))
    play.finish("pm")
    breaks(play, "architect")
    assert (choice_of(play).by, play.s.escalations) == ("pm", {})
    assert replayed(play.run()).outcome == "done"


def test_a_person_answers_for_a_broken_target() -> None:
    play = breaks(choosing(pm=chooses("queue")), "architect")
    offered = [each for each in packet(play.s, "E-1").options if each.choice == "resolve"]
    assert [(each.option, each.next) for each in offered] == [
        ("polling", "'polling' counts as the position of architect"),
        ("queue", "'queue' counts as the position of architect"),
        ("live with it", "'live with it' counts as the position of architect"),
        ("", "your answer counts as the position of architect"),
    ]
    assert packet(play.s, "E-1").message == "no websockets here"
    with pytest.raises(IllegalCommand, match="resolve needs an answer"):
        play.decide("resolve")
    with pytest.raises(IllegalCommand, match="was not offered"):
        play.decide("resolve", option="poling")
    play.decide("resolve", option="queue", note="for them")
    play.finish("pm")
    assert (choice_of(play).by, choice_of(play).reason) == ("architect, pm", "for them; pm knows")
    assert replayed(play.run()).outcome == "done"


def test_skipping_a_broken_target_keeps_the_positions_of_the_others() -> None:
    play = breaks(choosing(limits_it("architect", "pm", HUMAN), pm=chooses("queue")), "architect")
    play.finish("pm")
    play.decide("skip", "E-2")
    assert (play.loop().current_positions[0].option, tuple(play.loop().shares)) == ("queue", ("pm", HUMAN))
    assert play.s.steps["architect"].skipped_by_decision is False
    play.decide("resolve", "E-1", option="queue")
    assert replayed(play.run()).outcome == "done"


def test_if_every_target_breaks_the_loop_escalates_and_a_person_answers_for_one() -> None:
    play = choosing(wait=True)
    breaks(breaks(play, "architect"), "pm")
    waiter = play.s.steps["code"].running
    assert waiter is not None
    assert (play.loop().state, waiter.awaits) == (LoopState.ESCALATING, ())
    play.decide("resolve", "E-1", option="queue")
    assert choice_of(play).by == "architect"
    assert replayed(play.run()).outcome == "done"


def test_if_every_target_breaks_one_of_them_can_try_again() -> None:
    play = breaks(breaks(choosing(architect=chooses("queue")), "architect"), "pm")
    play.decide("continue", "E-1")
    assert play.loop().state is LoopState.RESOLVING
    play.finish("architect")
    assert choice_of(play).by == "architect"


def test_if_every_target_is_skipped_a_person_chooses() -> None:
    play = breaks(choosing(limits_it("pm")), "pm")
    play.decide("skip")
    assert play.s.escalations["E-2"].reason == "no target is left to choose: skipped by a person"
    assert "continue" not in play.s.escalations["E-2"].options
    play.decide("resolve", option="queue")
    assert replayed(play.run()).outcome == "done"


def test_a_vote_can_be_cancelled_with_the_run() -> None:
    play = breaks(choosing(), "architect")
    assert {each.choice for each in packet(play.s, "E-1").options} == {"resolve", "continue", "skip", "cancel"}
    assert play.decide("cancel").outcome == "cancelled"
    assert "resolve" in [each.choice for each in packet(play.s, "E-1").options]


def test_a_target_in_doubt_does_not_take_the_choice_from_the_others() -> None:
    play = choosing(pm=chooses("queue"))
    play.do(c.DropAttempt("architect", 2, "in doubt"))
    assert (play.s.escalations["E-1"].vote, play.loop().state) == ("L-1", LoopState.RESOLVING)
    play.finish("pm")
    assert replayed(play.run()).outcome == "done"


def test_the_last_target_in_doubt_leaves_the_choice_to_a_person() -> None:
    play = choosing(limits_it("pm"))
    play.do(c.DropAttempt("pm", 2, "in doubt"))
    assert play.loop().state is LoopState.ESCALATING
    play.decide("continue")
    play.finish("pm", out("", decision=Decision("queue")))
    assert replayed(play.run()).outcome == "done"


def test_a_broken_target_that_is_asked_in_a_new_choice_is_handed_over_at_once() -> None:
    play = breaks(choosing(limits_it("pm", "architect"), architect=chooses("queue", "queue")), "pm")
    play.finish("architect")
    play.raises("code", limits_it("pm", "architect", message="no workers either"))
    assert play.s.escalations["E-2"].vote == "L-2"
    play.finish("architect")
    assert replayed(play.run()).outcome == "done"


def test_a_person_who_does_not_answer_leaves_the_choice_to_the_others() -> None:
    play = choosing(limits_it("pm", HUMAN), pm=chooses("queue"))
    play.now += 601
    play.do(c.Proceed())
    assert play.of(e.TargetSkipped)[0].reason == "no answer within 600 s"
    assert (play.loop().state, play.loop().breach, list(play.s.escalations)) == (LoopState.RESOLVING, None, ["E-1"])
    assert play.wakes() == []
    play.finish("pm")
    assert (choice_of(play).by, play.s.escalations) == ("pm", {})
    assert replayed(play.run()).outcome == "done"


def test_a_person_may_still_answer_late() -> None:
    play = choosing(limits_it("pm", HUMAN))
    play.now += 601
    play.do(c.Proceed())
    play.decide("resolve", option="queue", by="ann")
    assert choice_of(play).by == "ann"


def test_a_person_who_does_not_answer_is_overdue_if_no_one_else_can_choose() -> None:
    play = breaks(choosing(limits_it("pm", HUMAN)), "pm")
    play.now += 601
    play.do(c.Proceed())
    assert play.of(e.TargetSkipped) == []
    assert play.loop().state is LoopState.ESCALATING


def test_with_agreement_first_the_first_position_wins() -> None:
    play = choosing(architect=chooses("queue"), pm=chooses("polling"), flow={"agreement": "first"})
    play.finish("pm")
    assert choice_of(play).by == "pm"
    # The architect has not answered, and its answer does not matter any more; it reworks after that.
    play.run()
    assert [(event.target, event.option) for event in play.of(e.PositionTaken)] == [("pm", "polling")]
    assert play.attempts() == {"pm": 2, "architect": 3, "code": 2}
    assert play.loop().state is LoopState.RESOLVED


def test_with_agreement_first_the_remaining_targets_are_not_asked() -> None:
    play = Play(
        flow(*STEPS, agreement="first"), {"architect": chooses("queue"), "pm": chooses("queue"), "code": grows}, slots=1
    )
    play.finish("pm")
    play.finish("architect")
    play.raises("code", limits_it())
    play.run()
    assert len(play.of(e.PositionTaken)) == 1
    assert play.attempts() == {"pm": 2, "architect": 1, "code": 2}


@pytest.mark.parametrize(
    ("authority", "holds"), [(("architect", "pm"), "queue"), (("pm",), "polling"), (("code",), "queue")]
)
def test_the_highest_authority_wins_once_all_have_taken_a_position(authority: tuple[str, ...], holds: str) -> None:
    play = choosing(
        architect=chooses("queue"),
        pm=chooses("polling"),
        flow={"agreement": "authority", "authority": authority},
    )
    play.finish("architect")
    assert play.loop().choice is None
    play.run()
    assert choice_of(play).option == holds


def test_an_accepting_option_is_recorded_as_a_limitation() -> None:
    play = choosing(architect=chooses("live with it"), pm=chooses("live with it")).run()
    assert (play.loop().state, play.outcome) == (LoopState.ACCEPTED, "accepted")
    assert play.attempts() == {"pm": 2, "architect": 2, "code": 2}
    resolution = play.briefings["code"][1].feedback.resolutions[0]
    assert (resolution.state, resolution.option) == ("accepted", "live with it")


def test_an_accepting_option_is_delivered_to_the_waiting_attempt() -> None:
    play = choosing(architect=chooses("live with it"), pm=chooses("live with it"), wait=True)
    play.finish("architect")
    play.finish("pm")
    play.finish("code")
    assert (play.outcome, play.attempts()["code"]) == ("accepted", 1)


def test_without_offered_options_any_text_is_a_valid_choice() -> None:
    play = choosing(limits_it("pm", options=()), pm=chooses("use a proxy")).run()
    assert choice_of(play).option == "use a proxy"
    assert play.briefings["code"][1].feedback.resolutions[0].option == "use a proxy"


@pytest.mark.parametrize(
    ("decision", "options", "problem"),
    [
        (
            Decision("carrier pigeons"),
            OFFER,
            "option 'carrier pigeons' was not offered: use one of polling, queue, live",
        ),
        (None, OFFER, "no decision: the step was asked to choose among polling, queue, live with it"),
        (Decision(" "), (), "no decision: the step was asked to choose; return `decision`"),
    ],
)
def test_an_invalid_decision_is_an_agent_error(
    decision: Decision | None, options: tuple[Option, ...], problem: str
) -> None:
    play = choosing(limits_it("pm", options=options))
    play.finish("pm", out(None, decision=decision))
    assert problem in play.s.steps["pm"].last_error
    assert play.loop().positions == ()
    play.now += 10
    play.do(c.Proceed())
    play.finish("pm", out(None, decision=Decision("polling")))
    assert play.s.rounds == 1, "a retry is not another round"


def test_any_kind_with_options_starts_with_a_choice() -> None:
    question = ask("pm", kind=Kind.CONTEXT_REQUEST, options=(QUEUE, POLLING))
    play = choosing(question, pm=chooses("polling")).run()
    assert [event.mode for event in play.of(e.AttemptStarted) if event.step == "pm"] == ["work", "decide"]
    assert play.attempts()["architect"] == 2, "the chosen rework is done, also for a question"
    assert play.loop().state is LoopState.RESOLVED


def test_raising_it_again_starts_the_next_round_with_a_new_choice() -> None:
    again = iter([True, False])

    def code(play: Play, name: str) -> Reply:
        return out(f"code {play.now}", feedback=(limits_it("pm"),) if next(again, False) else ())

    play = Play(flow(*STEPS), {"pm": chooses("polling", "queue"), "architect": grows, "code": code})
    play.run()
    loop = play.loop()
    assert (play.opened(), loop.round, loop.state) == (1, 1, LoopState.RESOLVED)

    again = iter([True, True, False])
    play = Play(flow(*STEPS), {"pm": chooses("polling", "queue"), "architect": grows, "code": code})
    play.run()
    loop = play.loop()
    assert (play.opened(), loop.round, loop.state) == (1, 2, LoopState.RESOLVED)
    assert choice_of(play).option == "queue"
    assert [(each.round, each.option) for each in loop.positions] == [(1, "polling"), (2, "queue")]


def test_a_choice_by_a_person_in_the_inbox_is_final() -> None:
    play = choosing(limits_it("pm", HUMAN), pm=chooses("queue"), flow={"agreement": "all"})
    play.finish("pm")
    assert play.loop().choice is None, "the person has not spoken"
    with pytest.raises(IllegalCommand, match="option 'pigeons' was not offered"):
        play.decide("resolve", option="pigeons")
    play.decide("resolve", option="POLLING", by="eva")
    assert (choice_of(play).option, choice_of(play).by) == ("polling", "eva")
    play.run()
    assert play.attempts() == {"pm": 2, "architect": 2, "code": 2}
    assert (play.loop().state, play.s.escalations) == (LoopState.RESOLVED, {})


def test_a_choice_by_a_person_before_the_agents_is_final_too() -> None:
    play = choosing(limits_it("pm", HUMAN), pm=chooses("polling"))
    play.decide("resolve", option="queue", by="eva")
    play.run()
    loop = play.loop()
    assert loop.resolution == Resolution("resolved", "eva", "", "queue")
    assert loop.positions == ()
    assert play.briefings["code"][1].feedback.resolutions[0].option == "queue"


def test_a_person_may_accept_by_option() -> None:
    play = choosing(limits_it(HUMAN)).decide("resolve", option="live with it", by="eva").run()
    assert (play.loop().state, play.outcome) == (LoopState.ACCEPTED, "accepted")
    assert play.briefings["code"][1].feedback.resolutions[0].by == "eva"


def test_a_person_may_answer_with_free_text() -> None:
    play = choosing(limits_it(HUMAN)).decide("resolve", note="ask again next year").run()
    assert (play.loop().choice, play.loop().state) == (None, LoopState.RESOLVED)


def test_the_question_to_a_person_closes_when_the_first_position_wins() -> None:
    play = choosing(limits_it("pm", HUMAN), pm=chooses("queue"), flow={"agreement": "first"})
    play.finish("pm")
    assert play.s.escalations == {}
    decided = play.s.escalation("E-1")
    assert decided is not None and decided.decided is not None
    assert (decided.decided.choice, decided.decided.option) == ("chosen", "queue")
    assert play.run().outcome == "done"


def test_a_chosen_rework_stays_within_the_limits() -> None:
    play = choosing(limits_it("pm"), pm=chooses("polling"), flow={"limits": {"rounds_total": 1}}).run()
    assert play.breach() == "rounds_total"
    play.decide("continue", rounds=1).run()
    assert (play.loop().state, play.attempts()["architect"]) == (LoopState.RESOLVED, 2)


def test_a_chosen_rework_can_be_reassigned() -> None:
    play = choosing(limits_it("pm"), pm=chooses("polling"), flow={"limits": {"rounds_total": 1}}).run()
    play.decide("reassign", target="pm", rounds=2).run()
    assert (play.loop().state, play.attempts()) == (LoopState.RESOLVED, {"pm": 3, "architect": 2, "code": 2})


def test_a_persons_choice_among_agents_is_verified_by_that_person() -> None:
    play = Play(flow(*STEPS), {"pm": chooses("polling"), "architect": grows, "code": grows}).run()
    play.raises(HUMAN, limits_it("pm")).run()
    assert play.s.escalations["E-1"].reason == "the fix waits for your verification"
    play.decide("resolve", note="good").run()
    assert play.outcome == "done"


def test_a_persons_question_among_options_needs_no_verification() -> None:
    play = Play(flow(*STEPS), {"pm": chooses("queue")}).run()
    play.raises(HUMAN, limits_it("pm")).run()
    assert (play.outcome, play.loop().state) == ("done", LoopState.RESOLVED)
    assert choice_of(play).option == "queue"


def test_a_step_that_a_person_does_chooses_by_hand() -> None:
    by_hand = (step("pm", phase="planning", agents=(HUMAN,)), *STEPS[1:])
    play = Play(flow(*by_hand)).decide("resolve", note="the plan")
    play.finish("architect")
    play.raises("code", limits_it("pm"))
    with pytest.raises(IllegalCommand, match="option 'pigeons' was not offered"):
        play.decide("resolve", option="pigeons")
    play.decide("resolve", option="queue", note="fits").run()
    assert play.loop().positions[0].option == "queue"
    assert play.s.steps["pm"].artifact is not None and play.s.steps["pm"].artifact.version == 1
    assert play.outcome == "done"


def test_questions_are_answered_first_and_choices_are_made_one_at_a_time() -> None:
    play = choosing(limits_it("pm", message="first"), pm=chooses("queue", "queue"))
    play.raises("code", limits_it("pm", message="second"))
    play.raises("code", ask("pm", kind=Kind.CONTEXT_REQUEST, message="and which port?"))
    play.finish("pm")
    play.finish("pm", out(None, answer=8080))
    play.finish("pm")
    modes = [(event.mode, event.loops) for event in play.of(e.AttemptStarted) if event.step == "pm"]
    assert modes == [("work", ()), ("decide", ("L-1",)), ("answer", ("L-3",)), ("decide", ("L-2",))]


def test_the_loop_is_in_the_inbox_of_those_that_chose_and_those_that_rework() -> None:
    play = choosing(limits_it("pm"), pm=chooses("polling"))
    play.finish("pm")
    assert [notice.message for notice in notices(play.s, "pm")] == ["no websockets here"]
    assert [notice.message for notice in notices(play.s, "architect")] == ["no websockets here"]


def test_a_skipped_target_still_chooses() -> None:
    play = choosing(limits_it("pm"), pm=chooses("queue"))
    play.finish("pm", RuntimeError("broken"))
    for _ in range(2):
        play.now += 60
        play.do(c.Proceed())
        play.finish("pm", RuntimeError("broken"))
    play.decide("continue").run()
    assert play.loop().state is LoopState.RESOLVED


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (Option("x", rework=("architct",)), "rework of 'architct', which does not exist: did you mean 'architect'?"),
        (Option("x", rework=("code",)), "asks for rework of 'code', the source itself"),
        (
            Option("x", rework=("review",)),
            "asks for rework of 'review', a judge: name the step under judgement (architect)",
        ),
        (Option(" "), "an option has no text"),
        (Option("x", rework=("pm",), accept=True), "both accepts and asks for rework"),
    ],
)
def test_options_that_cannot_be_carried_out_are_refused(option: Option, reason: str) -> None:
    play = Play(flow(*STEPS, step("review", reviews="architect"), step("ship", "code", phase="test")))
    play.finish("pm")
    play.finish("architect")
    play.finish("review")
    play.raises("code", limits_it("pm", options=(option,)))
    assert reason in play.of(e.RefusedFeedback)[0].reason
    assert play.opened() == 0


def test_a_repetition_that_can_go_nowhere_is_an_error_and_the_loop_stays_open_for_the_next_attempt() -> None:
    offers = iter([(QUEUE,), (Option("x", rework=("nobody",)),), ()])

    def code(play: Play, name: str) -> Reply:
        offered = next(offers)
        return out(play.now, feedback=(limits_it("pm", options=offered),) if offered else ())

    play = Play(flow(*STEPS), {"pm": chooses("queue"), "architect": grows, "code": code}).run()
    assert (play.loop().state, play.opened(), play.outcome) == (LoopState.RESOLVED, 1, "done")
    assert "its feedback can go nowhere: option 'x'" in play.of(e.AttemptFailed)[0].error
    assert not play.of(e.RefusedFeedback)


def test_a_chosen_rework_cannot_feed_its_own_cause() -> None:
    play = Play(flow(*STEPS), {"pm": grows, "architect": grows, "code": grows})
    play.finish("pm")
    play.raises("architect", ask("pm"))
    play.finish("architect")
    play.raises("pm", Feedback(Kind.FIX_REQUEST, (HUMAN,), "which?", options=(Option("x", rework=("architect",)),)))
    assert "causal cycle: architect → pm → architect" in play.of(e.RefusedFeedback)[0].reason


def test_options_of_the_same_name_are_refused() -> None:
    play = Play(flow(*STEPS))
    play.finish("pm")
    play.finish("architect")
    play.raises("code", limits_it("pm", options=(Option("x", rework=("architect",)), Option(" X "))))
    assert play.of(e.RefusedFeedback)[0].reason == "option ' X ' is offered twice: give each option its own text"


def test_a_kind_resolved_by_rework_is_reworked_after_the_choice() -> None:
    which = ask("pm", "architect", message="which?", options=(QUEUE, Option("none of it", accept=True)))
    scripts = {
        "pm": [out("plan"), out(decision=Decision("queue")), out("plan with a queue")],
        "architect": [out("design"), out(decision=Decision("queue")), out("design with a queue")],
        "code": [out(1, feedback=(which,)), out(2)],
    }
    play = Play(flow(*STEPS), scripts).run()
    assert [each.mode for each in play.briefings["pm"]] == ["work", "decide", "rework"]
    assert [each.mode for each in play.briefings["architect"]] == ["work", "decide", "rework"]
    (request,) = play.briefings["architect"][2].feedback.requests
    assert request.choice is not None and request.choice.option == "queue"
    assert (play.loop().round, play.loop().state, play.attempts()["code"]) == (1, LoopState.RESOLVED, 2)


@pytest.mark.parametrize("kind", [Kind.CONTEXT_REQUEST, Kind.CONSTRAINT_VIOLATION])
def test_other_kinds_are_settled_by_the_choice_alone(kind: Kind) -> None:
    which = ask("pm", kind=kind, message="which?", options=(QUEUE,))
    scripts = {"pm": [out("plan"), out(decision=Decision("queue"))], "code": [out(1, feedback=(which,)), out(2)]}
    play = Play(flow(*STEPS), scripts).run()
    assert [each.mode for each in play.briefings["pm"]] == ["work", "decide"]


def asks_which(play: Play, rework: str) -> Play:
    play.finish("pm")
    offer = Option("x", rework=(rework,))
    return play.raises("architect", Feedback(Kind.FIX_REQUEST, ("pm",), "which?", options=(offer,)))


def test_an_option_may_send_a_later_step_to_rework() -> None:
    """The target that chose it wants that, and rounds_total counts it."""
    play = asks_which(Play(flow(*STEPS), {"pm": grows, "architect": grows, "code": grows}), "code")
    play.finish("architect")
    play.finish("pm", out(None, decision=Decision("x")))
    play.run()
    assert [briefing.feedback.requests[0].message for briefing in play.briefings["code"][:1]] == ["which?"]
    assert (play.loop().state, play.outcome) == (LoopState.RESOLVED, "done")


def test_where_only_pairs_bound_a_run_its_options_stay_within_the_scope() -> None:
    only_pairs = {"rounds_total": None, "rounds_per_pair": 2}
    play = asks_which(Play(flow(*STEPS, limits=only_pairs)), "code")
    assert play.of(e.RefusedFeedback)[0].reason == (
        "option 'x' asks for rework of 'code', which is out of scope for 'architect' (only rounds_per_pair bounds this run): "
        "use one of: pm"
    )
    play = Play(flow(*STEPS, limits=only_pairs))
    play.raises("pm", Feedback(Kind.FIX_REQUEST, (HUMAN,), "which?", options=(Option("x", rework=("code",)),)))
    assert play.of(e.RefusedFeedback)[0].reason.endswith("bounds this run): leave rework out")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"authority": ("architct",)}, "authority names 'architct', which is not a step: did you mean 'architect'?"),
        ({"agreement": "authority"}, "agreement is 'authority', but authority is empty"),
    ],
)
def test_an_invalid_order_of_authority_is_refused(more: dict[str, Any], problem: str) -> None:
    assert any(problem in each for each in problems_of(flow(*STEPS, **more)))
    assert problems_of(flow(*STEPS, agreement="authority", authority=("pm", HUMAN))) == ()


class TestInWords:
    def test_a_choosing_target_reads_the_options_and_earlier_positions(self) -> None:
        play = choosing(architect=chooses("queue", "polling"), pm=chooses("polling", "polling")).run()
        text = feedback_text(play.briefings["pm"][-1])
        assert "### constraint_violation from code (high, L-1)" in text
        assert "Choose one of these, and say why:" in text
        assert "- polling (effort low; impact slower; rework of architect)" in text
        assert "- queue (effort high; impact faster)" in text
        assert "- live with it (accepted as a limitation)" in text
        assert "```\nWhat was preferred so far:\n```\n- Round 1: " in text, "positions are not options"
        assert "- Round 1: architect prefers queue, because architect knows" in text

    def test_targets_that_are_asked_together_read_how_they_agree(self) -> None:
        play = choosing(architect=chooses("queue"), pm=chooses("queue")).run()
        text = feedback_text(play.briefings["pm"][1])
        assert "Asked: architect, pm. All have to choose the same option." in text

    def test_without_options_the_target_is_asked_what_should_be_done(self) -> None:
        play = choosing(limits_it("pm", options=()), pm=lambda p, n: out(None, decision=Decision("proxy")))
        assert "Say what should be done, and why." in feedback_text(play.briefings["pm"][-1])

    def test_positions_without_reasons_have_none(self) -> None:
        silent: Any = {name: lambda p, n: out(None, decision=Decision(n)) for name in ("pm", "architect")}
        play = choosing(limits_it(options=(Option("pm"), Option("architect"))), **silent)
        for _ in range(3):
            play.finish("pm" if play.s.steps["pm"].running else "architect")
        assert "- Round 1: pm prefers pm\n" in feedback_text(play.briefings["architect"][-1]) + "\n"

    def test_a_reworking_step_reads_what_was_chosen(self) -> None:
        play = choosing(limits_it("pm"), pm=chooses("polling")).run()
        text = feedback_text(play.briefings["architect"][-1])
        assert "Chosen by pm. Do your part of it:\n```\npolling (pm knows)\n```" in text
        about = "What was said about that option:\n```\neffort low; impact slower; rework of architect\n```"
        assert about in text
        assert "- queue" not in text

    def test_the_source_reads_what_was_chosen_and_by_whom(self) -> None:
        play = choosing(architect=chooses("queue"), pm=chooses("queue")).run()
        text = feedback_text(play.briefings["code"][-1])
        heading = "### The feedback you raised (L-1, constraint_violation) is chosen by architect, pm\n"
        assert f"{heading}```\nno websockets here\nChosen: queue\narchitect: queue (architect knows)\n" in text
        assert "\narchitect: queue (architect knows)\npm: queue (pm knows)\n```" in text

    def test_a_choice_without_a_reason_has_none(self) -> None:
        play = choosing(limits_it("pm"), pm=lambda p, n: out(p.now, decision=Decision("polling"))).run()
        assert "Chosen by pm. Do your part of it:\n```\npolling\n```" in feedback_text(play.briefings["architect"][-1])
        assert "\nChosen: polling\npm: polling\n```" in feedback_text(play.briefings["code"][-1])


SKIPPABLE = (
    step("pm", phase="planning"),
    step("ui", "pm", phase="design", when=("pm:/ui",)),
    step("code", "pm", "ui", phase="code"),
)
WIDGETS = Option("new widgets", rework=("ui",))


def without_ui(*options: Option) -> Play:
    """Code asks the pm among options, and the step `ui` is skipped."""
    play = Play(flow(*SKIPPABLE), {"pm": [out({"ui": False}), out("", decision=Decision("queue"))], "code": grows})
    play.finish("pm")
    return play.raises("code", limits_it("pm", options=options))


def test_an_option_whose_rework_cannot_run_is_not_offered() -> None:
    play = without_ui(WIDGETS, QUEUE)
    assert [option.option for option in play.briefings["pm"][1].feedback.requests[0].options] == ["queue"]
    play.finish("pm", out("", decision=Decision("new widgets")))
    assert play.s.steps["pm"].last_error == "option 'new widgets' was not offered: use one of queue"
    assert play.run().outcome == "done"


def test_an_option_with_a_step_that_can_run_is_offered() -> None:
    play = without_ui(Option("both", rework=("ui", "pm")), QUEUE)
    assert [option.option for option in play.briefings["pm"][1].feedback.requests[0].options] == ["both", "queue"]


def test_if_no_option_can_be_carried_out_any_text_is_a_choice() -> None:
    play = without_ui(WIDGETS)
    assert play.briefings["pm"][1].feedback.requests[0].options == ()
    assert play.run().outcome == "done"
    assert choice_of(play).option == "queue"
