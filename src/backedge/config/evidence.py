"""What a workflow file says about evidence: which files are protected, and how judges and agents are kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from backedge.core.value import Json

ROOMS = ("auto", "overlay", "copy", "off")
SANDBOXES = ("auto", "bwrap", "off")
UNPROTECTED = (
    "nothing is protected: a step can delete or weaken the tests that judge it, and the run still ends verified; "
    "use `protects: {except: [...]}` for single files"
)
Room = Literal["auto", "overlay", "copy", "off"]
SandboxChoice = Literal["auto", "bwrap", "off"]
OnError = Literal["keep", "restore"]


@dataclass(frozen=True)
class EvidenceSpec:
    """The keys of a workflow file that are about evidence."""

    protects: bool = True
    """Whether the default set of files is protected."""
    adds: tuple[str, ...] = ()
    leaves_out: tuple[str, ...] = ()
    room: Room = "auto"
    sandbox: SandboxChoice = "auto"
    baseline: bool = True
    on_error: OnError | None = None
    """What happens to the files of broken attempts; None if the file does not say."""


def evidence_of(value: Mapping[str, Json]) -> EvidenceSpec:
    """The keys of a file whose shape was checked."""
    protects = value.get("protects", "default")
    more = protects if isinstance(protects, Mapping) else {}
    return EvidenceSpec(
        protects=protects is not False,
        adds=tuple(more.get("add", ())),
        leaves_out=tuple(more.get("except", ())),
        room=value.get("room", "auto"),
        sandbox=value.get("sandbox", "auto"),
        baseline=value.get("baseline", True),
        on_error=value.get("on_error"),
    )
