"""All that the workers said, and the medians of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.engines import ENGINES
from bench.figures import Figure


@dataclass
class Cell:
    """One engine in one scenario, over all repetitions."""

    samples: list[dict[str, float]] = field(default_factory=list)
    reason: str | None = None
    """Why there are no figures: the engine has no way of doing it."""
    failure: str | None = None
    """What went wrong, if a worker crashed or took too long."""

    def settled(self) -> str | None:
        """Why there is no use in measuring once more, if so."""
        return self.failure or self.reason

    def median(self, key: str) -> float | None:
        values = [sample[key] for sample in self.samples]
        return median(values) if values else None


@dataclass
class Results:
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)

    def cell(self, engine: str, scenario: str) -> Cell:
        return self.cells.setdefault((engine, scenario), Cell())

    def value(self, engine: str, figure: Figure) -> float | None:
        cell = self.cells.get((engine, figure.scenario))
        return cell.median(figure.key) if cell else None

    def best(self, kind: str, figure: Figure) -> tuple[str, float] | None:
        """The engine of this kind with the best median, and that median."""
        values = [(name, self.value(name, figure)) for name, entry in ENGINES.items() if entry.kind == kind]
        known = [(name, value) for name, value in values if value is not None]
        if not known:
            return None
        return (max if figure.more_is_better else min)(known, key=lambda pair: pair[1])

    def failures(self) -> list[str]:
        return [
            f"{engine}, {scenario}: {cell.failure}" for (engine, scenario), cell in self.cells.items() if cell.failure
        ]

    def as_json(self) -> dict[str, Any]:
        engines: dict[str, Any] = {}
        for (engine, scenario), cell in self.cells.items():
            keys = cell.samples[0] if cell.samples else {}
            engines.setdefault(engine, {})[scenario] = {
                "medians": {key: cell.median(key) for key in keys} or None,
                "samples": cell.samples,
                "reason": cell.reason,
                "failure": cell.failure,
            }
        return engines
