"""One engine in one scenario, in a process of its own: `python -m bench.worker ENGINE SCENARIO --json`.

Runs in any environment that has what the engine needs; prints the figures, or the reason why there are none.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from bench.engine import Unsupported
from bench.engines import ENGINES
from bench.scenarios import SCENARIOS
from bench.sizes import NAMES, Sizes

TEMPORARY = Path("build") / "bench" / "tmp"
"""On the disk of the checkout: many a /tmp is memory, where an fsync costs nothing."""


def measure(engine: str, scenario: str, sizes: Sizes, temporary: Path) -> dict[str, Any]:
    result: dict[str, Any] = {"engine": engine, "scenario": scenario, "sizes": asdict(sizes)}
    temporary.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{engine}-{scenario}-", dir=temporary, ignore_cleanup_errors=True
    ) as folder:
        try:
            return {**result, "figures": SCENARIOS[scenario](engine, sizes, Path(folder).resolve()), "reason": None}
        except Unsupported as reason:
            return {**result, "figures": None, "reason": str(reason)}


def main() -> NoReturn:
    parser = argparse.ArgumentParser(prog="python -m bench.worker", description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--json", action="store_true", help="one JSON object rather than lines")
    parser.add_argument("--tmp", type=Path, default=TEMPORARY, help="where the databases go meanwhile")
    for name in NAMES:
        parser.add_argument(f"--{name}", type=int, default=getattr(Sizes, name))
    given = parser.parse_args()
    sizes = Sizes(**{name: getattr(given, name) for name in NAMES})
    result = measure(given.engine, given.scenario, sizes, given.tmp)
    if given.json:
        print(json.dumps(result), flush=True)
    else:
        for figure, value in (result["figures"] or {"nothing": result["reason"]}).items():
            print(figure, value, flush=True)
    # Runs that still wait, in threads of their engine, must not hold the process back.
    os._exit(0)


if __name__ == "__main__":
    main()
