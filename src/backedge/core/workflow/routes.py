"""Routes of a workflow: findings with certain words go to a certain phase or step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from backedge.core.errors import WorkflowError
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Value
from backedge.core.workflow.parsing import shown, words


class RouteRule(Value, frozen=True):
    """Findings whose category or text has one of these whole words go to a phase or a step."""

    to: str
    category: tuple[str, ...] = ()
    """Words or phrases, matched against whole words of the category."""
    keywords: tuple[str, ...] = ()
    """Words or phrases, matched against whole words of the description."""
    blockers: int = 0
    """Matches when the verdict has at least this many blocking findings; 0 is off."""


def route_rule(given: object) -> RouteRule:
    """A route: where to, and the words of a category or a description that lead there."""
    known = ("to", "category", "keywords")
    if not isinstance(given, Mapping):
        raise WorkflowError(f"a route is {shown(given)}: expected a mapping with {', '.join(known)}")
    for key in given:
        if key not in known:
            raise WorkflowError(f"a route has the key {key!r}: {did_you_mean(key, known)}")
    to = given.get("to")
    if not isinstance(to, str) or not to or not (given.get("category") or given.get("keywords")):
        raise WorkflowError(f"route {shown(dict(given))}: expected `to`, and `category` or `keywords`")
    category, keywords = (words(f"{key} of the route to {to!r}", given.get(key, ())) for key in known[1:])
    return RouteRule(to, category, keywords)


def route_rules(given: object) -> list[RouteRule]:
    """A list of routes, or a single one."""
    if isinstance(given, Mapping):
        return [route_rule(given)]
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise WorkflowError(f"routes is {shown(given)}: expected a list of routes")
    return [route_rule(each) for each in given]


def wordless_phrases(rule: RouteRule) -> list[str]:
    """What is wrong with the phrases of a route: one without a word in it would match everything, or nothing."""
    return [
        f"a route to {rule.to!r} looks for {phrase!r} in {place}: expected a word"
        for place, phrases in (("category", rule.category), ("keywords", rule.keywords))
        for phrase in phrases
        if not re.search(r"[^\W_]", phrase)
    ]
