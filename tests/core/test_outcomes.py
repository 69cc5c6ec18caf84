"""The outcome of a run, what ends it, and which commands are legal."""

from __future__ import annotations

import msgspec
import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.decide import decide, transact
from backedge.core.errors import AlreadyClosed, IllegalCommand, JournalDamaged, NotFound, WorkflowError
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, Usage
from backedge.core.scheduling.pending import RunAttempt, WakeAt, outcome_of, pending
from backedge.core.state.evolve import evolve, replay
from tests.core.play import Play, Reply, ask, failed, flow, grows, out, passed, step

REVIEWED = (step("a"), step("r", reviews="a"))


def test_verified_if_every_judge_passed_the_current_versions() -> None:
    play = Play(flow(*REVIEWED), {"a": grows, "r": [failed("x"), passed()]}).run()
    assert play.outcome == "verified"
    assert play.events[-1] == e.RunEnded(play.now, "verified")


def test_done_in_a_workflow_without_judges() -> None:
    assert Play(flow(step("a"))).run().outcome == "done"


@pytest.mark.parametrize("choice", ["accept", "skip"])
def test_accepted_if_a_decision_accepted_or_skipped_something(choice: str) -> None:
    play = Play(flow(*REVIEWED, limits={"rounds_per_loop": 0}), {"r": [failed("x")]}).run()
    assert play.decide(choice).run().outcome == "accepted"


def test_accepted_if_feedback_without_findings_was_accepted() -> None:
    play = Play(flow(step("a"))).raises("a", ask(HUMAN))
    play.finish("a")
    assert play.decide("accept").run().outcome == "accepted"


def test_failed_by_policy() -> None:
    play = Play(flow(*REVIEWED, limits={"rounds_per_loop": 0}, on_breach="error"), {"r": [failed("x")]}).run()
    assert play.outcome == "failed"


def test_cancelling_by_hand_closes_everything_open() -> None:
    play = Play(flow(step("a"), step("b", "a"), step("c")))
    play.finish("a")
    play.raises("b", ask("a", HUMAN))
    play.do(c.Cancel(by="ann"))
    assert play.outcome == "cancelled"
    assert play.s.loops == {} and play.s.escalations == {}
    assert play.loop().state is LoopState.CANCELLED
    assert play.of(e.RunEnded)[0].reason == "cancelled by ann"
    assert pending(play.s, play.now) == ()


def test_the_name_of_the_person_who_cancelled_is_not_a_reason() -> None:
    play = Play(flow(step("a"), step("h", agents=(HUMAN,))))
    play.raises("a", ask(HUMAN))
    play.do(c.Cancel(by="ann\x1b[31m", reason="no\x1b[31m\nmore"))
    assert {(each.by, each.note) for each in play.of(e.EscalationDecided)} == {("ann", "no more")}
    resolution = play.loop().resolution
    assert resolution is not None
    assert (resolution.by, resolution.text) == ("ann", "no more")
    assert play.of(e.RunEnded)[0].reason == "no more"


def test_cancelling_with_and_without_a_reason() -> None:
    play = Play(flow(step("a")))
    play.do(c.Cancel(reason="too late"))
    assert play.of(e.RunEnded)[0].reason == "too late"
    other = Play(flow(step("a")))
    other.do(c.Cancel())
    assert other.of(e.RunEnded)[0].reason == "cancelled"
    with pytest.raises(AlreadyClosed):
        other.do(c.Cancel())


def test_waiting_if_nothing_can_start_until_a_person_acts() -> None:
    play = Play(flow(step("a"))).raises("a", ask(HUMAN))
    assert play.outcome == "running"
    play.finish("a")
    assert play.outcome == "waiting"


def test_running_if_something_can_start_even_if_only_later() -> None:
    play = Play(flow(step("a")), {"a": [Exception("x"), out()]})
    play.finish("a")
    play.slots = 0
    assert play.outcome == "running"
    assert pending(play.s, play.now - 0.9) == (WakeAt(play.now + 0.5),)


def test_an_attempt_that_ends_after_cancelling_is_paid_for_but_changes_nothing() -> None:
    play = Play(flow(step("a"), step("b")))
    play.do(c.Cancel())
    play.finish("a", out("late", usage=Usage(0.5)))
    play.finish("b", Exception("late"))
    assert play.s.usage == Usage(0.5)
    assert play.s.steps["a"].artifact is None
    assert play.kinds()[-2:] == ["AttemptDropped", "AttemptFailed"]
    assert play.s.busy == 0


def test_an_attempt_in_doubt_after_the_end_opens_no_escalation() -> None:
    play = Play(flow(step("a")))
    play.do(c.Cancel())
    play.do(c.DropAttempt("a", 1, "in doubt"))
    assert play.s.escalations == {}


