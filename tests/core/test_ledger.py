"""The ledger follows every finding over the rounds of a run."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import events as e
from backedge.core.briefing import Briefing
from backedge.core.findings.identity import location_of
from backedge.core.findings.ledger import after_sighting, with_status
from backedge.core.model import Finding, FindingResolution, Severity, Status
from tests.core.play import Limits, Outcome, Play, Reply, failed, flow, grows, made, out, passed, step, texts


def judged(*replies: Reply, design: Any = grows, **more: Any) -> Play:
    """A design under review, played until nothing can start."""
    complete = more.pop("complete", False)
    limits = more.pop("limits", Limits(same_finding=None, rounds_per_loop=None))
    work = flow(
        step("plan", phase="planning"),
        step("design", "plan", phase="design"),
        step("review", reviews="design", complete=complete),
        limits=limits,
        **more,
    )
    return Play(work, {"design": design, "review": list(replies)}).run()


def status(play: Play, id: int = 1) -> Status:
    found: Status = play.finding(id).status
    return found


def low(text: str, **more: Any) -> Finding:
    return Finding(text, severity=Severity.LOW, **more)


def test_a_pass_that_does_not_mention_a_finding_marks_it_fixed() -> None:
    play = judged(failed("no login"), passed())
    assert status(play) is Status.FIXED


def test_a_finding_that_a_failing_judge_does_not_mention_is_unconfirmed_and_not_delivered_again() -> None:
    play = judged(failed("no login"), failed("no audit"), passed())
    assert [texts(each.feedback.findings) for each in play.briefings["design"]] == [[], ["no login"], ["no audit"]]
    assert play.of(e.VerdictGiven)[1].settled == ((1, Status.UNCONFIRMED),)
    assert "no login" in play.briefings["design"][2].history[0].findings[0]


def test_an_unconfirmed_finding_is_not_asked_about_again_and_fixed_by_a_pass() -> None:
    play = judged(failed("no login"), failed("no audit"), passed())
    assert texts(play.briefings["review"][2].verify) == ["no audit"]
    assert status(play, 1) is Status.FIXED
    assert play.s.steps["review"].unmentioned == ()


def test_the_findings_to_verify_do_not_grow_with_the_rounds() -> None:
    play = judged(*(failed(f"no {round}") for round in range(8)), passed())
    assert [len(each.verify) for each in play.briefings["review"]] == [0] + [1] * 8
    assert {status(play, id) for id in range(1, 9)} == {Status.FIXED}


def test_an_unconfirmed_finding_is_recognised_when_it_recurs() -> None:
    play = judged(failed("no login"), failed("no audit"), failed("no login"), passed())
    assert [each.name for each in play.s.findings.values()] == ["F-1", "F-2"]
    assert texts(play.briefings["review"][3].verify) == ["no login"]


def test_a_judge_may_still_report_on_an_unconfirmed_finding() -> None:
    withdrawn = (FindingResolution("F-1", "withdrawn"),)
    play = judged(failed("no login"), failed("no audit"), failed("no tests", resolutions=withdrawn), passed())
    assert status(play, 1) is Status.WITHDRAWN
    assert play.s.steps["review"].errors == 0


@pytest.mark.parametrize(("choice", "end"), [("accept", Status.ACCEPTED), ("skip", Status.DEFERRED)])
def test_a_decision_settles_unconfirmed_findings_too(choice: str, end: Status) -> None:
    play = judged(failed("no login"), failed("no audit"), limits=Limits(rounds_per_loop=1))
    assert status(play, 1) is Status.UNCONFIRMED
    play.decide(choice).run()
    assert (status(play, 1), status(play, 2)) == (end, end)
    assert play.s.steps["review"].unmentioned == ()


def test_absence_from_a_complete_report_means_fixed() -> None:
    play = judged(failed("no login"), failed("no audit"), passed(), complete=True)
    assert play.of(e.VerdictGiven)[1].settled == ((1, Status.FIXED),)


@pytest.mark.parametrize("answer", ["fixed", "withdrawn", "duplicate"])
def test_a_judge_reports_on_each_finding(answer: Any) -> None:
    play = judged(failed("no login"), failed("no audit", resolutions=(FindingResolution("F-1", answer),)), passed())
    assert play.of(e.VerdictGiven)[1].settled == ((1, Status(answer)),)


def test_not_fixed_counts_as_seen_again() -> None:
    play = judged(failed("no login"), failed(resolutions=(FindingResolution("F-1", "not_fixed"),)), passed())
    assert play.of(e.VerdictGiven)[1].findings == (e.Sighting(1, Status.NOT_FIXED),)
    assert texts(play.briefings["design"][2].feedback.findings) == ["no login"]
    assert play.finding().rounds_seen == 2


def test_the_same_words_again_are_not_fixed_and_persistent() -> None:
    play = judged(failed("no login"), failed("no  login"), passed())
    assert play.of(e.VerdictGiven)[1].findings[0].status is Status.NOT_FIXED
    assert [shown.persistent for shown in play.briefings["design"][2].feedback.findings] == [True]
    assert not play.briefings["design"][1].feedback.findings[0].persistent
    assert len(play.s.findings) == 1


def test_a_fixed_finding_that_comes_back_is_regressed() -> None:
    play = judged(failed("no login"), failed("no audit"), failed("no login"), passed(), complete=True)
    assert play.of(e.VerdictGiven)[2].findings[0].status is Status.REGRESSED


@pytest.mark.parametrize("answer", ["withdrawn", "duplicate"])
def test_a_withdrawn_finding_that_comes_back_is_open(answer: Any) -> None:
    play = judged(
        failed("no login"),
        failed("no audit", resolutions=(FindingResolution("F-1", answer),)),
        failed("no login"),
        passed(),
    )
    assert play.of(e.VerdictGiven)[2].findings[0].status is Status.OPEN


def test_the_latest_text_of_a_finding_is_kept() -> None:
    play = judged(failed("no login"), failed(Finding("no login", evidence="tried")), passed())
    assert play.finding().finding.evidence == "tried"
    assert play.of(e.VerdictGiven)[1].findings[0].finding is not None


def test_an_unchanged_text_is_not_recorded_twice() -> None:
    play = judged(failed("no login"), failed("no login"), passed())
    assert play.of(e.VerdictGiven)[1].findings[0].finding is None


def test_one_defect_twice_in_a_report_is_one_finding() -> None:
    play = judged(failed("a.py:1: bad", "a.py:2: bad", "other"), passed())
    assert [each.name for each in play.s.findings.values()] == ["F-1", "F-2"]


def test_one_defect_at_two_locations_is_two_findings_recognised_by_their_order() -> None:
    one, two = Finding("unused name", file="a.py", line=3), Finding("unused name", file="a.py", line=9)
    play = judged(failed(one, two, one), failed(Finding("unused name", file="a.py", line=4)), passed(), complete=True)
    assert [each.finding.line for each in play.s.findings.values()] == [4, 9]
    assert [shown.line for shown in play.briefings["design"][1].feedback.findings] == [3, 9]
    assert play.of(e.VerdictGiven)[1].settled == ((2, Status.FIXED),)


def test_of_one_defect_at_two_locations_one_may_be_accepted() -> None:
    one, two = Finding("unused name", file="a.py", line=3), Finding("unused name", file="a.py", line=9)
    play = judged(failed(one), limits=Limits(rounds_per_loop=0))
    play.decide("accept").run()
    play.scripts["review"] = [failed(one, two)]
    play.person_raises("design").decide("continue").run()
    assert [each.status for each in play.s.findings.values()] == [Status.ACCEPTED, Status.OPEN]


def test_two_judges_have_findings_of_their_own() -> None:
    work = flow(step("design"), step("r1", reviews="design"), step("r2", reviews="design"))
    play = Play(work, {"design": grows, "r1": [failed("x"), passed()], "r2": [failed("x"), passed()]}).run()
    assert [each.found_by for each in play.s.findings.values()] == ["r1", "r2"]


def test_the_claims_of_a_rework_are_shown_to_the_judge() -> None:
    def design(play: Play, name: str) -> Reply:
        attempt = play.s.steps[name].attempts
        return out(attempt, resolutions=(FindingResolution("F-1", "contested", "by design"),) if attempt == 2 else ())

    play = judged(failed("no login"), passed(), design=design)
    assert play.briefings["review"][1].verify[0].claim == "contested: by design"
    assert play.briefings["review"][1].verify[0].status == "contested"
    assert status(play) is Status.FIXED


def test_a_claim_that_it_is_fixed_changes_nothing_in_the_ledger() -> None:
    def design(play: Play, name: str) -> Reply:
        attempt = play.s.steps[name].attempts
        return out(attempt, resolutions=(FindingResolution("F-1", "fixed"),) if attempt == 2 else ())

    play = judged(failed("no login"), passed(), design=design)
    assert play.briefings["review"][1].verify[0].status == "open"
    assert play.briefings["review"][1].verify[0].claim == "fixed"


@pytest.mark.parametrize(
    "claim",
    [FindingResolution("F-9", "fixed"), FindingResolution("F-1", "withdrawn"), FindingResolution("F-1", "not_fixed")],
)
def test_a_rework_may_claim_only_fixed_or_contested_and_only_for_its_findings(claim: FindingResolution) -> None:
    def design(play: Play, name: str) -> Reply:
        attempt = play.s.steps[name].attempts
        return out(attempt, resolutions=(claim,) if attempt == 2 else ())

    play = judged(failed("no login"), passed(), design=design)
    assert claim.finding in play.of(e.AttemptFailed)[0].error


class TestNewFindingsInALaterRound:
    """Late findings: a judge cannot silently add demands to an open loop."""

    def test_a_late_finding_of_low_severity_is_deferred(self) -> None:
        play = judged(failed("no login"), failed("no login", low("typo")), passed())
        assert status(play, 2) is Status.DEFERRED
        assert texts(play.briefings["design"][2].feedback.findings) == ["no login"]

    def test_a_late_finding_of_high_severity_is_reworked(self) -> None:
        play = judged(failed("no login"), failed("no audit"), passed())
        assert texts(play.briefings["design"][2].feedback.findings) == ["no audit"]
        assert not play.finding(2).fix_authored

    def test_a_finding_in_what_the_fix_changed_is_fix_authored_and_always_reworked(self) -> None:
        work = [{"api": 1, "db": 1}, {"api": 2, "db": 1}, {"api": 3, "db": 1}]
        wrong = low("broken type", path="/api")
        play = judged(
            failed("no login"), failed(wrong), passed(), design=lambda p, n: out(work[p.s.steps[n].attempts - 1])
        )
        assert play.finding(2).fix_authored
        assert texts(play.briefings["design"][2].feedback.findings) == ["broken type"]

    def test_a_new_finding_outside_the_fix_is_late(self) -> None:
        work = [{"api": 1, "db": 1}, {"api": 2, "db": 1}]
        elsewhere = low("no index", path="/db")
        play = judged(
            failed("no login"), failed(elsewhere), design=lambda p, n: out(work[min(p.s.steps[n].attempts, 2) - 1])
        )
        assert not play.finding(2).fix_authored
        assert status(play, 2) is Status.DEFERRED

    def test_a_fail_with_nothing_but_deferred_findings_counts_as_needs_improvement(self) -> None:
        play = judged(failed("no login"), failed(low("typo")))
        assert play.of(e.VerdictGiven)[1].word == "needs_improvement"
        assert play.outcome == "verified"

    def test_a_deferred_finding_that_is_reported_again_stays_deferred(self) -> None:
        play = judged(failed("no login"), failed("no login", low("typo")), failed(low("typo")))
        assert status(play, 2) is Status.DEFERRED
        assert play.outcome == "verified"

    def test_the_policy_rework_sends_all_late_findings_to_rework(self) -> None:
        every = tuple((severity, "rework") for severity in Severity)
        play = judged(failed("no login"), failed(low("typo")), passed(), new_findings=every)
        assert texts(play.briefings["design"][2].feedback.findings) == ["typo"]

    def test_the_policy_ask_escalates_late_findings(self) -> None:
        every = tuple((severity, "ask") for severity in Severity)
        play = judged(failed("no login"), failed("no audit"), passed(), new_findings=every)
        assert play.breach() == "the judge reported new findings that it could have reported earlier"
        play.decide("continue").run()
        assert play.outcome == "verified"

    def test_a_person_is_not_asked_twice_when_a_limit_stops_the_loop_anyway(self) -> None:
        every = tuple((severity, "ask") for severity in Severity)
        play = judged(failed("no login"), failed("no audit"), new_findings=every, limits=Limits(rounds_per_loop=1))
        assert play.breach() == "rounds_per_loop"
        assert len(play.s.escalations) == 1

    def test_in_a_new_loop_nothing_is_late(self) -> None:
        replies = (failed("no login"), passed(), failed(low("typo")), passed())
        play = judged(*replies)
        play.person_raises("design")
        assert texts(play.run().briefings["design"][3].feedback.findings) == ["typo"]


def test_needs_improvement_records_its_findings_as_deferred_and_starts_no_loop() -> None:
    reply = failed(Finding("could be nicer", Severity.MEDIUM))
    play = judged(type(reply)(reply.made, verdict="needs_improvement", findings=reply.findings))
    assert status(play) is Status.DEFERRED
    assert play.opened() == 0
    assert play.outcome == "verified"


def test_a_serious_finding_that_is_only_deferred_ends_the_run_accepted() -> None:
    reply = failed(Finding("no login", Severity.HIGH))
    play = judged(type(reply)(reply.made, verdict="needs_improvement", findings=reply.findings))
    assert (play.outcome, status(play), play.opened()) == ("accepted", Status.DEFERRED, 0)
    assert play.of(e.RunEnded)[0].reason == "critical or high findings are deferred: F-1"


def test_an_accepted_finding_found_again_starts_nothing() -> None:
    play = judged(failed("no login"), limits=Limits(same_finding=1))
    play.decide("accept").run()
    assert play.outcome == "accepted"
    play.person_raises("design").run()
    assert play.outcome == "accepted"
    assert play.opened() == 2
    assert status(play) is Status.ACCEPTED


def test_a_briefing_has_all_fields_of_a_finding() -> None:
    finding = Finding(
        "no login",
        Severity.CRITICAL,
        True,
        "security",
        ("design",),
        "seen",
        "all",
        "api.md",
        3,
        "/api",
        "add one",
        "REQ-1",
        "blocker",
    )
    play = judged(failed(finding), passed())
    briefed: Briefing = play.briefings["design"][1]
    shown = briefed.feedback.findings[0]
    assert (shown.id, shown.found_by, shown.location, shown.word) == (
        "F-1",
        "review",
        "api.md:3",
        "blocker",
    )
    assert (shown.category, shown.evidence, shown.impact, shown.path) == ("security", "seen", "all", "/api")
    assert (shown.suggested_fix, shown.requirement_id, shown.affected_phase) == (
        "add one",
        "REQ-1",
        ("design",),
    )


@pytest.mark.parametrize(
    ("before", "seen", "insisted"),
    [
        (Status.CONTESTED, Status.NOT_FIXED, 1),
        (Status.CONTESTED, Status.WITHDRAWN, 0),
        (Status.OPEN, Status.NOT_FIXED, 0),
    ],
)
def test_a_judge_insists_only_on_what_was_contested_and_is_not_fixed(
    before: Status, seen: Status, insisted: int
) -> None:
    first = after_sighting(None, e.Sighting(1, Status.OPEN, Finding("x")), "review", 1)
    again = after_sighting(with_status(first, before), e.Sighting(1, seen), "review", 2)
    assert again.insisted == insisted


def test_the_location_of_a_finding_is_its_file_and_line_else_its_path() -> None:
    placed = [Finding("x", file="a.py", line=3), Finding("x", file="a.py"), Finding("x", path="/api"), Finding("x")]
    assert [location_of(each) for each in placed] == ["a.py:3", "a.py", "/api", ""]


@pytest.mark.parametrize("hidden", [False, True])
def test_what_a_judge_says_about_an_open_finding_stays_with_it(hidden: bool) -> None:
    note = "it is still there with the tests as they were"
    again = Outcome(made("fail"), verdict="fail", resolutions=(FindingResolution("F-1", "not_fixed", note),))
    fixed = Outcome(made("pass"), verdict="pass", resolutions=(FindingResolution("F-1", "fixed"),))
    run = Play(
        flow(step("code", phase="code"), step("test", tests="code", hidden=hidden)),
        {"code": [out("a"), out("b"), out("c")], "test": [failed("total is wrong"), again, fixed]},
    ).run()
    given = [each.feedback.findings for each in run.briefings["code"]]
    assert [[finding.note for finding in findings] for findings in given] == [[], [""], ["" if hidden else note]]
    assert [each.note for each in run.briefings["test"][2].verify] == [note]
    assert (run.outcome, run.s.findings[1].note) == ("verified", "")
