"""Plain scalars by the core schema of YAML 1.2: `on`, `off`, `yes` and `no` are text, and so is a date."""

from __future__ import annotations

import math
import re

_NULL = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_BASES = ((re.compile(r"0o[0-7]+"), 8), (re.compile(r"0x[0-9a-fA-F]+"), 16))
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LARGEST = 2**63


def resolved(text: str) -> object:
    """The value of a plain scalar. Raises ValueError, with a sentence, for a number that is too large or not finite."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return _bounded(text, 10)
    for pattern, base in _BASES:
        if pattern.fullmatch(text):
            return _bounded(text, base)
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not math.isfinite(float(text))):
        raise ValueError("is not a finite number: write a number, or false to switch a limit off")
    return float(text) if _FLOAT.fullmatch(text) else text


def text_problem(text: str) -> str:
    """Why a text cannot be used: writing it, or passing it to a program, would fail. Empty if it can."""
    if "\0" in text:
        return "contains a NUL character: remove it"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "contains half of a surrogate pair: write the character itself"
    return ""


def _bounded(digits: str, base: int) -> int:
    # Python refuses to convert very long numbers, so the length is checked first.
    number = int(digits, base) if len(digits) < 70 else _LARGEST
    if not -_LARGEST <= number < _LARGEST:
        raise ValueError("is too large: expected a number of at most 64 bits")
    return number
