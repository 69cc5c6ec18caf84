"""What the figures are called, and in which order they are shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    key: str
    scenario: str
    label: str
    more_is_better: bool = False


FIGURES: tuple[Figure, ...] = (
    Figure("ms_per_step", "one_at_a_time", "one at a time, ms per step"),
    Figure("runs_per_s", "at_once", "100 at once, runs/s", more_is_better=True),
    Figure("ms_early", "growth", "growth: ms per round, around round 10"),
    Figure("ms_middle", "growth", "growth: … half way"),
    Figure("ms_late", "growth", "growth: … at the end"),
    Figure("late_over_early", "growth", "growth: end / round 10"),
    Figure("kb_per_round", "growth", "growth: disk per round, KB"),
    Figure("disk_over_half", "growth", "growth: that / the same at half length"),
    Figure("resume_s", "resume", "waiting runs resumed, s"),
    Figure("decision_ms", "decision", "decision → next step, ms"),
    Figure("decision_across_ms", "decision_across", "… decided by another process, ms"),
    Figure("cold_start_s", "cold_start", "process start → first run done, s"),
    Figure("kb_per_waiting_run", "memory", "memory per waiting run, KB"),
    Figure("fsyncs_per_run", "fsyncs", "fsyncs per run"),
    Figure("kb_per_run", "disk", "disk per run, KB"),
    Figure("help_s", "help_text", "--help, s"),
    Figure("judge_ms", "judges", "judge of 5,000 files: ms beyond the judge itself"),
    Figure("judge_cpu_ms", "judges", "… of CPU"),
    Figure("judge_copy_ms", "judges", "… on a copy, ms"),
    Figure("judge_copy_cpu_ms", "judges", "… of CPU"),
)
