"""Results that a person has to approve, because they are beyond a threshold."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.analytics.rounds import LoopHistory
from backedge.analytics.sentence import sentence
from backedge.core import events as e
from backedge.core.errors import WorkflowError
from backedge.core.escalation.packet import packet
from backedge.core.feedback.guidelines import answer_rules
from backedge.core.workflow.build import build_added_steps, build_workflow
from backedge.core.workflow.definition import Step, Thresholds
from backedge.core.workflow.steps import parse_step
from tests.core.play import Play, Reply, failed, out, passed, seen, step


def files(*names: str, version: int = 1, **more: Any) -> Reply:
    """A result that changed these files."""
    return seen(out(version, **more), tree=f"tree {version}", files=names)


def play(when: dict[str, Any], *code: Reply, steps: tuple[Step, ...] = (), **scripts: Any) -> Play:
    given = parse_step("code", {"phase": "code", "approval": {"when": when}}, agents=())
    written: list[tuple[Step, dict[str, object]]] = [(each, {}) for each in (given, *steps, step("ship", "code"))]
    return Play(build_workflow("w", written), {"code": list(code), **scripts}).run()


def question(run: Play) -> str:
    (found,) = run.s.escalations.values()
    return sentence(run.s, found, LoopHistory())


def test_what_is_below_every_threshold_goes_on_without_a_question() -> None:
    run = play({"files": 3, "paths": ["infra/**"], "confidence": 0.6}, files("a", "b", confidence=0.6))
    assert (run.outcome, run.attempts()) == ("done", {"code": 1, "ship": 1, "code_approval": 1})
    (verdict,) = run.of(e.VerdictGiven)
    assert (verdict.word, verdict.unasked) == ("pass", True)
    assert run.s.opened_escalations == 0


@pytest.mark.parametrize(
    ("when", "reply", "why"),
    [
        ({"files": 2}, files("a", "b"), "2 changed files, and 2 or more need approval"),
        ({"files": 1}, files("a"), "1 changed file, and 1 or more need approval"),
        ({"paths": "infra"}, files("a", "infra/x"), "it changed infra/x"),
        ({"paths": ["*"]}, files(*"abcdefg"), "it changed a, b, c, d, e and 2 more files"),
        (
            {"paths": ["infra/**"]},
            files(*(f"data/{number}" for number in range(1_000))),
            "it changed 1,000 files or more, so that not all are known here",
        ),
        ({"confidence": 0.6}, files("a", confidence=0.59), "confidence 0.59, and less than 0.6 needs approval"),
        ({"confidence": 0.6}, out(1), "no confidence was reported, and less than 0.6 needs approval"),
    ],
)
def test_a_person_is_asked_before_anything_uses_the_result(when: dict[str, Any], reply: Reply, why: str) -> None:
    run = play(when, reply)
    assert (run.outcome, run.attempts()["ship"]) == ("waiting", 0)
    assert question(run) == f"code needs your approval: {why}."
    assert [each.choice for each in packet(run.s, "E-1").options[:2]] == ["approve", "reject"]
    run.decide("approve").run()
    assert (run.outcome, run.attempts()["ship"]) == ("done", 1)


def test_a_rejection_is_a_counted_round_and_the_person_is_asked_again_however_small_the_change() -> None:
    run = play({"confidence": 0.5}, out(1, confidence=0.1), out(2, confidence=1.0))
    run.decide("reject", note="use the other library").run()
    assert [each.description for each in run.briefings["code"][1].feedback.findings] == ["use the other library"]
    assert (run.s.rounds, run.attempts()["ship"]) == (1, 0)
    assert question(run) == "code needs your approval: you rejected an earlier version."
    run.decide("approve").run()
    assert (run.outcome, run.s.rounds) == ("done", 1)


def test_rejections_are_bounded() -> None:
    run = play({"files": 1}, *(files("a", version=each) for each in range(9)))
    for _ in range(6):
        run.decide("reject", note="no").run()
    assert run.breach() == "rounds_per_loop"


def test_files_count_since_the_last_approval_so_that_small_steps_cannot_avoid_it() -> None:
    replies = [files("a", "b"), files("b", "c", version=2), files("c", version=3), files("d", "e", version=4)]
    run = play({"files": 3}, *replies)
    assert list(run.s.steps["code"].unapproved) == ["a", "b"]
    run.person_raises("code").run()
    assert question(run).startswith("code needs your approval: 3 changed files")
    run.decide("approve").run()
    assert list(run.s.steps["code"].unapproved) == []
    for _ in range(2):
        run.person_raises("code").run()
    assert question(run).startswith("code needs your approval: 3 changed files")


def test_a_person_is_not_asked_about_work_that_another_judge_rejects() -> None:
    review = step("review", reviews="code")
    replies = [files("a", version=each) for each in (1, 2)]
    run = play({"files": 1}, *replies, steps=(review,), review=[failed("wrong"), passed()])
    assert (run.s.opened_escalations, run.attempts()["code"]) == (1, 2)
    run.decide("approve").run()
    assert run.outcome == "verified"


def test_only_a_judge_makes_a_run_verified() -> None:
    run = play({"files": 1}, files("a")).decide("approve").run()
    assert run.outcome == "done"


def test_the_agent_is_asked_for_its_confidence_only_where_it_counts() -> None:
    for when, asked in (({"confidence": 0.5}, True), ({"files": 1}, False)):
        rules = answer_rules(play(when, out(1)).s.graph, "code")
        assert (rules.confidence, rules.judged_by) == (asked, ())


@pytest.mark.parametrize(
    ("approval", "problem"),
    [
        ({}, "approval is {}: expected human, or `when` with files, paths, confidence"),
        ({"if": {}}, "approval has the key 'if'"),
        ({"when": {"file": 1}}, "when of approval has the key 'file': did you mean 'files'?"),
        ({"when": {"files": 0}}, "has approval from 0 files on: expected 1 or more"),
        ({"when": {"files": 1.5}}, "thresholds.files cannot be stored as JSON"),
        ({"when": {"confidence": 0}}, "has approval below confidence 0: expected more than 0 and at most 1"),
        ({"when": {"confidence": True}}, "thresholds.confidence cannot be stored as JSON"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(approval: dict[str, Any], problem: str) -> None:
    with pytest.raises(WorkflowError) as refused:
        build_workflow("w", [(parse_step("code", {"approval": approval}, agents=()), {})])
    assert problem in str(refused.value)


def test_a_judge_and_an_added_step_have_no_thresholds() -> None:
    given = {"reviews": "code", "approval": {"when": {"files": 1}}}
    with pytest.raises(WorkflowError, match="but is a judge: set it on the step that it judges"):
        build_workflow("w", [(step("code"), {}), (parse_step("review", given, agents=()), {})])
    workflow = build_workflow("w", [(step("code"), {})])
    with pytest.raises(WorkflowError, match="only a step of the workflow file can have that"):
        build_added_steps(workflow, [(step("more", thresholds=Thresholds(files=1)), {})])
