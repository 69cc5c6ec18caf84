"""Draws the walk of one failing verdict: which files and functions it passes before the second attempt starts.

    python tools/draw_walk.py            a table of files, with the functions called in each
    python tools/draw_walk.py --path     every switch from one file to another, in order

It counts calls of functions in core/ and engine/, from the moment a reviewer's agent returns a failing verdict to the
moment the reworking agent is called. Fewer files and switches mean less to keep in mind. Comprehensions and lambdas
count as part of their function; a switch is a call into another file than the call before it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import backedge as be

PACKAGE = Path(be.__file__).parent
ROOMS = ("core", "engine")
NESTED = ("<listcomp>", "<genexpr>", "<lambda>", "<dictcomp>", "<setcomp>")


class Walk:
    """The calls between the verdict and the rework."""

    def __init__(self) -> None:
        self.on = False
        self.files: Counter[str] = Counter()
        self.functions: set[str] = set()
        self.path: list[str] = []

    def __call__(self, frame: FrameType, what: str, _: object) -> None:
        code = frame.f_code
        if not self.on or what != "call" or code.co_name in NESTED:
            return
        file = Path(code.co_filename)
        name = file.relative_to(PACKAGE).with_suffix("").as_posix() if PACKAGE in file.parents else ""
        if not name.startswith(ROOMS):
            return
        self.files[name] += 1
        self.functions.add(f"{name}:{code.co_qualname}")
        if not self.path or self.path[-1] != name:
            self.path.append(name)


def walked() -> Walk:
    walk = Walk()

    async def plan(_: be.Briefing) -> str:
        return "a plan"

    async def code(brief: be.Briefing) -> str:
        if brief.attempt > 1:
            walk.on = False
        return f"version {brief.attempt}"

    async def review(brief: be.Briefing) -> be.Outcome:
        if brief.attempt > 1:
            return be.passed()
        walk.on = True
        return be.failed(be.Finding("no title", affected_phase="code", suggested_fix="add one"))

    workflow = be.Workflow(
        "walk",
        [
            be.Step("plan", plan, phase="planning"),
            be.Step("code", code, phase="code", needs="plan"),
            be.Step("review", review, reviews="code"),
        ],
    )

    async def scenario() -> Any:
        async with be.Engine() as engine:
            return await (await engine.start(workflow)).result()

    sys.setprofile(walk)
    try:
        report = asyncio.run(scenario())
    finally:
        sys.setprofile(None)
    assert report.outcome == "verified", report.outcome
    return walk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", action="store_true", help="every switch, in order")
    path = parser.parse_args().path
    walk = walked()
    if path:
        print(" → ".join(walk.path))
    else:
        for file, calls in walk.files.most_common():
            names = sorted(each.partition(":")[2] for each in walk.functions if each.startswith(f"{file}:"))
            print(f"{file:36} {calls:4} calls  {', '.join(names)}")
    print(f"{len(walk.files)} files, {len(walk.functions)} functions, {len(walk.path) - 1} switches between files")


if __name__ == "__main__":
    main()
