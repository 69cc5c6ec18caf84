"""Commands are one tagged union: one decoder reads them all, so that they can come from another process or machine."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given

from backedge.core import commands as c
from backedge.core.model import Feedback, Kind, MalformedFeedback, Outcome
from tests.core.play import flow, out, step
from tests.core.strategies import Pick, a_random_run, drive_to_end, effort, picks

DECODER: msgspec.json.Decoder[c.Command] = msgspec.json.Decoder(c.Command)


@effort(20)
@given(picks())
def test_every_command_survives_json(pick: Pick) -> None:
    run = a_random_run(pick)
    drive_to_end(run)
    for result in run.results:
        assert DECODER.decode(msgspec.json.encode(result.command)) == result.command


@pytest.mark.parametrize("kind", get_args(c.Command))
def test_a_command_carries_its_name(kind: type[c.Instruction]) -> None:
    name = kind.__struct_config__.tag
    assert isinstance(name, str)
    assert name.replace("_", "") == kind.__name__.lower()


@pytest.mark.parametrize(
    "feedback", [Feedback(Kind.FIX_REQUEST, ("plan",), "wrong"), MalformedFeedback(("plan",), "kind 'x' is unknown")]
)
def test_malformed_feedback_is_distinguished_from_valid_feedback(feedback: Feedback | MalformedFeedback) -> None:
    command = c.RaiseFeedback("code", feedback)
    assert DECODER.decode(msgspec.json.encode(command)) == command
    outcome: Outcome = msgspec.structs.replace(out("x"), feedback=(feedback,))
    finish = c.FinishAttempt("code", 1, outcome)
    assert DECODER.decode(msgspec.json.encode(finish)) == finish


def test_a_run_starts_from_a_decoded_command() -> None:
    command = c.StartRun("r", flow(step("plan", phase="planning")))
    assert DECODER.decode(msgspec.json.encode(command)) == command
