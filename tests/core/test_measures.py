"""Checks and gates: judges that the engine executes itself."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import WorkflowError
from backedge.core.escalation.packet import packet
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Finding, Kind, Option, Severity, Status
from backedge.core.state.evolve import replay
from backedge.core.value import replace
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.checks import Check, Gate, parse_check, parse_gate
from backedge.core.workflow.definition import Step, Workflow
from backedge.core.workflow.validate import problems_of
from tests.core.play import Limits, Play, failed, flow, grows, made, out, passed, step, texts

REFERENCES = ("ux:/breakpoints", "arch:/breakpoints")
STEPS = (step("plan"), step("ux", "plan"), step("arch", "plan"), step("code", "ux", "arch"))


def checked(*compare: str, **more: Any) -> Workflow:
    return flow(*STEPS, checks=(Check("breakpoints", compare or REFERENCES, **more),))


def positions(*values: Any) -> list[Any]:
    return [out({"breakpoints": value}) for value in values]


def played(play: Play) -> tuple[str, dict[str, int]]:
    assert replay(play.events) == play.s
    return play.outcome, play.attempts()


class TestChecks:
    def test_values_that_agree_pass(self) -> None:
        play = Play(checked(), {"ux": positions([320]), "arch": positions([320])}).run()
        assert played(play) == ("verified", {"plan": 1, "ux": 1, "arch": 1, "code": 1, "breakpoints": 1})
        assert play.s.attempts == 4
        assert max_attempts(play.workflow) == max_attempts(flow(*STEPS))

    def test_consensus_reworks_all_steps_until_their_values_agree(self) -> None:
        play = Play(checked(), {"ux": positions(320, 360), "arch": positions(768, 480, 360)})
        play.run()
        assert played(play) == ("verified", {"plan": 1, "ux": 3, "arch": 3, "code": 1, "breakpoints": 3})
        loop = play.loop()
        assert (loop.kind, loop.source, loop.round) == (Kind.INCONSISTENCY, "breakpoints", 2)
        assert (loop.targets, loop.routed_by, loop.state) == (("ux", "arch"), "consensus", LoopState.RESOLVED)
        briefed = [play.briefings[name][1].feedback.findings for name in ("ux", "arch")]
        assert briefed[0] == briefed[1]
        assert texts(briefed[0]) == ["breakpoints: not equal: ux:/breakpoints is 320; arch:/breakpoints is 768"]
        assert json.loads(briefed[0][0].evidence)["positions"] == {"ux:/breakpoints": 320, "arch:/breakpoints": 768}
        assert {each.status for each in play.s.findings.values()} == {Status.FIXED}

    def test_a_check_compares_once_after_all_fixes_are_done(self) -> None:
        play = Play(checked(), {"ux": positions(1, 2), "arch": positions(2)})
        for name in ("plan", "ux", "arch", "breakpoints", "ux"):
            play.finish(name)
        assert play.s.steps["breakpoints"].running is None
        play.finish("arch")
        assert play.s.steps["breakpoints"].running is not None

    def test_authority_keeps_the_value_of_the_first_step(self) -> None:
        work = checked(resolve="authority", authority=("plan", "arch", "ux"))
        play = Play(work, {"ux": positions(320, 768), "arch": positions(768)}).run()
        assert played(play) == ("verified", {"plan": 1, "ux": 2, "arch": 1, "code": 1, "breakpoints": 2})
        (finding,) = play.briefings["ux"][1].feedback.findings
        assert finding.suggested_fix == "adopt the position of arch: arch:/breakpoints is 768"

    def test_a_person_is_asked_if_they_do_not_agree(self) -> None:
        play = Play(checked(), {"ux": positions(1), "arch": positions(2)}).run()
        assert play.breach() in ("no_change", "same_finding", "rounds_per_loop")
        play.decide("accept").run()
        assert play.outcome == "accepted"

    def test_a_person_may_name_the_step_to_blame(self) -> None:
        play = Play(checked(), {"ux": positions(1), "arch": positions(2)}, slots=1)
        for name in ("plan", "ux", "arch", "breakpoints"):
            play.finish(name)
        play.do(c.Reclassify("F-1", "code"))
        assert play.finding().reclassified == ("code",)

    def test_a_conflict_has_the_severity_of_the_check_and_is_never_deferred(self) -> None:
        work = checked(severity=Severity.LOW)
        play = Play(work, {"ux": positions(1, 2, 3), "arch": positions(3)}).run()
        assert play.outcome == "verified"
        assert play.loop().round == 2
        assert play.finding().finding.severity is Severity.LOW

    def test_a_missing_value_is_an_error_of_the_check(self) -> None:
        play = Play(checked(), {"ux": [out({})], "arch": positions(1)}).run()
        assert play.breach() == "errors_in_a_row"
        assert play.of(e.AttemptFailed)[0].error == (
            "there is no value at ux:/breakpoints: 'ux' has to include it in its output"
        )
        assert play.s.attempts == 3

    def test_a_change_of_another_part_does_not_run_the_check_again(self) -> None:
        work = flow(*STEPS, step("j", reviews="ux"), checks=(Check("breakpoints", REFERENCES),))
        outputs = [out({"breakpoints": 1, "text": text}) for text in "ab"]
        play = Play(work, {"ux": outputs, "arch": positions(1), "j": [failed("typo"), passed()]}).run()
        assert played(play)[1]["breakpoints"] == 1

    def test_a_skipped_step_is_not_compared(self) -> None:
        steps = (step("plan"), step("ux", "plan", when=("plan:/ui",)), step("arch", "plan"))
        play = Play(flow(*steps, checks=(Check("breakpoints", REFERENCES),)), {"arch": positions(1)}).run()
        assert played(play) == ("verified", {"plan": 1, "ux": 0, "arch": 1, "breakpoints": 1})

    def test_a_check_of_only_skipped_steps_is_skipped(self) -> None:
        steps = (step("plan"), *(step(name, "plan", when=("plan:/ui",)) for name in ("ux", "arch")))
        play = Play(flow(*steps, checks=(Check("breakpoints", REFERENCES),))).run()
        assert played(play) == ("verified", {"plan": 1, "ux": 0, "arch": 0, "breakpoints": 0})

    @pytest.mark.parametrize(
        ("rule", "ux", "arch", "problem"),
        [
            ("equal", [1, 2], [2, 1], "not equal"),
            ("subset", [1], [1, 2], None),
            ("subset", 1, [1, 2], None),
            ("subset", [3], [1, 2], "ux:/breakpoints is not a subset of arch:/breakpoints"),
            ("superset", {"a": 1, "b": 2}, {"a": 1}, None),
            ("superset", {"a": 2}, {"a": 1}, "arch:/breakpoints is not a subset of ux:/breakpoints"),
            ("superset", ["a"], {"a": 1}, None),
        ],
    )
    def test_the_rules(self, rule: Any, ux: Any, arch: Any, problem: str | None) -> None:
        play = Play(checked(rule=rule), {"ux": positions(ux), "arch": positions(arch)}, slots=1)
        for name in ("plan", "ux", "arch", "breakpoints"):
            play.finish(name)
        found = [each.finding.description for each in play.s.findings.values()]
        assert [text.split(": ")[1] for text in found] == ([problem] if problem else [])

    @pytest.mark.parametrize(
        ("ux", "arch", "problem"),
        [
            ("ie11", "react17", None),
            (["ie11", "chrome"], ["react17", "preact"], None),
            ("chrome", "react18", None),
            ("ie11", "react18", "ie11 goes with react17, preact, not with react18"),
            (8, "x", "8 goes with nothing, not with x"),
        ],
    )
    def test_a_table_lists_the_values_that_fit(self, ux: Any, arch: Any, problem: str | None) -> None:
        table = (("ie11", ("react17", "preact")), ("8", ()))
        play = Play(checked(rule="compatible", table=table), {"ux": positions(ux), "arch": positions(arch)}, slots=1)
        for name in ("plan", "ux", "arch", "breakpoints"):
            play.finish(name)
        found = [each.finding.description for each in play.s.findings.values()]
        assert [text.split(": ")[1] for text in found] == ([problem] if problem else [])

    @pytest.mark.parametrize(("reason", "shown"), [("too old", "too old"), ("", "not compatible")])
    def test_a_command_may_compare(self, reason: str, shown: str) -> None:
        both = dict(zip(REFERENCES, (1, 2), strict=True))
        replies = [
            out({"positions": both, "compatible": False, "reason": reason}),
            out({"positions": both, "compatible": True, "reason": "fine"}),
        ]
        work = checked(rule="compatible", command=True)
        play = Play(work, {"ux": positions(1, 3), "arch": positions(2), "breakpoints": replies}).run()
        assert played(play)[0] == "verified"
        assert play.finding().finding.description.startswith(f"breakpoints: {shown}: ux:/breakpoints is 1")

    def test_long_values_are_shortened_and_the_evidence_is_complete(self) -> None:
        long = "x" * 500
        play = Play(checked(), {"ux": positions(long), "arch": positions("y")}, slots=1)
        for name in ("plan", "ux", "arch", "breakpoints"):
            play.finish(name)
        found = play.finding().finding
        assert len(found.description) < 250
        assert json.loads(found.evidence)["positions"]["ux:/breakpoints"] == long


class TestAuthority:
    """Which value wins, and which steps have to adopt it."""

    DESIGN = tuple(step(name) for name in ("ux", "arch", "ops"))

    def reworked(self, ux: Any, arch: Any, ops: Any, *more: str, **rule: Any) -> tuple[str, ...]:
        compare = ("ux:/a", "arch:/a", "ops:/a", *more)
        check = Check("c", compare, resolve="authority", authority=("arch",), **rule)
        replies = {name: [out({"a": a, "b": 9})] for name, a in (("ux", ux), ("arch", arch), ("ops", ops))}
        play = Play(flow(*self.DESIGN, checks=(check,), limits={"rounds_per_loop": 0}), replies).run()
        return play.loop().targets

    def test_a_step_with_the_winning_value_is_not_reworked(self) -> None:
        assert self.reworked(2, 2, 3) == ("ops",)
        assert self.reworked(1, 2, 3) == ("ux", "ops")

    def test_other_rules_and_values_that_differ_within_a_step_rework_all_others(self) -> None:
        assert self.reworked([2], [2], [1], rule="subset") == ("ux", "ops")
        assert self.reworked(2, 2, 2, "arch:/b") == ("ux", "ops")

    def test_the_subject_of_a_compared_judge_may_be_the_authority(self) -> None:
        check = Check("c", ("j:/a", "arch:/a"), resolve="authority", authority=("ux", "arch"))
        steps = (*self.DESIGN[:2], step("j", reviews="ux"))
        judged = replace(passed(), made=made({"a": 1}))
        replies = {"arch": [out({"a": 2})], "j": [judged]}
        play = Play(flow(*steps, checks=(check,), limits={"rounds_per_loop": 0}), replies).run()
        assert play.loop().targets == ("arch",)


@pytest.mark.parametrize("output", [None, {}])
def test_an_outcome_without_a_measurement_is_an_error(output: Any) -> None:
    play = Play(checked(), {"ux": positions(1), "arch": positions(1), "breakpoints": [out(output)]}).run()
    assert play.breach() == "errors_in_a_row"
    assert "finished without its measured values" in play.of(e.AttemptFailed)[0].error


WORK = (step("design"), step("code", "design"), step("test", "code"), step("ship", "test"))
REQUESTS = (("code", "add tests"), ("design", "split the module"))


def gated(*steps: Step, **more: Any) -> Workflow:
    more = {"metric": "test:/coverage", "threshold": 80, **more}
    return flow(*(steps or WORK), gates=(Gate("coverage", **more),))


def coverage(*values: Any, **more: Any) -> list[Any]:
    return [out({"coverage": value, **more}) for value in values]


class TestGates:
    def test_each_target_gets_its_own_request_and_the_gate_measures_once_after_all_fixes(self) -> None:
        work = gated(causes="test:/uncovered", requests=REQUESTS)
        play = Play(
            work,
            {
                "design": [out(1), out(2)],
                "code": [out(1), out(2), out(3)],
                "test": coverage(60, 85, uncovered=["a.py:3", "b.py"]),
            },
        ).run()
        assert played(play)[0] == "verified"
        assert played(play)[1] == {"design": 2, "code": 2, "test": 2, "ship": 1, "coverage": 2}
        loop = play.loop()
        assert (loop.kind, loop.targets, loop.routed_by) == (Kind.QUALITY_GATE_FAILURE, ("code", "design"), "requests")
        (for_code,) = play.briefings["code"][1].feedback.findings
        (for_design,) = play.briefings["design"][1].feedback.findings
        assert for_code.description == "coverage: test:/coverage is 60, expected at least 80: add tests"
        assert (for_code.suggested_fix, for_design.suggested_fix) == ("add tests", "split the module")
        assert json.loads(for_code.evidence) == {
            "gate": "coverage",
            "metric": "test:/coverage",
            "threshold": "at least 80",
            "actual": 60,
            "causes": ["a.py:3", "b.py"],
        }

    def test_a_request_may_go_to_a_person(self) -> None:
        requests = (("code", "add tests"), ("human", "is 80 not too much?"))
        play = Play(gated(requests=requests), {"code": [out(1), out(2)], "test": coverage(60, 85)}).run()
        assert (play.outcome, play.loop().targets) == ("waiting", ("code", "human"))
        play.decide("resolve", note="no").run()
        assert played(play)[0] == "verified"

    def test_a_report_must_be_written_by_a_step_not_a_person(self) -> None:
        gate = Gate("g", report="r.json", threshold=1, requests=(("human", "look at it"),))
        assert "gate 'g' refers to no step" in " ".join(problems_of(flow(step("code"), gates=(gate,))))

    def test_without_requests_a_shortfall_goes_to_the_step_that_made_the_metric(self) -> None:
        play = Play(gated(), {"test": coverage(60, 90)}).run()
        assert played(play) == ("verified", {"design": 1, "code": 1, "test": 2, "ship": 1, "coverage": 2})

    def test_the_metric_of_a_judge_goes_to_what_it_judges(self) -> None:
        steps = (step("code"), step("test", tests="code"), step("ship", "code"))
        tested = [out({"coverage": value}, verdict="pass") for value in (60, 90)]
        play = Play(gated(*steps), {"code": [out(1), out(2)], "test": tested}).run()
        assert played(play) == ("verified", {"code": 2, "test": 2, "ship": 1, "coverage": 2})

    def test_a_judge_and_a_gate_on_one_step_make_one_rework(self) -> None:
        steps = (step("code"), step("review", reviews="code"))
        work = flow(*steps, gates=(Gate("lines", metric="code:/lines", bound="at_most", threshold=3),))
        code = [out({"lines": 9}), out({"lines": 2})]
        play = Play(work, {"code": code, "review": [failed("long"), passed()]}).run()
        assert played(play) == ("verified", {"code": 2, "review": 2, "lines": 2})

    @pytest.mark.parametrize(
        ("more", "actual", "met"),
        [
            ({}, 80, True),
            ({}, 79.9, False),
            ({"bound": "at_most"}, 80, True),
            ({"bound": "at_most"}, 81, False),
            ({"bound": "equals", "threshold": "A"}, "A", True),
            ({"bound": "equals", "threshold": "A"}, "B", False),
            ({"bound": "equals", "threshold": True}, True, True),
            ({"bound": "zero", "threshold": None}, 0, True),
            ({"bound": "zero", "threshold": None}, [], True),
            ({"bound": "zero", "threshold": None}, ["x"], False),
            ({"bound": "zero", "threshold": None}, "12_violations", False),
            ({"threshold": "80 %"}, "82.5 %", True),
            ({"threshold": "80 %"}, 79, False),
            ({"threshold": 80}, "82.5%", True),
            ({"bound": "at_most", "threshold": "2e3 ms"}, "1.5e+3ms", True),
            ({"bound": "at_most", "threshold": "-1.5 dB"}, "-1 dB", False),
        ],
    )
    def test_the_thresholds(self, more: dict[str, Any], actual: Any, met: bool) -> None:
        play = Play(gated(*WORK[:3], **more), {"test": coverage(actual)}, slots=1)
        for name in ("design", "code", "test", "coverage"):
            play.finish(name)
        assert (play.opened() == 0) is met

    def test_text_thresholds_stay_text(self) -> None:
        assert Gate("g", metric="a:/x", bound="equals", threshold="A+").expected == "A+"
        assert Gate("g", metric="a:/x", bound="at_most", threshold="200 ms").expected == "at most 200 ms"
        assert Gate("g", metric="a:/x", bound="zero").expected == "zero"
        assert [Gate("g", report="r", path=path).measures for path in ("", "/x")] == ["r", "r:/x"]

    @pytest.mark.parametrize(("threshold", "actual"), [("500 kB", "2.5 MB"), ("200 ms", "1.5 s"), ("80 %", "85 ppm")])
    def test_amounts_in_different_units_are_an_error_of_the_gate(self, threshold: str, actual: str) -> None:
        play = Play(gated(bound="at_most", threshold=threshold), {"test": coverage(actual)}).run()
        assert play.breach() == "errors_in_a_row"
        why = f'test:/coverage is "{actual}", expected at most {threshold}: give both in the same unit'
        assert play.of(e.AttemptFailed)[0].error == why

    def test_a_text_that_looks_like_a_number_is_shown_as_text(self) -> None:
        play = Play(gated(bound="equals", threshold="0"), {"test": coverage(0)}, slots=1)
        for name in ("design", "code", "test", "coverage"):
            play.finish(name)
        assert play.finding().finding.description == 'coverage: test:/coverage is 0, expected "0"'

    @pytest.mark.parametrize("actual", ["many", None, True, "1,500", "99.9.9"])
    def test_a_value_that_is_not_a_number_is_an_error_of_the_gate(self, actual: Any) -> None:
        play = Play(gated(), {"test": coverage(actual)}).run()
        assert play.breach() == "errors_in_a_row"
        assert "expected a number to compare with at least 80" in play.of(e.AttemptFailed)[0].error

    @pytest.mark.parametrize(("causes", "expected"), [("x", ["x"]), (None, [None]), (..., [])])
    def test_causes_must_be_a_list(self, causes: Any, expected: list[Any]) -> None:
        output = {"coverage": 1, **({} if causes is ... else {"uncovered": causes})}
        play = Play(gated(causes="test:/uncovered"), {"test": [out(output)]}, slots=1)
        for name in ("design", "code", "test", "coverage"):
            play.finish(name)
        assert json.loads(play.finding().finding.evidence)["causes"] == expected

    def test_a_shortfall_in_a_report_goes_to_the_steps_that_the_gate_needs(self) -> None:
        work = gated(metric="", report="coverage.json", path="/total", needs=("test",))
        play = Play(work, {"test": coverage(1, 2), "coverage": [out({"actual": 3}), out({"actual": 93})]}).run()
        assert played(play) == ("verified", {"design": 1, "code": 1, "test": 2, "ship": 1, "coverage": 2})
        assert play.finding().finding.description == "coverage: coverage.json:/total is 3, expected at least 80"

    def test_a_gate_of_a_skipped_step_is_skipped(self) -> None:
        steps = (step("code"), step("test", "code", when=("code:/tests",)), step("more", "code"))
        work = gated(*steps, causes="more:/x")
        play = Play(work).run()
        assert played(play) == ("verified", {"code": 1, "test": 0, "more": 1, "coverage": 1})
        assert play.s.steps["coverage"].artifact is not None

    def test_findings_go_to_another_step_if_one_was_skipped(self) -> None:
        steps = (
            step("plan"),
            step("a", "plan", phase="code"),
            step("b", "plan", phase="code", when=("plan:/b",)),
            step("all", "a", "b", phase="test"),
            step("j", reviews="all"),
        )
        found = failed(Finding("wrong", affected_phase=("code",)))
        play = Play(flow(*steps), {"a": [out(1), out(2)], "j": [found, passed()]}).run()
        assert play.loop().targets == ("a",)
        assert play.outcome == "verified"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"checks": (Check("ux", REFERENCES),)}, "check 'ux' has the name of a step"),
        ({"checks": (Check("c", REFERENCES[:1]),)}, "check 'c' compares 1 value: name two or more"),
        (
            {"checks": (Check("c", ("uxx:/a", "arch:/b")),)},
            "check 'c' names 'uxx', which does not exist: did you mean 'ux'?",
        ),
        ({"checks": (Check("c", ("ux:a", "arch:/b")),)}, "check 'c': 'ux:a' has no JSON pointer"),
        ({"checks": (Check("c", REFERENCES, resolve="authority"),)}, "check 'c' has no authority among ux, arch"),
        (
            {"checks": (Check("c", ("ux:/a", "ux:/b"), resolve="authority", authority=("ux",)),)},
            "compares values of one step",
        ),
        ({"gates": (Gate("g", threshold=1),)}, "gate 'g' has no metric"),
        ({"gates": (Gate("g", report="r.json", threshold=1),)}, "gate 'g' refers to no step: list in `needs`"),
        ({"gates": (Gate("g", metric="ux:/a"),)}, "gate 'g' has at_least null: expected a number"),
        (
            {"gates": (Gate("g", metric="ux:/a", threshold="high"),)},
            "gate 'g' has at_least \"high\": expected a number",
        ),
        (
            {"gates": (Gate("g", metric="ux:/a", threshold="1,000"),)},
            "gate 'g' has at_least \"1,000\": expected a number",
        ),
        ({"gates": (Gate("g", metric="ux:/a", threshold=1, requests=(("j", "x"),)),)}, "'j', which is a judge"),
        (
            {"gates": (Gate("g", metric="ux:/a", threshold=1, requests=(("code", "x"),)),)},
            "requests something of 'code', which is not before it: use one of plan, ux",
        ),
        (
            {"checks": (Check("g", REFERENCES),), "gates": (Gate("g", metric="ux:/a", threshold=1),)},
            "gate 'g' has the name of a step, a group or another check or gate",
        ),
    ],
)
def test_an_invalid_check_or_gate_is_refused(more: dict[str, Any], why: str) -> None:
    work = flow(*STEPS, step("j", reviews="ux"), **more)
    assert why in "\n".join(problems_of(work))


class TestAsUsersWriteThem:
    def test_a_check(self) -> None:
        given = {
            "compare": list(REFERENCES),
            "compatible": {"table": {"ie11": ["react17"], "x": "y"}},
            "resolve": "authority",
            "authority": "ux",
            "severity": "blocker",
        }
        assert parse_check("c", given) == Check(
            "c",
            REFERENCES,
            "compatible",
            (("ie11", ("react17",)), ("x", ("y",))),
            False,
            "authority",
            ("ux",),
            Severity.CRITICAL,
            True,
        )
        assert parse_check("c", {"compare": REFERENCES, "compatible": {"run": ["x"]}}).command

    def test_a_gate(self) -> None:
        given = {"metric": "a:/x", "zero": True, "causes": "a:/y", "requests": {"a": "mend"}, "needs": "b"}
        assert parse_gate("g", given) == Gate(
            "g", "a:/x", bound="zero", causes="a:/y", requests=(("a", "mend"),), needs=("b",)
        )
        assert parse_gate("g", {"metric": {"report": "r.json", "path": "/x"}, "at_most": "3 s"}) == Gate(
            "g", report="r.json", path="/x", bound="at_most", threshold="3 s"
        )

    @pytest.mark.parametrize(
        ("checks", "gates", "why"),
        [
            ({"c": {"compair": []}}, {}, "check 'c' has the key 'compair': did you mean 'compare'?"),
            ({"c": {"compare": REFERENCES, "rule": "eqal"}}, {}, "check 'c' has rule 'eqal': did you mean 'equal'?"),
            (
                {"c": {"compare": REFERENCES, "resolve": "vote"}},
                {},
                "check 'c' has resolve 'vote': use one of: consensus",
            ),
            ({"c": {"compare": REFERENCES, "rule": "compatible"}}, {}, "give `compatible` a table or a command"),
            ({"c": {"compare": REFERENCES, "severity": "bad"}}, {}, "check 'c': severity 'bad' is unknown"),
            ({}, {"g": {"metric": "ux:/a"}}, "gate 'g' has no threshold: give one of at_least, at_most, equals, zero"),
            ({}, {"g": {"metric": "ux:/a", "at_least": 1, "zero": True}}, "gate 'g' has at_least, zero: give one of"),
            ({}, {"g": {"metric": "ux:/a", "zero": False}}, "gate 'g' has zero False: expected true"),
            ({}, {"g": {"metric": {"file": "x"}, "zero": True}}, "gate 'g': metric has the key 'file'"),
            ({}, [], "gates is []: expected a mapping"),
        ],
    )
    def test_invalid_values_are_named(self, checks: Any, gates: Any, why: str) -> None:
        with pytest.raises(WorkflowError) as error:
            build_workflow("w", [(each, {}) for each in STEPS], checks=checks, gates=gates)
        assert why in str(error.value)


class TestAnswersOfPeople:
    """A check, a gate or a test cannot use an answer: it is advice for the steps that have to change something."""

    STOP: ClassVar[dict[str, Any]] = {"rounds_per_loop": 0}
    OPTIONS = (Option("grid", rework=("arch",)), Option("fluid", "low", "wide"), Option("as it is", accept=True))

    def stopped(self, *ux: Any, **more: Any) -> Play:
        work = replace(checked(**more), limits=Limits(**self.STOP))
        return Play(work, {"ux": positions(*(ux or (320, 768))), "arch": positions(768)}).run()

    def test_an_answer_grants_one_more_round_with_it_as_advice(self) -> None:
        play = self.stopped()
        play.decide("resolve", note="use 768").run()
        assert played(play)[0] == "verified"
        assert play.briefings["ux"][1].feedback.advice == ("use 768",)
        assert (play.loop().round, play.loop().granted) == (1, 1)

    def test_an_answer_that_does_not_help_is_asked_about_again(self) -> None:
        play = self.stopped(320, 360, 768)
        play.decide("resolve", note="hm").run()
        assert (play.outcome, play.breach(), play.opened()) == ("waiting", "rounds_per_loop", 1)

    def test_the_disagreeing_steps_are_told_about_the_options(self) -> None:
        play = Play(checked(options=self.OPTIONS), {"ux": positions(320, 768), "arch": positions(768)}).run()
        fix = play.briefings["ux"][1].feedback.findings[0].suggested_fix
        assert fix is not None and fix.endswith("the options are: grid; fluid (effort: low, impact: wide); as it is")

    def test_a_chosen_option_is_advice_for_the_steps_that_it_names(self) -> None:
        play = self.stopped(320, options=self.OPTIONS)
        play.scripts["arch"] = positions(320)
        offered = [each for each in packet(play.s, "E-1").options if each.option]
        assert [each.next for each in offered] == [
            "arch reworks with 'grid'; then breakpoints verifies the fix",
            "ux, arch rework with 'fluid'; then breakpoints verifies the fix",
            "L-1 is accepted as 'as it is': the run ends as accepted at best; breakpoints runs once more with it",
        ]
        play.decide("resolve", option="Grid", note="easy").run()
        assert played(play)[1] == {"plan": 1, "ux": 1, "arch": 2, "code": 1, "breakpoints": 2}
        assert play.briefings["arch"][1].feedback.advice == ("Grid: easy",)

    def test_an_option_may_accept_the_disagreement(self) -> None:
        play = self.stopped(options=self.OPTIONS)
        play.decide("resolve", option="as it is").run()
        assert played(play)[0] == "accepted"
        assert play.finding().status is Status.ACCEPTED

    def test_the_answer_to_a_test_is_advice(self) -> None:
        work = flow(step("code"), step("test", tests="code"), limits=self.STOP)
        play = Play(work, {"code": grows, "test": [failed("t"), passed()]}).run()
        assert "with your answer as advice" in packet(play.s, "E-1").options[4].next
        play.decide("resolve", note="use UTC").run()
        assert (play.outcome, play.attempts()) == ("verified", {"code": 2, "test": 2})
        assert play.briefings["code"][1].feedback.advice == ("use UTC",)

    def test_a_person_whom_a_gate_asks_answers_and_the_gate_measures_again(self) -> None:
        gate = Gate("speed", "code:/ms", bound="at_most", threshold=5, requests=(("human", "a faster host"),))
        play = Play(flow(step("code"), gates=(gate,)), {"code": [out({"ms": 9})]}).run()
        assert play.loop().state is LoopState.WAITING_RESPONSE
        play.scripts["speed"] = [out({"actual": 4})]
        play.decide("resolve", note="moved").run()
        assert played(play)[0] == "verified"
        assert (play.opened(), play.loop().round, play.loop().answers) == (1, 1, {"human": "moved"})

    def test_the_answer_of_a_person_leaves_the_other_targets_their_share(self) -> None:
        requests = (("human", "a faster host"), ("code", "less code"))
        gate = Gate("speed", "code:/ms", bound="at_most", threshold=5, requests=requests)
        play = Play(flow(step("code"), gates=(gate,)), {"code": [out({"ms": 9}), out({"ms": 4})]})
        play.finish("code")
        play.finish("speed")
        play.decide("resolve", note="moved")
        assert play.loop().state is LoopState.RESOLVING
        assert played(play.run())[0] == "verified"

    def test_a_late_answer_of_a_person_still_counts(self) -> None:
        gate = Gate("speed", "code:/ms", bound="at_most", threshold=5, requests=(("human", "a faster host"),))
        play = Play(flow(step("code"), gates=(gate,)), {"code": [out({"ms": 9})]}).run()
        play.now += 601
        play.do(c.Proceed())
        assert play.loop().state is LoopState.ESCALATING
        play.scripts["speed"] = [out({"actual": 4})]
        play.decide("resolve", option="moved").run()
        assert (played(play)[0], play.loop().answers) == ("verified", {"human": "moved"})

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ("x", "is 'x': expected a list of options"),
            ([{"option": "x", "cost": 1}], "has the key 'cost': use one of"),
            ([" "], "has an option without text"),
            (["x", "X "], "has 'X ' twice"),
            ([{"option": "x", "accept": 1}], "has accept 1: expected true or false"),
            ([{"option": "x", "accept": True, "rework": "ux"}], "'x' both accepts and asks for rework"),
            ([7], "is 7: expected a mapping"),
        ],
    )
    def test_wrong_options_are_named(self, options: Any, problem: str) -> None:
        with pytest.raises(WorkflowError) as refused:
            parse_check("same", {"compare": REFERENCES, "options": options})
        assert f"check 'same': options {problem}" in str(refused.value) or problem in str(refused.value)

    def test_options_are_texts_or_mappings(self) -> None:
        given = ["use polyfills", {"option": "drop it", "effort": "low", "impact": "small", "rework": "ux"}]
        found = parse_check("same", {"compare": REFERENCES, "options": given}).options
        assert found == (Option("use polyfills"), Option("drop it", "low", "small", ("ux",)))

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("ui", "names 'ui', which does not exist"),
            ("code", "has an option that asks for rework of 'code', which is a judge or not before it"),
        ],
    )
    def test_an_option_names_a_step_before_the_check(self, name: str, problem: str) -> None:
        assert problem in problems_of(checked(options=(Option("x", rework=(name,)),)))[0]


class TestIdentity:
    """A missed threshold and a disagreement are one defect each, whatever was measured."""

    GATE = Gate("coverage", metric="test:/coverage", bound="at_least", threshold=80)
    STEPS: ClassVar = (step("code"), step("test", "code"))

    def measured(self, *values: int, **more: Any) -> Play:
        tests = [out({"coverage": value}) for value in values]
        return Play(flow(*self.STEPS, gates=(self.GATE,), **more), {"code": grows, "test": tests}).run()

    def test_a_gate_that_measures_other_values_has_one_finding(self) -> None:
        play = self.measured(67, 70, 75, 82)
        found = play.finding()
        assert (play.outcome, found.rounds_seen, found.status) == ("verified", 3, Status.FIXED)
        told = [each.feedback.findings[0] for each in play.briefings["test"][1:]]
        assert [each.persistent for each in told] == [False, True, True]
        assert "is 75" in told[-1].description
        said = [each.summary for each in play.of(e.AttemptSucceeded) if each.step == "coverage"]
        assert said == [f"test:/coverage is {value}, expected at least 80" for value in (67, 70, 75, 82)]

    def test_each_request_of_a_gate_is_a_finding(self) -> None:
        gate = replace(self.GATE, requests=(("code", "add tests"), ("test", "run all")))
        tests = [out({"coverage": value}) for value in (67, 70, 82)]
        play = Play(flow(*self.STEPS, gates=(gate,)), {"code": grows, "test": tests}).run()
        assert [each.rounds_seen for each in play.s.findings.values()] == [2, 2]

    def test_only_the_same_value_again_counts_as_the_same_report(self) -> None:
        limits = {"same_finding": 2, "rounds_per_loop": 3}
        assert self.measured(67, 70, 75, 78, limits=limits).breach() == "rounds_per_loop"
        assert self.measured(67, 70, 70, limits=limits).breach() == "same_finding"

    def test_continue_is_recommended_while_the_measured_value_changes(self) -> None:
        recommended = {
            values: packet(self.measured(*values, limits={"rounds_per_loop": 1}).s, "E-1").options[0]
            for values in ((67, 70), (67, 67))
        }
        assert [(each.choice, each.recommended) for each in recommended.values()] == [
            ("continue", "the last fix changed what was measured"),
            ("revise", "the last fix removed none of its findings"),
        ]

    def test_accepting_a_value_does_not_accept_another_one(self) -> None:
        plain = (*self.STEPS, step("ship", "test"), step("look", reviews="ship"))
        looks = [failed(Finding("slow", affected_phase=("code",))), failed(Finding("big", affected_phase=("code",)))]
        tests = [out({"coverage": value}) for value in (72, 72, 40, 40)]
        steps = tuple(replace(each, phase="code" if each.name == "code" else "test") for each in plain)
        play = Play(
            flow(*steps, gates=(self.GATE,), limits={"rounds_per_loop": 0}),
            {"code": grows, "test": tests, "look": looks},
        ).run()
        play.decide("accept").run()
        assert play.finding().status is Status.ACCEPTED
        play.decide("continue", rounds=1).run()
        assert play.finding().status is Status.ACCEPTED  # 72 again
        play.decide("continue", rounds=1).run()
        assert play.finding().status is Status.NOT_FIXED  # 40
        play.decide("continue", rounds=1).run()
        assert play.finding().status is Status.NOT_FIXED  # 40 again
