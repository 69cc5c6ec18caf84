"""The statistics of runs: what is counted, that it agrees with the replayed runs, and that nothing divides by zero."""

from __future__ import annotations

import pytest
from hypothesis import given

from backedge.analytics import run_facts as folding
from backedge.analytics.defects import defects
from backedge.analytics.facts import RunFacts
from backedge.analytics.loop_stats import loop_stats
from backedge.analytics.run_facts import run_facts
from backedge.analytics.stats import Stats, rows, statistics_of
from backedge.core.model import Kind, Severity
from backedge.engine.codec import decode_events
from tests.core.play import Finding, Play, Usage, ask, failed, flow, grows, out, passed, step
from tests.core.strategies import Pick, a_random_run, effort, picks
from tests.histories.recorded import histories, versions

PIPELINE = flow(
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("design_review", reviews="design"),
    step("code", "design", phase="code"),
    step("test", tests="code"),
)


def facts(play: Play) -> RunFacts:
    found = run_facts(play.events)
    assert found is not None
    return found


def stats(*plays: Play) -> Stats:
    return statistics_of(facts(each) for each in plays)


def test_a4_17_statistics_of_nothing_are_zeros() -> None:
    assert run_facts([]) is None
    nothing = statistics_of([])
    assert {value for _, _, value in rows(nothing)} == {0}
    assert (nothing.runs, nothing.loops.total, nothing.findings.by_phase, nothing.rework.most) == (0, 0, (), ())


def test_a_run_without_feedback_has_no_rework_and_nothing_in_the_lists() -> None:
    found = stats(Play(PIPELINE).run())
    assert (found.runs, found.attempts, found.loops.total, found.findings.total) == (1, 5, 0, 0)
    assert (found.rework.attempts, found.rework.share, found.rework.most, found.findings.yields) == (0, 0.0, (), ())


def test_a0_16_loops_are_counted_by_kind_severity_and_state() -> None:
    play = Play(PIPELINE, {"design": grows, "design_review": [failed("a"), failed("b"), passed()]}).run()
    play.raises("code", ask("human", kind=Kind.MISSING_REQUIREMENT, severity=Severity.LOW))
    loops = stats(play, Play(PIPELINE).run()).loops
    assert (loops.total, loops.active, loops.resolved, loops.escalations) == (2, 1, 1, 1)
    assert loops.by_kind == {"missing_requirement": 1, "review_rejection": 1}
    assert loops.by_severity == {"high": 1, "low": 1}
    assert loops.by_state == {"escalating": 1, "resolved": 1}
    assert (loops.success_rate, loops.average_rounds, loops.rounds_to_resolution) == (50.0, 2.0, {"2": 1})


def test_findings_are_counted_by_the_phases_that_injected_and_detected_them() -> None:
    play = Play(
        PIPELINE,
        {
            "plan": grows,
            "design": grows,
            "code": grows,
            "design_review": [failed(Finding("no login", affected_phase=("planning",)), "bad api"), passed()],
            "test": [failed("crash", Finding("no index", affected_phase=("design",))), passed()],
        },
    ).run()
    found = stats(play).findings
    assert [(each.injected, each.detected, each.findings) for each in found.by_phase] == [
        ("code", "code", 1),
        ("design", "code", 1),
        ("design", "design", 1),
        ("planning", "design", 1),
    ]
    # The design's judge saw three defects that were there to be seen, and found two.
    assert [(each.phase, each.caught, each.present, each.per_cent) for each in found.yields] == [
        ("planning", 0, 1, 0.0),
        ("design", 2, 3, 66.7),
        ("code", 2, 2, 100.0),
    ]
    assert found.by_means == {"review": 2, "test": 2}
    assert found.by_status == {"fixed": 4}


def test_rework_is_counted_by_phase_and_agent_without_verification() -> None:
    priced = out("x", usage=Usage(cost_usd=0.25))
    again = out("y", usage=Usage(cost_usd=0.5))
    play = Play(
        PIPELINE,
        {
            "plan": [priced, again],
            "design": grows,
            "design_review": [failed(Finding("gap", affected_phase=("planning",))), passed()],
        },
    ).run()
    found = stats(play, Play(PIPELINE).run())
    assert [(each.phase, each.attempts, each.cost_usd, each.seconds) for each in found.rework.by_phase_and_agent] == [
        ("design", 1, 0.0, 1.0),
        ("planning", 1, 0.5, 1.0),
    ]
    assert (found.rework.attempts, found.rework.cost_usd, found.rework.seconds) == (2, 0.5, 2.0)
    assert found.rework.share == round(100 * 2 / found.attempts, 1)
    assert found.cost_usd == 0.75
    [most] = found.rework.most
    assert (most.run, most.workflow, most.rounds, most.attempts) == ("r", "w", 1, 2)


def test_persistent_findings_are_named_the_longest_first() -> None:
    play = Play(
        PIPELINE,
        {"design": grows, "design_review": [failed("old", "new"), failed("old"), passed()]},
    ).run()
    found = stats(play).findings
    assert found.persistent == 1
    assert [(each.description, each.rounds_seen) for each in found.most_persistent] == [("old", 2)]


def test_only_the_ten_runs_with_most_rework_are_named() -> None:
    def run(rounds: int) -> Play:
        replies = [*(failed(f"{rounds} {number}") for number in range(rounds)), passed()]
        return Play(PIPELINE, {"design": grows, "design_review": replies}).run()

    few, many = run(1), run(2)
    found = stats(*[few] * 250, many)
    assert [each.rounds for each in found.rework.most] == [2, *[1] * 9]
    assert found.runs == 251


@given(picks())
@effort(100)
def test_the_facts_are_those_of_the_replayed_run(pick: Pick) -> None:
    run = a_random_run(pick)
    found = run_facts(run.events)
    assert found is not None
    state = run.s
    loops = {loop.id: loop for loop in (*state.closed_loops.values(), *state.loops.values())}
    assert {id: (loop.kind, loop.severity, loop.rounds) for id, loop in found.loops.items()} == {
        id: (loop.kind_name, loop.severity, loop.round) for id, loop in loops.items()
    }
    counted, told = statistics_of([found]).loops, loop_stats([state])
    for name in ("total", "active", "resolved", "escalations", "by_kind", "success_rate", "average_rounds"):
        assert getattr(counted, name) == getattr(told, name), name
    for id, loop in loops.items():
        assert found.loops[id].state == loop.state or loop.open, id
    log = defects(run.events)
    assert [
        (each.name, each.description, each.severity, each.status, each.injected, each.found_by, each.detected)
        for each in found.findings.values()
    ] == [
        (
            each.finding,
            each.description,
            each.severity,
            each.status,
            each.injected_phase,
            each.detected_by,
            each.detected_phase,
        )
        for each in log
    ]
    assert [each.rounds_seen for each in found.findings.values()] == [
        each.rounds_seen for each in state.findings.values()
    ]


@pytest.mark.parametrize("version", versions())
def test_the_quick_fold_of_a_run_agrees_with_its_replay(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded runs, each also cut off in the middle."""
    quick = 0
    for history in histories(version):
        events = decode_events(history.records())
        for part in (events, events[: len(events) // 2], events[: len(events) * 3 // 4]):
            found = run_facts(part)
            with monkeypatch.context() as patched:
                patched.setattr(folding, "_ORDINARY", frozenset())
                assert run_facts(part) == found, history.name
            quick += bool(found and found.loops) and {type(each) for each in part} <= folding._ORDINARY
    assert quick > 100
