"""What agents and people store with a run: values by path, checkpoints of them, and which feedback was read."""

from __future__ import annotations

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand, NotFound
from backedge.core.model import HUMAN
from backedge.core.state.run import RunState
from backedge.core.suggestions import did_you_mean
from backedge.core.transaction import Transaction
from backedge.core.value import Json

ANY = "*"
"""Matches any single name when a path is looked up."""
OF_THE_RUN = ("agent_contexts", "feedback_loops", "workflow_state")
"""Top-level names that the run itself provides: values cannot be stored under them."""


def set_value(tx: Transaction, command: c.SetValue) -> None:
    """Store a value. Raises IllegalCommand if the path is not valid."""
    parts = command.path.split(".")
    if not all(part.strip() for part in parts):
        raise IllegalCommand(f"path {command.path!r} has an empty part: expected names separated by dots")
    if ANY in parts:
        raise IllegalCommand(
            f"path {command.path!r} contains {ANY!r}, which matches any name when values are looked up: use another name"
        )
    if parts[0] in OF_THE_RUN:
        raise IllegalCommand(
            f"{parts[0]!r} is provided by the run and can only be read: store values under another name"
        )
    parent: Json = tx.state.values
    for length, part in enumerate(parts[:-1], 1):
        parent = parent.get(part, {})
        if not isinstance(parent, dict):
            prefix = ".".join(parts[:length])
            raise IllegalCommand(f"{prefix!r} holds a value, so {command.path!r} cannot be set: choose another path")
    tx.add(e.ValueSet(tx.now, command.path, command.value, command.by))


def save_checkpoint(tx: Transaction, command: c.SaveCheckpoint) -> None:
    if not command.name.strip():
        raise IllegalCommand("the checkpoint has no name: give it one")
    tx.add(e.CheckpointSaved(tx.now, command.name, command.by))


def restore_checkpoint(tx: Transaction, command: c.RestoreCheckpoint) -> None:
    checkpoints = tx.state.checkpoints
    if command.name not in checkpoints:
        hint = did_you_mean(command.name, checkpoints) if checkpoints else "there are no checkpoints"
        raise NotFound(f"unknown checkpoint {command.name!r}: {hint}")
    tx.add(e.CheckpointRestored(tx.now, command.name, command.by))


def read_feedback(tx: Transaction, command: c.ReadFeedback) -> None:
    """Mark the feedback to a step as read. The loops still keep it."""
    if command.step not in tx.state.steps and command.step != HUMAN:
        raise NotFound(f"unknown step {command.step!r}: {did_you_mean(command.step, tx.state.steps)}")
    loops = unread(tx.state, command.step)
    if loops:
        tx.add(e.FeedbackRead(tx.now, command.step, loops))


def unread(state: RunState, step: str) -> tuple[str, ...]:
    """The loops whose feedback to a step was not read yet, oldest first."""
    loops = [loop for loop in (*state.closed_loops.values(), *state.loops.values()) if step in loop.involved]
    seen = state.read.get(step, ())
    return tuple(sorted((loop.id for loop in loops if loop.id not in seen), key=lambda id: int(id[2:])))
