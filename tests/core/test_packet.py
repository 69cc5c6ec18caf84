"""The decision packet: the reason, the numbers, the history of the loop, and what each option does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand, NotFound
from backedge.core.escalation.packet import Packet, packet
from backedge.core.evidence.values import ProtectedChange, ProtectedQuestion
from backedge.core.feedback.raising import missing_words, said_words
from backedge.core.model import HUMAN, Breach, Feedback, Finding, Kind, MalformedFeedback, Option, Severity
from tests.core.play import Play, Reply, ask, failed, flow, grows, out, passed, seen, step, texts
from tests.core.strategies import Pick, a_random_run, effort, picks

WORK = (
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("review", reviews="design"),
    step("code", "design", phase="code"),
)


def stuck(*replies: Reply, **more: Any) -> Play:
    """A review whose loop was stopped after its first round."""
    limits = more.pop("limits", {"rounds_per_loop": 1, "cost_usd": 5.0})
    reviews = list(replies) or [failed("x"), failed("y", Finding("z", severity=Severity.CRITICAL)), passed()]
    return Play(flow(*WORK, limits=limits, **more), {"plan": grows, "design": grows, "review": reviews}).run()


def newest(play: Play) -> Packet:
    return packet(play.s, list(play.s.escalations)[-1])


def chosen(shown: Packet, choice: str) -> Any:
    return next(each for each in shown.options if each.choice == choice and not each.option)


def test_a_packet_has_the_reason_the_loop_and_the_numbers() -> None:
    shown = newest(stuck())
    assert (shown.run, shown.escalation, shown.loop, shown.step) == ("r", "E-1", "L-1", None)
    assert (shown.reason, shown.breach) == ("limit rounds_per_loop (1/1)", Breach("rounds_per_loop", 1, 1))
    assert (shown.kind, shown.source, shown.targets) == ("review_rejection", "review", ("design",))
    assert (shown.severity, shown.blocking, shown.rounds, shown.message) == (Severity.CRITICAL, False, 1, "")
    assert shown.numbers == (
        Breach("cost_usd", 0, 5),
        Breach("rounds_total", 1, 20),
        Breach("rounds_per_loop", 1, 1),
        Breach("same_finding", 1, 6),
        Breach("no_change", 0, 2),
        Breach("oscillation", 0, 2),
    )


def test_a_round_that_stopped_after_its_first_target_has_all_numbers_of_its_loop() -> None:
    for_both = failed(Finding("p", affected_phase=("planning",)), "d")
    shown = newest(stuck(failed("x"), for_both, limits={"rounds_total": 2}))
    assert shown.breach == Breach("rounds_total", 2, 2)
    assert Breach("rounds_per_loop", 2, 5) in shown.numbers


def test_a_packet_has_the_rounds_with_the_current_status_of_their_findings() -> None:
    first, now = newest(stuck()).history
    assert (first.number, first.targets, first.state) == (1, ("design",), "done")
    assert [(each.id, each.description, each.status) for each in first.findings] == [("F-1", "x", "unconfirmed")]
    assert (now.number, now.targets, now.state, texts(now.findings)) == (2, ("design",), "next", ["y", "z"])


def test_a_question_about_changed_tests_says_what_each_answer_does() -> None:
    changed = seen(out("c"), tree="t", changes=(ProtectedChange("test_a.py", "changed", "d"),))
    asking = seen(passed(), tree="t", questions=(ProtectedQuestion("test_a.py", "d", "test_a no longer runs"),))
    work = flow(step("code"), step("test", tests="code", tool=True))
    shown = newest(Play(work, {"code": [changed], "test": [asking]}).run())
    assert [(each.choice, each.next, each.effort, each.impact) for each in shown.options] == [
        ("approve", "the changed files count as they are now", "none", "the run can be verified"),
        (
            "reject",
            "the changes go back, as findings, to the steps that made them",
            "one more round",
            "the old version counts",
        ),
        ("cancel", "the run ends as cancelled, and everything open is closed", "none", "the work is kept"),
    ]


@pytest.mark.parametrize(("word", "choice"), [("pass", "approve"), ("fail", "reject")])
def test_a_question_about_changed_tests_understands_pass_and_fail(word: str, choice: str) -> None:
    changed = seen(out("c"), tree="t", changes=(ProtectedChange("test_a.py", "changed", "d"),))
    asking = seen(passed(), tree="t", questions=(ProtectedQuestion("test_a.py", "d", "test_a no longer runs"),))
    play = Play(flow(step("code"), step("test", tests="code", tool=True)), {"code": [changed], "test": [asking]}).run()
    play.decide(word, note="it hides a defect")
    assert play.of(e.EscalationDecided)[0].choice == choice


def test_a_person_who_is_told_about_refused_feedback_may_go_on() -> None:
    shown = newest(Play(flow(step("code"))).raises("code", ask("nobody")))
    assert chosen(shown, "continue").next == "the run goes on; the feedback stays undelivered"


def test_each_option_has_its_effort_its_impact_and_what_is_next() -> None:
    shown = newest(stuck())
    assert [each.choice for each in shown.options] == list(stuck().s.escalations["E-1"].options)
    continued = chosen(shown, "continue")
    assert continued.next == "design reworks F-2, F-3; then review verifies the fix"
    assert continued.effort == "up to 3 attempts per round"
    assert continued.impact == "every limit of L-1 is raised by 3 rounds"
    assert chosen(shown, "accept").next == "L-1 is closed; review counts as passed; F-2, F-3 are recorded as debt"
    assert chosen(shown, "accept").impact == "the run ends as accepted at best"
    assert chosen(shown, "skip").next == "review is skipped, and what needs it continues without it"
    assert chosen(shown, "resolve").next == "your answer closes L-1; review runs once more with it"
    assert chosen(shown, "cancel").impact == "the work is kept"
    assert {each.choice: each.needs for each in shown.options if each.needs} == {
        "revise": ("note",),
        "reassign": ("target",),
        "reclassify": ("phase",),
        "resolve": ("option", "note"),
    }


def test_continue_mentions_what_it_grants_to_the_run() -> None:
    shown = newest(stuck(limits={"rounds_total": 1}))
    assert chosen(shown, "continue").impact.endswith("raised by 3 rounds, and so is rounds_total of the run")


def test_the_options_of_the_feedback_come_first() -> None:
    play = Play(flow(*WORK))
    play.finish("plan")
    accepting = Option("as it is", accept=True)
    offers = (Option("polling", "low", "slower", ("plan", "code")), Option("push", "high"), accepting)
    play.raises("design", ask(HUMAN, message="which?", options=offers, severity=Severity.LOW))
    shown = newest(play)
    assert (shown.reason, shown.message, shown.targets) == ("asked", "which?", (HUMAN,))
    polling, push, limitation = shown.options[:3]
    assert (polling.choice, polling.option, polling.effort, polling.impact) == ("resolve", "polling", "low", "slower")
    assert polling.next == "rework of plan, code with 'polling'; design runs once more with it"
    assert push.next == "L-1 is closed with 'push'; design runs once more with it"
    assert limitation.next == (
        "L-1 is accepted as 'as it is': the run ends as accepted at best; design runs once more with it"
    )
    assert [each.choice for each in shown.options[3:]] == ["resolve", "accept", "skip", "cancel"]
    assert (
        chosen(shown, "accept").next
        == "L-1 is closed; design continues as it is; what design asked for is recorded as debt"
    )
    assert (shown.history[0].state, shown.history[0].message) == ("under way", "which?")


def test_options_of_feedback_to_a_step_can_be_chosen_when_its_loop_is_escalated() -> None:
    play = Play(flow(*WORK, limits={"rounds_per_loop": 0}))
    play.finish("plan")
    play.raises("design", ask("plan", options=(Option("polling"),)))
    shown = newest(play)
    assert [each.option for each in shown.options if each.option] == ["polling"]
    assert chosen(shown, "continue").next == "plan chooses among the options"


def test_a_question_that_a_limit_stopped_is_asked_on_continue() -> None:
    play = Play(flow(*WORK, limits={"rounds_per_loop": 0}))
    play.raises("plan", ask(HUMAN))
    continued = chosen(newest(play), "continue")
    assert (continued.next, continued.effort) == ("the question goes to the inbox", "your answer")


def test_a_person_is_asked_to_verify_the_fix_of_their_feedback() -> None:
    play = Play(flow(step("a")), {"a": grows}).run().person_raises("a").run()
    shown = newest(play)
    assert shown.reason == "the fix waits for your verification"
    assert chosen(shown, "continue").next == "a reworks what human asked for; then you verify the fix"
    assert chosen(shown, "resolve").next == "your answer closes L-1; nothing runs again"
    assert shown.history[-1].state == "done"
    stopped = Play(flow(step("a"), limits={"rounds_per_loop": 0})).run().person_raises("a")
    assert chosen(newest(stopped), "skip").next == "L-1 is closed; the fix is not verified"


def test_a_fix_made_while_a_person_was_asked_is_verified_on_continue() -> None:
    work = flow(step("code", "plan"), step("plan"), step("x"), scope="any")
    play = Play(work, {"plan": grows})
    play.finish("plan")
    for source, target, loop, attempt in (("x", "code", "L-1", 1), ("code", "plan", "L-2", 1), ("plan", "x", "L-3", 2)):
        play.raises(source, ask(target))
        play.do(c.BeginWait(loop, source, attempt))
    play.do(c.EndWait("L-3", "plan", 2))
    play.finish("plan")
    assert chosen(newest(play), "continue").next == "code verifies the fix"


def test_the_packet_of_a_failing_step_has_its_last_error() -> None:
    shown = newest(Play(flow(*WORK), {"plan": [Exception("no model")]}).run())
    assert (shown.step, shown.loop, shown.last_error, shown.history) == ("plan", None, "no model", ())
    assert shown.numbers == (Breach("errors_in_a_row", 3, 3),)
    assert (chosen(shown, "continue").next, chosen(shown, "continue").effort) == ("plan is tried again", "3 more tries")
    assert chosen(shown, "skip").next == "plan is skipped; these steps continue without it: design, review, code"


def test_continue_reruns_an_attempt_in_doubt() -> None:
    play = Play(flow(step("a")))
    play.do(c.DropAttempt("a", 1, "in doubt"))
    assert chosen(newest(play), "continue").effort == "one attempt"
    assert chosen(newest(play), "skip").next == "a is skipped"
    assert chosen(newest(play), "cancel").next.startswith("the run ends as cancelled")


def test_a_step_that_a_person_does_asks_for_its_outcome_or_verdict() -> None:
    work = flow(step("a", agents=(HUMAN,)), step("j", reviews="a", agents=(HUMAN,)))
    play = Play(work)
    assert chosen(newest(play), "resolve").needs == ("option", "note")
    assert chosen(newest(play), "resolve").next == "your answer becomes the outcome of a; the run continues with it"
    play.decide("resolve", note="done")
    assert [each.choice for each in newest(play).options] == ["pass", "fail", "needs_improvement", "skip", "cancel"]
    assert chosen(newest(play), "fail").needs == ("note",)
    assert chosen(newest(play), "pass").next == "your verdict becomes the verdict of j; the run continues"


@pytest.mark.parametrize(("word", "outcome"), [("pass", "verified"), ("approve", "verified"), ("needs_improvement", "verified"),
                                               ("fail", "waiting"), ("reject", "waiting")])  # fmt: skip
def test_a_judgement_understands_its_own_words(word: str, outcome: str) -> None:
    play = Play(flow(step("a"), step("j", reviews="a", agents=(HUMAN,)))).run()
    play.decide(word, note="the page is blank").run()
    assert play.outcome == outcome
    assert play.of(e.VerdictGiven)[0].word == {"approve": "pass", "reject": "fail"}.get(word, word)
    assert play.of(e.EscalationDecided)[0].choice == "resolve"


@pytest.mark.parametrize(("word", "attempts"), [("pass", 1), ("approve", 1), ("fail", 0), ("reject", 0)])
def test_an_approval_understands_its_own_words(word: str, attempts: int) -> None:
    play = Play(flow(step("a", approval="human"))).run()
    assert [each.choice for each in newest(play).options] == ["approve", "skip", "reject"]
    play.decide(word).run()
    assert play.attempts()["a"] == attempts


@pytest.mark.parametrize(("word", "choice"), [("pass", "resolve"), ("approve", "resolve"), ("fail", "continue")])
def test_a_person_who_verifies_a_fix_may_pass_or_fail_it(word: str, choice: str) -> None:
    play = Play(flow(step("a"))).run()
    play.do(c.RaiseFeedback(HUMAN, Feedback(Kind.FIX_REQUEST, ("a",), "too slow")))
    play.run().decide(word)
    assert play.of(e.EscalationDecided)[-1].choice == choice


def recommended(play: Play) -> tuple[str, str]:
    first = newest(play).options[0]
    assert not any(each.recommended for each in newest(play).options[1:])
    return first.choice, first.recommended


@pytest.mark.parametrize(
    ("verdicts", "limits", "expected"),
    [
        ((("a", "b"), ("b",)), {}, ("continue", "the last fix removed 1 of 2 findings")),
        ((("a",), ("b",)), {}, ("continue", "the last fix removed what was wrong, and something else was found")),
        ((("a",), ("a",)), {}, ("revise", "the last fix removed none of its findings")),
        ((("a",),), {"rounds_per_loop": 0}, ("continue", "nothing was tried yet")),
        (
            (("a",), ("a",)),
            {"rounds_per_loop": 9, "same_finding": 2},
            ("revise", "another round of the same is likely to end the same"),
        ),
    ],
)
def test_the_recommended_choice_comes_first_and_says_why(
    verdicts: Any, limits: dict[str, int], expected: tuple[str, str]
) -> None:
    replies = [failed(*verdict) for verdict in verdicts]
    work = flow(step("a"), step("j", reviews="a"), limits={"rounds_per_loop": 1, **limits})
    assert recommended(Play(work, {"a": grows, "j": replies}).run()) == expected


@pytest.mark.parametrize(("again", "expected"), [("how many?", "revise"), ("how many pages?", "continue")])
def test_feedback_in_other_words_says_that_the_last_fix_changed_something(again: str, expected: str) -> None:
    asks = [out(1, feedback=(ask("plan", message="how many?"),)), out(2, feedback=(ask("plan", message=again),))]
    work = flow(step("plan"), step("code", "plan"), limits={"rounds_per_loop": 1})
    assert recommended(Play(work, {"code": asks}).run())[0] == expected


def test_after_errors_it_is_recommended_to_try_again() -> None:
    play = Play(flow(step("a"), limits={"errors_in_a_row": 1}), {"a": [Exception("no key")]}).run()
    assert recommended(play) == ("continue", "if you have removed the cause of the error")
    budget = Play(flow(*WORK, limits={"attempts": 2})).run()
    assert recommended(budget) == ("continue", "")


def test_the_packet_of_a_broken_step_has_what_it_was_to_address() -> None:
    asks = [out(1, feedback=(ask("plan", message="how many?"),)), out(2)]
    work = flow(step("plan"), step("code", "plan"), step("other"), limits={"errors_in_a_row": 1})
    shown = newest(Play(work, {"code": asks, "plan": [out(1), Exception("no key")]}).run())
    assert ([each.message for each in shown.requests], shown.findings) == (["how many?"], ())
    work = flow(step("code"), step("review", reviews="code"), limits={"errors_in_a_row": 1})
    shown = newest(Play(work, {"code": [out(1), Exception("no key")], "review": [failed("no log-in")]}).run())
    assert (texts(shown.findings), shown.requests) == (["no log-in"], ())
    shown = newest(Play(work, {"code": [out(1)], "review": [Exception("no key")]}).run())
    assert (shown.findings, shown.requests) == ((), ())


@pytest.mark.parametrize(
    ("feedback", "problem"),
    [
        (Feedback(Kind.FIX_REQUEST, ("a",), " "), "message is missing"),
        (Feedback(Kind.FIX_REQUEST, (), "x"), "to is missing"),
        (Feedback(Kind.FIX_REQUEST, ("a",), "x"), ""),
        (Feedback(Kind.ARCHITECTURE_ISSUE, (), "x"), ""),
    ],
)
def test_what_feedback_does_not_say(feedback: Feedback, problem: str) -> None:
    assert missing_words(feedback).partition(":")[0] == problem


def test_the_packet_of_a_budget_has_what_is_still_wrong() -> None:
    shown = newest(stuck(failed("x"), limits={"attempts": 5}))
    assert (shown.loop, shown.step, texts(shown.findings)) == (None, None, ["x"])


def test_a_mistyped_history_is_recognised() -> None:
    play = stuck()
    with pytest.raises(IllegalCommand, match="did you mean 'history'"):
        play.decide("histroy")
    with pytest.raises(IllegalCommand, match="use one of: continue"):
        play.decide("history")


def test_continue_of_a_budget_adds_its_size_or_the_given_amount() -> None:
    shown = newest(Play(flow(*WORK, limits={"attempts": 2})).run())
    continued, cancel = shown.options
    assert (continued.next, continued.effort) == ("the run continues", "up to 2 more attempts")
    assert continued.impact == "the budget grows by 2, or by the amount that you give"
    assert (cancel.choice, shown.numbers) == ("cancel", (Breach("attempts", 2, 2),))


def test_a_decided_packet_has_the_decision() -> None:
    play = stuck().decide("continue", by="ann", note="once more").run()
    shown = packet(play.s, "E-1")
    assert (shown.decided, shown.by, shown.loop) == ("continue", "ann", "L-1")
    assert [each.state for each in shown.history] == ["done", "done"]
    revised = stuck().decide("revise", note="with a queue")
    assert packet(revised.s, "E-1").advice == "with a queue"


def test_an_unknown_escalation_is_not_found() -> None:
    with pytest.raises(NotFound, match="unknown escalation 'E-9' in run 'r' \\(open escalations: E-1\\)"):
        packet(stuck().s, "E-9")
    with pytest.raises(NotFound, match="no escalations are open"):
        packet(Play(flow(*WORK), {"plan": [out(1)]}).s, "E-1")


@effort(60)
@given(picks())
def test_every_escalation_of_any_run_has_a_packet_with_each_of_its_options(pick: Pick) -> None:
    tale = a_random_run(pick)
    tale.rest()
    for found in (*tale.s.escalations.values(), *tale.s.decided_escalations.values()):
        shown = packet(tale.s, found.id)
        words = {"approve": "continue", "reject": "cancel"} if found.asks_approval else {}
        if found.step in tale.s.graph.steps and tale.s.graph.steps[found.step].approver:
            words = {"approve": "resolve", "reject": "resolve"}
        words |= dict.fromkeys(("pass", "fail", "needs_improvement"), "resolve")
        choices = {words.get(each.choice, each.choice) for each in shown.options if not each.option}
        assert choices == set(found.options)
        assert all(each.next for each in shown.options)
        assert msgspec.json.decode(msgspec.json.encode(shown), type=Packet) == shown


def test_a_person_who_does_a_step_sees_its_question() -> None:
    play = Play(flow(step("spec", agents=("human",), question="Which page first?"))).run()
    assert packet(play.s, "E-1").message == "Which page first?"


def test_a_person_who_judges_sees_the_artifacts_and_the_open_findings() -> None:
    work = flow(step("code"), step("look", reviews="code", agents=("human",)))
    play = Play(work, {"code": [out({"files": 1}), out({"files": 2})]}).run()
    (made,) = newest(play).inputs
    assert (made.step, made.version, made.output) == ("code", 1, {"files": 1})
    assert newest(play).findings == ()
    play.decide("resolve", option="fail", note="no tests").run()
    shown = newest(play)
    assert [(made.version, made.output) for made in shown.inputs] == [(2, {"files": 2})]
    assert texts(shown.findings) == ["no tests"]
    assert packet(play.s, "E-1").inputs == (), "a question that was answered is about what was there then"


def test_a_person_who_reworks_sees_the_feedback_to_address() -> None:
    work = flow(step("text", agents=("human",)), step("code", "text"), step("review", reviews="text"))
    asks = out(0, feedback=(ask("text", message="which one?"),))
    play = Play(work, {"review": [failed("too long"), passed()], "code": [asks, out(1)]})
    play.run().decide("resolve", note="a long text").run()
    assert texts(newest(play).findings) == ["too long"]
    play.decide("resolve", note="short").run()
    (request,) = newest(play).requests
    assert (request.source, request.message) == ("code", "which one?")


def test_refused_feedback_is_in_its_packet_in_full() -> None:
    play = Play(flow(*WORK))
    play.finish("plan")
    asked = ask("code", message="no size", suggested_fix="50", requirement_id="REQ-7", options=(Option("push"),))
    play.raises("design", asked)
    shown = newest(play)
    assert (shown.source, shown.targets, shown.message, shown.kind) == ("design", ("code",), "no size", asked.kind)
    assert (shown.suggested_fix, shown.requirement_id, shown.offers) == ("50", "REQ-7", (Option("push"),))


def test_refused_feedback_that_could_not_be_parsed_is_in_its_packet() -> None:
    play = Play(flow(*WORK))
    play.finish("plan")
    play.raises("design", MalformedFeedback(("plan",), "kind 'wish' is unknown", "no size"))
    shown = newest(play)
    assert (shown.source, shown.targets, shown.message, shown.kind) == ("design", ("plan",), "no size", "")


def test_the_error_about_feedback_quotes_everything_that_it_said() -> None:
    asked = ask("plan", message="no size", suggested_fix="50", artifacts=("a.md",), details={"x": 1})
    assert said_words(asked) == '; it said: no size; suggested fix: 50; artifacts: a.md; details: {"x": 1}'
    assert said_words(MalformedFeedback((), "kind is missing", "no size")) == "; it said: no size"
    assert said_words(MalformedFeedback((), "message is missing")) == ""


def test_several_targets_choose_and_one_finding_goes_to_its_phase() -> None:
    play = Play(flow(*WORK[:2], step("code", "design", phase="code"), limits={"rounds_per_loop": 0}))
    play.finish("plan")
    play.finish("design")
    play.raises("code", ask("plan", "design", options=(Option("polling"),)))
    assert chosen(newest(play), "continue").next == "plan, design choose among the options"
    alone = newest(stuck(failed("x"), failed("y")))
    assert chosen(alone, "reclassify").next == "F-2 goes to the phase that you name as its cause"
