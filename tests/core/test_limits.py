"""Every limit: one below its bound the work continues, at its bound it stops with a breach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.breaches import first_breach, next_round_granted
from backedge.core.errors import ProviderLimit
from backedge.core.model import HUMAN, Breach, Finding, Usage
from backedge.core.value import replace
from backedge.core.workflow.limits import NAMES, Limits, with_overrides
from backedge.core.workflow.validate import valid_graph
from tests.core.play import Play, Reply, Script, ask, failed, flow, grows, out, passed, step

OFF = with_overrides(Limits(), {**dict.fromkeys(NAMES, False), "attempts": 1_000})


def only(name: str, bound: float) -> Limits:
    """Only this limit, and 1,000 attempts because every run needs a bound."""
    return with_overrides(OFF, {name: bound})


def made(*outputs: str) -> Script:
    return lambda play, name: out(outputs[min(play.s.steps[name].attempts, len(outputs)) - 1])


def spends(**usage: Any) -> Callable[[Limits], Play]:
    """Two steps in a row, of which the first costs something."""
    return lambda limits: Play(flow(step("a"), step("b", "a"), limits=limits), {"a": [out(usage=Usage(**usage))]}).run()


def breaks(times: int) -> Callable[[Limits], Play]:
    replies: list[Reply] = [Exception("broken")] * times
    return lambda limits: Play(flow(step("a"), limits=limits), {"a": [*replies, out()]}).run()


def waits(times: int) -> Callable[[Limits], Play]:
    """A provider that has reached a limit so often in a row, and then works."""
    replies: list[Reply] = [ProviderLimit("too many requests")] * times
    return lambda limits: Play(flow(step("a"), limits=limits), {"a": [*replies, out()]}).run()


def rejects(*replies: Reply, design: Script = grows) -> Callable[[Limits], Play]:
    """A review that gives these replies, and then passes."""
    work = (step("design"), step("review", reviews="design"))
    scripts: dict[str, Script | list[Reply]] = {"design": design, "review": [*replies, passed()]}
    return lambda limits: Play(flow(*work, limits=limits), scripts).run()


# (limit, the count that the scenario reaches, a bound above that, the scenario)
ROWS: list[tuple[str, float, float, Callable[[Limits], Play]]] = [
    ("cost_usd", 1.5, 1.51, spends(cost_usd=1.5)),
    ("tokens", 100, 101, spends(tokens_in=60, tokens_out=40)),
    ("attempts", 1, 2, spends()),
    ("wall_clock", 1.0, 1.01, spends()),
    ("errors_in_a_row", 2, 3, breaks(2)),
    ("provider_wait", 181, 182, waits(2)),
    ("rounds_total", 2, 3, rejects(failed("x"), failed("y"), failed("z"))),
    ("recoveries_total", 1, 2, rejects(failed("x"), failed("y"), design=made("same"))),
    ("rounds_per_loop", 2, 3, rejects(failed("x"), failed("y"), failed("z"))),
    ("rounds_per_pair", 2, 3, rejects(failed("x"), failed("y"), failed("z"))),
    ("rounds_per_step", 2, 3, rejects(failed("x"), failed("y"), failed("z"))),
    ("same_finding", 2, 3, rejects(failed("x", "y"), failed("x", "z"))),
    ("failures_in_a_row", 2, 3, rejects(failed("x"), failed("y"))),
    ("no_change", 1, 2, rejects(failed("x"), failed("y"), design=made("same"))),
    ("oscillation", 1, 2, rejects(failed("x"), failed("y"), failed("z"), design=made("A", "B", "A", "C"))),
]


@pytest.mark.parametrize(("name", "count", "above", "scenario"), ROWS, ids=[row[0] for row in ROWS])
def test_at_its_bound_a_limit_stops_the_next_try(
    name: str, count: float, above: float, scenario: Callable[[Limits], Play]
) -> None:
    play = scenario(only(name, count))
    (packet,) = play.s.escalations.values()
    assert packet.breach == Breach(name, count, count)
    assert play.outcome == "waiting"


def test_eight_times_ten_cents_is_eighty_cents() -> None:
    steps = [step("s0"), *(step(f"s{n}", f"s{n - 1}") for n in range(1, 9))]
    dime = {each.name: [out(usage=Usage(0.1))] for each in steps}
    play = Play(flow(*steps, limits=only("cost_usd", 0.8)), dime).run()
    assert (play.attempts()["s8"], play.breach()) == (0, "cost_usd")
    (packet,) = play.s.escalations.values()
    assert packet.breach == Breach("cost_usd", 0.8, 0.8)
    assert play.briefings["s7"][0].left["cost_usd"] == 0.1


def test_grants_add_up_exactly() -> None:
    play = spends(cost_usd=0.4)(only("cost_usd", 0.1)).decide("continue", amount=0.2)
    assert play.breach() == "cost_usd"
    assert [packet.breach for packet in play.s.escalations.values()] == [Breach("cost_usd", 0.4, 0.3)]


@pytest.mark.parametrize(("name", "count", "above", "scenario"), ROWS, ids=[row[0] for row in ROWS])
def test_below_its_bound_a_limit_does_not_stop_it(
    name: str, count: float, above: float, scenario: Callable[[Limits], Play]
) -> None:
    play = scenario(only(name, above))
    assert play.outcome in ("verified", "done")
    assert play.s.opened_escalations == 0


@pytest.mark.parametrize(("name", "count", "above", "scenario"), ROWS, ids=[row[0] for row in ROWS])
def test_continue_grants_enough_to_go_on(
    name: str, count: float, above: float, scenario: Callable[[Limits], Play]
) -> None:
    play = scenario(only(name, count)).decide("continue", rounds=1, amount=above).run()
    assert play.outcome in ("verified", "done")


@pytest.mark.parametrize(("name", "count", "above", "scenario"), ROWS, ids=[row[0] for row in ROWS])
def test_budgets_belong_to_the_run_errors_to_the_step_other_limits_to_the_loop(
    name: str, count: float, above: float, scenario: Callable[[Limits], Play]
) -> None:
    (packet,) = scenario(only(name, count)).s.escalations.values()
    if name in ("cost_usd", "tokens", "attempts", "wall_clock"):
        assert (packet.loop, packet.step) == (None, None)
    elif name in ("errors_in_a_row", "provider_wait"):
        assert (packet.loop, packet.step) == (None, "a")
    else:
        assert (packet.loop, packet.step) == ("L-1", None)


OTHERS = ("chain_depth", "response_timeout")
"""Limits that `first_breach` does not check."""
ORDER = [
    ("cost_usd", 1),
    ("tokens", 1),
    ("attempts", 8),
    ("wall_clock", 8),
    ("rounds_total", 3),
    ("recoveries_total", 1),
    ("rounds_per_loop", 3),
    ("rounds_per_pair", 3),
    ("rounds_per_step", 3),
    ("same_finding", 4),
    ("failures_in_a_row", 4),
    ("no_change", 1),
    ("oscillation", 1),
    ("diverging", True),
]


def test_every_limit_is_in_the_tables() -> None:
    # Diverging is a comparison, not a bound; the last two refuse feedback and wake the run, and stop no round.
    assert [name for name, *_ in ROWS] == [name for name in NAMES if name not in ("diverging", *OTHERS)]
    assert [name for name, _ in ORDER] == [
        name for name in NAMES if name not in ("errors_in_a_row", "provider_wait", *OTHERS)
    ]


def used_up() -> Play:
    """A loop before its next round, for which every limit has counted something."""
    reviews = [failed("x"), failed("x"), failed("x", Finding("3", path="/a")), failed("x", Finding("4", path="/a"))]
    outputs = [{"a": "A"}, {"a": "A"}, {"a": "B"}, {"a": "A"}]
    work = flow(step("design"), step("review", reviews="design"), limits=OFF)
    play = Play(work, {"design": lambda p, n: out(outputs[p.s.steps[n].attempts - 1]), "review": reviews})
    for _ in range(3):
        play.finish("design")
        play.finish("review")
    play.finish("design")
    play.slots = 0
    last = reviews[3]
    play.finish("review", type(last)(last.made, verdict="fail", findings=last.findings, usage=Usage(1.0, 1)))
    return play


@pytest.mark.parametrize("index", range(len(ORDER)), ids=[name for name, _ in ORDER])
def test_of_several_breaches_the_first_in_the_table_is_reported(index: int) -> None:
    play = used_up()
    limits = with_overrides(OFF, {"attempts": 100, **dict(ORDER[index:])})
    state = replace(play.s, graph=valid_graph(flow(*play.workflow.steps, limits=limits)))
    breach = first_breach(state, play.now, loop=replace(play.loop(), limits=limits), step="design")
    assert breach is not None
    assert (breach.limit, breach.count) == (ORDER[index][0], 2 if index == len(ORDER) - 1 else ORDER[index][1])


def test_a_loop_within_all_limits_has_no_breach() -> None:
    play = used_up()
    assert first_breach(play.s, play.now, loop=play.loop(), step="design") is None


def test_the_last_round_of_the_run_goes_to_one_of_two_loops() -> None:
    work = flow(step("a"), step("b"), step("ra", reviews="a"), step("rb", reviews="b"), limits=only("rounds_total", 1))
    play = Play(work, {"a": grows, "b": grows, "ra": [failed("x"), passed()], "rb": [failed("y"), passed()]}, slots=0)
    play.slots = 2
    play.do(c.Proceed())
    for name in ("a", "b", "ra"):
        play.slots = 0 if name == "ra" else 2
        play.finish(name)
    play.finish("rb")
    assert play.opened() == 2 and not play.s.escalations
    play.slots = 2
    play.run()
    assert (play.s.rounds, play.breach(), play.loop("L-1").state) == (1, "rounds_total", "resolved")


def test_a_budget_is_reported_before_errors_and_errors_after_it() -> None:
    spent = with_overrides(OFF, {"attempts": 2, "errors_in_a_row": 2})
    play = breaks(2)(spent)
    assert play.breach() == "attempts"
    assert play.decide("continue").run().breach() == "errors_in_a_row"
    assert play.decide("continue", rounds=1).run().outcome == "done"


def test_diverging_compares_findings_caused_and_removed_over_two_rounds() -> None:
    def play(*replies: Reply) -> Play:
        work = flow(
            step("design"),
            step("review", reviews="design", complete=True),
            limits=with_overrides(OFF, {"diverging": True}),
        )
        script: Script = lambda p, n: out({"a": p.s.steps[n].attempts})  # noqa: E731
        return Play(work, {"design": script, "review": [*replies, passed()]}).run()

    def at(text: str) -> Finding:
        return Finding(text, path="/a")

    # One removed and one caused in each of two rounds: 2 >= 2.
    level = play(failed(at("1")), failed(at("2")), failed(at("3")))
    assert level.breach() == "diverging"
    # Two caused, three removed: the loop converges.
    falling = play(failed(at("1"), at("2")), failed(at("3")), failed(at("4")))
    assert falling.outcome == "verified"
    # One round is not enough; and without new findings nothing diverges.
    assert play(failed(at("1")), failed(at("2"))).outcome == "verified"
    assert play(failed("1"), failed("1"), failed("1")).outcome == "verified"
    # After a person continues the loop, no question comes before the granted rounds are used.
    assert level.decide("continue", rounds=2).run().outcome == "verified"


@pytest.mark.parametrize(
    ("choice", "more", "granted"),
    [
        ("continue", {"rounds": 2}, [3, 4]),
        ("reassign", {"rounds": 1, "target": "design"}, [3]),
        ("revise", {"rounds": 2, "note": "use a queue"}, [3]),
    ],
)
def test_a_decision_grants_rounds_to_limits_on_a_level(choice: str, more: dict[str, Any], granted: list[int]) -> None:
    play = rejects(*[failed(f"{n}") for n in range(9)])(only("rounds_per_loop", 2))
    assert (play.breach(), next_round_granted(play.loop())) == ("rounds_per_loop", False)
    after = play.decide(choice, **more).loop()
    assert [n for n in range(3, 9) if next_round_granted(replace(after, round=n - 1))] == granted


@pytest.mark.parametrize(("seconds", "late"), [(9.99, False), (10.0, True)])
def test_response_timeout_is_reached_at_its_bound(seconds: float, late: bool) -> None:
    play = Play(flow(step("a"), limits=with_overrides(OFF, {"response_timeout": 10})))
    play.raises("a", ask(HUMAN))
    play.now += seconds
    play.do(c.Proceed())
    assert bool(play.of(e.LoopOverdue)) is late


class TestReset:
    """Only a recorded decision resets a counter."""

    def test_revise_resets_all_counters_of_the_loop(self) -> None:
        play = rejects(*[failed("x")] * 6)(Limits(rounds_per_loop=None, same_finding=3))
        assert play.breach() == "same_finding"
        play.decide("revise", note="use a queue", by="ann").run()
        # The streak counts from the decision.
        assert play.breach() == "same_finding"
        assert play.of(e.VerdictGiven)[-1].findings[0].id == 1
        assert play.attempts()["review"] == 6
        assert play.of(e.EscalationDecided)[0].note == "use a queue"

    @pytest.mark.parametrize("name", ["rounds_per_loop", "rounds_per_pair", "rounds_per_step"])
    def test_revise_resets_the_rounds(self, name: str) -> None:
        play = rejects(*[failed(f"{n}") for n in range(5)])(only(name, 2))
        assert play.breach() == name
        play.decide("revise", note="again").run()
        assert play.attempts()["design"] == 5
        assert play.breach() == name

    @pytest.mark.parametrize("name", ["rounds_per_pair", "rounds_per_step"])
    def test_a_round_for_two_targets_counts_once_for_each(self, name: str) -> None:
        work = (
            step("plan", phase="planning"),
            step("design", "plan", phase="design"),
            step("review", reviews="design"),
        )
        for_both = failed(Finding("p", affected_phase=("planning",)), "d")
        scripts: dict[str, Script | list[Reply]] = {"plan": grows, "design": grows, "review": [for_both, passed()]}
        play = Play(flow(*work, limits=only(name, 1)), scripts).run()
        assert (play.outcome, play.attempts()) == ("verified", {"plan": 2, "design": 2, "review": 2})

    def test_revise_resets_oscillations_and_unchanged_reworks(self) -> None:
        play = rejects(failed("x"), failed("y"), design=made("same"))(only("no_change", 1))
        assert play.decide("revise", note="again").run().outcome == "verified"

    def test_replanning_does_not_reset_the_total(self) -> None:
        play = rejects(*[failed(f"{n}") for n in range(5)])(only("rounds_total", 2))
        play.person_raises("design")
        assert play.breach() == "rounds_total"

    def test_a_retry_after_an_error_is_not_another_round(self) -> None:
        replies: list[Reply] = [out("v1"), Exception("broken"), out("v2")]
        work = flow(step("design"), step("review", reviews="design"), limits=Limits(rounds_total=1))
        play = Play(work, {"design": replies, "review": [failed("x"), passed()]}).run()
        assert (play.outcome, play.s.rounds, play.loop().round) == ("verified", 1, 1)

    def test_a_success_resets_the_errors_in_a_row(self) -> None:
        replies: list[Reply] = [Exception("1"), out("v1"), Exception("2"), out("v2")]
        work = flow(step("design"), step("review", reviews="design"), limits=Limits(errors_in_a_row=2))
        play = Play(work, {"design": replies, "review": [failed("x"), passed()]}).run()
        assert play.outcome == "verified"

    def test_the_limits_of_a_judge_apply_to_its_loops(self) -> None:
        work = flow(step("design"), step("review", reviews="design", limits=Limits(rounds_per_loop=1)))
        play = Play(work, {"design": grows, "review": [failed("x"), failed("y")]}).run()
        assert play.loop().breach == Breach("rounds_per_loop", 1, 1)


def test_a_breach_names_limit_count_and_bound() -> None:
    assert str(Breach("rounds_per_loop", 3, 3)) == "rounds_per_loop (3/3)"
    assert str(Breach("cost_usd", 1.5, 1.25)) == "cost_usd (1.5/1.25)"


def test_whole_numbers_of_a_breach_are_written_as_integers() -> None:
    written = msgspec.json.encode(Breach("tokens", 3.0, 2.5))
    assert written == b'{"limit":"tokens","count":3,"bound":2.5}'
    assert msgspec.json.encode(msgspec.json.decode(written, type=Breach)) == written
