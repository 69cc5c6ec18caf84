"""`show`: what happened in a run, for a reader who was not there."""

from __future__ import annotations

from pathlib import Path

from backedge.analytics.report import report
from backedge.analytics.rounds import loop_histories
from backedge.cli.page import Page
from backedge.cli.story import story
from backedge.core.commands import Reclassify
from backedge.core.model import Feedback, Finding, Kind, Severity
from backedge.core.workflow.limits import Limits
from tests.cli_setup.parts import backedge
from tests.cli_setup.parts import story as project
from tests.core.play import Play, failed, flow, step

STEPS = (step("plan", phase="planning"), step("code", "plan", phase="code"), step("review", reviews="code"))


def told(play: Play) -> list[str]:
    histories = loop_histories(play.events)
    return list(story(report(play.s, histories=histories), play.events, histories, (), Page()))


def part(lines: list[str], start: str) -> list[str]:
    """The lines from the one with this start up to the next empty line."""
    first = next(place for place, line in enumerate(lines) if line.startswith(start))
    return lines[first : lines.index("", first) if "" in lines[first:] else None]


def test_a_loop_is_shown_round_by_round_with_questions_and_answers() -> None:
    findings = [Finding("no login", affected_phase=("planning",)), Finding("a typo", file="a.py", line=3)]
    play = Play(flow(*STEPS, limits=Limits(rounds_per_loop=1)), {"review": [failed(*findings), failed(findings[1])]})
    play.run()
    play.decide("continue", rounds=2, by="ann", note="look \x1b[31mtwice")
    play.finish("code")
    lines = told(play)
    assert part(lines, "L-1") == [
        "L-1 review_rejection: review → code, validating after 2 rounds, routed by subject",
        "  F-1 [high] no login: unconfirmed",
        "    caused in: planning",
        "  F-2 [high] a.py:3 a typo: not fixed",
        "             review: fail (F-1, F-2 new)",
        "    round 1  F-1 → plan (by affected_phase, subject): attempt 2",
        "             F-2 → code: attempt 2",
        "             review: fail (F-2 not fixed, F-1 unconfirmed)",
        "    E-1 asked: limit rounds_per_loop (1/1)",
        "    E-1 decided: continue, 2 more rounds, by ann: look twice",
        "    round 2  F-2 → code: attempt 3",
    ]
    assert part(lines, "decided")[1:] == [
        "  E-1 about L-1, limit rounds_per_loop (1/1): continue, 2 more rounds, by ann: look twice"
    ]


def test_a_running_fix_and_a_waiting_target_are_shown_as_such() -> None:
    both = failed(Finding("no login", affected_phase=("planning", "code")))
    play = Play(flow(*STEPS), {"review": [both]})
    for name in ("plan", "code", "review"):
        play.finish(name)
    lines = part(told(play), "L-1")
    assert lines[-2:] == ["    round 1  F-1 → plan: attempt 2", "             F-1 → code: not yet"]


def test_accepted_and_deferred_findings_are_listed_with_their_judge() -> None:
    minor = Finding("a nit", severity=Severity.LOW)
    play = Play(flow(*STEPS, limits=Limits(rounds_per_loop=0)), {"review": [failed(Finding("no login"), minor)]}).run()
    play.decide("accept", by="ann")
    lines = told(play)
    assert part(lines, "accepted as it is")[1:] == [
        "  F-1 [high] no login, found by review",
        "  F-2 [low] a nit, found by review",
    ]
    assert "    accepted by ann" in part(lines, "L-1")
    play = Play(flow(*STEPS, limits=Limits(rounds_per_loop=0)), {"review": [failed(Finding("no login"))]}).run()
    play.decide("skip", by="ann")
    assert part(told(play), "left for later")[1:] == ["  F-1 [high] no login, found by review"]


def test_the_message_of_feedback_and_a_reclassified_cause_are_shown() -> None:
    play = Play(flow(*STEPS, limits=Limits(rounds_per_loop=0)), {"review": [failed(Finding("no login"))]}).run()
    play.do(Reclassify(finding="F-1", phase="planning", by="ann"))
    assert part(told(play), "decided")[1:] == ["  F-1 was caused in planning, by ann"]
    play = Play(flow(*STEPS))
    play.finish("plan")
    play.raises("code", Feedback(Kind.FIX_REQUEST, ("plan",), "the units are missing"))
    assert "  “the units are missing”" in part(told(play), "L-1")


def test_show_prints_the_loops_below_the_timeline(tmp_path: Path) -> None:
    project(tmp_path, wrong=9)
    backedge(tmp_path, "run", "--quiet", expect=3)
    backedge(tmp_path, "decide", "E-1", "accept", "--by", "ann")
    backedge(tmp_path, "resume", "--quiet", expect=4)
    said = backedge(tmp_path, "show").stdout
    order = [
        "▸ plan",
        "■ accepted",
        "code    code",
        "\nL-1 review_rejection",
        "\n    round 2",
        "\ndecided\n",
        "accepted as",
    ]
    places = [said.index(each) for each in order]
    assert places == sorted(places)
    assert "accepted by ann" in said
    assert "has no step 'nope': use one of: plan, code, review" in (
        backedge(tmp_path, "show", "--diff", "--step", "nope", expect=2).stderr
    )
