"""What each form of file says in our words, and what is wrong with one that does not say it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backedge.compat import FORMATS, format_of, read
from backedge.compat.progress import read_progress
from backedge.core.errors import ImportRefused
from tests.compat.samples import DEFECTS, FEEDBACK, LOOPS, PROGRESS, SAMPLES, SCRATCHPAD


def problems(form: str, content: str) -> tuple[str, ...]:
    with pytest.raises(ImportRefused) as refused:
        read(form, content)
    return refused.value.problems


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_is_known_by_what_is_in_it(form: str) -> None:
    assert format_of(SAMPLES[form]) == form
    assert format_of("\ufeff" + SAMPLES[form]) == form
    assert read(form, "\ufeff" + SAMPLES[form]) == read(form, SAMPLES[form])


@pytest.mark.parametrize("content", ["", "hello", "{}", "[]", "[1]", '{"a": 1}\n{"b": 2}\n', "null"])
def test_a_file_of_no_known_format_must_be_named(content: str) -> None:
    with pytest.raises(ImportRefused, match="name it with --as, one of loops, feedback-jsonl"):
        format_of(content)


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    assert problems("feedback-json", "") == ("format 'feedback-json' is unknown: did you mean 'feedback-jsonl'?",)


def test_feedback_lines() -> None:
    fix, context, missing, architecture = read("feedback-jsonl", FEEDBACK).loops
    assert (fix.source, fix.targets, fix.kind, fix.state) == (
        "test-payment-model",
        ("create-payment-model",),
        "fix_request",
        "resolved",
    )
    assert (fix.severity, fix.rounds, fix.suggested_fix, fix.artifacts) == (
        "high",
        2,
        "Add validates :email",
        ("spec/models/payment_spec.rb:42-45",),
    )
    assert (fix.opened_at, fix.closed_at) == ("2025-01-21T14:00:00Z", "2025-01-21T14:05:00Z")
    assert (context.kind, context.state, context.requested_info) == ("context_request", "validating", "method_name")
    assert (missing.kind, missing.state, missing.suggested_fix) == ("dependency_missing", "failed", "Add Refund")
    assert (architecture.kind, architecture.state, architecture.rounds) == ("architecture_issue", "notifying", 1)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("queued", "notifying"),
        ("routed", "waiting_response"),
        ("delivered", "waiting_response"),
        ("processing", "resolving"),
        ("verifying", "validating"),
        ("resolved", "resolved"),
        ("failed", "failed"),
    ],
)
def test_a4_09_every_status_of_a_line_is_a_state_of_a_loop(status: str, state: str) -> None:
    line = {**json.loads(FEEDBACK.splitlines()[0]), "status": status}
    assert read("feedback-jsonl", json.dumps(line)).loops[0].state == state


LINE = {"from_node": "a", "to_node": "b", "feedback_type": "FIX_REQUEST", "message": "m", "priority": "high"}


@pytest.mark.parametrize("field", list(LINE))
@pytest.mark.parametrize("value", [None, "", "  ", ...])
def test_a4_02_a_field_that_is_missing_or_empty_is_named(field: str, value: Any) -> None:
    line = {name: each for name, each in LINE.items() if name != field}
    if value is not ...:
        line[field] = value
    [problem] = problems("feedback-jsonl", f"{json.dumps(LINE)}\n{json.dumps(line)}\n")
    assert problem.startswith(f"line 2: {field} is ")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"priority": "banana"}, "priority 'banana' is unknown: use one of: critical, high, medium, low"),
        ({"feedback_type": "FIX_REQEST"}, "feedback_type 'FIX_REQEST' is unknown: did you mean 'FIX_REQUEST'?"),
        ({"status": "resolvd"}, "status 'resolvd' is unknown: did you mean 'resolved'?"),
        ({"type": "EDGE"}, "type 'EDGE' is unknown: use one of: FEEDBACK"),
        ({"round": -1}, "round is -1: expected a number, 0 or more"),
        ({"round": 1.5}, "round is 1.5: expected a whole number"),
        ({"round": True}, "round is true: expected a number, 0 or more"),
        ({"artifacts": [1]}, "artifacts is [1]: expected a text or a list of texts"),
        ({"timestamp": "soon"}, "timestamp 'soon' is not a time: expected one such as 2025-01-21T14:00:00Z"),
        ({"message": {}}, "message is an object: expected a text"),
    ],
)
def test_a_line_with_a_wrong_word_is_reported_with_its_number(change: dict[str, Any], problem: str) -> None:
    assert problems("feedback-jsonl", f"\n{json.dumps(LINE | change)}") == (f"line 2: {problem}",)


def test_up_to_twenty_wrong_lines_are_reported() -> None:
    assert problems("feedback-jsonl", '{"a"\n[1]\n') == (
        "line 1: not JSON (Input data was truncated): expected one object per line",
        "line 2: not a JSON object: expected one per line",
    )
    assert len(problems("feedback-jsonl", "x\n" * 50)) == 20


def test_the_loops_of_a_feedback_loop_engine() -> None:
    constraint, infeasible, missing = read("loops", LOOPS).loops
    assert (constraint.id, constraint.source, constraint.targets) == (
        "loop-1737468000000",
        "developer",
        ("architect", "pm"),
    )
    assert (constraint.severity, constraint.blocking, constraint.state) == ("critical", True, "resolved")
    assert constraint.resolution == {"decision": "Use polling"}
    # One target is a list of one (A0-03); no severity is high (A0-05).
    assert (infeasible.targets, infeasible.severity, infeasible.state) == (("pm",), "high", "escalating")
    assert infeasible.reason == "timeout"
    assert (missing.kind, missing.state) == ("missing_requirement", "waiting_response")


LOOP = {"source_agent": "a", "target_agents": ["b"], "issue_type": "fix_request", "description": "d"}


@pytest.mark.parametrize("field", list(LOOP))
def test_a0_02_a_loop_without_a_field_is_refused_naming_it(field: str) -> None:
    loop = {name: each for name, each in LOOP.items() if name != field}
    [problem] = problems("loops", json.dumps({"feedback_loops": [LOOP, loop]}))
    assert problem.startswith(f"loop 2: {field} is missing: ")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"issue_type": "constraint_violaton"}, "issue_type 'constraint_violaton' is unknown: did you mean"),
        ({"state": "RESOLVD"}, "state 'RESOLVD' is unknown: did you mean 'RESOLVED'?"),
        ({"status": "escalatd"}, "status 'escalatd' is unknown: did you mean 'escalated'?"),
        ({"status": "resolved", "state": "NOTIFYING"}, "status 'resolved' contradicts state 'NOTIFYING'"),
        ({"status": "pending", "state": "RESOLVED"}, "status 'pending' contradicts state 'RESOLVED'"),
        ({"severity": "banana"}, "severity: severity 'banana' is unknown: use one of: blocker"),
        ({"target_agents": []}, "target_agents is missing: name at least one"),
    ],
)
def test_a_loop_with_a_wrong_word_is_reported(change: dict[str, Any], problem: str) -> None:
    [told] = problems("loops", json.dumps([LOOP | change]))
    assert told.startswith(f"loop 1: {problem}")


def test_two_loops_cannot_have_one_id() -> None:
    assert problems("loops", json.dumps([LOOP | {"id": "x"}, LOOP | {"id": "x"}])) == (
        "loop 2: id 'x' is used twice: give each loop its own id",
    )


@pytest.mark.parametrize(
    ("form", "content", "problem"),
    [
        ("loops", "{}", "it has no 'feedback_loops'"),
        ("loops", '{"feedback_loops": 1}', "feedback_loops is a number: expected a list of objects"),
        ("loops", "[1]", "item 1 of feedback_loops is a number: expected an object"),
        ("loops", "[", "not JSON: Input data was truncated"),
        ("defects", "{}", "the defect log is an object: expected a list of objects"),
        ("progress", "[]", "not the progress of a feedback loop: "),
        ("progress", "{}", "not the progress of a feedback loop: Object missing required field `feedback_loop`"),
    ],
)
def test_a_document_of_another_shape_is_refused(form: str, content: str, problem: str) -> None:
    [told] = problems(form, content)
    assert told.startswith(problem)


def test_a3_18_a_defect_log_has_the_injecting_and_detecting_phase_and_the_cost_of_the_correction() -> None:
    auth, index = read("defects", DEFECTS).defects
    assert (auth.injected_phase, auth.detected_phase, auth.detected_by) == ("planning", "design", "Design Review")
    assert auth.attempts == {"planning": 1, "design": 1}
    assert (auth.correction_attempts, auth.cost_usd, auth.latency, auth.severity) == (2, 0.05, 25, "critical")
    assert (index.injected_phase, index.detected_phase, index.correction_attempts, index.finding) == (
        "design",
        "test",
        1,
        "F-2",
    )


def test_a_wrong_defect_is_reported_with_its_number() -> None:
    wrong = [
        {"description": "d", "injected_phase": "code"},
        {"description": "d", "injected_phase": "code", "detected_phase": "test", "status": "fixd"},
        {"description": "d", "injected_phase": "code", "detected_phase": "test", "cost_usd": "much"},
        {"description": "d", "injected_phase": "code", "detected_phase": "test", "attempts": "two"},
    ]
    assert problems("defects", json.dumps(wrong)) == (
        "defect 1: detected_phase is missing: add it",
        "defect 2: status 'fixd' is unknown: did you mean 'fixed'?",
        'defect 3: cost_usd is "much": expected a number, 0 or more',
        'defect 4: attempts is "two": expected a number, 0 or more',
    )


def test_a2_18_progress_is_read_as_loops() -> None:
    found = read("progress", PROGRESS)
    assert found.progress == read_progress(PROGRESS.encode())
    [loop] = found.loops
    assert (loop.kind, loop.source, loop.state, loop.rounds) == ("test_failure", "test", "resolved", 1)
    [defect] = found.defects
    assert (defect.description, defect.status, defect.loop) == (
        "FilterDropdown.test.tsx:45 - missing mock",
        "fixed",
        "L-1",
    )


def test_progress_with_an_unknown_status_is_refused_with_the_nearest() -> None:
    content = PROGRESS.replace('"status": "IMPLEMENTATION_VERIFIED",\n    "cons', '"status": "escalatd",\n    "cons')
    assert problems("progress", content) == ("feedback_loop: status 'escalatd' is unknown: did you mean 'escalated'?",)


def test_a_scratchpad_is_read_as_progress() -> None:
    found = read("scratchpad", SCRATCHPAD)
    assert found.progress is not None
    told = found.progress.feedback_loop
    assert (told.current_iteration, told.status, told.consecutive_test_failures) == (2, "in_progress", 1)
    first, second = told.iterations
    assert (first.review_result, first.review_issues, first.test_result) == ("FAIL", ("no label",), None)
    assert second.test_failures == (
        "FilterDropdown.test.tsx:45 - missing mock",
        "FilterDropdown.test.tsx:60 - no focus",
    )
    review, test = found.loops
    assert (review.state, review.rounds) == ("resolved", 1)
    assert (test.state, test.rounds) == ("resolving", 0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("## Iteration 2\n\n## Iteration 2\n", "line 3: iteration 2 comes after iteration 2: put them in order"),
        ("- **Status**: continuing\n", "line 1: Status comes before the first iteration"),
        ("## Iteration 1\n- **Review Result**: PAS\n", "line 2: Review Result 'PAS' is unknown: did you mean 'PASS'?"),
        ("## Iteration 1\n- **Status**: escalatd\n", "line 2: status 'escalatd' is unknown: did you mean 'escalated'?"),
    ],
)
def test_a_wrong_scratchpad_is_refused_with_the_line(content: str, problem: str) -> None:
    [told] = problems("scratchpad", content)
    assert told.startswith(problem)


AUDITED = {"feedback_id": "FB-1", "type": "FIX_REQUEST", "source": "a", "target": "b", "status": "routed"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"status": "sent"}, "status 'sent' is unknown: use one of: queued, routed"),
        ({"type": "FEEDBACK"}, "type 'FEEDBACK' is unknown: use one of: FIX_REQUEST"),
        ({"target": "c"}, "feedback_id 'FB-1' was used for other feedback above: give each feedback its own id"),
    ],
)
def test_a_wrong_audit_entry_is_reported_with_its_number(change: dict[str, Any], problem: str) -> None:
    lines = f"{json.dumps(AUDITED)}\n{json.dumps(AUDITED | change)}"
    (said,) = problems("feedback-jsonl", lines)
    assert said.startswith(f"line 2: {problem}")


def test_an_audit_entry_keeps_what_a_later_one_leaves_out() -> None:
    first = {**AUDITED, "message": "no mail", "priority": "low", "round": 2, "timestamp": "2024-01-15T10:30:00Z"}
    last = {**AUDITED, "status": "failed", "timestamp": "2024-01-15T10:40:00Z"}
    (loop,) = read("feedback-jsonl", f"{json.dumps(first)}\n{json.dumps(last)}").loops
    assert (loop.message, loop.severity, loop.rounds, loop.state) == ("no mail", "low", 2, "failed")
    assert (loop.opened_at, loop.closed_at) == ("2024-01-15T10:30:00Z", "2024-01-15T10:40:00Z")


LOOP = {"source_agent": "a", "target_agents": "b", "issue_type": "constraint_violation", "description": "d"}


def test_options_are_read_from_the_loop_or_from_its_details() -> None:
    offered = [{"option": "one", "effort": "low", "rework": "b"}, "two", {"option": "three", "accept": True}]
    for record in ({**LOOP, "options": offered}, {**LOOP, "details": {"options": offered}}):
        (loop,) = read("loops", json.dumps([record])).loops
        assert [(each.option, each.effort, each.rework, each.accept) for each in loop.options] == [
            ("one", "low", ("b",), False),
            ("two", "", (), False),
            ("three", "", (), True),
        ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [(7, "options is a number: expected a list of objects"), ([{"effort": "low"}], "option is missing: add it")],
)
def test_wrong_options_are_refused(options: object, problem: str) -> None:
    assert problems("loops", json.dumps([{**LOOP, "options": options}])) == (f"loop 1: {problem}",)
