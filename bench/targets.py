"""What we hold ourselves to, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bench.figures import FIGURES, Figure
from bench.results import Results

_BY_KEY = {figure.key: figure for figure in FIGURES}


@dataclass(frozen=True)
class Target:
    text: str
    key: str
    versus: Literal["", "floor", "floor-thread", "peer"]
    """Nothing: our own figure. Otherwise our figure in relation to the best of these, or to that engine."""
    bound: float
    at_least: bool = False

    @property
    def figure(self) -> Figure:
        return _BY_KEY[self.key]


@dataclass(frozen=True)
class Finding:
    """How a target was met: everything is None that was not measured."""

    target: Target
    ours: float | None
    other: tuple[str, float] | None
    value: float | None
    met: bool | None

    def as_json(self) -> dict[str, Any]:
        target = self.target
        bound = f"{'at least' if target.at_least else 'at most'} {target.bound:g}"
        return {
            "target": target.text,
            "ours": self.ours,
            "against": self.other,
            "value": self.value,
            "bound": bound,
            "met": self.met,
        }


TARGETS: tuple[Target, ...] = (
    Target("one at a time: × the floor per step", "ms_per_step", "floor", 1.5),
    Target("one at a time: times faster than the fastest peer", "ms_per_step", "peer", 2.5, at_least=True),
    Target("100 at once: share of the floor with a writer thread", "runs_per_s", "floor-thread", 0.5, at_least=True),
    Target("100 at once: times the fastest peer", "runs_per_s", "peer", 5, at_least=True),
    Target("growth: the last round / round 10", "late_over_early", "", 1.2),
    Target("growth: disk per round, KB", "kb_per_round", "", 3),
    Target("growth: disk per round is constant (whole / half length)", "disk_over_half", "", 1.1),
    Target("fsyncs per run: steps + 1, checkpoints of the database aside", "fsyncs_per_run", "", 9.5),
    Target("1,000 waiting runs resumed from a cold process, s", "resume_s", "", 1),
    Target("decision → next step, one process, ms", "decision_ms", "", 1),
    Target("decision → next step, another process, ms", "decision_across_ms", "", 50),
    Target("process start, import and first run, s", "cold_start_s", "", 0.3),
    Target("backedge --help, s", "help_s", "", 0.25),
    Target("memory per waiting run, KB", "kb_per_waiting_run", "", 20),
    Target("judge of 5,000 files: ms beyond the judge itself", "judge_ms", "", 100),
)


def judge(target: Target, results: Results) -> Finding:
    ours = results.value("ours", target.figure)
    other = _other(target, results)
    value = ours
    if target.versus:
        value = _ratio(ours, other[1], target) if ours is not None and other is not None else None
    met = None if value is None else (value >= target.bound if target.at_least else value <= target.bound)
    return Finding(target, ours, other, value, met)


def _other(target: Target, results: Results) -> tuple[str, float] | None:
    match target.versus:
        case "":
            return None
        case "floor-thread":
            value = results.value("floor-thread", target.figure)
            return None if value is None else ("floor-thread", value)
        case kind:
            return results.best(kind, target.figure)


def _ratio(ours: float, other: float, target: Target) -> float:
    """Times faster when more is asked for, times slower when less is; runs per second count the other way round."""
    return ours / other if target.at_least == target.figure.more_is_better else other / ours
