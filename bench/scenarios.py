"""What is measured. Each scenario gets an engine's name, the sizes and an empty folder, and returns its figures."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench import child, workload
from bench.engine import Engine, Unsupported
from bench.engines import open_engine
from bench.sizes import Sizes

Figures = dict[str, float]
KB = 1024


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def one_at_a_time(name: str, sizes: Sizes, folder: Path) -> Figures:
    """Warmed up until SQLite writes over its log rather than making it longer, which takes almost twice as long."""
    engine = open_engine(name, folder)
    engine.run_each(names("warm", sizes.runs // 2))
    began = time.monotonic()
    engine.run_each(names("run", sizes.runs))
    seconds = time.monotonic() - began
    engine.close()
    return {"ms_per_step": 1000 * seconds / (sizes.runs * workload.STEPS_PER_RUN)}


def at_once(name: str, sizes: Sizes, folder: Path) -> Figures:
    """Batches of runs that start together, for three seconds: the median batch."""
    engine = open_engine(name, folder)
    engine.run_together(names("warm", sizes.at_once))
    rates: list[float] = []
    until = time.monotonic() + 3
    while not rates or (time.monotonic() < until and len(rates) < 20):
        batch = names(f"batch-{len(rates)}", sizes.at_once)
        began = time.monotonic()
        engine.run_together(batch)
        rates.append(len(batch) / (time.monotonic() - began))
    engine.close()
    return {"runs_per_s": median(rates)}


def growth(name: str, sizes: Sizes, folder: Path) -> Figures:
    """One run of many rounds.

    A run of half the length goes before it, in the same open store: while SQLite still makes its log longer, a commit
    takes almost twice as long, and round 10 would look too slow for any growth to show. The half run alone, in a store
    of its own, tells what that half takes on disk.
    """
    half, whole = folder / "half", folder / "whole"
    _long_runs(name, [sizes.rounds // 2], half)
    seconds = _long_runs(name, [sizes.rounds // 2, sizes.rounds], whole)
    half_kb = _kb_in(half) / (sizes.rounds // 2)
    kb = (_kb_in(whole) - _kb_in(half)) / sizes.rounds

    def around(first: int, last: int) -> float:
        """In ms; rounds are counted from 1, and the first one includes the start of the run."""
        return 1000 * median(seconds[max(first, 2) - 1 : last])

    middle = sizes.rounds // 2
    early, late = around(2, 20), around(sizes.rounds - 39, sizes.rounds)
    return {
        "ms_early": early,
        "ms_middle": around(middle - 20, middle + 20),
        "ms_late": late,
        "late_over_early": late / early,
        "kb_per_round": kb,
        "disk_over_half": kb / half_kb,
    }


def _long_runs(name: str, lengths: Sequence[int], folder: Path) -> list[float]:
    """The seconds of each round of the last of these runs, one after another in a store of their own."""
    folder.mkdir()
    engine = open_engine(name, folder)
    seconds = [_rounds(engine, rounds) for rounds in lengths]
    engine.close()
    return seconds[-1]


def _rounds(engine: Engine, rounds: int) -> list[float]:
    moments = [time.monotonic()]
    engine.run_rounds(f"long-{rounds}", rounds, lambda: moments.append(time.monotonic()))
    left_over = time.monotonic() - moments[-1]
    if len(moments) != rounds + 1:
        raise RuntimeError(f"{len(moments) - 1} rounds were made, expected {rounds}")
    if left_over > max(0.1, 0.25 * (moments[-1] - moments[0])):
        raise RuntimeError(f"{left_over:.2f} s of work was left after the last round: rounds are marked too early")
    return [after - before for before, after in pairwise(moments)]


def resume(name: str, sizes: Sizes, folder: Path) -> Figures:
    """From starting the process, its imports included, to the end of the last run."""
    child.answer(child.spawn(name, "park", folder, sizes.waiting))
    began = time.monotonic()
    said = child.answer(child.spawn(name, "resume", folder))
    if said["resumed"] != sizes.waiting:
        raise RuntimeError(f"{said['resumed']} waiting runs were found, expected {sizes.waiting}")
    left = child.answer(child.spawn(name, "resume", folder))["resumed"]
    if left:
        raise RuntimeError(f"{left} runs still wait after all were resumed")
    return {"resume_s": said["ended"] - began}


def decision(name: str, sizes: Sizes, folder: Path) -> Figures:
    engine = open_engine(name, folder)
    runs = names("run", sizes.decisions + 2)
    engine.park(runs)
    latencies = [engine.decide(run) for run in runs]
    return {"decision_ms": 1000 * median(latencies[2:])}


def decision_across(name: str, sizes: Sizes, folder: Path) -> Figures:
    """One run at a time is held here, while another process decides for it."""
    engine = open_engine(name, folder)
    engine.park(["first"])
    decider = child.spawn(name, "decide", folder)
    try:
        child.answer(decider)
        latencies = [_decided_by(decider, engine.await_outsider, "first", 0.1)]
        for number, run in enumerate(names("run", sizes.decisions)):
            engine.park([run])
            # Spread over a second, so that an engine which polls is met at every point of its interval.
            latencies.append(_decided_by(decider, engine.await_outsider, run, 0.1 + number / sizes.decisions))
    finally:
        decider.kill()
        decider.wait()
    return {"decision_across_ms": 1000 * median(latencies[1:])}


def _decided_by(decider: subprocess.Popen[str], go_on: Callable[[str], float], run: str, delay: float) -> float:
    def tell() -> None:
        assert decider.stdin is not None
        decider.stdin.write(run + "\n")
        decider.stdin.flush()

    timer = threading.Timer(delay, tell)
    timer.start()
    try:
        went_on = go_on(run)
    except Unsupported:
        timer.cancel()
        raise
    began: float = child.answer(decider)["began"]
    return went_on - began


def cold_start(name: str, sizes: Sizes, folder: Path) -> Figures:
    """From starting the process to the end of its first run."""
    seconds: list[float] = []
    for number in range(sizes.starts):
        place = folder / str(number)
        place.mkdir()
        began = time.monotonic()
        seconds.append(child.answer(child.spawn(name, "first_run", place))["ended"] - began)
    return {"cold_start_s": median(seconds)}


def memory(name: str, sizes: Sizes, folder: Path) -> Figures:
    engine = open_engine(name, folder)
    engine.park(names("warm", min(100, sizes.held)))
    before = _resident_kb()
    engine.park(names("held", sizes.held))
    return {"kb_per_waiting_run": (_resident_kb() - before) / sizes.held}


def fsyncs(name: str, sizes: Sizes, folder: Path) -> Figures:
    if shutil.which("strace") is None:
        raise Unsupported("strace is not installed")
    calls = folder / "calls"
    tracer = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(calls)]
    place = folder / "store"
    place.mkdir()
    try:
        child.answer(child.spawn(name, "trace", place, sizes.traced, tracer))
    except RuntimeError as failed:
        raise Unsupported("strace may not trace here") from failed
    return {"fsyncs_per_run": _between_marks(calls.read_text().splitlines()) / sizes.traced}


def _between_marks(calls: Sequence[str]) -> int:
    """How many calls lie between the two marks; a call that another thread interrupted is counted where it began."""
    begun = [call for call in calls if "sync(" in call]
    first, last = (number for number, call in enumerate(begun) if f"/{child.MARKER}>" in call)
    return last - first - 1


def disk(name: str, sizes: Sizes, folder: Path) -> Figures:
    def size_after(runs: list[str]) -> float:
        engine = open_engine(name, folder)
        engine.run_each(runs)
        engine.close()
        return _kb_in(folder)

    before = size_after(names("first", 20))
    return {"kb_per_run": (size_after(names("run", sizes.stored)) - before) / sizes.stored}


def help_text(name: str, sizes: Sizes, folder: Path) -> Figures:
    command = list(open_engine(name, folder).help_command())
    seconds: list[float] = []
    for _ in range(sizes.starts):
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        seconds.append(time.monotonic() - began)
    return {"help_s": median(seconds)}


def judges(name: str, sizes: Sizes, folder: Path) -> Figures:
    """What a tool judge costs beyond its program. The other engines have no judges that run programs."""
    if name != "ours":
        raise Unsupported("no judges that run programs")
    tool = Path(__file__).parent.parent / "tools" / "measure_judges.py"
    words = [sys.executable, str(tool), "--json", "--no-packages", "--files", str(sizes.files)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    found = json.loads(done.stdout)
    (wall, cpu), (copy_wall, copy_cpu) = found["overlay"], found["copy"]
    return {"judge_ms": wall, "judge_cpu_ms": cpu, "judge_copy_ms": copy_wall, "judge_copy_cpu_ms": copy_cpu}


def _kb_in(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / KB


def _resident_kb() -> float:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        raise Unsupported("the memory of a process is read from /proc, which is not here")
    gc.collect()
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / KB


Scenario = Callable[[str, Sizes, Path], Figures]
SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        one_at_a_time,
        at_once,
        growth,
        resume,
        decision,
        decision_across,
        cold_start,
        memory,
        fsyncs,
        disk,
        help_text,
        judges,
    )
}
