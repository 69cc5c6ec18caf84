"""How much of everything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace


@dataclass(frozen=True)
class Sizes:
    runs: int = 100
    """Runs one at a time."""
    at_once: int = 100
    """Runs at the same time."""
    rounds: int = 2000
    """Rounds in the one long run."""
    waiting: int = 1000
    """Waiting runs that a cold process resumes."""
    decisions: int = 20
    """Decisions, in one process and across processes."""
    held: int = 1000
    """Waiting runs held in memory."""
    starts: int = 3
    """Fresh processes."""
    traced: int = 30
    """Runs whose fsyncs are counted."""
    stored: int = 200
    """Runs whose space on disk is measured."""
    files: int = 5000
    """Files of the workspace in which a judge runs."""

    def capped(self, caps: Mapping[str, int]) -> Sizes:
        return replace(self, **{name: min(cap, getattr(self, name)) for name, cap in caps.items()})

    def as_flags(self) -> list[str]:
        return [f"--{name}={value}" for name, value in asdict(self).items()]


QUICK = Sizes(runs=5, at_once=10, rounds=30, waiting=10, decisions=3, held=10, starts=1, traced=5, stored=10, files=100)
NAMES = tuple(field.name for field in fields(Sizes))
