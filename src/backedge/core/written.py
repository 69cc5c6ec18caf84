"""What a user wrote, read as the values that a definition is made of. Each error names the field, what was got and what
was expected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from backedge.core.errors import WorkflowError
from backedge.core.near import nearest
from backedge.core.profiles import RouteRule
from backedge.core.workflow import PASS_RULES, PassRule, Workflow

LONGEST = 80
"""How many characters of a wrong value an error shows."""


def words(field: str, given: object) -> tuple[str, ...]:
    """One word or several."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        found = tuple(given)
        if all(isinstance(word, str) for word in found):
            return found
    raise WorkflowError(f"{field} is {shown(given)}: expected text, or a list of texts")


def mapping(field: str, given: object) -> dict[str, object]:
    """Values by name; none at all for None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise WorkflowError(f"{field} is {shown(given)}: expected a mapping from names to values")
    return dict(given)


def pointers(producer: str, given: object) -> tuple[str, ...]:
    """The parts of a producer's output, as JSON pointers."""
    found = words(f"reads of {producer!r}", given)
    for pointer in found:
        if pointer and not pointer.startswith("/"):
            raise WorkflowError(f"it reads {pointer!r} of {producer!r}: expected a JSON pointer, such as '/{pointer}'")
    return found


def pass_rule(given: object) -> PassRule | None:
    """A pass rule: a name, or how many findings of each severity still pass."""
    if given is None:
        return None
    if isinstance(given, str):
        return PassRule(name=given)
    if not isinstance(given, Mapping) or not given:
        got = "empty" if isinstance(given, Mapping) else shown(given)
        raise WorkflowError(f"passes_if is {got}: name one of {', '.join(PASS_RULES)}, or counts per severity")
    return PassRule(at_most=tuple(given.items()))


def route_rule(given: object) -> RouteRule:
    """A route: where to, and the words of a category or a description that lead there."""
    known = ("to", "category", "keywords")
    if not isinstance(given, Mapping):
        raise WorkflowError(f"a route is {shown(given)}: expected a mapping with {', '.join(known)}")
    for key in given:
        if key not in known:
            raise WorkflowError(f"a route has the key {key!r}: {nearest(key, known)}")
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


def wordless(rule: RouteRule) -> list[str]:
    """What is wrong with the phrases of a route: one without a word in it would match everything, or nothing."""
    return [
        f"a route to {rule.to!r} looks for {phrase!r} in {place}: expected a word"
        for place, phrases in (("category", rule.category), ("keywords", rule.keywords))
        for phrase in phrases
        if not re.search(r"[^\W_]", phrase)
    ]


def read_back(workflow: Workflow) -> Workflow:
    """The workflow as a journal gives it back: a run keeps its definition, so what cannot be read must not be written."""
    try:
        return msgspec.json.decode(msgspec.json.encode(workflow), type=Workflow)
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError, OverflowError) as error:
        what, _, place = str(error).partition(" - at ")
        field = place.strip("`").removeprefix("$.") or "the definition"
        raise WorkflowError(f"{field} cannot be written and read back: {what}") from error


def shown(given: object) -> str:
    """A value for an error, cut short."""
    try:
        text = repr(given)
    except ValueError:  # a number with more digits than Python likes to write
        text = f"a very large {type(given).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
