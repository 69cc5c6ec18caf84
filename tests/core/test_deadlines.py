"""Reminders and expiry: what is due at a time, once for each due time, and never a choice that only people may make."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed
from backedge.core.escalation.deadlines import expires_at, expiry_choice, first_due, next_due
from backedge.core.escalation.packet import packet
from backedge.core.model import HUMAN, Kind, Severity
from backedge.core.scheduling.pending import next_wake
from backedge.core.state.evolve import replay
from backedge.core.workflow.notify import Channel, Expiry
from tests.core.play import Finding, Play, ask, failed, flow, grows, passed, step

ALL = tuple(Severity)
REVIEWED = (step("code", phase="code"), step("review", reviews="code"))


def asking(severity: str = "medium", category: str = "", **more: Any) -> Play:
    """A review that fails until a limit asks a person."""
    finding = Finding("bad", severity=Severity(severity), category=category, affected_phase=("code",))
    steps = more.pop("steps", REVIEWED)
    work = flow(*steps, limits={"rounds_per_loop": 1}, **more)
    return Play(work, {"code": grows, "review": [failed(finding)]}).run()


def reminding(*times: float, role: str = "") -> tuple[Channel, ...]:
    return (Channel("https://example.com", role=role, remind=times),)


def later(play: Play, seconds: float) -> tuple[Any, ...]:
    """The events of the time that is so many seconds after the question."""
    (question,) = play.of(e.EscalationOpened)[:1]
    play.now = question.at + seconds
    return play.do(c.Proceed())


class TestReminders:
    def test_people_are_reminded_at_each_due_time_and_never_twice(self) -> None:
        play = asking(notify=reminding(60.0, 10.0))
        assert next_due(play.s) == play.s.escalations["E-1"].opened_at + 10
        assert later(play, 9.9) == ()
        assert [each.after for each in later(play, 10)] == [(10.0,)]
        assert later(play, 10) == ()
        assert [each.after for each in later(play, 61)] == [(60.0,)]
        assert next_due(play.s) is None and later(play, 10_000) == ()
        assert "E-1" in play.s.escalations, "a reminder decides nothing"

    def test_one_reminder_stands_for_all_that_were_missed(self) -> None:
        play = asking(notify=reminding(10.0, 60.0, 600.0))
        (reminded,) = later(play, 100)
        assert reminded == e.EscalationReminded(play.now, "E-1", (10.0, 60.0))
        assert next_due(play.s) == play.s.escalations["E-1"].opened_at + 600

    def test_the_alarm_of_the_engine_is_set_for_it(self) -> None:
        play = asking(notify=reminding(10.0))
        assert next_wake(play.s, play.now) == next_due(play.s)
        assert [wake.time for wake in play.wakes()] == [next_due(play.s)]

    def test_every_command_meets_what_is_due(self) -> None:
        play = asking(notify=reminding(10.0))
        play.now += 100
        assert [type(each) for each in play.do(c.Pause("ann"))] == [e.RunPaused], "a paused run reminds no person"
        assert e.EscalationReminded in [type(each) for each in play.do(c.Resume("ann"))]

    def test_a_decided_question_is_not_reminded_of(self) -> None:
        play = asking(notify=reminding(10.0)).decide("accept")
        assert first_due(play.s, play.now + 10_000) is None

    def test_a_channel_for_a_role_reminds_only_of_its_questions(self) -> None:
        roles = (("security", ("auth",)),)
        assert next_due(asking(category="AUTH ", notify=reminding(10.0, role="security"), roles=roles).s) is not None
        assert next_due(asking(category="style", notify=reminding(10.0, role="security"), roles=roles).s) is None

    def test_a_reminder_is_not_given_of_what_somebody_works_on(self) -> None:
        work = flow(step("code"), notify=reminding(10.0), expire=Expiry(20.0, "skip", ALL))
        play = Play(work).raises("code", ask(HUMAN, kind=Kind.CONTEXT_REQUEST))
        assert next_due(play.s) is not None
        play.do(c.Acknowledge("L-1", HUMAN))
        assert (next_due(play.s), later(play, 10_000)) == (None, ())
        assert expires_at(play.s, play.s.escalations["E-1"]) is None

    def test_the_time_of_a_paused_run_does_not_count(self) -> None:
        play = asking(notify=reminding(10.0), expire=Expiry(20.0, "skip"))
        play.do(c.Pause("ann"))
        assert (next_due(play.s), later(play, 10_000)) == (None, ())
        resumed = play.do(c.Resume("ann"))
        assert [type(each) for each in resumed][:2] == [e.RunResumed, e.EscalationExpired]


class TestExpiry:
    def test_the_choice_is_made_by_the_policy(self) -> None:
        play = asking(expire=Expiry(60.0, "skip"))
        assert packet(play.s, "E-1").default == "skip"
        assert packet(play.s, "E-1").expires_at == play.s.escalations["E-1"].opened_at + 60
        later(play, 60)
        (expired,), (decided,) = play.of(e.EscalationExpired), play.of(e.EscalationDecided)
        assert (expired.escalation, expired.choice) == ("E-1", "skip")
        assert (decided.choice, decided.by, decided.note) == ("skip", "policy:expire", "no person answered for 60 s")
        assert play.outcome == "accepted"
        assert (packet(play.s, "E-1").default, packet(play.s, "E-1").expires_at) == ("", None)

    @pytest.mark.parametrize(("choice", "outcome"), [("accept", "accepted"), ("cancel", "cancelled")])
    def test_it_may_accept_or_cancel_what_is_not_critical(self, choice: Any, outcome: str) -> None:
        play = asking("high", expire=Expiry(60.0, choice, ALL))
        later(play, 60)
        assert play.outcome == outcome

    @pytest.mark.parametrize("choice", ["accept", "cancel"])
    def test_it_never_accepts_or_cancels_what_is_critical(self, choice: Any) -> None:
        play = asking("critical", expire=Expiry(60.0, choice, ALL))
        assert packet(play.s, "E-1").default == "" and packet(play.s, "E-1").expires_at is None
        assert [type(each) for each in later(play, 60)] == [e.EscalationExpired]
        assert play.of(e.EscalationExpired)[0].choice == "" and "E-1" in play.s.escalations
        assert later(play, 10_000) == (), "people are reminded once"

    def test_it_does_not_cancel_a_run_in_which_something_else_is_critical(self) -> None:
        play = asking("low", expire=Expiry(60.0, "cancel", ALL))
        play.raises(HUMAN, ask("code", severity=Severity.CRITICAL))
        assert expiry_choice(play.s, play.s.escalations["E-1"]) == ""

    def test_severities_that_it_does_not_name_are_only_reminded_of(self) -> None:
        play = asking("high", expire=Expiry(60.0, "skip"))
        assert [each.choice for each in later(play, 60) if isinstance(each, e.EscalationExpired)] == [""]
        assert play.outcome == "waiting"

    def test_a_question_that_does_not_offer_the_choice_is_only_reminded_of(self) -> None:
        work = flow(step("code", approval="human"), expire=Expiry(60.0, "accept", ALL))
        play = Play(work)
        assert [each.choice for each in later(play, 60) if isinstance(each, e.EscalationExpired)] == [""]
        assert play.outcome == "waiting"

    @pytest.mark.parametrize("choice", ["skip", "accept", "cancel"])
    def test_a_step_that_a_person_has_to_approve_or_do_is_never_decided(self, choice: Any) -> None:
        for asks in (step("code", approval="human"), step("code", agents=(HUMAN,))):
            play = Play(flow(asks, expire=Expiry(60.0, choice, ALL)))
            later(play, 60)
            assert play.outcome == "waiting"

    def test_a_person_who_was_faster_has_decided(self) -> None:
        play = asking(expire=Expiry(60.0, "skip")).decide("accept", by="ann")
        later(play, 60)
        assert [each.by for each in play.of(e.EscalationDecided)] == ["ann"]

    def test_a_person_who_is_late_is_told_what_was_chosen(self) -> None:
        play = asking(expire=Expiry(60.0, "skip"))
        later(play, 60)
        with pytest.raises(AlreadyClosed, match="already decided: skip by policy:expire"):
            play.decide("accept", "E-1")

    def test_the_severity_is_that_of_everything_the_choice_would_settle(self) -> None:
        """The judge has a critical finding in another loop: accepting or skipping the judge would settle that too."""
        steps = (step("plan", phase="planning"), step("code", "plan", phase="code"), step("review", reviews="code"))
        work = flow(*steps, limits={"rounds_per_loop": 1}, expire=Expiry(60.0, "accept", ALL))
        found = (
            Finding("bad plan", severity=Severity.CRITICAL, affected_phase=("planning",)),
            Finding("bad code", severity=Severity.LOW, affected_phase=("code",)),
        )
        play = Play(work, {"code": grows, "plan": grows, "review": [failed(*found)]}).run()
        assert play.s.escalations
        later(play, 60)
        assert {each.choice for each in play.of(e.EscalationExpired)} == {""}


class TestRoles:
    def test_the_step_that_asks_names_them(self) -> None:
        steps = (step("code", phase="code"), step("review", reviews="code", for_roles=("security", "legal")))
        play = asking(steps=steps)
        assert play.of(e.EscalationOpened)[0].for_roles == ("security", "legal")
        assert packet(play.s, "E-1").for_roles == ("security", "legal")

    def test_the_category_of_a_finding_adds_to_them(self) -> None:
        steps = (step("code", phase="code"), step("review", reviews="code", for_roles=("qa",)))
        roles = (("security", ("Authorization", "injection")), ("legal", ("licence",)))
        play = asking(category="authorization", steps=steps, roles=roles)
        assert play.of(e.EscalationOpened)[0].for_roles == ("qa", "security")

    def test_without_any_everybody_is_asked(self) -> None:
        assert asking().of(e.EscalationOpened)[0].for_roles == ()

    def test_a_step_that_a_person_does_has_its_own(self) -> None:
        play = Play(flow(step("code", agents=(HUMAN,), for_roles=("ops",))))
        assert play.s.escalations["E-1"].for_roles == ("ops",)

    def test_refused_feedback_is_for_those_of_its_source(self) -> None:
        work = flow(step("code", for_roles=("backend",)), step("other", "code"))
        play = Play(work).raises("code", ask("no person", severity=Severity.CRITICAL))
        assert play.s.escalations["E-1"].for_roles == ("backend",)

    def test_a_budget_is_for_everybody(self) -> None:
        play = Play(flow(step("code", for_roles=("backend",)), step("b", "code"), limits={"attempts": 1})).run()
        assert play.breach() == "attempts" and play.s.escalations["E-1"].for_roles == ()


@given(
    remind=st.lists(st.integers(1, 50).map(float), unique=True, max_size=5),
    expire=st.none()
    | st.builds(Expiry, st.integers(1, 50).map(float), st.sampled_from(["skip", "accept", "cancel"]), st.just(ALL)),
    severity=st.sampled_from(["critical", "high", "medium", "low"]),
    looks=st.lists(st.integers(0, 60), max_size=12),
)
def test_each_due_time_is_met_once_whenever_a_process_looks(
    remind: list[float], expire: Expiry | None, severity: str, looks: list[int]
) -> None:
    play = asking(severity, notify=reminding(*remind), expire=expire)
    opened = play.s.escalations["E-1"].opened_at
    for look in sorted(looks):
        play.now = max(play.now, opened + look)
        play.state = replay(play.events)  # another process
        play.do(c.Proceed())
        if "E-1" not in play.s.escalations:
            break
        due = next_due(play.s)
        assert due is None or due > play.now, "nothing that is due is left: the alarm would ring for ever"
    met = [after for each in play.of(e.EscalationReminded) for after in each.after]
    assert len(met) == len(set(met)) and set(met) <= set(remind)
    assert len(play.of(e.EscalationExpired)) <= 1
    for decided in play.of(e.EscalationDecided):
        if severity == "critical":
            assert decided.choice not in ("accept", "cancel")
    if "E-1" in play.s.escalations:
        assert set(met) == {after for after in remind if opened + after <= play.now}


def test_a_step_passes_after_all_without_an_expiry() -> None:
    play = Play(flow(*REVIEWED, expire=Expiry(60.0, "skip"), notify=reminding(10.0)), {"review": [passed()]}).run()
    assert play.outcome == "verified" and next_due(play.s) is None
