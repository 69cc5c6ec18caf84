"""Conditions on artifacts and feedback: `plan:/ui == true`, `not plan:/ui`, `open_loops == 0`, `feedback_from:test > 0`.

A condition compares a value in an artifact, or a number of loops, with a literal. A missing value counts as null: it
equals only null, it is not true, and it is neither greater nor less than anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal

from backedge.core.suggestions import closest
from backedge.core.value import Json, Value
from backedge.core.workflow.values import Missing, Reference, equal, parse_reference

OPEN_LOOPS = "open_loops"
"""The number of open loops of the run."""

COUNTS = ("open_loops_from", "open_loops_to", "feedback_from", "feedback_to")
"""The numbers of loops from a step or to it: those that are open, or all feedback so far. Written `count:step`."""

Operator = Literal["", "not", "==", "!=", "<", "<=", ">", ">=", "in", "contains"]
OPERATORS: tuple[Operator, ...] = ("==", "!=", "<", "<=", ">", ">=", "in", "contains")
_SHAPE = "write `step:/pointer == value`, `step:/pointer` or `not step:/pointer`"
_OTHER_WORDS = {"=": "==", "is": "==", "eq": "==", "ne": "!=", "<>": "!=", "=>": ">=", "=<": "<=", "has": "contains"}
_JOINING = {"and", "or", "&&", "||", "==", "!=", "<", "<=", ">", ">="}
"""A value without quotes may not contain these words: they mean that the user tried to write a second comparison."""


class Condition(Value, frozen=True):
    """One comparison. `of` is None for a number of loops."""

    text: str
    of: Reference | None
    operator: Operator = ""
    """Empty if the value has to be true, "not" if it has to be false."""
    literal: Json = None
    count: str = OPEN_LOOPS
    """Which loops are counted, if `of` is None."""
    step: str = ""
    """The step that these loops come from or go to; empty for all loops."""


def parse_condition(text: str) -> Condition:
    """Parse a condition. Raises ValueError, which names the problem and suggests what to write instead."""
    words = text.split(None, 2)
    if not words:
        raise ValueError(f"the condition is empty: {_SHAPE}")
    if words[0] == "not" and len(words) > 1:
        if len(words) > 2:
            raise ValueError(f"condition {text!r} compares after `not`: use != or the opposite comparison")
        return _condition(text, words[1], "not")
    if len(words) == 1:
        return _condition(text, words[0])
    _condition(text, words[0])
    operator = _operator(text, words[1])
    if len(words) == 2:
        raise ValueError(f"condition {text!r} has nothing after {operator}: give the value to compare with")
    literal = _literal(words[2].strip())
    if literal == words[2].strip() and not _JOINING.isdisjoint(words[2].split()):
        raise ValueError(
            f"condition {text!r} contains a second one: write several as a list, or put the text in quotes"
        )
    if operator == "in" and not isinstance(literal, list | str):
        raise ValueError(f"condition {text!r} has {words[2]} after `in`: expected a list, such as [a, b]")
    return _condition(text, words[0], operator, literal)


def _condition(text: str, word: str, operator: Operator = "", literal: Json = None) -> Condition:
    without_spaces = re.search(r"==|!=|<=|>=|<|>", word)
    if without_spaces:
        raise ValueError(f"condition {text!r} has no space around {without_spaces.group()}: {_SHAPE}")
    count, _, step = word.partition(":")
    if count in COUNTS and not step.startswith("/"):
        if not step:
            raise ValueError(f"condition {text!r} names no step: write `{count}:step`")
        return Condition(text, None, operator, literal, count, step)
    return Condition(text, _value(text, word), operator, literal)


def holds(condition: Condition, value: Json | Missing) -> bool:
    """Whether a condition is met by the value it refers to."""
    if isinstance(value, Missing):
        value = None
    match condition.operator:
        case "":
            return bool(value)
        case "not":
            return not value
        case "==":
            return equal(value, condition.literal)
        case "!=":
            return not equal(value, condition.literal)
        case "in":
            return _contains(condition.literal, value)
        case "contains":
            return _contains(value, condition.literal)
        case _:
            return _comparable(value, condition.literal) and _ORDERS[condition.operator](value, condition.literal)


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}


def _comparable(one: Json, other: Json) -> bool:
    """Whether two values have an order: two numbers, or two texts."""
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return numbers or (isinstance(one, str) and isinstance(other, str))


def _contains(container: Json, item: Json) -> bool:
    if isinstance(container, list):
        return any(equal(each, item) for each in container)
    return isinstance(item, str) and isinstance(container, str | dict) and item in container


def _value(text: str, word: str) -> Reference | None:
    if word == OPEN_LOOPS:
        return None
    try:
        return parse_reference(word)
    except ValueError as error:
        count, _, step = word.partition(":")
        meant = closest(count, COUNTS)
        if meant:
            raise ValueError(f"condition {text!r}: did you mean `{meant}:{step}`?") from error
        raise ValueError(f"condition {text!r}: {error}") from error


def _operator(text: str, word: str) -> Operator:
    if word in OPERATORS:
        return OPERATORS[OPERATORS.index(word)]
    meant = _OTHER_WORDS.get(word.lower()) or closest(word, OPERATORS)
    hint = f"did you mean {meant!r}?" if meant else f"use one of {' '.join(OPERATORS)}"
    raise ValueError(f"condition {text!r} has the unknown operator {word!r}: {hint}")


def _literal(text: str) -> Json:
    """A literal: JSON, text in quotes, a list of bare words, or a bare word."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        pass
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [_literal(each.strip()) for each in text[1:-1].split(",") if each.strip()]
    return text
