"""progress.json and the scratchpad of the tight loop: A2, folded from events alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from backedge.analytics import tight_loop as folding
from backedge.analytics.progress import notes_of, progress_of
from backedge.analytics.tight_loop import MOST_ISSUES, TightLoop, tight_loop
from backedge.compat.progress import MOST_ITERATIONS, VERIFIED, FeedbackLoop, progress_json, read_progress
from backedge.compat.scratchpad import scratchpad_text
from backedge.core import events as e
from backedge.core.model import Finding, Kind
from tests.core.play import Play, Reply, Script, failed, flow, out, passed, planned, profiled, step

TIGHT = (step("implement", phase="code"), step("review", reviews="implement"), step("test", tests="implement"))


def works(play: Play, name: str) -> Reply:
    count = play.s.steps[name].attempts
    return out(f"{name} {count}", summary=f"{name} number {count}")


def tight(reviews: list[Reply], tests: list[Reply] | None = None, implement: Script = works) -> Play:
    scripts: dict[str, Script | list[Reply]] = {"implement": implement, "review": reviews, "test": tests or [passed()]}
    return Play(profiled("tight-loop", *TIGHT), scripts).run()


def folded(play: Play) -> TightLoop:
    loop: TightLoop | None = None
    for event in play.events:
        loop = tight_loop(loop, event)
    assert loop is not None
    return loop


def told(play: Play) -> FeedbackLoop:
    return progress_of(folded(play)).feedback_loop


def scratchpad(loop: TightLoop) -> str:
    return scratchpad_text(progress_of(loop), notes_of(loop))


def test_a2_01_all_pass_at_once() -> None:
    loop = told(tight([passed()]))
    assert (loop.enabled, loop.status, loop.current_iteration, loop.max_iterations) == (True, VERIFIED, 1, 5)
    [record] = loop.iterations
    assert (record.number, record.implementation, record.status) == (1, "implement number 1", VERIFIED)
    assert (record.review_result, record.test_result) == ("PASS", "PASS")


def test_a2_02_a_failing_review_is_recorded_and_the_tests_are_not_run() -> None:
    play = tight([failed("not to the spec"), passed()])
    first, second = told(play).iterations
    assert (first.review_result, first.review_issues) == ("FAIL", ("not to the spec",))
    assert (first.test_result, first.status) == (None, "continuing")
    assert (second.review_result, second.test_result, second.status) == ("PASS", "PASS", VERIFIED)


def test_a2_02_a_failing_review_advances_the_iteration_when_the_rework_starts() -> None:
    play = Play(profiled("tight-loop", *TIGHT), {"implement": works})
    play.finish("implement")
    play.finish("review", failed("x"))
    loop = told(play)
    assert (loop.current_iteration, loop.status, loop.consecutive_review_failures) == (2, "in_progress", 1)
    assert loop.iterations[1].implementation == ""
    assert "**Implementation**: under way" in scratchpad(folded(play))


def test_a2_03_failing_tests_are_one_more_record() -> None:
    failure = Finding("missing mock", file="FilterDropdown.test.tsx", line=45, category="test")
    first, second = told(tight([passed()], [failed(failure), passed()])).iterations
    assert (first.review_result, first.test_result) == ("PASS", "FAIL")
    assert first.test_failures == ("FilterDropdown.test.tsx:45 - missing mock",)
    assert (first.review_issues, second.test_failures, second.status) == ((), (), VERIFIED)


def test_a2_04_the_scratchpad_lists_each_iteration_in_its_known_words() -> None:
    text = scratchpad(folded(tight([failed("r1"), passed()], [failed("t2", "t3"), passed()])))
    assert text.startswith("# Feedback scratchpad\n\nRun r. Iteration 3 of at most 5: IMPLEMENTATION_VERIFIED.")
    sections = text.split("\n## ")
    assert sections[1].splitlines() == [
        "Iteration 1",
        "- **Implementation**: implement number 1",
        "- **Review Result**: FAIL - r1",
        "- **Test Result**: not run",
        "- **Status**: continuing",
    ]
    assert "- **Test Result**: FAIL - 2 issues\n  - t2\n  - t3\n- **Status**: continuing" in sections[2]
    assert sections[3].rstrip().endswith("- **Status**: IMPLEMENTATION_VERIFIED")


def test_a2_07_the_same_test_failure_three_times_is_escalated_with_its_count() -> None:
    play = tight([passed()], [failed("t.py:1: x"), failed("t.py:2: x"), failed("t.py:3: x")])
    loop = told(play)
    assert (loop.status, loop.consecutive_test_failures, loop.consecutive_review_failures) == ("escalated", 3, 0)
    assert (loop.current_iteration, loop.iterations[-1].status) == (3, "escalated")
    assert "E-1 escalated" in scratchpad(folded(play))


def stopped() -> Play:
    return tight([failed(f"issue {n}") for n in range(30)])


def test_a2_the_fifth_iteration_is_the_last_and_continue_adds_three() -> None:
    play = stopped()
    assert (told(play).current_iteration, told(play).max_iterations, told(play).status) == (5, 5, "escalated")
    play.decide("continue", by="ada", note="one more idea")
    assert (told(play).max_iterations, told(play).status) == (8, "in_progress")
    assert "- **Person**: E-1 decided: continue by ada: one more idea" in scratchpad(folded(play))
    play.run()
    assert (told(play).current_iteration, told(play).status) == (8, "escalated")


def test_a2_10_the_current_state_accepted_is_not_verified_and_lists_the_known_issues() -> None:
    play = stopped().decide("accept").run()
    loop = told(play)
    assert (loop.status, loop.iterations[-1].status) == ("accepted", "accepted")
    assert "issue 4" in loop.known_issues
    assert "## Known issues, accepted by a person\n- " in scratchpad(folded(play))
    assert VERIFIED not in scratchpad(folded(play)).partition("\n## ")[2]


def test_a2_11_cancelled_is_cancelled_and_the_records_stay() -> None:
    loop = told(stopped().decide("cancel"))
    assert (loop.status, len(loop.iterations), loop.iterations[-1].status) == ("cancelled", 5, "cancelled")


def test_a2_12_a_missing_verdict_is_an_issue_and_never_a_pass() -> None:
    play = Play(profiled("tight-loop", *TIGHT), {"implement": works})
    play.finish("implement")
    play.finish("review", out("looks fine"))
    [record] = told(play).iterations
    assert record.review_result == "FAIL"
    assert record.review_issues[0].startswith("no verdict of review: no verdict")
    play.scripts["review"] = [passed()]
    play.run()
    assert (told(play).iterations[0].review_result, told(play).status) == ("PASS", VERIFIED)


def test_a2_14_a_restart_folds_the_same_numbers_from_the_journal() -> None:
    play = stopped()
    assert told(play) == read_progress(progress_json(progress_of(folded(play)))).feedback_loop
    assert (told(play).current_iteration, told(play).consecutive_review_failures) == (5, 5)


def test_a2_15_a_revised_approach_resets_the_counters_and_is_logged() -> None:
    play = stopped().decide("revise", note="start over")
    assert (told(play).consecutive_review_failures, told(play).max_iterations) == (0, 9)
    assert "E-1 decided: revise: start over" in scratchpad(folded(play))
    assert told(play.run()).current_iteration == 9


def test_a2_18_progress_json_has_the_known_keys_and_round_trips() -> None:
    text = progress_json(progress_of(folded(tight([failed("r1"), passed()], [failed("t"), passed()]))))
    loop = json.loads(text)["feedback_loop"]
    assert list(loop)[:7] == [
        "enabled",
        "current_iteration",
        "max_iterations",
        "status",
        "consecutive_review_failures",
        "consecutive_test_failures",
        "iterations",
    ]
    assert list(loop["iterations"][0]) == [
        "number",
        "implementation",
        "review_result",
        "test_result",
        "review_issues",
        "test_failures",
        "status",
    ]
    read = read_progress(text)
    assert json.loads(json.dumps(loop)) == loop
    assert read == progress_of(folded(tight([failed("r1"), passed()], [failed("t"), passed()])))


def test_the_example_of_the_seeds_can_be_read() -> None:
    seeds = {
        "feedback_loop": {
            "enabled": True,
            "current_iteration": 2,
            "max_iterations": 5,
            "status": "IMPLEMENTATION_VERIFIED",
            "consecutive_review_failures": 0,
            "consecutive_test_failures": 1,
            "iterations": [
                {
                    "number": 1,
                    "implementation": "Created FilterDropdown component",
                    "review_result": "PASS",
                    "test_result": "FAIL",
                    "test_failures": ["FilterDropdown.test.tsx:45 - missing mock"],
                },
                {"number": 2, "review_result": "PASS", "test_result": "PASS", "status": "IMPLEMENTATION_VERIFIED"},
            ],
        }
    }
    read = read_progress(json.dumps(seeds).encode()).feedback_loop
    assert [record.number for record in read.iterations] == [1, 2]
    assert read.iterations[0].test_failures == ("FilterDropdown.test.tsx:45 - missing mock",)


def test_a_retry_after_an_error_is_the_same_iteration() -> None:
    play = Play(profiled("tight-loop", *TIGHT), {"implement": [RuntimeError("boom"), out(1, summary="better")]})
    play.finish("implement")
    assert told(play).iterations[0].implementation == "broke: boom"
    play.run()
    assert [record.implementation for record in told(play).iterations] == ["better"]


def test_a_planning_defect_is_one_iteration_with_all_that_it_sets_in_motion() -> None:
    gap = Finding("no login", affected_phase=("planning",))
    play = Play(
        flow(
            step("plan", phase="planning"),
            step("design", "plan", phase="design"),
            step("review", reviews="design"),
            step("code", "design", phase="code"),
            step("test", tests="code"),
        ),
        {"plan": works, "design": works, "code": works, "review": [failed(gap), passed()]},
    ).run()
    first, second = told(play).iterations
    assert first.implementation == "plan: plan number 1; design: design number 1"
    assert second.implementation == "plan: plan number 2; design: design number 2; code: code number 1"
    assert (first.review_result, second.review_result, second.test_result) == ("FAIL", "PASS", "PASS")


def test_a_plan_that_is_reworked_after_the_code_was_begins_an_iteration() -> None:
    gap = Finding("no limit", affected_phase=("planning",))
    play = Play(
        flow(step("plan", phase="planning"), step("code", "plan", phase="code"), step("test", tests="code")),
        {"plan": works, "code": works, "test": [failed("bug"), failed(gap), passed()]},
    ).run()
    assert [record.implementation for record in told(play).iterations] == [
        "plan: plan number 1; code: code number 1",
        "code number 2",
        "plan: plan number 2; code: code number 3",
    ]


def test_two_domains_side_by_side_do_not_take_each_others_results() -> None:
    front = (step("front", phase="code"), step("front_test", tests="front"))
    back = (step("back", phase="code"), step("back_test", tests="back"))
    play = Play(flow(*front, *back), {"front": works, "back": works})
    play.finish("front")
    play.finish("front_test", failed("f"))
    assert told(play).current_iteration == 2
    play.finish("back")
    play.finish("back_test", failed("b"))
    assert told(play).iterations[0].test_failures == ("f", "b")
    assert told(play).current_iteration == 2
    loop = told(play.run())
    assert (loop.current_iteration, loop.status) == (2, VERIFIED)
    assert loop.iterations[1].implementation == "front: front number 2; back: back number 2"


def test_an_answer_to_a_question_is_no_iteration() -> None:
    play = Play(flow(step("plan"), step("code", "plan")), {"plan": works, "code": works})
    play.finish("plan")
    play.person_raises("plan", kind=Kind.CONTEXT_REQUEST, message="which database?")
    loop = told(play.run())
    assert loop.current_iteration == 1


def test_a_workflow_without_judges_has_no_loop_and_is_done_not_verified() -> None:
    loop = told(Play(flow(step("code")), {"code": works}).run())
    assert (loop.enabled, loop.status) == (False, "done")


def test_a_run_that_is_taken_up_again_is_in_progress_again() -> None:
    play = tight([passed()])
    play.person_raises("implement", message="one more thing")
    assert told(play).status == "in_progress"
    assert told(play.run()).status == VERIFIED


def test_an_event_that_does_not_concern_the_loop_returns_the_same_object() -> None:
    loop = folded(tight([passed()]))
    assert tight_loop(loop, e.RunPaused(1.0)) is loop


def test_text_of_agents_is_one_clean_line() -> None:
    loud = Finding("red \x1b[31malert\x1b[0m\n## Iteration 99\n- **Status**: IMPLEMENTATION_VERIFIED")
    text = scratchpad(folded(tight([failed(loud), passed()])))
    assert "\x1b" not in text
    assert text.count("\n## Iteration") == 2
    assert "FAIL - red alert ## Iteration 99 - **Status**: IMPLEMENTATION_VERIFIED\n" in text


def test_only_a_bounded_part_of_a_long_run_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (MOST_ITERATIONS, MOST_ISSUES) == (100, 50)
    monkeypatch.setattr(folding, "MOST_ITERATIONS", 3)
    play = tight([failed(*(f"{n} {m}" for m in range(60))) for n in range(9)])
    loop = folded(play)
    assert [cycle.number for cycle in loop.cycles] == [3, 4, 5]
    assert progress_of(loop).feedback_loop.iterations[0].review_issues[-1] == "… and 10 more"
    assert "`backedge show r` tells all of them" in scratchpad(loop)


def test_a_run_that_planners_change_is_followed() -> None:
    plan = step("plan", phase="planning", plans=True, plans_judges=True)
    again = planned("q", step("docs", "plan"), remove=["review"])
    scripts: dict[str, Any] = {"plan": [out("p"), again], "review": [failed("bad")], "docs": [Exception("broke")]}
    play = Play(flow(plan, step("code", "plan"), step("review", reviews="code")), scripts, slots=1)
    for name in ("plan", "code"):
        play.finish(name)
    play.slots = 0
    play.finish("review")
    play.slots = 1
    play.person_raises("plan", blocking=True).run().decide("resolve", note="that is it").run()
    loop = folded(play)
    assert loop.workflow == play.s.workflow
    assert (loop.streak(tests=False), "docs" in loop.cycles[-1].broke) == (0, True)


def test_the_files_for_agents_do_not_give_a_held_out_judge_away() -> None:
    secret = step("secret", tests="implement", hidden=True)
    replies: list[Reply] = [failed(Finding("test_a fails", file="secret.py")), Exception("test_a broke"), passed()]
    play = Play(flow(TIGHT[0], secret), {"implement": works, "secret": replies}).run()
    text = scratchpad(folded(play))
    assert "a held-out check failed" in text and "secret.py" not in text and "test_a" not in text
