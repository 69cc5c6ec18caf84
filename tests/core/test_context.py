"""Values that agents and people store with a run, and inboxes that are read."""

from __future__ import annotations

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.context import unread
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.state.evolve import replay
from tests.core.play import Play, ask, flow, out, step

TEAM = (step("architect"), step("developer", "architect"))


def with_values(**values: object) -> Play:
    play = Play(flow(*TEAM))
    for path, value in values.items():
        play.do(c.SetValue(path.replace("__", "."), value, "ann"))
    return play


def test_values_are_stored_by_path_and_replayed() -> None:
    play = with_values(review__depth=2, review__by="ann", note=[1])
    assert play.s.values == {"review": {"depth": 2, "by": "ann"}, "note": [1]}
    assert replay(play.events).values == play.s.values  # type: ignore[union-attr]
    play.do(c.SetValue("review", None))
    assert play.s.values == {"review": None, "note": [1]}


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "has an empty part"),
        ("a..b", "has an empty part"),
        ("note.x", "'note' holds a value, so 'note.x' cannot be set"),
        ("note.*", r"contains '\*', which matches any name when values are looked up: use another name"),
        (
            "agent_contexts.code.status",
            "'agent_contexts' is provided by the run and can only be read: store values under another name",
        ),
        ("workflow_state.paused", "'workflow_state' is provided by the run"),
    ],
)
def test_an_invalid_path_is_refused(path: str, problem: str) -> None:
    with pytest.raises(IllegalCommand, match=problem):
        with_values(note=1).do(c.SetValue(path, 1))


def test_a_checkpoint_restores_the_values() -> None:
    play = with_values(note=1)
    play.do(c.SaveCheckpoint("before", "ann"))
    play.do(c.SetValue("note", 2))
    play.do(c.SetValue("more", 3))
    play.do(c.RestoreCheckpoint("before", "ann"))
    assert play.s.values == {"note": 1}
    assert replay(play.events).values == {"note": 1}  # type: ignore[union-attr]


def test_an_unknown_or_unnamed_checkpoint_is_refused() -> None:
    with pytest.raises(NotFound, match="there are no checkpoints"):
        with_values().do(c.RestoreCheckpoint("before"))
    play = with_values()
    with pytest.raises(IllegalCommand, match="has no name"):
        play.do(c.SaveCheckpoint(" "))
    play.do(c.SaveCheckpoint("before"))
    with pytest.raises(NotFound, match="did you mean 'before'"):
        play.do(c.RestoreCheckpoint("befor"))


def test_reading_an_inbox_clears_it_but_keeps_the_loops() -> None:
    play = Play(flow(*TEAM), {"developer": [out("d", feedback=(ask("architect"),)), out("d")]}).run()
    assert unread(play.s, "architect") == ("L-1",) and unread(play.s, "developer") == ()
    play.do(c.ReadFeedback("architect"))
    assert unread(play.s, "architect") == () and play.loop() is not None
    assert play.of(e.FeedbackRead) == [e.FeedbackRead(play.now, "architect", ("L-1",))]
    assert play.do(c.ReadFeedback("architect")) == ()
    with pytest.raises(NotFound, match="did you mean 'architect'"):
        play.do(c.ReadFeedback("architec"))


def test_a_changed_input_applies_from_now_on_and_an_ended_run_keeps_its_own() -> None:
    play = Play(flow(step("a")))
    play.do(c.ChangeInput({"text": "new"}))
    assert play.s.input == {"text": "new"} and play.s.input_payload is None
    assert replay(play.events).input == {"text": "new"}  # type: ignore[union-attr]
    play.do(c.Cancel())
    with pytest.raises(AlreadyClosed, match="has ended: cancelled"):
        play.do(c.ChangeInput(1))
