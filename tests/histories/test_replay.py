"""Journals that an earlier version recorded must replay for ever, to the same report and the same pending work."""

from __future__ import annotations

import json

import pytest

from backedge.core import events as e
from tests.histories.recorded import History, digest, effects, histories, projected, shape, shown, versions

RECORDED = [(version, history) for version in versions() for history in histories(version)]


@pytest.mark.parametrize(("version", "history"), RECORDED, ids=lambda each: getattr(each, "name", each))
def test_a_recorded_run_replays_to_the_same_report_and_pending_work(version: str, history: History) -> None:
    known = shape(version)
    marks = {count: (report, pending) for count, report, pending in history.marks}
    state = None
    for count, state in history.states():
        if count in marks:
            now = (digest(projected(shown(state, history.payloads), known))[:16], digest(effects(state))[:16])
            assert now == marks[count], f"after event {count}: {history.events[count - 1]}"
    assert state is not None
    assert digest(projected(shown(state, history.payloads), known)) == history.show
    assert digest(effects(state)) == history.pending


@pytest.mark.parametrize("version", versions())
def test_the_recordings_cover_every_event_and_profile_of_their_version(version: str) -> None:
    recorded = [json.loads(body) for history in histories(version) for body in history.events]
    types = {body["type"].partition("/")[0] for body in recorded}
    profiles = {body["workflow"].get("profile", "default") for body in recorded if "workflow" in body}
    assert {"default", "bmad", "ai-sdlc", "tight-loop", "asp", "reactree"} <= profiles
    assert len(recorded) > 5_000
    if version == "0.1":
        assert len(types) == 36


def test_an_ended_run_keeps_the_outcome_that_its_last_event_states() -> None:
    ended = [history for _, history in RECORDED if '"type":"run_ended/' in history.events[-1]]
    assert len(ended) > 100
    for history in ended:
        stated = json.loads(history.events[-1])["outcome"]
        assert history.outcome == stated
        *_, (_, last) = history.states()
        assert isinstance(last.ended, e.RunEnded)
        assert last.ended.outcome == stated