def test_human_feedback_reopens_a_finished_run() -> None:
    play = Play(flow(*REVIEWED), {"a": grows}).run()
    play.person_raises("a")
    assert play.outcome == "running"
    assert play.run().outcome == "verified"
    assert [event.outcome for event in play.of(e.RunEnded)] == ["verified", "verified"]


def test_refused_feedback_leaves_a_finished_run_finished() -> None:
    play = Play(flow(*REVIEWED)).run()
    play.person_raises("r")
    assert play.outcome == "verified"


class TestErrors:
    """An error of the agent is never a pass and never a round."""

    def test_retries_wait_twice_as_long_each_time_up_to_a_limit(self) -> None:
        work = flow(step("a"), limits={"errors_in_a_row": 9})
        play = Play(work, {"a": [Exception("x")]}).run()
        waits = [event.retry_at - event.at for event in play.of(e.AttemptFailed)]
        assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]

    def test_an_attempt_is_retried_when_its_time_has_come(self) -> None:
        play = Play(flow(step("a")), {"a": [Exception("x")]})
        play.slots = 0
        play.finish("a")
        play.slots = 1
        play.now = play.of(e.AttemptFailed)[0].retry_at - 0.01
        play.do(c.Proceed())
        assert play.s.steps["a"].running is None
        play.now += 0.01
        play.do(c.Proceed())
        assert pending(play.s, play.now) == (RunAttempt("a", 2),)

    def test_an_interrupted_attempt_is_repeated_and_is_not_an_error(self) -> None:
        play = Play(flow(step("a")))
        play.do(c.DropAttempt("a", 1, "interrupted", Usage(0.1)))
        assert (play.attempts()["a"], play.s.steps["a"].errors) == (2, 0)
        assert play.s.usage == Usage(0.1)

    @pytest.mark.parametrize(
        ("observed", "counted"),
        [(0.0, 0.0), (2.0, 2.0), (30.0, 10.0)],
        ids=["after a crash", "waited for", "left behind"],
    )
    def test_the_observed_time_of_an_attempt_in_doubt_counts_as_work(self, observed: float, counted: float) -> None:
        play = Play(flow(step("a")))
        before = play.s.seconds_at_work(play.s.last_at)
        play.now = play.s.last_at + 10.0
        play.do(c.DropAttempt("a", 1, "in doubt", seconds=observed, why="it goes on"))
        assert play.s.seconds_worked - before == pytest.approx(counted)
        (packet,) = play.s.escalations.values()
        assert packet.reason == "attempt 1 of 'a' is in doubt: it goes on; continue runs it again"

    def test_an_attempt_in_doubt_is_never_silently_run_twice(self) -> None:
        play = Play(flow(step("a")))
        play.do(c.DropAttempt("a", 1, "in doubt"))
        (packet,) = play.s.escalations.values()
        assert (packet.step, packet.breach) == ("a", None)
        assert "is in doubt" in packet.reason
        assert play.attempts()["a"] == 1
        play.decide("continue").run()
        assert (play.outcome, play.attempts()["a"]) == ("done", 2)

    def test_an_attempt_in_doubt_is_rerun_if_the_step_allows_it(self) -> None:
        play = Play(flow(step("a", on_doubt="rerun")))
        play.do(c.DropAttempt("a", 1, "in doubt"))
        assert play.attempts()["a"] == 2


class TestLegality:
    """A command has to answer something pending and name its attempt."""

    def test_a_run_has_to_be_started_first_and_only_once(self) -> None:
        with pytest.raises(NotFound, match="start it before Proceed"):
            decide(None, c.Proceed(), 0.0)
        with pytest.raises(IllegalCommand, match="already exists"):
            Play(flow(step("a"))).do(c.StartRun("r", flow(step("a"))))

    def test_an_invalid_workflow_does_not_start(self) -> None:
        with pytest.raises(WorkflowError):
            decide(None, c.StartRun("r", flow()), 0.0)

    @pytest.mark.parametrize(
        ("command", "error"),
        [
            (
                c.FinishAttempt("a", 2, out()),
                "attempt 2 of step 'a' is not running (attempt 1 is): report only a running attempt",
            ),
            (c.FinishAttempt("b", 1, out()), "attempt 1 of step 'b' is not running (no attempt is)"),
            (c.FailAttempt("x", 1, "e"), "step 'x' is not in run 'r': use one of a, b"),
            (c.DropAttempt("a", 9, "in doubt"), "is not running"),
            (c.BeginWait("L-1", "a", 1), "did not raise 'L-1'"),
        ],
    )
    def test_a_command_that_answers_nothing_pending_is_refused(self, command: c.Command, error: str) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        before = play.s
        with pytest.raises(IllegalCommand) as raised:
            play.do(command)
        assert error in str(raised.value)
        assert play.s is before

    def test_an_outcome_counts_once(self) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        play.finish("a")
        with pytest.raises(IllegalCommand):
            play.do(c.FinishAttempt("a", 1, out("a")))


