"""What agents and people keep beside a run: values by path, checkpoints of them, and which feedback was read."""

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
"""Stands for any one name where paths are followed."""
OF_THE_RUN = ("agent_contexts", "feedback_loops", "workflow_state")
"""What stands in the tree of a run beside the values that people and agents keep."""


def set_value(tx: Transaction, command: c.SetValue) -> None:
    """Keep a value. Raises IllegalCommand for a path that cannot be one."""
    parts = command.path.split(".")
    if not all(part.strip() for part in parts):
        raise IllegalCommand(f"path {command.path!r} has an empty part: expected words with dots between them")
    if ANY in parts:
        raise IllegalCommand(f"path {command.path!r} has the name {ANY!r}, which stands for any name: use another")
    if parts[0] in OF_THE_RUN:
        raise IllegalCommand(
            f"{parts[0]!r} is what the run itself says: it is read, and changes with the run; keep values under other names"
        )
    inside: Json = tx.state.values
    for place, part in enumerate(parts[:-1], 1):
        inside = inside.get(part, {})
        if not isinstance(inside, dict):
            here = ".".join(parts[:place])
            raise IllegalCommand(
                f"{here!r} is a value, not a place for others: choose another path than {command.path!r}"
            )
    tx.add(e.ValueSet(tx.now, command.path, command.value, command.by))


def save_checkpoint(tx: Transaction, command: c.SaveCheckpoint) -> None:
    if not command.name.strip():
        raise IllegalCommand("the checkpoint has no name: give it one")
    tx.add(e.CheckpointSaved(tx.now, command.name, command.by))


def restore_checkpoint(tx: Transaction, command: c.RestoreCheckpoint) -> None:
    kept = tx.state.checkpoints
    if command.name not in kept:
        hint = did_you_mean(command.name, kept) if kept else "none was made yet"
        raise NotFound(f"checkpoint {command.name!r} does not exist: {hint}")
    tx.add(e.CheckpointRestored(tx.now, command.name, command.by))


def read_feedback(tx: Transaction, command: c.ReadFeedback) -> None:
    """Clear what a step has received from its inbox; the loops, and this event, keep it."""
    if command.step not in tx.state.steps and command.step != HUMAN:
        raise NotFound(f"step {command.step!r} is unknown: {did_you_mean(command.step, tx.state.steps)}")
    loops = unread(tx.state, command.step)
    if loops:
        tx.add(e.FeedbackRead(tx.now, command.step, loops))


def unread(state: RunState, step: str) -> tuple[str, ...]:
    """The loops to a step whose feedback was not read yet, oldest first."""
    loops = [loop for loop in (*state.closed_loops.values(), *state.loops.values()) if step in loop.involved]
    seen = state.read.get(step, ())
    return tuple(sorted((loop.id for loop in loops if loop.id not in seen), key=lambda id: int(id[2:])))
