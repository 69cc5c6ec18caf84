"""Steps that run only if a person approves."""

from __future__ import annotations

import pytest

from backedge.core import commands as c
from backedge.core.errors import IllegalCommand
from backedge.core.escalation.packet import packet
from backedge.core.model import Kind
from tests.core.play import Play, ask, flow, grows, out, step

STEPS = (step("code"), step("deploy", "code", approval="human"), step("tell", "deploy"))


def waiting_for_approval(**scripts: object) -> Play:
    """The code is made, and the deployment waits for approval."""
    return Play(flow(*STEPS), {"code": grows, "deploy": grows, **scripts}).run()  # type: ignore[dict-item]


def test_a_person_is_asked_before_the_step_runs() -> None:
    play = waiting_for_approval()
    assert (play.outcome, play.attempts()) == ("waiting", {"code": 1, "deploy": 0, "tell": 0})
    question = play.s.escalations["E-1"]
    assert question.reason.startswith("no approver: 'deploy' runs only if a person approves it")
    assert (question.options, question.step, question.loop) == (("continue", "skip", "cancel"), "deploy", None)
    shown = packet(play.s, "E-1")
    assert shown.options[0].next == "deploy runs with your approval"


@pytest.mark.parametrize("word", ["continue", "approve"])
def test_an_approved_step_runs(word: str) -> None:
    play = waiting_for_approval().decide(word).run()
    assert (play.outcome, play.attempts()) == ("done", {"code": 1, "deploy": 1, "tell": 1})
    decided = play.s.escalation("E-1")
    assert decided is not None and decided.decided is not None
    assert decided.decided.choice == "continue"


@pytest.mark.parametrize("word", ["cancel", "reject"])
def test_a_rejection_ends_the_run(word: str) -> None:
    play = waiting_for_approval().decide(word, by="eva").run()
    assert (play.outcome, play.attempts()["deploy"]) == ("cancelled", 0)


def test_after_a_skip_the_other_steps_continue_without_it() -> None:
    play = waiting_for_approval().decide("skip").run()
    assert (play.outcome, play.attempts()) == ("accepted", {"code": 1, "deploy": 0, "tell": 1})


def test_a_retry_after_an_error_needs_no_new_approval() -> None:
    play = (
        waiting_for_approval(deploy=[Exception("x"), Exception("x"), Exception("x"), out("done")])
        .decide("approve")
        .run()
    )
    assert play.s.escalations["E-2"].breach is not None
    play.decide("continue").run()
    assert (play.outcome, play.attempts()["deploy"], play.s.opened_escalations) == ("done", 4, 2)


def test_every_execution_needs_its_own_approval() -> None:
    play = waiting_for_approval().decide("approve").run()
    play.person_raises("deploy").run()
    assert play.s.escalations["E-2"].reason.startswith("no approver")
    play.decide("approve").run()
    assert play.attempts()["deploy"] == 2


def test_an_answer_needs_no_approval() -> None:
    play = waiting_for_approval().decide("approve").run()
    play.scripts["deploy"] = lambda p, n: out(None, answer="yes")
    play.person_raises("deploy", kind=Kind.CONTEXT_REQUEST).run()
    assert (play.attempts()["deploy"], play.outcome) == (2, "done")
    play.scripts["deploy"] = grows
    play.raises("tell", ask("deploy")).run()
    assert play.s.escalations["E-2"].reason.startswith("no approver"), "an answer used up no approval"


def test_only_an_approval_can_be_answered_with_approve() -> None:
    play = Play(flow(step("a")), {"a": [Exception("x")]}).run()
    with pytest.raises(IllegalCommand, match="'approve' is not a valid choice"):
        play.do(c.Decide("E-1", "approve"))
