"""The phases that steps name: a misspelt one would silently come last."""

from __future__ import annotations

import re
from collections.abc import Sequence

from backedge.config.problems import quoted
from backedge.config.source import Source
from backedge.core.suggestions import closest
from backedge.core.workflow.definition import DEFAULT_PHASES

_NEAR = 0.75
"""How alike two words are of which one may be a slip of the other."""
_DIGITS = re.compile(r"\d+")


def look_at_phases(source: Source) -> None:
    """Refuse a phase that looks like a slip of one in the file's own list; without a list, warn of it. Other words that
    are not in the list are phases of their own, after the declared ones: that may be meant."""
    declared = source.value.get("phases")
    seen = list(DEFAULT_PHASES)
    for name, given in source.value.get("steps", {}).items():
        phase = given.get("phase")
        if phase is None or "phases" in source.flawed_top:
            continue
        trail = ("steps", name, "phase")
        if declared:
            look_at_undeclared(source, name, phase, declared)
        elif phase not in seen and (meant := _meant(phase, seen)):
            source.warn(trail, f"got {quoted(phase)}, which is a phase of its own: did you mean {meant!r}?")
        seen.append(phase)


def look_at_undeclared(source: Source, step: str, phase: str, declared: Sequence[str]) -> None:
    if phase in declared:
        return
    trail, told = ("steps", step, "phase"), f"got {quoted(phase)}, which is not in `phases`"
    meant = _meant(phase, declared)
    if meant:
        source.refuse(trail, f"{told}: did you mean {meant!r}?")
    else:
        source.warn(trail, f"{told}: it comes after those; they are {', '.join(declared)}")


def _meant(phase: str, seen: Sequence[str]) -> str:
    """The phase that this one may be a slip of; words that are told apart by their numbers are meant as they are."""
    alike = [each for each in seen if _DIGITS.findall(each) == _DIGITS.findall(phase)]
    return closest(phase, alike, _NEAR)
