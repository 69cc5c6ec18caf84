"""A finding in a file that no step may write is a question to a person, not three rounds of rework."""

from __future__ import annotations

import pytest

from backedge.core.workflow.definition import Step
from backedge.core.workflow.globs import matches_any
from tests.core.play import Finding, Play, failed, flow, grows, passed, step

PLAN = step("plan", phase="planning", writes=())
CODE = step("code", "plan", phase="code", writes=("src/**", "README.md"))


def reviewed(finding: Finding, *steps: object, judge: str = "reviews", code: object = CODE) -> Play:
    judging = step("review", **{judge: "code"})
    work = flow(PLAN, code, judging)  # type: ignore[arg-type]
    return Play(work, {"code": grows, "review": [failed(finding), failed(finding), passed()]}).run()


def test_a_person_is_asked_at_once_and_told_who_may_write_what() -> None:
    play = reviewed(Finding("outdated", file="docs/api.md"))
    (packet,) = play.s.escalations.values()
    assert packet.reason == (
        "no step may write 'docs/api.md' (F-1); plan may write nothing; code may write src/**, README.md: "
        "fix it yourself and resolve, or accept it; `writes` can allow it"
    )
    assert (packet.breach, play.attempts()["code"], play.outcome) == (None, 1, "waiting")


def test_many_findings_are_named_by_file_and_the_first_ones_only() -> None:
    found = [Finding(f"line {line}", file="docs/a.md", line=line) for line in range(5)]
    found += [Finding("old", file=f"docs/{name}.md") for name in "bcde"]
    play = Play(flow(PLAN, CODE, step("review", reviews="code")), {"code": grows, "review": [failed(*found)]}).run()
    (packet,) = play.s.escalations.values()
    assert packet.reason.startswith(
        "no step may write 'docs/a.md' (F-1, F-2, F-3 and 2 more), 'docs/b.md' (F-6), 'docs/c.md' (F-7) and 2 more files; "
        "plan may"
    )


def test_a_step_that_could_write_it_and_does_not_get_it_is_named() -> None:
    work = flow(step("plan", phase="planning"), CODE, step("review", reviews="code"))
    play = Play(work, {"code": grows, "review": [failed(Finding("outdated", file="docs/api.md")), passed()]}).run()
    (packet,) = play.s.escalations.values()
    assert packet.reason == (
        "code may not write 'docs/api.md' (F-1); code may write src/**, README.md: reassign it (plan), "
        "fix it yourself and resolve, or accept it; `writes` can allow it"
    )
    assert (play.attempts()["code"], play.outcome) == (1, "waiting")
    assert play.decide("reassign", target="plan").run().outcome == "verified"


def test_a_step_that_gets_it_and_may_write_anything_is_not_asked_about() -> None:
    work = flow(step("plan", phase="planning"), CODE, step("review", reviews="code"))
    finding = Finding("outdated", file="docs/api.md", affected_phase=("planning",))
    play = Play(work, {"plan": grows, "code": grows, "review": [failed(finding), passed()]}).run()
    assert (play.outcome, play.s.opened_escalations) == ("verified", 0)


def test_a_person_can_send_it_on_and_is_not_asked_again() -> None:
    play = reviewed(Finding("outdated", file="docs/api.md")).decide("continue").run()
    assert (play.outcome, play.s.opened_escalations) == ("verified", 1)


@pytest.mark.parametrize("file", ["src/a.py", "./README.md", "/etc/passwd", "../docs/api.md", None])
def test_a_file_that_may_be_written_or_is_elsewhere_is_nobodys_question(file: str | None) -> None:
    assert reviewed(Finding("x", file=file)).s.opened_escalations == 0


def test_a_failing_test_names_its_own_file() -> None:
    assert reviewed(Finding("x", file="tests/test_a.py"), judge="tests").s.opened_escalations == 0
    assert reviewed(Finding("x", file="tests/test_a.py", test="test_a")).s.opened_escalations == 0


@pytest.mark.parametrize("writes", [None, ()])
def test_where_it_is_not_known_what_is_written_nobody_is_asked(writes: tuple[str, ...] | None) -> None:
    code = step("code", "plan", phase="code", writes=writes)
    assert reviewed(Finding("x", file="docs/api.md"), code=code).s.opened_escalations == 0


def test_in_another_workspace_files_may_be_named_from_two_places() -> None:
    code = step("code", "plan", phase="code", writes=("src/**",), workspace="services/api")
    assert reviewed(Finding("x", file="services/api/src/a.py"), code=code).s.opened_escalations == 0


def test_an_open_question_about_the_loop_is_enough() -> None:
    work = flow(PLAN, CODE, step("review", reviews="code"), limits={"rounds_per_loop": 0})
    play = Play(work, {"review": [failed(Finding("x", file="docs/api.md"))]}).run()
    assert [packet.breach and packet.breach.limit for packet in play.s.escalations.values()] == ["rounds_per_loop"]


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("src/**", "src/a/b.py", True),
        ("**/*.py", "a.py", True),
        ("*.py", "a/b.py", False),
        ("docs", "docs/a.md", True),
        ("a?.md", "ab.md", True),
        ("[!a].md", "b.md", True),
        ("[ab].md", "c.md", False),
        (".", "anything", True),
        ("a**", "ab/c", True),
    ],
)
def test_globs(glob: str, path: str, matches: bool) -> None:
    assert matches_any((glob,), path) is matches


DB, UI = step("db", phase="code", writes=("db/*",)), step("ui", "db", phase="code", writes=("ui/*",))


@pytest.mark.parametrize(
    ("finding", "ui", "target", "rule"),
    [
        (Finding("x", file="db/a.sql"), UI, "db", "writes"),
        (Finding("x", file="ui/a.js"), UI, "ui", "subject"),
        (Finding("x"), UI, "ui", "subject"),
        (Finding("x", file="db/a.sql", affected_phase=("code",)), UI, "ui", "affected_phase"),
        (Finding("x", file="db/a.sql"), step("ui", "db", phase="code"), "ui", "subject"),
    ],
)
def test_a_file_that_only_another_step_may_write_is_sent_to_that_step(
    finding: Finding, ui: Step, target: str, rule: str
) -> None:
    work = flow(DB, ui, step("review", reviews="ui"))
    play = Play(work, {"db": grows, "ui": grows, "review": [failed(finding), passed()]}).run()
    loop = play.loop()
    assert (play.outcome, loop.targets, loop.routed_by) == ("verified", (target,), rule)
