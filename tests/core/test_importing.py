"""An imported file is a run that has ended, and nothing reopens it."""

from __future__ import annotations

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.decide import decide, transact
from backedge.core.errors import AlreadyClosed, ImportRefused, NotFound
from backedge.core.scheduling.pending import outcome_of, pending
from backedge.core.state.evolve import replay
from tests.core.play import ask

IMPORT = c.ImportFile("i-1", "feedback-jsonl", "log.jsonl", "{}\n")


def test_an_imported_run_has_the_file_and_has_ended() -> None:
    events, state = transact(None, IMPORT, 7.0, free_slots=9)
    assert [type(event) for event in events] == [e.RunStarted, e.FileImported, e.RunEnded]
    assert replay(events) == state
    assert outcome_of(state) == "imported"
    assert state.imported == e.FileImported(7.0, "feedback-jsonl", "log.jsonl", "{}\n", reading=3)
    assert (state.workflow.name, state.attempts, pending(state, 8.0)) == ("log.jsonl", 0, ())


def test_nothing_starts_in_an_imported_run() -> None:
    _, state = transact(None, IMPORT, 7.0)
    assert decide(state, c.Proceed(), 8.0, free_slots=9) == ()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (IMPORT, "log.jsonl was already imported as run 'i-1'"),
        (c.RaiseFeedback("human", ask("import")), "has ended: imported"),
        (c.Pause(), "has ended: imported"),
        (c.Cancel(), "has ended: imported"),
    ],
)
def test_an_imported_run_refuses_commands(command: c.Command, reason: str) -> None:
    _, state = transact(None, IMPORT, 7.0)
    with pytest.raises(AlreadyClosed, match=reason):
        decide(state, command, 8.0, free_slots=9)


def test_findings_of_an_imported_run_cannot_be_reclassified() -> None:
    _, state = transact(None, IMPORT, 7.0)
    with pytest.raises(NotFound):
        decide(state, c.Reclassify("F-1", "code"), 8.0)


def test_a_refusal_lists_everything_that_is_wrong() -> None:
    assert ImportRefused("line 1: no").problems == ("line 1: no",)
    assert str(ImportRefused(("line 1: no", "line 3: neither"))) == "line 1: no\nline 3: neither"
