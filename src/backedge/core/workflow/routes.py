"""The routes of a workflow: findings with certain words go to a certain phase or step.

Each criterion of a route is one field of `RouteRule` and one line of `matches`. The parser below, for the workflow file
and for Python, and the published schema of the file are derived from the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, get_type_hints

from backedge.core.errors import WorkflowError, WorkflowProblem
from backedge.core.model import Finding
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Value, replace
from backedge.core.workflow.parsing import shown, words


class RouteKey(Value, frozen=True):
    """A key of a route that takes words or phrases."""

    meaning: str
    """One sentence, for people who write a workflow file."""
    example: str


class RouteRule(Value, frozen=True):
    """Findings that contain one of these words go to a phase or a step."""

    to: str
    category: Annotated[tuple[str, ...], RouteKey("Whole words of the finding's category.", "security")] = ()
    keywords: Annotated[tuple[str, ...], RouteKey("Whole words of the finding's description.", "password")] = ()
    blockers: int = 0
    """Only in profiles: matches when the verdict has at least this many blocking findings; 0 is off."""


ROUTE_KEYS: dict[str, RouteKey] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(RouteRule, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
"""The keys of a route, in addition to `to`."""
_EITHER = " or ".join(f"`{key}`" for key in ROUTE_KEYS)


def matches(rule: RouteRule, finding: Finding, blockers: int) -> bool:
    """Whether a route applies to a finding; `blockers` counts the blocking findings of its verdict."""
    if rule.blockers:
        return blockers >= rule.blockers
    return has_words(finding.category, rule.category) or has_words(finding.description, rule.keywords)


def has_words(text: str, phrases: Iterable[str]) -> bool:
    """Whether one of the phrases occurs as whole words. The empty phrase matches every text."""
    found = f" {' '.join(_words(text))} "
    return any(not phrase or f" {' '.join(_words(phrase))} " in found for phrase in phrases)


def _words(text: str) -> list[str]:
    # camelCase and snake_case are words too: a category is often an identifier.
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.findall(r"[^\W_]+", spaced.lower())


def parse_routes(given: object) -> tuple[RouteRule, ...]:
    """A list of routes, or a single one. Raises WorkflowError with the problems of all of them."""
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise WorkflowError(f"routes is {shown(given)}: expected a list of routes")
    found, problems = list[RouteRule](), list[str]()
    for index, each in enumerate(given):
        try:
            found.append(parse_route(each))
        except WorkflowError as error:
            problems += (WorkflowProblem(problem, ("routes", index, "to")) for problem in error.problems)
    if problems:
        raise WorkflowError(tuple(problems))
    return tuple(found)


def parse_route(given: object) -> RouteRule:
    """A route: its target, and the words that lead there. Raises WorkflowError."""
    known = ("to", *ROUTE_KEYS)
    if not isinstance(given, Mapping):
        raise WorkflowError(f"a route is {shown(given)}: expected a mapping with {', '.join(known)}")
    for key in given:
        if key not in known:
            raise WorkflowError(f"a route has the key {key!r}: {did_you_mean(key, known)}")
    to = given.get("to")
    if not isinstance(to, str) or not to:
        raise WorkflowError(f"a route has `to` {shown(to)}: expected the name of a step or a phase")
    phrases = {key: words(f"{key} of the route to {to!r}", given.get(key, ())) for key in ROUTE_KEYS}
    if not any(phrases.values()):
        raise WorkflowError(f"a route to {to!r} matches nothing: give it {_EITHER}")
    # A phrase without a letter or a digit would match everything, or nothing.
    problems = [
        f"a route to {to!r} looks for {phrase!r} in {key}: expected a word"
        for key, each in phrases.items()
        for phrase in each
        if not _words(phrase)
    ]
    if problems:
        raise WorkflowError(tuple(problems))
    return replace(RouteRule(to), **phrases)
