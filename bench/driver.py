"""Runs the workers, engine after engine within each repetition, so that a slow minute of the machine hits all alike."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import peers
from bench.engines import ENGINES
from bench.results import Cell, Results
from bench.sizes import Sizes

PATIENCE = 300.0
"""Seconds that one worker may take."""


def measure_all(engines: Sequence[str], scenarios: Sequence[str], sizes: Sizes, reps: int, temporary: Path) -> Results:
    results = Results()
    if any(ENGINES[name].kind == "peer" for name in engines):
        missing = peers.install()
        if missing:
            for name in engines:
                for scenario in scenarios if ENGINES[name].kind == "peer" else ():
                    results.cell(name, scenario).failure = missing
    jobs = [(scenario, name) for scenario in scenarios for name in engines]
    for rep in range(reps):
        for number, (scenario, name) in enumerate(jobs, start=1):
            cell = results.cell(name, scenario)
            if cell.settled():
                continue
            began = time.monotonic()
            _measure(cell, name, scenario, sizes, temporary)
            outcome = cell.settled() or _in_words(cell.samples[-1])
            _progress(
                f"[{rep + 1}/{reps} {number:>2}/{len(jobs)}] {scenario} {name}: {outcome} ({time.monotonic() - began:.1f} s)"
            )
    return results


def _measure(cell: Cell, name: str, scenario: str, sizes: Sizes, temporary: Path) -> None:
    entry = ENGINES[name]
    python = str(peers.python()) if entry.kind == "peer" else sys.executable
    flags = ["--json", f"--tmp={temporary}", *sizes.capped(entry.caps).as_flags()]
    worker = subprocess.Popen(
        [python, "-m", "bench.worker", name, scenario, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, complaints = worker.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.communicate()
        cell.failure = f"took longer than {PATIENCE:.0f} s"
        return
    try:
        answer = json.loads(said.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        last = (complaints.strip().splitlines() or ["nothing on stderr"])[-1]
        cell.failure = f"ended with code {worker.returncode}: {last}"
        return
    cell.reason = answer["reason"]
    if answer["figures"] is not None:
        cell.samples.append(answer["figures"])


def _in_words(figures: dict[str, float]) -> str:
    return ", ".join(f"{key} {value:.4g}" for key, value in figures.items())


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
