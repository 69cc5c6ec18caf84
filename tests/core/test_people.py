"""Questions to people: `human` is always a legal target."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.model import HUMAN, Breach, Option
from tests.core.play import Play, Script, ask, flow, grows, step

PLAN_CODE = (step("plan", phase="planning"), step("code", "plan", phase="code"))


def coding(*steps: Any, code: Script = grows, **more: Any) -> Play:
    """The plan is done and the code is being written."""
    play = Play(flow(*(steps or PLAN_CODE), **more), {"plan": grows, "code": code})
    play.finish("plan")
    return play


class TestPeople:
    """`human` is always a legal target."""

    def asked(self, **more: Any) -> Play:
        options = (Option("polling", "low", "slower"), Option("push"))
        return coding(**more).raises("code", ask(HUMAN, message="which?", options=options))

    def test_the_question_goes_to_the_inbox_as_asked(self) -> None:
        (packet,) = self.asked().s.escalations.values()
        assert (packet.reason, packet.breach, packet.loop) == ("asked", None, "L-1")
        assert packet.options == ("resolve", "accept", "skip", "cancel")

    def test_the_source_runs_once_more_with_the_answer(self) -> None:
        play = self.asked()
        play.finish("code")
        assert play.outcome == "waiting"
        play.decide("resolve", option="polling", note="for now", by="ann").run()
        told = play.briefings["code"][1].feedback.resolutions[0]
        assert (told.state, told.option, told.text, told.by) == ("resolved", "polling", "for now", "ann")
        assert (play.outcome, play.attempts()["code"]) == ("done", 2)

    def test_it_counts_as_one_round(self) -> None:
        assert (self.asked().s.rounds, self.asked().loop().round) == (1, 1)

    @pytest.mark.parametrize(("limit", "bound"), [("rounds_total", 1), ("rounds_per_pair", 1), ("rounds_per_loop", 1)])
    def test_the_last_question_that_a_limit_allows_is_asked(self, limit: str, bound: int) -> None:
        play = self.asked(limits={limit: bound})
        assert play.breach() == "asked"

    @pytest.mark.parametrize("limit", ["rounds_total", "rounds_per_pair", "rounds_per_loop"])
    def test_one_too_many_is_a_breach_and_continue_asks_it(self, limit: str) -> None:
        play = self.asked(limits={limit: 0})
        assert play.breach() == limit
        play.finish("code")
        play.decide("continue").run()
        assert play.breach() == "asked"

    def test_a_step_and_a_person_may_be_asked_together(self) -> None:
        play = coding().raises("code", ask("plan", HUMAN))
        play.finish("code")
        play.run()
        assert (play.outcome, play.attempts()["plan"], play.breach()) == ("waiting", 2, "asked")
        play.decide("resolve", note="fine").run()
        assert play.outcome == "done"

    def test_answering_while_the_step_works_on_it_does_not_disturb_the_step(self) -> None:
        play = coding().raises("code", ask("plan", HUMAN))
        play.finish("code")
        play.decide("resolve", note="fine").run()
        assert (play.outcome, play.attempts()) == ("done", {"plan": 2, "code": 2})

    @pytest.mark.parametrize("policy", ["manual", "error", "skip"])
    def test_no_answer_in_time_escalates_exactly_once(self, policy: str) -> None:
        play = self.asked(on_breach=policy)
        assert [wake.time for wake in play.wakes()] == [play.now + 600]
        play.now += 600
        play.do(c.Proceed())
        play.now += 6_000
        play.do(c.Proceed())
        (late,) = play.of(e.LoopOverdue)
        assert late.breach == Breach("response_timeout", 600, 600)
        assert (play.s.opened_escalations, play.wakes()) == (1, [])
        assert play.loop().state == {"manual": "escalating", "error": "failed", "skip": "accepted"}[policy]
        if policy == "error":
            assert play.of(e.RunEnded)[0].reason == "limit response_timeout (600/600)"

    def test_who_acknowledged_is_not_late(self) -> None:
        play = self.asked()
        play.do(c.Acknowledge("L-1", HUMAN))
        play.now += 6_000
        play.do(c.Proceed())
        assert play.of(e.LoopOverdue) == []

    def test_steps_that_the_engine_runs_are_never_late(self) -> None:
        play = coding().raises("code", ask("plan"))
        play.now += 6_000
        play.do(c.Proceed())
        assert play.of(e.LoopOverdue) == []
