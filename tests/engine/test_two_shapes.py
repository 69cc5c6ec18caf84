"""Findings, feedback and outcomes as agents write them have the fields that the rules read (decision 0021)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from backedge.core import model
from backedge.engine import protocol

ONLY_WRITTEN: dict[type[Any], set[str]] = {protocol.Outcome: {"output", "add_steps", "remove_steps"}}
"""What the engine takes out before the rules see an outcome: the output is stored, planned steps are checked by themselves."""
ONLY_READ: dict[type[Any], set[str]] = {
    model.Finding: {"word", "blames"},
    model.Feedback: {"called"},
    model.Outcome: {"made", "lists_findings"},
}
"""What the engine adds: the agent's own word, the digest of the output, and whether findings were listed, even none."""


def fields(kind: type[Any], but: set[str]) -> list[str]:
    return [each.name for each in msgspec.structs.fields(kind) if each.name not in but]


@pytest.mark.parametrize(
    ("written", "read"),
    [(protocol.Finding, model.Finding), (protocol.Outcome, model.Outcome), (protocol.Feedback, model.Feedback)],
)
def test_both_shapes_have_the_same_fields(written: type[Any], read: type[Any]) -> None:
    assert fields(written, ONLY_WRITTEN.get(written, set())) == fields(read, ONLY_READ[read])


@pytest.mark.parametrize("kind", [model.Option, model.Decision, model.FindingResolution, model.Usage])
def test_what_agents_write_as_the_rules_read_it_has_one_shape(kind: type[Any]) -> None:
    types = {str(each.type) for said in (protocol.Outcome, protocol.Feedback) for each in msgspec.structs.fields(said)}
    assert any(f"backedge.core.model.{kind.__name__}" in each for each in types)


def test_a_finding_means_the_same_with_and_without_its_defaults() -> None:
    told = protocol.to_model(protocol.failed("no login"), model.OutputDigest("x"))
    assert told.findings == (model.Finding("no login"),)
