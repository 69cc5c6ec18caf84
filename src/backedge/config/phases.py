"""Checks the phases that steps name: a misspelt phase would silently come last."""

from __future__ import annotations

import re
from collections.abc import Sequence

from backedge.config.problems import quoted
from backedge.config.source import Source
from backedge.core.suggestions import closest
from backedge.core.workflow.definition import DEFAULT_PHASES

_NEAR = 0.75
"""How similar two words are if one may be a misspelling of the other."""
_DIGITS = re.compile(r"\d+")


def check_phases(source: Source) -> None:
    """Refuse a phase that looks like a misspelling of one in the file's `phases`; without `phases`, warn of it. Other
    words that are not in the list are separate phases, after the declared ones: that may be intended."""
    declared = source.value.get("phases")
    seen = list(DEFAULT_PHASES)
    for name, given in source.value.get("steps", {}).items():
        phase = given.get("phase")
        if phase is None or "phases" in source.flawed_top:
            continue
        trail = ("steps", name, "phase")
        if declared:
            check_declared(source, name, phase, declared)
        elif phase not in seen and (meant := _meant(phase, seen)):
            source.warn(trail, f"got {quoted(phase)}, which becomes a separate phase: did you mean {meant!r}?")
        seen.append(phase)


def check_declared(source: Source, step: str, phase: str, declared: Sequence[str]) -> None:
    """Refuse or warn of a phase that is not in the declared list."""
    if phase in declared:
        return
    trail, problem = ("steps", step, "phase"), f"got {quoted(phase)}, which is not in `phases`"
    meant = _meant(phase, declared)
    if meant:
        source.refuse(trail, f"{problem}: did you mean {meant!r}?")
    else:
        source.warn(trail, f"{problem}: it comes after those ({', '.join(declared)})")


def _meant(phase: str, seen: Sequence[str]) -> str:
    """The phase that this one may be a misspelling of; words that differ in their numbers are taken as they are."""
    alike = [each for each in seen if _DIGITS.findall(each) == _DIGITS.findall(phase)]
    return closest(phase, alike, _NEAR)
