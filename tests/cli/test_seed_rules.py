"""From the outside: rules of the systems that users come from."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Make
from tests.cli.project import failed, finished, passed, raises

ASP: dict[str, Any] = {
    "profile": "asp",
    "steps": {
        "plan": {"phase": "planning"},
        "design": {"phase": "design", "needs": ["plan"]},
        "review": {"reviews": "design"},
    },
}
TIGHT: dict[str, Any] = {
    "profile": "tight-loop",
    "steps": {"implement": {"phase": "code"}, "review": {"reviews": "implement"}},
}


def test_both_sends_a_finding_once_to_planning_and_once_to_design(make: Make) -> None:
    project = make(ASP, review=[failed({"description": "no log-in", "affected_phase": "Both"}), passed()])
    result = project.run()
    assert (result.outcome, result.attempts) == ("verified", {"plan": 2, "design": 2, "review": 2})
    assert (project.told("plan"), project.told("design")) == ([[], ["no log-in"]], [[], ["no log-in"]])
    assert result.finding["affected_phase"] == ["planning", "design"]


def test_both_is_a_word_of_one_profile_only(make: Make) -> None:
    project = make({**ASP, "profile": "default"}, review=[failed({"description": "x", "affected_phase": "Both"})])
    result = project.run()
    assert result.breach == ("errors_in_a_row", 3, 3)
    assert "affected_phase 'Both' is unknown" in result.steps["review"]["last_error"]


def test_the_tight_loop_reports_a_repeated_issue_before_the_end_of_its_iterations(make: Make) -> None:
    result = make(TIGHT, review=[failed(each) for each in ("a", "b", "x", "x", "x")]).run()
    assert (result.attempts["implement"], result.breach) == (5, ("same_finding", 3, 3))


AUDIT_ENTRY = """{
    "timestamp": "2024-01-15T10:30:00Z",
    "feedback_id": "FB-001",
    "type": "FIX_REQUEST",
    "source": "test-oracle",
    "target": "implementation-executor",
    "round": 1,
    "status": "routed"
  }"""


def test_the_audit_entry_of_feedback_edges_is_imported(make: Make) -> None:
    project = make(ASP)
    (project.folder / "audit.json").write_text(AUDIT_ENTRY)
    loop = json.loads(project.backedge("import", "audit.json", "--json").out)["loops"][0]
    assert [loop[key] for key in ("id", "kind", "source", "targets", "rounds", "state")] == [
        "FB-001",
        "fix_request",
        "test-oracle",
        ["implementation-executor"],
        1,
        "waiting_response",
    ]


def test_an_audit_trail_is_one_loop_for_each_feedback(make: Make) -> None:
    project, entry = make(ASP), json.loads(AUDIT_ENTRY)
    entries = [entry, {**entry, "feedback_id": "FB-002"}, {**entry, "status": "resolved", "round": 2}]
    (project.folder / "audit.jsonl").write_text("\n".join(map(json.dumps, entries)))
    loops = json.loads(project.backedge("import", "audit.jsonl", "--json").out)["loops"]
    assert [(each["id"], each["state"], each["rounds"]) for each in loops] == [
        ("FB-001", "resolved", 2),
        ("FB-002", "waiting_response", 1),
    ]


def test_the_loop_export_has_the_options_of_each_loop(make: Make) -> None:
    options = [{"option": "polling", "effort": "low", "impact": "slower", "rework": ["plan"]}, {"option": "queue"}]
    asked = {"output": "x", "feedback": [raises("constraint_violation", "plan", options=options)]}
    project = make(ASP, design=[asked, {"output": "y"}], plan=[{"output": "p"}, {"decision": {"option": "queue"}}])
    project.run()
    exported = project.backedge("export", "--as", "loops").out
    offered = json.loads(exported)["feedback_loops"][0]["options"]
    assert [(each["option"], each.get("effort"), each.get("rework")) for each in offered] == [
        ("polling", "low", ["plan"]),
        ("queue", None, None),
    ]
    (project.folder / "loops.json").write_text(exported)
    again = json.loads(project.backedge("import", "loops.json", "--json").out)["loops"][0]
    assert [each["option"] for each in again["options"]] == ["polling", "queue"]
    assert (again["resolution"]["option"], again["resolution"]["by"]) == ("queue", "plan")


def test_an_imported_decision_is_shown(make: Make) -> None:
    project = make(ASP)
    loop = {
        "source_agent": "developer",
        "target_agents": ["architect"],
        "issue_type": "constraint_violation",
        "description": "no websockets",
        "state": "RESOLVED",
        "details": {"options": [{"option": "Use polling", "effort": "low"}]},
        "resolution": {"decision": "Use polling", "reason": "cheap", "by": "pm"},
    }
    (project.folder / "loops.json").write_text(json.dumps({"feedback_loops": [loop]}))
    project.backedge("import", "loops.json")
    assert "resolved by pm: “Use polling”: cheap" in project.backedge("show").out
    shown = project.show().loop
    assert (shown["options"][0]["option"], shown["resolution"]["option"]) == ("Use polling", "Use polling")


def test_the_decisions_of_an_imported_scratchpad_are_shown(make: Make) -> None:
    project = make(TIGHT, review=[failed(each) for each in "abcdefg"])
    project.run()
    project.decide("E-1", "accept", "--note", "good enough for now")
    (project.folder / "pad.md").write_text(project.backedge("export", "--as", "scratchpad").out)
    project.backedge("import", "pad.md")
    assert "good enough for now" in project.backedge("show").out


CHECKED: dict[str, Any] = {
    "steps": {
        "pm": {"phase": "planning"},
        "arch": {"phase": "planning"},
        "code": {"phase": "code", "needs": ["pm", "arch"]},
    },
    "checks": {
        "stack": {
            "compare": ["pm:/browser", "arch:/browser"],
            "severity": "medium",
            "options": ["use polyfills", {"option": "drop IE11", "effort": "low", "rework": ["pm"]}],
        }
    },
    "limits": {"rounds_per_loop": 1},
}


def test_the_answer_to_a_check_is_advice_for_the_steps_that_disagree(make: Make) -> None:
    browsers = [{"output": {"browser": each}} for each in ("IE11", "IE10", "evergreen")]
    project = make(CHECKED, pm=browsers, arch=[{"output": {"browser": "evergreen"}}])
    stopped = project.run()
    assert (stopped.code, stopped.breach) == (3, ("rounds_per_loop", 1, 1))
    told = json.loads(project.backedge("inbox", "--json").out)[0]
    assert [each["option"] for each in told["choices"] if each["option"]] == ["use polyfills", "drop IE11"]
    assert "drop IE11 (effort: low)" in project.briefings("pm")[1]["feedback"]["findings"][0]["suggested_fix"]
    result = project.answer("E-1", "resolve", "--option", "drop IE11", "--note", "nobody uses it")
    assert (result.outcome, result.attempts) == ("verified", {"pm": 3, "arch": 2, "code": 1})
    assert project.briefings("pm")[2]["feedback"]["advice"] == ["drop IE11: nobody uses it"]
    assert (result.loop["state"], result.loop["rounds"]) == ("resolved", 2)


def test_an_option_that_a_check_does_not_have_is_refused(make: Make) -> None:
    project = make(CHECKED, pm=[{"output": {"browser": "IE11"}}], arch=[{"output": {"browser": "evergreen"}}])
    project.run()
    said = project.refused("decide", "E-1", "resolve", "--option", "drop IE12")
    assert "option 'drop IE12' was not offered: did you mean 'drop IE11'?" in said


def test_the_answer_to_a_test_is_advice_for_the_step_under_test(make: Make) -> None:
    work = {"steps": {"code": {"phase": "code"}, "test": {"tests": "code"}}, "limits": {"rounds_per_loop": 1}}
    project = make(work, code=[{"output": n} for n in range(3)], test=[failed("t"), failed("t"), passed()])
    project.run()
    result = project.answer("E-1", "resolve", "--note", "use UTC")
    assert (result.outcome, result.attempts) == ("verified", {"code": 3, "test": 3})
    assert project.briefings("code")[2]["feedback"]["advice"] == ["use UTC"]


def test_an_option_whose_rework_cannot_run_is_not_offered(make: Make) -> None:
    steps = {
        "plan": {"phase": "planning"},
        "ui": {"phase": "design", "needs": ["plan"], "when": "plan:/ui"},
        "code": {"phase": "code", "needs": ["plan", "ui"]},
    }
    options = [{"option": "new widgets", "rework": ["ui"]}, {"option": "a queue"}]
    asked = {"output": "x", "feedback": [raises("constraint_violation", "plan", "human", options=options)]}
    chosen = [{"output": {"ui": False}}, {"decision": {"option": "new widgets"}}, {"decision": {"option": "a queue"}}]
    project = make({"steps": steps, "agreement": "authority", "authority": ["plan"]}, code=[asked, {}], plan=chosen)
    project.run()
    requests = [each["feedback"]["requests"][0] for each in project.briefings("plan")[1:]]
    assert [[option["option"] for option in each["options"]] for each in requests] == [["a queue"], ["a queue"]]
    told = json.loads(project.backedge("inbox", "--json").out)[0]
    assert [each["option"] for each in told["choices"] if each["option"]] == ["a queue"]
    assert "was not offered" in project.refused("decide", "E-1", "resolve", "--option", "new widgets")


ASKING: dict[str, Any] = {
    "steps": {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"]}},
    "limits": {"errors_in_a_row": 1},
}


def waiting(make: Make) -> Any:
    """A run whose loop waits for a step that keeps breaking: it has no escalation of its own."""
    asks = {"output": "draft", "feedback": [raises("fix_request", "plan", suggested_fix="say more")]}
    project = make(ASKING, code=[asks, {"output": "final"}], plan=[{"output": "plan"}, {"!exit": 1}, {"output": "new"}])
    assert project.run().loop["state"] == "escalating"
    return project


def test_a_person_resolves_a_loop_that_has_no_escalation(make: Make) -> None:
    project = waiting(make)
    assert project.backedge("feedback", "resolve", "L-1", "--note", "the plan is fine").code == 0
    project.decide("E-1", "continue")
    result = project.resume()
    assert (result.outcome, result.loop["state"]) == ("done", "resolved")
    told = project.briefings("code")[1]["feedback"]["resolutions"][0]
    assert (told["state"], told["text"]) == ("resolved", "the plan is fine")
    assert "L-1 is resolved" in project.refused("feedback", "resolve", "L-1", "--note", "again")
    assert "unknown loop 'L-9'" in project.refused("feedback", "withdraw", "L-9")


def test_a_person_withdraws_a_loop(make: Make) -> None:
    project = waiting(make)
    said = project.backedge("feedback", "withdraw", "L-1", "--note", "out of scope")
    assert (said.code, said.out.split(": ")[-1].strip()) == (0, "cancelled")
    project.decide("E-1", "continue")
    result = project.resume()
    assert (result.outcome, result.loop["resolution"]["text"]) == ("done", "withdrawn: out of scope")


def test_a_person_escalates_a_loop_and_then_decides_about_it(make: Make) -> None:
    work = {"steps": {"code": {"phase": "code"}, "review": {"reviews": "code"}}}
    project = make(work, code=[{"output": 1}, {"output": 2, "!wait": "go"}], review=[failed("no log-in"), passed()])
    running = project.started("run", "--json")
    project.wait_for_execution("code", 2)
    assert project.backedge("feedback", "escalate", "L-1", "--note", "they talk past each other").code == 0
    (project.folder / "go").touch()
    assert finished(running).code == 3
    packet = project.show().escalation
    assert packet["loop"] == "L-1" and "they talk past each other" in packet["reason"]
    assert "already: decide E-1" in project.refused("feedback", "escalate", "L-1")
    result = project.answer("E-1", "continue")
    assert (result.outcome, result.attempts) == ("verified", {"code": 2, "review": 2})


CHOOSING: dict[str, Any] = {
    "steps": {
        "pm": {"phase": "planning"},
        "arch": {"phase": "design", "needs": ["pm"]},
        "code": {"phase": "code", "needs": ["arch"]},
    },
    "limits": {"errors_in_a_row": 1},
}
ASKS = {
    "output": "draft",
    "feedback": [raises("constraint_violation", "pm", "arch", options=[{"option": "polling"}, {"option": "queue"}])],
}


def test_with_agreement_first_the_first_answer_decides_although_a_target_breaks(make: Make) -> None:
    project = make(
        {**CHOOSING, "agreement": "first"},
        code=[ASKS, {"output": "final"}],
        pm=[{"output": "plan"}, {"!exit": 1}],
        arch=[{"output": "design"}, {"decision": {"option": "queue"}, "!sleep": 0.3}],
    )
    result = project.run()
    assert (result.code, result.outcome) == (0, "done")
    assert (result.loop["choice"]["option"], result.loop["choice"]["by"]) == ("queue", "arch")


def test_a_person_answers_for_a_broken_target_and_the_others_keep_their_answers(make: Make) -> None:
    project = make(
        CHOOSING, code=[ASKS, {"output": "final"}], pm=[{"output": "p"}, {"!exit": 1}], arch=[{}, {"!exit": 1}]
    )
    assert project.run().code == 3
    told = {each["id"]: each for each in json.loads(project.backedge("inbox", "--json").out)}
    assert {each["step"] for each in told.values()} == {"pm", "arch"}
    first = next(iter(told))
    assert [each["option"] for each in told[first]["choices"] if each["option"]] == ["polling", "queue"]
    result = project.answer(first, "resolve", "--option", "queue")
    assert (result.outcome, result.loop["choice"]["option"]) == ("done", "queue")


def test_skipping_one_target_leaves_the_choice_to_the_others(make: Make) -> None:
    ask = {
        "output": "draft",
        "feedback": [raises("constraint_violation", "pm", "human", options=[{"option": "queue"}])],
    }
    project = make(CHOOSING, code=[ask, {"output": "final"}], pm=[{"output": "plan"}, {"!exit": 1}])
    project.run()
    result = project.answer("E-2", "skip")
    assert (result.code, result.steps["pm"]["state"], result.loop["state"]) == (3, "done", "resolving")
    assert project.answer("E-1", "resolve", "--option", "queue").outcome == "done"


def test_a_condition_on_open_loops_is_looked_at_again(make: Make) -> None:
    steps = {
        "code": {"phase": "code"},
        "review": {"reviews": "code"},
        "notes": {"phase": "code", "when": "open_loops > 0"},
    }
    project = make({"steps": steps}, code=[{"output": 1}, {"output": 2}], review=[failed("no log-in"), passed()])
    result = project.run()
    assert (result.outcome, result.attempts) == ("verified", {"code": 2, "review": 2, "notes": 1})


def test_a_condition_can_refer_to_feedback_from_a_step(make: Make) -> None:
    steps = {
        "code": {"phase": "code"},
        "test": {"tests": "code"},
        "lessons": {"phase": "test", "needs": ["code"], "when": "feedback_from:test > 0"},
        "praise": {"phase": "test", "needs": ["code"], "when": "not feedback_to:code"},
    }
    project = make({"steps": steps}, code=[{"output": 1}, {"output": 2}], test=[failed("t"), passed()])
    result = project.run()
    assert (result.outcome, result.attempts) == ("verified", {"code": 2, "test": 2, "lessons": 1, "praise": 0})
    assert "step 'tst' does not exist" in make({"steps": {"a": {"when": "feedback_from:tst"}}}).refused("check")


def test_a_person_can_say_both_too(make: Make) -> None:
    project = make({**ASP, "limits": {"rounds_per_step": 0}}, review=[failed("no log-in"), passed()])
    project.run()
    result = project.answer("E-1", "reclassify", "--phase", "Both")
    assert (result.outcome, result.attempts) == ("verified", {"plan": 2, "design": 2, "review": 2})
    assert (result.finding["affected_phase"], project.told("plan")[1]) == (["planning", "design"], ["no log-in"])


def test_options_in_the_details_of_a_constraint_are_offered(make: Make) -> None:
    details = {"requirement_text": "live", "options": [{"option": "Use polling", "effort": "low"}]}
    asks = {"output": "x", "feedback": [raises("constraint_violation", "plan", details=details)]}
    chosen = [{"output": "p"}, {"decision": {"option": "use polling"}}]
    project = make(ASKING, code=[asks, {"output": "y"}], plan=chosen)
    assert project.run().loop["choice"]["option"] == "Use polling"
    assert project.briefings("plan")[1]["feedback"]["requests"][0]["options"][0]["effort"] == "low"


def test_the_workflow_root_is_the_first_step(make: Make) -> None:
    asks = {"output": "x", "feedback": [raises("fix_request", "workflow-root", suggested_fix="say more")]}
    result = make(ASKING, code=[asks, {"output": "y"}]).run()
    assert (result.outcome, result.loop["targets"]) == ("done", ["plan"])


FEEDBACK_EDGES = [
    {
        "type": "FEEDBACK",
        "from_node": "processor",
        "to_node": "workflow-root",
        "feedback_type": "DEPENDENCY_MISSING",
        "message": "needs a Refund model",
        "suggested_action": "add Refund before the processor",
        "priority": "critical",
        "artifacts": ["app/processor.rb:12"],
        "status": "failed",
        "round": 2,
    },
    {
        "type": "FEEDBACK",
        "from_node": "controller",
        "to_node": "service",
        "feedback_type": "CONTEXT_REQUEST",
        "message": "which signature?",
        "requested_info": "method_name, parameters",
        "priority": "medium",
    },
]


def test_an_imported_loop_shows_everything_that_was_asked(make: Make) -> None:
    project = make(ASP)
    (project.folder / "edges.json").write_text(json.dumps(FEEDBACK_EDGES))
    loops = json.loads(project.backedge("import", "edges.json", "--json").out)["loops"]
    assert [(each["suggested_fix"], each["requested_info"], each["artifacts"]) for each in loops] == [
        ("add Refund before the processor", None, ["app/processor.rb:12"]),
        (None, "method_name, parameters", []),
    ]
    asked = ("add Refund before the processor", "app/processor.rb:12", "method_name, parameters")
    for view in ("show", "feedback list"):
        said = project.backedge(*view.split()).out
        assert [each for each in asked if each not in said] == [], view


def test_an_imported_escalation_and_its_details_are_shown(make: Make) -> None:
    project = make(ASP)
    loop = {
        "source_agent": "developer",
        "target_agents": ["architect", "pm"],
        "issue_type": "constraint_violation",
        "description": "no websockets",
        "state": "ESCALATING",
        "status": "escalated",
        "escalation_reason": "timeout",
        "details": {"requirement_id": "REQ-123", "constraint": "no persistent connections"},
    }
    (project.folder / "loops.json").write_text(json.dumps({"feedback_loops": [loop]}))
    project.backedge("import", "loops.json")
    said = project.backedge("show").out
    assert "loop-1 was escalated: timeout" in said and "requirement: REQ-123" in said
    assert "no persistent connections" in said and "backedge decide" not in said
    assert project.show().loop["requirement_id"] == "REQ-123"


def test_feedback_to_two_targets_is_one_loop_again_after_an_export_and_an_import(make: Make) -> None:
    steps = {**ASP["steps"], "code": {"phase": "code", "needs": ["design"]}}
    asks = raises("fix_request", "plan", "design", suggested_fix="say more", requirement_id="REQ-7")
    project = make(
        {**ASP, "steps": steps}, code=[{"output": "x", "feedback": [asks]}, {"output": "y"}], review=[passed()]
    )
    run = project.run().run
    for form, name in (("feedback-jsonl", "edges.jsonl"), ("loops", "loops.json")):
        (project.folder / name).write_text(project.backedge("export", "--as", form, run).out)
        (loop,) = json.loads(project.backedge("import", name, "--json").out)["loops"]
        assert (loop["id"], loop["targets"]) == ("L-1", ["plan", "design"])
        assert (loop["suggested_fix"], loop["requirement_id"]) == ("say more", "REQ-7")


def test_the_defects_of_an_imported_log_are_shown(make: Make) -> None:
    project = make(ASP)
    defect = {"defect": "no log-in", "phase_injected": "Planning", "phase_detected": "Design Review"}
    (project.folder / "defects.json").write_text(json.dumps([defect]))
    project.backedge("import", "defects.json")
    said = project.backedge("show").out
    assert "F-1 [high] no log-in: fixed" in said and "injected in planning, found by Design Review" in said


def test_tests_that_were_not_run_have_no_result_in_a_scratchpad(make: Make) -> None:
    project = make(TIGHT)
    for words in ("", " N/A", " skipped", " -", " not run"):
        text = f"## Iteration 1\n- **Review Result**: FAIL - a\n- **Test Result**:{words}\n- **Status**: continuing\n"
        (project.folder / "pad.md").write_text(text)
        said = project.backedge("import", "pad.md")
        assert (said.code, said.err) == (0, ""), words


def test_a_person_sees_what_a_broken_target_was_asked(make: Make) -> None:
    choice = raises("constraint_violation", "plan", message="no websockets", options=[{"option": "queue"}])
    fix = raises("fix_request", "plan", message="the plan has no log-in", suggested_fix="add a unit")
    for item, asked in ((choice, ["no websockets", "queue"]), (fix, ["the plan has no log-in", "add a unit"])):
        asks = {"output": "draft", "feedback": [item]}
        project = make(ASKING, code=[asks], plan=[{"output": "plan"}, {"!exit": 1}])
        project.run()
        said = project.backedge("inbox").out
        assert [each for each in asked if each not in said] == []
        assert asked[0] in project.backedge("inbox", "--json").out


def test_a_broken_step_shows_the_findings_that_it_had_to_address(make: Make) -> None:
    work = {"steps": {"code": {"phase": "code"}, "review": {"reviews": "code"}}, "limits": {"errors_in_a_row": 1}}
    project = make(work, code=[{"output": 1}, {"!exit": 1}], review=[failed("no log-in")])
    project.run()
    assert "F-1 [high] open: no log-in" in project.backedge("inbox").out


def test_missing_words_of_a_person_are_refused_and_not_kept(make: Make) -> None:
    project = make(ASKING)
    project.run()
    before = len(project.events())
    for words, missing in ((["--to", "plan", "--message", " "], "message"), (["--message", "slow"], "to")):
        assert f"{missing} is missing" in project.refused("feedback", "raise", "--kind", "fix_request", *words)
    assert len(project.events()) == before


def test_small_texts(make: Make) -> None:
    work = {**CHECKED, "limits": {"rounds_per_loop": 0}}
    work["checks"] = {
        "stack": {"compare": ["pm:/b", "arch:/b"], "options": [{"option": "live with it", "accept": True}]}
    }
    project = make(work, pm=[{"output": {"b": 1}}], arch=[{"output": {"b": 2}}])
    project.run()
    said = project.backedge("inbox").out
    assert "recommended: continue (nothing was tried yet)" in said
    assert "feedback needs a command: use one of raise, " in project.refused("feedback")
    for typed, meant in (("feedbck_to:pm", "feedback_to:pm"), ("open_loops_form:pm > 0", "open_loops_from:pm")):
        wrong = make({"steps": {"pm": {"phase": "planning"}, "x": {"when": typed}}})
        assert f"did you mean `{meant}`?" in wrong.refused("check")
    placed = {"description": "the page is wrong", "file": "docs/a.md"}
    steps = {"code": {"phase": "code", "writes": ["src/**"]}, "review": {"reviews": "code"}}
    project = make({"steps": steps}, review=[failed(placed)])
    project.run()
    assert "Still wrong: the page is wrong. No step may write" in project.backedge("inbox").out


def test_reclassifying_to_both_names_both_phases(make: Make) -> None:
    project = make({**ASP, "limits": {"rounds_per_step": 0}}, review=[failed("no log-in"), passed()])
    project.run()
    assert project.backedge("feedback", "reclassify", "F-1", "--phase", "Both").out == "F-1: planning, design\n"


def test_the_iterations_of_an_imported_progress_file_are_shown(make: Make) -> None:
    project = make(TIGHT)
    iteration = {
        "number": 1,
        "implementation": "Created FilterDropdown component",
        "review_result": "PASS",
        "test_result": "FAIL",
        "test_failures": ["FilterDropdown.test.tsx:45 - missing mock"],
    }
    loop = {
        "enabled": True,
        "current_iteration": 1,
        "max_iterations": 5,
        "status": "escalated",
        "consecutive_review_failures": 0,
        "consecutive_test_failures": 1,
        "iterations": [iteration],
    }
    (project.folder / "progress.json").write_text(json.dumps({"feedback_loop": loop}))
    project.backedge("import", "progress.json")
    text = project.backedge("show").out
    assert "1: Created FilterDropdown component\n     review PASS\n     test FAIL: FilterDropdown" in text
    assert project.show().report["iterations"][0]["implementation"] == "Created FilterDropdown component"