class TestTheFold:
    """Recovery is `pending(replay(events))`."""

    def rich(self) -> Play:
        replies: list[Reply] = [failed("x"), Exception("broken"), failed("y"), passed()]
        work = flow(step("p"), step("a", "p"), step("r", reviews="a"), step("z", "a"))
        play = Play(work, {"p": grows, "a": grows, "r": replies})
        play.finish("p")
        play.raises("a", ask("p", HUMAN, details={"k": [1]}))
        play.finish("a")
        play.decide("resolve", note="ok")
        return play.run()

    def test_events_read_back_from_their_text_fold_to_the_same_state(self) -> None:
        play = self.rich()
        text = [msgspec.json.encode(event) for event in play.events]
        again = replay(msgspec.json.decode(each, type=e.Event) for each in text)
        assert again == play.s
        assert play.s.seq == len(play.events)

    def test_without_events_there_is_no_run(self) -> None:
        assert replay([]) is None

    def test_the_first_event_starts_the_run_and_no_other_does(self) -> None:
        play = Play(flow(step("a")))
        with pytest.raises(ValueError, match="the first event of a run is RunPaused: expected RunStarted"):
            evolve(None, e.RunPaused(0.0))
        with pytest.raises(ValueError, match="has a second RunStarted"):
            evolve(play.s, play.events[0])

    def test_events_that_cannot_have_happened_are_damage_that_names_the_event(self) -> None:
        play = Play(flow(step("a")))
        with pytest.raises(JournalDamaged, match=r"event 1 of a run is damaged: RunPaused cannot follow"):
            replay([e.RunPaused(0.0)])
        with pytest.raises(JournalDamaged, match=r"event 2 of run '.*' is damaged: RunStarted cannot follow"):
            replay([play.events[0], play.events[0]])
        with pytest.raises(JournalDamaged, match=r"is damaged: AttemptDropped cannot follow .* \(KeyError: 'b'\)"):
            replay([e.AttemptDropped(0.0, "b", 1, "interrupted")], play.s)

    def test_an_event_of_a_newer_version_is_refused(self) -> None:
        for text in (b'{"type":"run_paused/2","at":1}', b'{"type":"run_paused/1","at":1,"why":"x"}'):
            with pytest.raises(msgspec.ValidationError):
                msgspec.json.decode(text, type=e.Event)

    def test_a_clock_that_jumps_back_does_not_make_events_older(self) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        play.now -= 500
        play.finish("a")
        assert [event.at for event in play.events] == sorted(event.at for event in play.events)

    def test_time_spent_waiting_for_people_does_not_count_as_work(self) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        assert play.s.seconds_at_work(play.now + 3) == 3
        play.finish("a")
        play.raises("b", ask(HUMAN))
        play.finish("b")
        assert play.s.seconds_at_work(play.now + 9_999) == 2

    def test_time_between_a_crash_and_the_next_process_does_not_count_as_work(self) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        play.now += 2
        play.do(c.Pause("a person"))
        before = play.s.seconds_at_work(play.s.last_at)
        play.now += 9_999
        play.do(c.Recover())
        assert isinstance(play.events[-1], e.RunRecovered)
        assert play.s.seconds_at_work(play.now) == before
        play.now += 3
        play.do(c.FinishAttempt("a", 1, out("a")))
        assert play.s.seconds_worked == pytest.approx(before + 3)

    @pytest.mark.parametrize("command", [c.Recover(), c.Resume("a person")])
    def test_nothing_goes_on_after_the_end(self, command: c.Command) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        play.do(c.Pause("a person"))
        play.do(c.Cancel("a person"))
        assert play.s.busy == 1
        count = len(play.events)
        play.do(command)
        assert play.events[count:] == []

    def test_a_run_without_running_attempts_has_nothing_to_recover(self) -> None:
        play = Play(flow(step("a")))
        play.do(c.Pause("a person"))
        play.do(c.DropAttempt("a", 1, "interrupted"))
        count = len(play.events)
        play.do(c.Recover())
        assert play.events[count:] == []

    def test_a_process_that_does_not_execute_the_run_starts_nothing(self) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        _, after = transact(play.s, c.FinishAttempt("a", 1, out("a")), play.now + 1)
        assert after.busy == 0
        assert outcome_of(after) == "running"

    def test_an_impossible_state_escalates_instead_of_hanging(self) -> None:
        """A journal from elsewhere might have this: feedback removed from the inbox without an answer."""
        play = Play(flow(step("a"))).raises("a", ask(HUMAN))
        play.finish("a")
        lost = evolve(play.s, e.EscalationDecided(play.now, "E-1", "resolve"))
        (packet,) = decide(lost, c.Proceed(), play.now, 1)
        assert isinstance(packet, e.EscalationOpened)
        assert (packet.reason, packet.options) == (
            "nothing can start, and no rule says why: cancel the run and report this as a bug",
            ("cancel",),
        )
