"""From the outside: the inbox, and what each decision does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, Result, failed, passed, raises

STEPS: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "design": {"phase": "design", "needs": ["plan"]},
    "review": {"reviews": "design"},
    "ship": {"needs": ["design"]},
}
CHOICES = ["continue", "revise", "reassign", "reclassify", "rollback", "resolve", "accept", "skip", "cancel"]


def stopped(make: Make, then: Any = None, **more: Any) -> tuple[Project, Result]:
    """A review that rejected the design twice, with one round allowed."""
    replies = [failed("one"), failed("two"), *([failed(f"{n}") for n in range(9)] if then is None else [then])]
    project = make({"limits": {"rounds_per_loop": 1}, "steps": STEPS, **more}, review=replies)
    result = project.run()
    assert result.code == 3
    return project, result


def test_the_packet_says_what_happened_and_what_can_be_done(make: Make) -> None:
    project, result = stopped(make)
    packet = result.escalation
    assert (packet["id"], packet["loop"], packet["step"]) == ("E-1", "L-1", None)
    assert packet["reason"] == "limit rounds_per_loop (1/1)"
    assert (packet["options"], packet["message"]) == (CHOICES, "two")
    (listed,) = project.backedge("inbox", "--json").json
    assert listed["run"] == result.run and listed["workflow"] == "w"
    assert {key: listed[key] for key in packet} == packet
    words = project.backedge("inbox").out
    assert "E-1" in words and result.run in words and f"backedge decide E-1 {'|'.join(CHOICES)}" in words


@pytest.mark.parametrize(("rounds", "designs"), [((), 5), (("--rounds", "1"), 3), (("--rounds", "5"), 7)])
def test_continue_grants_rounds(make: Make, rounds: tuple[str, ...], designs: int) -> None:
    project, _ = stopped(make)
    again = project.answer("E-1", "continue", *rounds)
    assert (again.attempts["design"], again.escalation["id"]) == (designs, "E-2")
    assert again.breach[0] == "rounds_per_loop"


def test_continue_at_rounds_total_also_raises_the_total(make: Make) -> None:
    project, result = stopped(make, limits={"rounds_total": 1})
    assert result.breach == ("rounds_total", 1, 1)
    again = project.answer("E-1", "continue", "--rounds", "1")
    assert again.breach == ("rounds_total", 2, 2)


def test_revise_gives_a_new_approach_in_words(make: Make) -> None:
    project, _ = stopped(make, passed())
    assert "revise needs a note" in project.refused("decide", "E-1", "revise")
    again = project.answer("E-1", "revise", "--note", "use the other library")
    assert (again.code, again.outcome) == (0, "verified")
    told = project.briefings("design")[2]
    assert (told["feedback"]["advice"], project.told("design")[2]) == (["use the other library"], ["two"])


def test_reassign_sends_it_elsewhere(make: Make) -> None:
    project, _ = stopped(make, passed())
    assert "reassign needs a target" in project.refused("decide", "E-1", "reassign")
    assert "'review'" in project.refused("decide", "E-1", "reassign", "--target", "review")
    again = project.answer("E-1", "reassign", "--target", "plan")
    assert (again.outcome, project.told("plan")) == ("verified", [[], ["two"]])
    assert again.loop["targets"] == ["plan"] and again.loop["routed_by"] == "decision"


def test_reclassify_names_the_phase_that_injected_it(make: Make) -> None:
    project, _ = stopped(make, passed())
    assert "unknown phase 'plannig': did you mean 'planning'?" in project.refused(
        "decide", "E-1", "reclassify", "--phase", "plannig"
    )
    again = project.answer("E-1", "reclassify", "--phase", "planning")
    assert (again.outcome, project.told("plan")) == ("verified", [[], ["two"]])
    assert [each["introduced_by"] for each in again.findings] == ["design", "plan"]
    assert again.findings[1]["affected_phase"] == ["planning"]


def test_resolve_closes_the_loop_and_the_judge_runs_once_more_with_the_answer(make: Make) -> None:
    project, _ = stopped(make, passed())
    again = project.answer("E-1", "resolve", "--note", "it is fine: see REQ-4", "--by", "ann")
    assert (again.outcome, again.attempts["design"], again.attempts["review"]) == ("verified", 2, 3)
    assert (again.loop["state"], again.loop["resolution"]["by"]) == ("resolved", "ann")
    (told,) = project.briefings("review")[2]["feedback"]["resolutions"]
    assert told["text"] == "it is fine: see REQ-4"


def test_accept_counts_the_judge_as_passed_and_accepted_findings_start_nothing(make: Make) -> None:
    project, _result = stopped(make, failed("two"))
    again = project.answer("E-1", "accept")
    assert (again.code, again.outcome, again.attempts["ship"]) == (4, "accepted", 1)
    assert again.findings[1]["status"] == "accepted"
    raised = project.backedge("feedback", "raise", "--kind", "fix_request", "--to", "design", "--message", "x")
    assert (raised.code, raised.out.strip()) == (0, "L-2")
    once_more = project.resume()
    assert (once_more.code, once_more.outcome, len(once_more.loops)) == (4, "accepted", 2)


def test_skip_defers_the_findings_and_skips_the_judge(make: Make) -> None:
    project, _ = stopped(make)
    again = project.answer("E-1", "skip")
    assert (again.code, again.outcome, again.attempts["ship"]) == (4, "accepted", 1)
    assert again.steps["review"]["state"] == "passed_over"
    assert again.findings[1]["status"] == "deferred"


def test_run_says_what_the_question_is_about_when_it_stops_for_a_person(make: Make) -> None:
    project = make({"steps": {"ask": {"agent": "human"}}})
    assert "\n  E-1 about ask: asked\n     You do the step ask.\n" in project.backedge("run").out


def test_what_stopped_a_run_is_told_in_a_sentence_with_the_recommended_choice_first(make: Make) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    project = make({"limits": {"rounds_per_loop": 1}, "steps": steps}, review=[failed("no logout")] * 2)
    ended = project.backedge("run")
    told = ended.err.splitlines()
    assert [line.split(", ")[-1] for line in told if "↩" in line] == ["round 1 of 1", "1 of 1 round used"], told
    said = "review rejected code twice. Still wrong: no logout"
    asked = next(place for place, line in enumerate(told) if "? E-1" in line)
    assert "[revise | continue | " in told[asked] and told[asked + 1].strip() == said
    assert f"     {said}\n     backedge decide E-1 revise|continue|" in ended.out
    assert project.backedge("show").out.count(said) == 2, "in the record, and among the open questions"
    packet = project.show().escalation
    assert (packet["sentence"], packet["words"][:2]) == (said, ["revise", "continue"])


def test_run_asks_for_an_approval_or_a_judgement_in_the_words_of_the_inbox(make: Make) -> None:
    steps = {"code": {}, "approve": {"reviews": "code", "agent": "human"}, "deploy": {"approval": "human"}}
    told = make({"steps": steps}).backedge("run").err
    assert "[approve | skip | reject]" in told and "[pass | fail | " in told


def test_raising_feedback_warns_what_is_missing_and_that_no_process_runs(make: Make) -> None:
    project = make({"steps": {"code": {"phase": "code"}, "ok": {"reviews": "code", "agent": "human"}}})
    run = project.run().run
    said = project.backedge("feedback", "raise", "--kind", "fix_request", "--to", "code", "--message", "do better")
    assert (said.code, said.out) == (0, "L-1\n")
    assert "warning: a fix_request without suggested_fix" in said.err
    assert f"No process is running it. Continue with `backedge resume {run}`" in said.err


def test_a_warning_about_an_agents_feedback_is_shown_when_it_is_raised(make: Make) -> None:
    work = {"steps": {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"]}}}
    project = make(work, code=[{"feedback": [{"kind": "fix_request", "to": "plan", "message": "do better"}]}, {}])
    assert "! L-1: warning: a fix_request without suggested_fix" in project.backedge("run").err


def test_a_choice_and_an_id_may_be_written_in_any_case(make: Make) -> None:
    project, _ = stopped(make)
    again = project.answer("e-1", "Accept")
    assert (again.code, again.outcome) == (4, "accepted")
    assert again.escalations[0]["decided"] == "accept"
    assert "reworked: design" in project.backedge("what-if", "l-1").out


def test_a_persons_verdict_may_be_written_in_any_case(make: Make) -> None:
    project = make({"steps": {"code": {"phase": "code"}, "review": {"reviews": "code", "agent": "human"}}})
    assert project.run().code == 3
    again = project.answer("E-1", "Resolve", "--option", "PASS")
    assert (again.code, again.outcome) == (0, "verified")


def test_cancel_ends_the_run_and_keeps_the_work(make: Make) -> None:
    project, _ = stopped(make)
    again = project.answer("E-1", "cancel", "--note", "not worth it")
    assert (again.code, again.outcome, again.steps["design"]["version"]) == (1, "cancelled", 2)
    assert "has ended: cancelled" in project.refused("pause")
    assert "has ended: cancelled" in project.refused("cancel", again.run)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("contine",), "did you mean 'continue'?"),
        (("Contine",), "did you mean 'continue'?"),
        (("reassign", "--target", "DESIGN"), "did you mean 'design'?"),
        (("reclassify", "--phase", "Desing"), "did you mean 'design'?"),
        (("continue", "--rounds", "0"), "rounds is 0: expected 1 or more"),
        (("continue", "--amount", "-1"), "amount is -1.0: expected more than 0"),
        (("continue", "--rounds", "many"), "'many' is not a valid integer"),
        (("continue", "--run", "nope"), "unknown run 'nope'"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused_and_changes_nothing(
    make: Make, args: tuple[str, ...], complaint: str
) -> None:
    project, _ = stopped(make)
    before = project.events()
    assert complaint in project.refused("decide", "E-1", *args)
    assert project.events() == before


def test_deciding_twice_names_the_first_decision(make: Make) -> None:
    project, result = stopped(make)
    project.decide("E-1", "accept", "--by", "ann")
    for more in ((), ("--run", result.run)):
        complaint = project.refused("decide", "E-1", "cancel", *more)
        assert "E-1 was already decided: accept by ann; the first decision stands" in complaint


def test_the_run_may_be_left_out_if_the_id_is_unique(make: Make) -> None:
    project, first = stopped(make)
    second = project.run()
    complaint = project.refused("decide", "E-1", "accept")
    assert "E-1 is open in 2 runs: choose one with --run" in complaint
    assert first.run in complaint and second.run in complaint
    assert {each["run"] for each in project.backedge("inbox", "--json").json} == {first.run, second.run}
    project.decide("E-1", "accept", "--run", first.run)
    # Now only one is open, so the id is enough again; afterwards both are decided.
    project.decide("E-1", "cancel")
    assert project.show(second.run).outcome == "cancelled"
    complaint = project.refused("decide", "E-1", "cancel")
    assert "already decided" in complaint and "accept" in complaint and "cancel" in complaint
    assert "accept" in project.refused("decide", "E-1", "cancel", "--run", first.run)


def test_a_prefix_of_an_id_is_enough_if_it_is_unique(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}})
    project.run("--run", "north-1")
    project.run("--run", "north-2")
    assert project.show("north-2").run == "north-2"
    assert "'north' is ambiguous: 2 runs begin with it: north-2, north-1" in project.refused("show", "north")
    project.run("--run", "north")
    assert project.show("north").run == "north"


def test_decide_without_a_choice_asks(make: Make) -> None:
    project, _ = stopped(make)
    complaint = project.refused("decide", "E-1")
    assert all(choice in complaint for choice in CHOICES)


def test_decide_without_an_id_takes_the_only_open_escalation(make: Make) -> None:
    project, first = stopped(make)
    assert "E-1 needs a choice" in project.refused("decide")
    second = project.run()
    complaint = project.refused("decide")
    assert "2 escalations are open" in complaint and f"E-1 of {second.run}" in complaint
    assert "E-1 needs a choice" in project.refused("decide", "--run", first.run)
    for each in (first, second):
        project.decide("E-1", "cancel", "--run", each.run)
    assert "no escalations are open" in project.refused("decide")


def test_decide_says_how_to_continue_if_no_process_runs_the_run(make: Make) -> None:
    project, result = stopped(make)
    assert f"backedge resume {result.run}" in project.backedge("decide", "E-1", "continue").err
    assert f"No process is running it. Continue with `backedge resume {result.run}`" in project.backedge("show").out
    project.resume()
    assert "resume" not in project.backedge("decide", "E-2", "cancel").err


def test_the_decider_is_recorded_and_defaults_to_you(make: Make) -> None:
    project, _ = stopped(make)
    project.decide("E-1", "accept")
    packet = project.show().escalations[0]
    assert packet["decided"] == "accept" and packet["by"]


def test_the_options_of_the_feedback_are_offered_and_others_are_refused(make: Make) -> None:
    options = [{"option": "polling", "effort": "low", "impact": "slower"}, {"option": "push", "effort": "high"}]
    steps = {"a": {"phase": "code"}}
    project = make({"steps": steps}, a=[{"feedback": [raises("fix_request", "human", options=options)]}, {}])
    project.run()
    (packet,) = project.backedge("inbox", "--json").json
    assert packet["options"] == ["resolve", "accept", "skip", "cancel"]
    assert packet["offers"] == [{"rework": [], "impact": "", "accept": False, **each} for each in options]
    words = project.backedge("inbox").out
    assert 'resolve --option "polling": ' in words and "effort: low; impact: slower" in words
    assert 'resolve --option "push": ' in words and "effort: high\n" in words
    assert "option 'pigeon' was not offered" in project.refused("decide", "E-1", "resolve", "--option", "pigeon")
    assert "resolve needs an answer" in project.refused("decide", "E-1", "resolve")
    assert project.answer("E-1", "resolve", "--option", "push").loop["resolution"]["option"] == "push"


def test_a_person_does_a_step(make: Make) -> None:
    steps = {"spec": {"phase": "planning", "agent": "human"}, "code": {"phase": "code", "needs": ["spec"]}}
    project = make({"steps": steps})
    result = project.run()
    assert (result.code, result.escalation["step"], result.escalation["options"]) == (
        3,
        "spec",
        ["resolve", "skip", "cancel"],
    )
    again = project.answer("E-1", "resolve", "--note", "build a login page")
    assert (again.outcome, again.steps["spec"]["output"]) == ("done", "build a login page")
    assert project.briefings("code")[0]["inputs"] == {"spec": "build a login page"}


def test_a_person_who_does_a_step_sees_its_prompt(make: Make) -> None:
    project = make({"steps": {"spec": {"phase": "planning", "agent": "human", "prompt": "ask.md"}}})
    (project.folder / "ask.md").write_text("Which page\nis built first?\n")
    assert project.run().code == 3
    assert "Which page is built first?" in project.backedge("inbox").out


def test_a_person_judges(make: Make) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code", "agent": "human"}}
    project = make({"steps": steps})
    assert project.run().code == 3
    assert "needs a verdict as the option" in project.refused("decide", "E-1", "resolve", "--note", "hm")
    again = project.answer("E-1", "resolve", "--option", "fail", "--note", "no tests")
    assert (project.told("code"), again.code) == ([[], ["no tests"]], 3)
    last = project.answer(again.escalation["id"], "resolve", "--option", "pass")
    assert (last.code, last.outcome, last.finding["status"]) == (0, "verified", "fixed")


def test_human_feedback_is_reworked_and_verified_by_the_judge(make: Make) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    project = make({"steps": steps}, review=[passed()])
    assert project.run().outcome == "verified"
    args = ["--kind", "fix_request", "--to", "code", "--message", "the page is blank", "--suggested-fix", "fill it"]
    assert project.backedge("feedback", "raise", *args).out.strip() == "L-1"
    assert project.backedge("runs", "--json").json[0]["outcome"] == "running"
    (loop,) = project.backedge("feedback", "list", "--json").json
    assert (loop["source"], loop["targets"]) == ("human", ["code"])
    again = project.resume()
    assert (again.outcome, again.loop["state"], again.attempts) == ("verified", "resolved", {"code": 2, "review": 2})
    (request,) = project.briefings("code")[1]["feedback"]["requests"]
    assert (request["message"], request["suggested_fix"]) == ("the page is blank", "fill it")


def test_human_feedback_without_a_judge_is_verified_by_that_person(make: Make) -> None:
    project = make({"steps": {"code": {"phase": "code"}}})
    project.run()
    project.backedge("feedback", "raise", "--kind", "fix_request", "--to", "code", "--message", "x")
    result = project.resume()
    assert (result.code, result.escalation["reason"]) == (3, "the fix waits for your verification")
    again = project.answer(result.escalation["id"], "resolve", "--note", "yes")
    assert (again.outcome, again.loop["state"]) == ("done", "resolved")


def test_a_finding_can_be_reclassified_at_any_time(make: Make) -> None:
    project, _ = stopped(make, passed())
    assert "unknown finding 'F-9'" in project.refused("feedback", "reclassify", "F-9", "--phase", "planning")
    assert "unknown phase 'plan'" in project.refused("feedback", "reclassify", "F-2", "--phase", "plan")
    assert project.backedge("feedback", "reclassify", "F-1", "--phase", "planning").code == 0
    assert project.show().findings[0]["affected_phase"] == ["planning"]


def test_what_if_lists_the_steps_that_would_rerun_and_the_cost(make: Make) -> None:
    cost = {"usage": {"cost_usd": 0.25}}
    project = make(
        {"limits": {"rounds_per_loop": 0}, "steps": STEPS},
        plan=[cost],
        design=[cost],
        review=[failed({"description": "x", "affected_phase": "planning"}, **cost)],
    )
    project.run()
    blast = project.backedge("what-if", "L-1", "--json").json
    assert (blast["reworks"], blast["cascades"], blast["verifies"]) == (["plan"], ["design"], ["review"])
    assert blast["cost_usd"] == 0.75
    assert "reworked: plan" in project.backedge("what-if", "L-1").out
    assert "unknown loop 'L-9' (open loops: L-1)" in project.refused("what-if", "L-9")


def test_a_paused_run_starts_nothing_until_it_is_resumed(make: Make) -> None:
    project, _result = stopped(make, passed())
    assert project.backedge("pause").code == 0
    project.decide("E-1", "continue")
    paused = project.show()
    assert (paused.outcome, paused.paused, paused.attempts["design"]) == ("waiting", True, 2)
    assert project.resume().outcome == "verified"


def test_a_closed_loop_keeps_its_findings_when_they_are_found_again(make: Make) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    project = make(
        {"steps": steps, "limits": {"rounds_per_loop": 1}}, review=[failed("x"), failed("x"), failed("x"), passed()]
    )
    project.run()
    result = project.answer("E-1", "resolve", "--note", "look again")
    assert [(loop["id"], loop["findings"]) for loop in result.loops] == [("L-1", ["F-1"]), ("L-2", ["F-1"])]
