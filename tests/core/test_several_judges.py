"""Several judges of one artifact: equal findings are merged, fixed once, and verified by each judge."""

from __future__ import annotations

from backedge.core.model import Finding, Severity, Status
from backedge.core.wording import feedback_text
from tests.core.play import FindingResolution, Play, failed, flow, out, passed, step

SAME = Finding("no login", category="security")
WORSE = Finding("no login", category="security", severity=Severity.CRITICAL)
STEPS = (
    step("code"),
    step("review", reviews="code"),
    step("security", reviews="code"),
    step("product", reviews="code"),
)


def test_the_same_finding_of_several_judges_is_one_rework() -> None:
    scripts = {
        "code": [out(1), out(2)],
        "review": [failed(SAME), passed()],
        "security": [failed(WORSE, "weak hash"), passed()],
    }
    play = Play(flow(*STEPS), scripts).run()
    assert (play.outcome, play.attempts()) == ("verified", {"code": 2, "review": 2, "security": 2, "product": 2})
    merged, other = play.briefings["code"][1].feedback.findings
    assert (merged.description, merged.severity, merged.found_by) == ("no login", Severity.CRITICAL, "security, review")
    assert (merged.id, merged.same_as) == ("F-2", ("F-1",))
    assert (other.found_by, other.same_as) == ("security", ())
    assert [each.id for each in play.briefings["review"][1].verify] == ["F-1"]
    assert {each.status for each in play.s.findings.values()} == {Status.FIXED}


def test_a_finding_is_reworked_until_every_judge_passes() -> None:
    scripts = {"code": [out(1), out(2), out(3)], "review": [failed(SAME), passed()], "security": [failed(SAME)] * 2}
    play = Play(flow(*STEPS), {**scripts, "security": [failed(SAME), failed(SAME), passed()]}).run()
    assert (play.outcome, play.attempts()["code"]) == ("verified", 3)
    assert play.briefings["code"][2].feedback.findings[0].found_by == "security"


def test_the_authors_claim_reaches_every_judge_that_reported_the_finding() -> None:
    claims = (FindingResolution("F-1", "contested", "there is one"),)
    scripts = {
        "code": [out(1), out(2, resolutions=claims)],
        "review": [failed(SAME), passed()],
        "security": [failed(SAME), passed()],
    }
    play = Play(flow(*STEPS[:3]), scripts)
    for name in ("code", "review", "security", "code"):
        play.finish(name)
    assert [each.status for each in play.s.findings.values()] == [Status.CONTESTED, Status.CONTESTED]
    assert [play.briefings[name][1].verify[0].claim for name in ("review", "security")] == [
        "contested: there is one"
    ] * 2


def test_findings_of_several_judges_at_one_place_are_one_item_as_grave_as_the_gravest() -> None:
    def at(description: str, severity: Severity, line: int | None = 3, category: str = "security") -> Finding:
        return Finding(description, severity, category=category, file="a.py", line=line)

    mild, grave = at("no salt", Severity.MEDIUM, category="speed"), at("the hash can be guessed", Severity.CRITICAL)
    others = (at("long", Severity.HIGH, None, category="style"), at("typo", Severity.HIGH, line=4))
    scripts = {
        "code": [out(1), out(2), out(3)],
        "review": [failed(mild, *others), passed()],
        "security": [failed(grave, at("the key is short", Severity.HIGH, None)), failed(grave), passed()],
    }
    play = Play(flow(*STEPS), scripts).run()
    told = play.briefings["code"][1].feedback.findings
    assert [(each.id, each.same_place) for each in told] == [
        ("F-4", ("F-1",)),
        ("F-1", ("F-4",)),
        ("F-2", ()),
        ("F-3", ()),
        ("F-5", ()),
    ], "a whole file is no place, unless both are about the same category"
    text = feedback_text(play.briefings["code"][1])
    assert "### One place, several judges (security, review): critical" in text
    assert text.count("- **F-") == 5 and "- from review:\n- **F-1**" in text
    assert [each.same_place for each in play.briefings["code"][2].feedback.findings] == [()], "each is verified apart"
    assert [each.id for each in play.briefings["security"][1].verify] == ["F-4", "F-5"]


def test_findings_about_a_whole_file_are_one_item_if_they_are_of_one_category() -> None:
    def about(description: str, category: str) -> tuple[Finding, ...]:
        return (Finding(description, category=category, file="a.py"), Finding(f"{description} too"))

    scripts = {
        "code": [out(1), out(2)],
        "review": [failed(*about("old", "style")), passed()],
        "security": [failed(*about("odd", "style")), passed()],
    }
    told = Play(flow(*STEPS), scripts).run().briefings["code"][1].feedback.findings
    assert [(each.id, each.same_place) for each in told] == [
        ("F-1", ("F-3",)),
        ("F-3", ("F-1",)),
        ("F-2", ()),
        ("F-4", ()),
    ]
