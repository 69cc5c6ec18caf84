"""Finds the location in the file of a problem that the core reports about the whole definition."""

from __future__ import annotations

from backedge.config.problems import Flaw, Trail
from backedge.config.source import Source, listed
from backedge.core.errors import Place, WorkflowProblem


def flaw_of(problem: str, source: Source) -> Flaw | None:
    """A problem of the core with its place; None if it may only be a consequence of a flaw that is already known."""
    if not isinstance(problem, WorkflowProblem):
        return Flaw((), problem, at_key=True)
    if any(_is_flawed(part, source) for part in problem.depends_on):
        return None
    match problem.at:
        case ("steps", str(step), "needs" | "judges" as word, str(other)):
            return Flaw(_reference(source, step, word, other), problem)
        case ("phases" | "authority" as key, str(item)):
            return Flaw(_item(source.value[key], key, item), problem)
        case ("routes", int(index), *_) if index >= len(source.value.get("routes", ())):
            return Flaw(("profile",), problem)  # the routes of the profile follow those of the file
        case ("steps" | "checks" | "gates" | "kinds", *_) | ("limits",):
            return Flaw(problem.at, problem, at_key=True)
        case _:
            return Flaw(problem.at, problem)


def _is_flawed(part: Place, source: Source) -> bool:
    """Whether a part of the workflow has a flaw of its own, and so was left out."""
    match part:
        case ("steps", str(step)):
            return step in source.flawed
        case ("steps", str(step), str(key)):
            return step in source.flawed and key not in source.value["steps"][step]
        case (str(key),):
            return key in source.flawed_top
        case _:
            return bool(source.flawed or source.flawed_top)


def _reference(source: Source, step: str, word: str, other: str) -> Trail:
    """The trail to where one step names another; to the step itself if it names a group."""
    given = source.value["steps"].get(step, {})
    for key in ("needs", "reviews", "tests") if word == "needs" else ("reviews", "tests"):
        if other in listed(given.get(key)):
            return ("steps", step, *_item(given[key], key, other))
    return ("steps", step)


def _item(given: str | list[str], key: str, item: str) -> Trail:
    """The trail to an item of a list, the last one if it is there twice; to the key if the only item stands without a list."""
    return (key,) if isinstance(given, str) else (key, len(given) - 1 - given[::-1].index(item))
