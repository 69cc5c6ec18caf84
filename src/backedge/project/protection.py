"""What guards the evidence of a workflow on this machine: rooms, sandboxes, baselines, protected files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from backedge.adapters.evidence.room_opening import RoomKind, probed
from backedge.config import WorkflowFile
from backedge.core.model import HUMAN
from backedge.project.evidence import FileEvidence
from backedge.project.held_out import held_out_warnings
from backedge.project.location import Project

_NAMES = {"bwrap": "bubblewrap"}


@dataclass(frozen=True)
class InForce:
    """What would be in force if the workflow ran here now."""

    room: dict[str, str]
    """How each tool judge is kept apart from the workspace: overlay, copy or none."""
    sandbox: dict[str, str]
    """What confines each agent: bwrap or none."""
    baseline: tuple[str, ...]
    """The tool judges that run once on the files of the start."""
    protects: bool
    on_protected: str
    warnings: tuple[str, ...] = ()
    """What gives a held-out judge away, and judges that see only a part of what they judge."""

    def lines(self) -> Iterator[str]:
        """The same in words; nothing for a workflow without tools and sandboxes."""
        confined = [name for name, kind in self.sandbox.items() if kind != "none"]
        if not self.room and not confined:
            return
        for kind in ("overlay", "copy", "none"):
            judges = [name for name, room in self.room.items() if room == kind]
            if judges:
                where = "in the workspace itself" if kind == "none" else f"in a room of their own ({kind})"
                yield f"judges run {where}: {', '.join(judges)}"
        if self.room:
            without = [name for name in self.room if name not in self.baseline]
            yield f"baseline of the start: {', '.join(self.baseline) or 'none'}" + (
                f"; not of {', '.join(without)}" if without and self.baseline else ""
            )
            yield f"changed tests and configuration of judges: {_ANSWERS[self.on_protected] if self.protects else _NOTHING}"
        if confined:
            yield f"{sandbox_words(self.sandbox)}: {', '.join(confined)}"
        free = [name for name, kind in self.sandbox.items() if kind == "none"]
        if free:
            yield f"agents run without a sandbox: {', '.join(free)}"


_ANSWERS = {
    "review": "a reviewer answers for them, else a person",
    "ask": "a person answers for them",
    "refuse": "refused",
}
_NOTHING = "not protected"


def sandbox_words(sandbox: Mapping[str, str]) -> str:
    """One line for people if a sandbox is in force; empty if none is."""
    kinds = sorted({_NAMES.get(kind, kind) for kind in sandbox.values() if kind != "none"})
    return f"agents run in {', '.join(kinds)}" if kinds else ""


def in_force(source: WorkflowFile, project: Project) -> InForce:
    """What would be in force. The machine is probed; nothing is left behind."""
    evidence, sandbox = FileEvidence(source, project), sandboxes(source, project)
    return InForce(
        {step: _room(evidence, source, step) for step in _tools(source)},
        sandbox,
        tuple(step for step in _tools(source) if evidence.has_baseline(step)),
        source.evidence.protects,
        source.definition.on_protected,
        (*held_out_warnings(source, sandbox), *_narrow_judges(source)),
    )


def sandboxes(source: WorkflowFile, project: Project) -> dict[str, str]:
    """What confines each agent of a workflow."""
    evidence = FileEvidence(source, project)
    found = {}
    for step in source.definition.steps:
        if step.tool or step.agents == (HUMAN,) or step.name not in source.steps:
            continue
        kinds = {source.agents[name].kind for name in step.agents if name in source.agents}
        found[step.name] = evidence.confinement(step.name, kinds)
    return found


def _narrow_judges(source: WorkflowFile) -> Iterator[str]:
    """The tool judges that work in a folder of the workspace of what they judge: the rest of it is not compared for them."""
    folders = {name: Path(os.path.realpath(extras.workspace)) for name, extras in source.steps.items()}
    for step in source.definition.steps:
        for subject in step.judges if step.tool and step.name in folders else ():
            here, there = folders[step.name], folders.get(subject)
            if there is not None and here != there and here.is_relative_to(there):
                part = here.relative_to(there)
                yield (
                    f"step {step.name!r} judges {subject!r} in {part}: files outside of {part} are not compared for it, and "
                    f"later changes of them are not noticed; leave `workspace` out, and name {part} in `run`"
                )


def _tools(source: WorkflowFile) -> list[str]:
    return [step.name for step in source.definition.steps if step.tool and step.name in source.steps]


def _room(evidence: FileEvidence, source: WorkflowFile, step: str) -> str:
    extras = source.steps[step]
    kind: RoomKind = extras.room or source.evidence.room
    if kind == "off":
        return "none"
    if kind == "copy" or not extras.workspace.is_dir():
        return "copy"
    scratch = evidence.of(extras.workspace).scratch
    if scratch.is_dir():
        return _overlay_or_copy(extras.workspace, scratch)
    with tempfile.TemporaryDirectory(prefix="backedge-") as folder:
        return _overlay_or_copy(extras.workspace, Path(folder))


def _overlay_or_copy(workspace: Path, scratch: Path) -> str:
    real = Path(workspace.resolve())
    return "overlay" if probed(real, real, Path(scratch.resolve())).overlay else "copy"
