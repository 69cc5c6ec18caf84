"""An invalid definition is refused, and the error lists every problem."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core.errors import WorkflowError, WorkflowProblem
from backedge.core.model import HUMAN
from backedge.core.suggestions import closest, did_you_mean
from backedge.core.workflow.definition import PassRule, Step, Workflow, phase_order
from backedge.core.workflow.graph import Reach, graph_of
from backedge.core.workflow.routes import RouteRule
from backedge.core.workflow.validate import problems_of, valid_graph
from tests.core.play import flow, step

FINE = (step("plan", phase="planning"), step("code", "plan", phase="code"), step("review", reviews="code"))


def test_a_workflow_that_can_run_has_no_problems() -> None:
    assert problems_of(flow(*FINE)) == ()
    assert valid_graph(flow(*FINE)).root == "plan"


def rule(**counts: int) -> PassRule:
    return PassRule(at_most=tuple(counts.items()))


ONE_PROBLEM: list[tuple[str, Workflow, str]] = [
    ("no name", Workflow(" ", FINE), "the workflow has no name"),
    ("no steps", Workflow("w", ()), "the workflow has no steps"),
    ("unknown profile", flow(*FINE, profile="bmat"), "profile 'bmat' is unknown: did you mean 'bmad'?"),
    ("phase twice", flow(*FINE, phases=("planning", "code", "code")), "phase 'code' is listed twice"),
    ("name twice", flow(step("a"), step("a")), "step 'a' is defined twice"),
    ("empty name", flow(step(" ")), "a step has an empty name"),
    ("no name", flow(step("")), "a step has an empty name"),
    ("reserved name", flow(step(HUMAN)), "step 'human' has a reserved name"),
    ("needs itself", flow(step("a", "a")), "step 'a' needs itself"),
    (
        "needs a stranger",
        flow(step("plan"), step("a", "plam")),
        "needs 'plam', which does not exist: did you mean 'plan'?",
    ),
    ("needs a stranger like none", flow(step("a", "zzz")), "use one of: a"),
    ("judges itself", flow(Step("a", judges=("a",))), "step 'a' judges itself"),
    ("judges a stranger", flow(step("a"), step("b", reviews="x")), "step 'b' judges 'x', which does not exist"),
    (
        "judges a judge",
        flow(step("a"), step("b", reviews="a"), step("c", reviews="b")),
        "which is a judge: name the step that it judges",
    ),
    ("reads itself", flow(step("a", reads=(("a", ("/x",)),))), "step 'a' reads itself"),
    ("reads a stranger", flow(step("a", reads=(("b", ("/x",)),))), "step 'a' reads 'b', which does not exist"),
    ("reads unneeded", flow(step("a"), step("b", reads=(("a", ("/x",)),))), "reads 'a' without needing it"),
    ("no time", flow(step("a", timeout=0.0)), "step 'a' has timeout 0.0"),
    ("endless time", flow(step("a", timeout=float("inf"))), "expected more than 0 seconds"),
    ("no number", flow(step("a", timeout=float("nan"))), "expected more than 0 seconds"),
    (
        "unknown rule",
        flow(step("a"), step("b", reviews="a", passes_if=PassRule("asp-cod"))),
        "step 'b' passes_if 'asp-cod': did you mean 'asp-code'?",
    ),
    ("rule without verdict", flow(step("a", passes_if=PassRule("asp-code"))), "has passes_if but is not a judge"),
    (
        "rule about a stranger",
        flow(step("a"), step("b", reviews="a", passes_if=rule(hight=1))),
        "passes_if counts 'hight': did you mean 'high'?",
    ),
    (
        "rule below nothing",
        flow(step("a"), step("b", reviews="a", passes_if=rule(high=-1))),
        "passes_if allows -1 high",
    ),
    ("circle", flow(step("a", "b"), step("b", "a")), "steps need each other in a circle: "),
    (
        "route to a stranger",
        flow(*FINE, routes=(RouteRule("codee"),)),
        "a route leads to 'codee', which is not a step or a",
    ),
    ("route to a judge", flow(*FINE, routes=(RouteRule("review"),)), "a route leads to 'review', which is a judge"),
    (
        "against the phases",
        flow(step("a", phase="code"), step("b", "a", phase="planning")),
        "step 'b' (phase planning) needs 'a' of the later phase code",
    ),
    ("no bound", flow(*FINE, limits={"rounds_total": None}), "nothing bounds this workflow"),
]


@pytest.mark.parametrize(("work", "problem"), [each[1:] for each in ONE_PROBLEM], ids=[each[0] for each in ONE_PROBLEM])
def test_a_problem_is_named(work: Workflow, problem: str) -> None:
    found = problems_of(work)
    assert problem in found[0]
    assert len(found) == 1 or "itself" in problem
    assert all(isinstance(each, WorkflowProblem) and each.at for each in found)


def test_a_problem_says_where_it_is_and_what_may_have_caused_it() -> None:
    judge, work = step("c", reviews="b", timeout=-1.0), flow(step("a"), step("b", reviews="a"))
    asked, late = problems_of(flow(*work.steps, judge))
    assert isinstance(asked, WorkflowProblem) and isinstance(late, WorkflowProblem)
    assert (asked.at, asked.depends_on) == (("steps", "c", "judges", "b"), (("steps", "c"), ("steps", "b")))
    assert (late.at, late.depends_on) == (("steps", "c", "timeout"), (("steps", "c"),))


def test_a_circle_names_the_steps_in_it() -> None:
    (found,) = problems_of(flow(step("a", "c"), step("b", "a"), step("c", "b")))
    assert found.count("→") == 3


def test_all_problems_are_named_at_once() -> None:
    work = Workflow("", (step("a", "b", timeout=-1.0), step("a"), step(HUMAN)), profile="x", phases=("p", "p"))
    assert len(problems_of(work)) == 7
    with pytest.raises(WorkflowError) as error:
        valid_graph(work)
    assert error.value.problems == problems_of(work)


def test_all_problems_of_the_graph_are_named_at_once() -> None:
    work = flow(
        step("a", phase="code"),
        step("b", "a", phase="planning"),
        step("c", "a", phase="design"),
        routes=(RouteRule("x"), RouteRule("y")),
    )
    assert len(problems_of(work)) == 4


def test_a_pass_rule_may_count_blocking_findings() -> None:
    assert problems_of(flow(step("a"), step("b", reviews="a", passes_if=rule(blocking=0, low=3)))) == ()


def test_routes_may_lead_to_a_person() -> None:
    assert problems_of(flow(*FINE, routes=(RouteRule(HUMAN, ("legal",)),))) == ()


def test_routes_may_lead_to_default_phases_without_steps() -> None:
    assert problems_of(flow(*FINE, phases=("planning", "code"), routes=(RouteRule("research"),))) != ()
    near = flow(*FINE, phases=("planning", "code"), routes=(RouteRule("research"),), nearest_phase=True)
    assert problems_of(near) == ()


class TestPhases:
    """Phases order the steps."""

    def test_the_default_phases_then_others_in_file_order(self) -> None:
        work = flow(step("a", phase="ship"), step("b", phase="code"), step("c", phase="sell"))
        assert phase_order(work) == ("research", "planning", "design", "code", "test", "ship", "sell")

    def test_declared_phases_replace_the_default_ones(self) -> None:
        work = flow(step("a", phase="make"), step("b", phase="sell"), phases=("sell",))
        assert phase_order(work) == ("sell", "make")

    def test_a_judge_always_has_the_phase_of_its_subject(self) -> None:
        work = flow(step("a", phase="code"), step("j", reviews="a", phase="zzz"))
        assert valid_graph(work).phase_of["j"] == "code"
        assert "zzz" not in phase_order(work)

    def test_a_step_without_a_phase_has_the_latest_phase_it_needs(self) -> None:
        work = flow(step("a", phase="planning"), step("b", phase="design"), step("c", "b", "a"), step("d"))
        graph = valid_graph(work)
        assert (graph.phase_of["c"], graph.phase_of["d"]) == ("design", "")
        assert graph.rank("d") < graph.rank("a") < graph.rank("c")


class TestGraph:
    """Upstream, downstream and distances."""

    GRAPH = valid_graph(
        flow(
            step("a"),
            step("b", "a"),
            step("c", "b"),
            step("j", reviews="b"),
            Step("k", judges=("b", "b"), needs=("b",)),
        )
    )

    def test_upstream_and_downstream_are_transitive(self) -> None:
        assert self.GRAPH.upstream["c"] == {"a", "b"}
        assert self.GRAPH.downstream["a"] == {"b", "c", "j", "k"}

    def test_judging_implies_needing(self) -> None:
        assert self.GRAPH.needs["j"] == ("b",)
        assert self.GRAPH.needs["k"] == ("b",)
        assert self.GRAPH.judges_of["b"] == ("j", "k")

    def test_one_definition_has_one_graph(self) -> None:
        assert graph_of(flow(*FINE)) is graph_of(flow(*FINE))

    def test_distances_are_counted_in_needs(self) -> None:
        work = flow(step("a"), step("b", "a"), step("c", "a", "b"), step("d", "c"))
        assert valid_graph(work).distances("d") == {"d": 0, "c": 1, "a": 2, "b": 2}


def test_a_hint_names_the_closest_word_or_all_words() -> None:
    words: Any = ("pass", "fail")
    assert did_you_mean("pas", words) == "did you mean 'pass'?"
    assert did_you_mean("PASS", words) == did_you_mean("Pas", words) == "did you mean 'pass'?"
    assert did_you_mean("a", ["B", "A"]) == "did you mean 'A'?"
    assert (closest("fial", ["fail", "FAIL"]), closest(3, words), closest("p" * 1000, ["p" * 1000])) == ("fail", "", "")
    assert did_you_mean("zzz", words) == "use one of: pass, fail"


def test_reachability_of_a_long_chain_is_computed_on_demand() -> None:
    chain = flow(*(step(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(2000)))
    graph = valid_graph(chain)
    assert (len(graph.upstream), len(graph.downstream), len(graph.prerequisites)) == (0, 0, 0)
    assert len(graph.upstream["s1999"]) == 1999 and len(graph.downstream["s0"]) == 1999
    assert graph.prerequisites["s3"] == {"s0", "s1", "s2"}


def test_known_reachability_is_reused() -> None:
    reach = Reach({"a": (), "b": ("a",), "c": ("b", "a"), "round": ("and", "c"), "and": ("round",)})
    assert reach["b"] == {"a"}
    assert reach["c"] == {"a", "b"}
    assert reach["round"] == reach["and"] == {"a", "b", "c", "round", "and"}
