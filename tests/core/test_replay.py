"""Replay: changed rules must not change what was recorded before."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given

from backedge.core import events as e
from backedge.core import upcast
from backedge.core.model import OutputDigest
from backedge.core.scheduling import skipping, staleness, verification
from backedge.core.state import version_0_1
from backedge.core.state.evolve import replay
from backedge.core.workflow.limits import Limits
from backedge.engine.codec import decode_events
from backedge.ports import Record
from tests.core.play import Play, failed, flow, grows, out, passed, planned, step
from tests.core.strategies import Pick, a_random_run, drive_to_end, effort, picks

COMPLETIONS = ("attempt_started", "attempt_succeeded", "condition_basis", "consumed", "steps_changed")


def refuse(*_: object) -> Any:
    raise AssertionError("a rule was applied while replaying")


@effort(20)
@given(picks())
def test_todays_events_have_everything_that_the_fold_needs(pick: Pick) -> None:
    run = a_random_run(pick)
    drive_to_end(run)
    with pytest.MonkeyPatch.context() as patch:
        for name in COMPLETIONS:
            patch.setattr(version_0_1, name, refuse)
        assert replay(run.events) == run.s


def test_repeats_conditions_and_plans_are_recorded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from backedge.core.workflow.definition import Repeat

    more = step("late", "plan", phase="code", group="parts")
    work = flow(
        step("plan", phase="planning", plans=True),
        step("early", "plan", phase="code", group="parts"),
        step("again", "plan", phase="code", repeat=Repeat(("again:/n > 2",), 5)),
        step("ui", "plan", phase="code", when=("plan:/ui == true",)),
        step("all", "early", phase="test", needs_groups=("parts",)),
        step("review", reviews="all"),
        max_steps=20,
    )
    counts = iter(range(10))
    scripts: dict[str, Any] = {
        "plan": [planned({"ui": False}, more)],
        "again": lambda _play, _name: out({"n": next(counts)}),
        "all": grows,
        "review": [failed("it lacks a title"), passed()],
    }
    play = Play(work, scripts).run()
    assert play.outcome == "verified"
    assert play.attempts()["again"] == 4
    assert "late" in play.s.graph.needs["all"]
    for name in COMPLETIONS:
        monkeypatch.setattr(version_0_1, name, refuse)
    assert replay(play.events) == play.s


def test_a_changed_rule_does_not_change_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    work = flow(step("plan", phase="planning"), step("code", "plan", phase="code"), step("review", reviews="code"))
    play = Play(work, {"code": grows, "review": [failed("wrong"), passed()]}).run()
    before = play.s
    monkeypatch.setattr(staleness, "consumed_by", lambda state, step: {"other": "digest"})
    monkeypatch.setattr(verification, "unverified_fixes", lambda state, name: ())
    monkeypatch.setattr(skipping, "condition_basis", lambda state, name: "other")
    assert replay(play.events) == before


def test_all_limits_are_recorded_so_that_a_new_default_does_not_change_old_runs() -> None:
    written = json.loads(msgspec.json.encode(Limits(rounds_total=7)))
    assert set(written) == set(Limits.__struct_fields__)


def test_limits_that_version_0_1_left_out_have_the_defaults_of_that_version() -> None:
    body = {"type": "run_started/1", "at": 1.0, "run": "r", "workflow": {"name": "w", "steps": [{"name": "s"}]}}
    (started,) = decode_events([Record(1, msgspec.json.encode(body), "")])
    assert isinstance(started, e.RunStarted)
    limits = started.workflow.limits
    assert (limits.rounds_total, limits.rounds_per_loop, limits.same_finding) == (10, 3, 3)
    assert set(upcast.LIMITS_0_1) <= set(Limits.__struct_fields__)


def test_limits_of_a_step_that_version_0_1_left_out_have_its_defaults() -> None:
    steps = [{"name": "s"}, {"name": "j", "judges": ["s"], "limits": {"rounds_per_loop": 1}}]
    body = {"type": "run_started/1", "at": 1.0, "run": "r", "workflow": {"name": "w", "steps": steps}}
    (started,) = decode_events([Record(1, msgspec.json.encode(body), "")])
    assert isinstance(started, e.RunStarted)
    own = started.workflow.steps[1].limits
    assert own is not None
    assert (own.rounds_per_loop, own.rounds_total) == (1, 10)


def values_in(event: type[Any], seen: set[type[Any]]) -> None:
    """All structs that events are made of."""
    if event in seen:
        return
    seen.add(event)
    for field in msgspec.structs.fields(event):
        for inner in _structs(field.type):
            values_in(inner, seen)


def _structs(annotation: Any) -> list[type[Any]]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return [annotation]
    return [found for each in get_args(annotation) for found in _structs(each)]


def test_no_default_of_a_recorded_value_has_changed() -> None:
    """Values that hold their default are left out of events: a new default would change what old events say.

    To change one, write it always (as Limits does) or give the event a new version with an upcast; then update the file.
    """
    from pathlib import Path

    seen: set[type[Any]] = set()
    for event in get_args(e.Event):
        values_in(event, seen)
    assert OutputDigest in seen
    now = {
        kind.__name__: {
            field.name: repr(field.default)
            for field in msgspec.structs.fields(kind)
            if field.default is not msgspec.NODEFAULT
        }
        for kind in seen
        if kind is not Limits
    }
    pinned = json.loads((Path(__file__).parents[1] / "histories" / "defaults.json").read_text())
    changed = {
        f"{kind}.{field}": (was, now.get(kind, {}).get(field))
        for kind, fields in pinned.items()
        for field, was in fields.items()
        if now.get(kind, {}).get(field) != was
    }
    assert changed == {}
