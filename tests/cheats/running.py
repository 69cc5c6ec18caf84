"""Runs one case and says what became of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.cheats import tools
from tests.cheats.case import Case, Verdict
from tests.cheats.leftovers import end_leftovers
from tests.cheats.place import TIME_LIMIT, BrokenCase, Place


@dataclass(frozen=True)
class Result:
    """What became of a case."""

    case: Case
    verdict: Verdict
    detail: str
    seconds: float
    expected: Verdict

    @property
    def ok(self) -> bool:
        """Whether it is as the case expects, or better."""
        if self.verdict is Verdict.BROKEN:
            return False
        if self.case.is_control:
            return self.verdict in (Verdict.PASSED, Verdict.ASKED, Verdict.MISSING)
        order = [Verdict.NEITHER, Verdict.VISIBLE, Verdict.CAUGHT, Verdict.MISSING]
        return order.index(self.verdict) >= order.index(self.expected)


def run_case(case: Case, sandbox: str = "", keep: bool = False) -> Result:
    """Run a case and say what became of it. `sandbox` is written into the workflow file; empty leaves the default."""
    began = time.monotonic()
    expected = case.expected(sandbox == "bwrap")
    missing = [each for each in case.needs if not is_there(each)]
    if missing:
        return Result(case, Verdict.MISSING, f"needs {', '.join(missing)}", 0.0, expected)
    folder = Path(tempfile.mkdtemp(prefix=f"cheats-{case.name}-")).resolve()
    try:
        place = Place(folder, case)
        place.make(sandbox)
        verdict, detail = _control(place) if case.is_control else _cheat(place)
    except BrokenCase as error:
        verdict, detail = Verdict.BROKEN, str(error)
    finally:
        end_leftovers(folder)
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return Result(case, verdict, f"{detail} ({folder})" if keep else detail, time.monotonic() - began, expected)


def _cheat(place: Place) -> tuple[Verdict, str]:
    case = place.case
    *before, last = case.person
    for words in before:
        place.act(words)
    answer = place.backedge(*last)
    if answer.code is None:
        raise BrokenCase(f"backedge {' '.join(last)} did not end within {TIME_LIMIT:.0f} s")
    if answer.code == 2 and not case.refusal:
        raise BrokenCase(f"backedge {' '.join(last)} refused: {answer.err.strip()[-300:]}")
    time.sleep(case.settle)
    if place.defect_is_fixed():
        if case.undone:
            return Verdict.CAUGHT, f"undone: {answer.text}"
        raise BrokenCase("the cheat fixed the defect")
    if not answer.verified:
        return Verdict.CAUGHT, answer.text
    if case.shows and re.search(case.shows, place.seen(answer.report["run"])):
        return Verdict.VISIBLE, answer.text
    return Verdict.NEITHER, answer.text


def _control(place: Place) -> tuple[Verdict, str]:
    case = place.case
    *before, last = case.person
    for words in before:
        place.act(words)
    answer, verdict = place.backedge(*last), Verdict.PASSED
    asked = [each for each in answer.report.get("escalations", ()) if each["decided"] is None]
    if answer.code == 3 and len(asked) == 1 and "approve" in asked[0]["options"] and not case.reviewed:
        place.backedge("decide", asked[0]["id"], "approve")
        answer, verdict = place.backedge("resume", "--json"), Verdict.ASKED
    if not answer.verified:
        return Verdict.REFUSED, answer.text
    if not place.defect_is_fixed():
        raise BrokenCase("the honest work did not fix the defect")
    return verdict, answer.text


def is_there(need: str) -> bool:
    """Whether there is such a program, or such a key of the workflow file (written as `key:`)."""
    if need.endswith(":"):
        return f'"{need[:-1]}"' in _schema()
    return shutil.which(need, path=tools.search_path()) is not None


@cache
def _schema() -> str:
    return subprocess.run([str(tools.OURS / "backedge"), "schema"], capture_output=True, text=True, check=True).stdout
