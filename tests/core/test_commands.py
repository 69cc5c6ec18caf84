"""Commands are one tagged union: one decoder reads them all, so that they can come from another process or machine."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given

from backedge.core import commands as c
from backedge.core.model import Feedback, Kind, MalformedFeedback, Outcome
from tests.core.play import flow, out, step
from tests.core.strategies import Pick, a_tale, effort, picks, told_to_the_end

DECODER: msgspec.json.Decoder[c.Command] = msgspec.json.Decoder(c.Command)


@effort(20)
@given(picks())
def test_every_command_of_a_run_reads_back_as_it_was(pick: Pick) -> None:
    tale = a_tale(pick)
    told_to_the_end(tale)
    for turn in tale.turns:
        assert DECODER.decode(msgspec.json.encode(turn.command)) == turn.command


@pytest.mark.parametrize("kind", get_args(c.Command))
def test_a_command_carries_its_name(kind: type[c.Instruction]) -> None:
    name = kind.__struct_config__.tag
    assert isinstance(name, str)
    assert name.replace("_", "") == kind.__name__.lower()


@pytest.mark.parametrize(
    "feedback", [Feedback(Kind.FIX_REQUEST, ("plan",), "wrong"), MalformedFeedback(("plan",), "kind 'x' is unknown")]
)
def test_feedback_that_made_no_sense_is_told_from_feedback_that_did(feedback: Feedback | MalformedFeedback) -> None:
    command = c.RaiseFeedback("code", feedback)
    assert DECODER.decode(msgspec.json.encode(command)) == command
    outcome: Outcome = msgspec.structs.replace(out("x"), feedback=(feedback,))
    finish = c.FinishAttempt("code", 1, outcome)
    assert DECODER.decode(msgspec.json.encode(finish)) == finish


def test_a_run_starts_from_a_command_that_was_read_back() -> None:
    command = c.StartRun("r", flow(step("plan", phase="planning")))
    assert DECODER.decode(msgspec.json.encode(command)) == command
