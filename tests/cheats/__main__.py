"""`python -m tests.cheats` runs all cases, or those that are named, and prints a table."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.cheats.case import Case, Family, Verdict
from tests.cheats.registry import CASES
from tests.cheats.running import Result, is_there, run_case


def chosen(names: Sequence[str]) -> list[Case]:
    """The cases whose name or family contains one of the words; all without words."""
    return [each for each in CASES if not names or any(word in each.name or word in each.family for word in names)]


def row(result: Result, wide: int) -> str:
    case = result.case
    mark = " " if result.ok else "!"
    return f"{mark} {case.family:<19} {case.name:<{wide}} {result.verdict:<8} {result.seconds:5.1f} s  {result.detail}"


def summary(results: Sequence[Result]) -> str:
    there = [each for each in results if each.verdict is not Verdict.MISSING]
    cheats = [each for each in there if not each.case.is_control]
    controls = [each for each in there if each.case.is_control]
    caught = sum(each.verdict is Verdict.CAUGHT for each in cheats)
    return f"caught {caught} of {len(cheats)}, controls {sum(each.ok for each in controls)} of {len(controls)}"


def by_family(results: Sequence[Result]) -> list[str]:
    lines = []
    for family in Family:
        found = [each.verdict for each in results if each.case.family is family]
        counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in Verdict if verdict in found)
        lines += [f"  {family:<19} {len(found):3}  {counts}"] if found else []
    return lines


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cheats", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names or families; all cases if there are none")
    parser.add_argument("--sandbox", choices=("auto", "bwrap", "off"), default="", help="write this into each workflow")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4), help="cases at once")
    parser.add_argument("--keep", action="store_true", help="keep the folders, and name them")
    parser.add_argument("--list", action="store_true", help="list the cases and what is expected of them")
    options = parser.parse_args(words)
    cases = chosen(options.names)
    if not cases:
        parser.error(f"no case has {' or '.join(options.names)} in its name or family: --list names them")
    if options.sandbox and not is_there("sandbox:"):
        parser.error("this version of backedge has no key `sandbox`")
    wide = max(len(each.name) for each in cases)
    if options.list:
        for each in cases:
            expected = each.expected(options.sandbox == "bwrap")
            print(
                f"{each.family:<19} {each.name:<{wide}} {expected:<8} {each.says}{each.reason and f' ({each.reason})'}"
            )
        return 0
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda case: run_case(case, options.sandbox, options.keep), cases):
            results.append(result)
            print(row(result, wide), flush=True)
    print("\nmarked !: worse than expected")
    print("\n".join(by_family(results)))
    print(summary(results))
    return 0 if all(each.ok for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
