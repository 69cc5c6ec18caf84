"""Custom kinds of feedback: each behaves as a built-in kind and keeps its own name."""

from __future__ import annotations

import pytest

from backedge.core.errors import WorkflowError
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Kind
from backedge.core.workflow.build import build_workflow
from tests.core.play import Play, ask, flow, grows, out, step

STEPS = (step("plan", phase="planning"), step("code", "plan", phase="code"))
OWN = (("security_block", Kind.FIX_REQUEST), ("which_one", Kind.CONTEXT_REQUEST))


def test_a_custom_kind_behaves_as_its_base_kind_and_keeps_its_name() -> None:
    play = Play(flow(*STEPS, kinds=OWN), {"plan": grows, "code": grows})
    play.finish("plan")
    play.raises("code", ask("plan", kind=Kind.FIX_REQUEST, called="security_block")).run()
    assert play.attempts() == {"plan": 2, "code": 2}
    assert (play.loop().kind, play.loop().kind_name) == (Kind.FIX_REQUEST, "security_block")
    assert play.briefings["plan"][1].feedback.requests[0].kind == "security_block"
    assert play.briefings["code"][1].feedback.resolutions[0].kind == "security_block"


def test_a_custom_kind_of_question_is_answered() -> None:
    play = Play(
        flow(*STEPS, kinds=OWN), {"plan": lambda p, n: out("plan", answer="42") if p.calls[n] > 1 else out("plan")}
    )
    play.finish("plan")
    play.raises("code", ask("plan", kind=Kind.CONTEXT_REQUEST, called="which_one")).run()
    assert play.loop().answers == {"plan": "42"}


def test_two_kinds_with_the_same_behaviour_are_different_feedback() -> None:
    names = iter(["security_block", "", ""])
    play = Play(
        flow(*STEPS, kinds=OWN),
        {"plan": grows, "code": lambda p, n: out(p.now, feedback=(ask("plan", called=next(names)),))},
    )
    play.finish("plan")
    play.finish("code")
    play.finish("plan")
    play.finish("code")
    assert [(loop.kind_name, loop.state) for loop in play.s.closed_loops.values()] == [
        ("security_block", LoopState.RESOLVED)
    ]
    assert [loop.kind_name for loop in play.s.loops.values()] == ["fix_request"]


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        ({"security": "fix_requst"}, "kind 'security' in kinds behaves as 'fix_requst': did you mean 'fix_request'?"),
        ({" ": "fix_request"}, "a kind in kinds has an empty name"),
        ({"Fix_Request": "context_request"}, "kind 'fix_request' in kinds has the name of a built-in kind"),
    ],
)
def test_an_invalid_custom_kind_is_refused(kinds: dict[str, str], problem: str) -> None:
    with pytest.raises(WorkflowError) as error:
        build_workflow("w", [(each, {}) for each in STEPS], kinds=kinds)
    assert problem in str(error.value)


def test_the_case_of_a_custom_kind_does_not_matter() -> None:
    made = build_workflow("w", [(each, {}) for each in STEPS], kinds={" Security_Block ": "fix_request"})
    assert made.kinds == (("security_block", Kind.FIX_REQUEST),)
