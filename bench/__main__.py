"""`python -m bench`: us, the peers and the bare journal on one workload, as ratios."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path

from bench import machine, report
from bench.driver import measure_all
from bench.engines import ENGINES
from bench.scenarios import SCENARIOS
from bench.sizes import NAMES, QUICK, Sizes
from bench.targets import TARGETS, judge
from bench.worker import TEMPORARY

RESULTS = Path("build") / "bench" / "results.json"


def main() -> int:
    given = _arguments()
    chosen = QUICK if given.quick else Sizes()
    sizes = replace(chosen, **{name: value for name in NAMES if (value := getattr(given, name)) is not None})
    reps = given.reps or (1 if given.quick else 3)
    temporary = TEMPORARY / str(os.getpid())
    try:
        results = measure_all(given.only, given.scenario, sizes, reps, temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    findings = [judge(target, results) for target in TARGETS if target.figure.scenario in given.scenario]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "machine": machine.facts(),
        "repetitions": reps,
        "sizes": asdict(sizes),
        "caps": {name: ENGINES[name].caps for name in given.only},
        "engines": results.as_json(),
        "targets": [finding.as_json() for finding in findings],
    }
    RESULTS.write_text(json.dumps(facts, indent=1) + "\n")
    report.show(results, given.only, findings, sizes, reps)
    print(f"all figures: {RESULTS}", file=sys.stderr)
    return 1 if results.failures() else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", type=_engines, default=list(ENGINES), metavar="ENGINE,…", help=", ".join(ENGINES))
    parser.add_argument(
        "--scenario", type=_scenarios, default=list(SCENARIOS), metavar="NAME,…", help=", ".join(SCENARIOS)
    )
    parser.add_argument("--reps", type=int, help="repetitions, of which the median counts (3)")
    parser.add_argument("--quick", action="store_true", help="small sizes and one repetition: does everything work?")
    for name in NAMES:
        parser.add_argument(f"--{name}", type=int, help=f"rather than {getattr(Sizes, name)}")
    return parser.parse_args()


def _engines(text: str) -> list[str]:
    """Engines by name, or a family by the part before the dash: floor is floor-inline and floor-thread."""
    asked = text.split(",")
    unknown = [word for word in asked if word not in {part for name in ENGINES for part in (name, name.split("-")[0])}]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    return [name for name in ENGINES if name in asked or name.split("-")[0] in asked]


def _scenarios(text: str) -> list[str]:
    asked = text.split(",")
    unknown = [word for word in asked if word not in SCENARIOS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    return [name for name in SCENARIOS if name in asked]


if __name__ == "__main__":
    sys.exit(main())
