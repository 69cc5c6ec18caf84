"""Finds the location in the file of a problem that the core reports about the whole definition."""

from __future__ import annotations

import re

from backedge.config.problems import Flaw, Trail
from backedge.config.source import Source, listed

_REFERENCE = re.compile(r"step '([^']*)'(?: \(phase [^)]*\))? (needs|judges|reads) (?:'([^']*)'|itself)")
_MEASURE = re.compile(r"(check|gate) '([^']*)'")
_LIMIT = re.compile(r"limit '([^']*)' ")
_OF_STEP = re.compile(r"step '([^']*)'")
_SURE = ("does not exist", "itself: remove", "in a circle", "reserved name", "listed twice")
"""Problems that cannot be the consequence of another flaw."""


def flaw_of(problem: str, source: Source) -> Flaw | None:
    """A problem of the core with its location; None if it may only be a consequence of a flaw that is already known."""
    steps = _OF_STEP.findall(problem)
    sure = any(phrase in problem for phrase in _SURE)
    if "nothing bounds this workflow" in problem:
        return None if source.flawed or source.flawed_top - {"steps"} else Flaw(("limits",), problem, at_key=True)
    if "max_steps is" in problem:
        return Flaw(("max_steps",), problem)
    if limit := _LIMIT.match(problem):
        return Flaw(("limits", limit[1]), problem)
    if not sure and _doubtful(problem, source):
        return None
    if reference := _REFERENCE.match(problem):
        step, word, other = reference.groups()
        return Flaw(_reference(source, step, word, other or step), problem, at_key=word == "reads")
    if measure := _MEASURE.match(problem):
        return Flaw((f"{measure[1]}s", measure[2]), problem, at_key=True)
    if "in a circle" in problem:
        first, second = re.split(r": | → |; ", problem)[1:3]
        return Flaw(_reference(source, second, "needs", first), problem)
    if problem.startswith("phase "):
        phase = problem.split("'")[1]
        indexes = [index for index, each in enumerate(source.value["phases"]) if each == phase]
        return Flaw(("phases", indexes[-1]), problem)
    if problem.startswith("authority names"):
        given, who = source.value["authority"], problem.split("'")[1]
        return Flaw(("authority", given.index(who)) if isinstance(given, list) else ("authority",), problem)
    if problem.startswith("agreement is "):
        return Flaw(("agreement",), problem)
    if problem.startswith("kind "):
        return Flaw(("kinds", problem.split("'")[1]), problem, at_key=True)
    if problem.startswith("a route "):
        target = problem.split("'")[1]
        routes = enumerate(source.value.get("routes", ()))
        return Flaw(next((("routes", index, "to") for index, each in routes if each["to"] == target), ()), problem)
    return Flaw(_of_step(steps[0], problem) if steps else (), problem, at_key=True)


def _doubtful(problem: str, source: Source) -> bool:
    """Whether a step that the problem names has a flaw that may have caused it."""
    flawed = source.flawed.intersection(re.findall(r"'([^']*)'", problem))
    if "of the later phase" in problem:
        return "phases" in source.flawed_top or any("phase" not in source.value["steps"][step] for step in flawed)
    return bool(flawed)


def _reference(source: Source, step: str, word: str, other: str) -> Trail:
    """The trail to where one step names another."""
    given = source.value["steps"].get(step, {})
    if word == "reads":
        return ("steps", step, "reads", other)
    for key in ("needs", "reviews", "tests") if word == "needs" else ("reviews", "tests"):
        if other in listed(given.get(key)):
            inside = () if isinstance(given[key], str) else (given[key].index(other),)
            return ("steps", step, key, *inside)
    return ("steps", step)


def _of_step(step: str, problem: str) -> Trail:
    for key in ("passes_if", "limits", "timeout", "when", "repeat", "group"):
        if f"has {key}" in problem or f" {key} " in problem:
            return ("steps", step, key)
    return ("steps", step)
