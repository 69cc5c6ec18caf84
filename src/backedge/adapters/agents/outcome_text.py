"""The last JSON object in a text, whatever surrounds it: log lines, braces, quotes, other objects.

A brace followed by a key begins an object. One that is not JSON is skipped as a whole, as far as brackets and quotes show
where it ends: nothing inside it counts as an object of its own. If nothing follows it, it is the program's last object, and
cannot be read. An object at the beginning of a line, where no value of another object could be, is a fresh start, whatever
was left open before: log lines are often cut off. No position is read twice, so the cost is linear.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import NamedTuple, NoReturn

import msgspec

FIRST_WINDOW = 64 * 1024
"""How many bytes at the end of a text are searched first."""

SHORT_LINE = 4 * 1024
"""Bytes of a line that may be read more than once."""

DEEPEST = 1_000
"""How deeply objects and lists may be nested; nothing could read a deeper one."""

# Control characters are not allowed in JSON strings, but programs print them: they are data. Line ends stay, since no
# string goes over the end of its line.
_PRINTED = bytes(0x20 if byte == 0x09 else 0x7F if byte < 0x20 and byte not in b"\n\r" else byte for byte in range(256))

_STRING = rb'"[^"\\\n\r]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\n\r]*+)*+"'
_SCALAR = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+|true|false|null"
_SPACE = rb"[ \n\r]*+"
_MEMBER = _STRING + _SPACE + rb":" + _SPACE + rb"(?:" + _STRING + rb"|" + _SCALAR + rb")" + _SPACE
_FLAT = rb"\{" + _SPACE + rb"(?:" + _MEMBER + rb"(?:," + _SPACE + _MEMBER + rb")*+)?+\}"
"""An object without nested values: the expression reads it in one piece, at the speed of C."""

_TOKEN = re.compile(
    _SPACE + rb"(?:(?P<string>" + _STRING + rb")|(?P<scalar>" + _SCALAR + rb"|" + _FLAT + rb")|(?P<mark>[{}\[\]:,]))"
)
_FLAT_ONES = re.compile(rb"(?:(" + _FLAT + rb")[^{]*+)++")
"""Several objects and what is between them; the group is the last object."""

_BEGINNING = rb"\{(?=" + _SPACE + rb"(?:\}|" + _STRING + _SPACE + rb":))"
_BRACE = re.compile(_BEGINNING)
"""A brace that may begin an object."""
_LINE_START = re.compile(rb"(?:\A|(?<=[\n\r]))" + _BEGINNING)
"""One that begins a line."""

_LOOSE = re.compile(rb'"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+"|[{}\[\]]')
"""A string with any escapes, or a bracket: these show where something ends that is not JSON."""
_BRACKET = re.compile(rb"[{}\[\]]")

_CUT = re.compile(
    rb"""[ \n\r]*+(?:"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+\\?|-?[0-9.eE+-]*|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?)?\Z"""
)
"""Nothing more, or the beginning of a token that the end of the text cut off."""

_EXPECTED: dict[bytes, dict[bytes | str, bytes]] = {
    b"first key": {"string": b"colon", b"}": b"close"},
    b"key": {"string": b"colon"},
    b"colon": {b":": b"value"},
    b"value": {"string": b"more", "scalar": b"more", b"{": b"first key", b"[": b"first item"},
    b"first item": {"string": b"more", "scalar": b"more", b"{": b"first key", b"[": b"first item", b"]": b"close"},
    b"more": {b",": b"next", b"}": b"close", b"]": b"close"},
}
"""What may follow in each state: the grammar of JSON without the brackets, which are on the stack."""


class ByteSpan(NamedTuple):
    start: int
    end: int


class Unreadable(ValueError):
    """The text cannot be searched for an object: it ends inside one, or nests too deeply."""


def last_object(text: bytes) -> ByteSpan | None:
    """Where the last object is that is not part of a larger one; None if there is none.

    Raises Unreadable if that one is not JSON, or the text ends inside it: a complete object inside it, or before it, is
    not the program's last object.
    """
    text = text.translate(_PRINTED)
    window = FIRST_WINDOW
    while window < len(text):
        # The outcome is usually at the end, and a fresh start does not depend on what is before it.
        start = _next_start(text, len(text) - window)
        with suppress(Unreadable):
            best = _last_from(text, start) if start is not None else None
            if best is not None and not _has_stray_end(text, best.end):
                return best
        window *= 8
    return _last_from(text, 0)


def _last_from(text: bytes, start: int) -> ByteSpan | None:
    """The last object after a position."""
    best: ByteSpan | None = None
    broken: int | None = None
    brace = _BRACE.search(text, start)
    while brace is not None:
        position = brace.start()
        if flat := _FLAT_ONES.match(text, position):
            best, end = ByteSpan(*flat.span(1)), flat.end()
        elif whole := _line_end(text, position):
            best, end = ByteSpan(position, whole), whole
        else:
            complete, end = _walked(text, position)
            best, broken = (ByteSpan(position, end), broken) if complete else (None, position)
        brace = _BRACE.search(text, end)
    # A closing bracket without an opening one after the object belongs to something that was open before it.
    if broken is not None and (best is None or _has_stray_end(text, best.end)):
        raise Unreadable(f"the object that begins at byte {broken} is not JSON: {_fault(text, broken)}")
    return best


def _next_start(text: bytes, position: int) -> int | None:
    """Where the next object begins at the start of a line, where no value of another object could be."""
    found = _LINE_START.search(text, position)
    while found is not None and not _is_fresh_start(text, found.start()):
        found = _LINE_START.search(text, found.end())
    return None if found is None else found.start()


def _is_fresh_start(text: bytes, position: int) -> bool:
    before = position - 1
    while before >= 0 and text[before] in b" \n\r":
        before -= 1
    return before < 0 or text[before] not in b":,["


def _has_stray_end(text: bytes, position: int) -> bool:
    depth = 0
    for bracket in _BRACKET.finditer(text, position):
        depth += 1 if bracket[0] in b"{[" else -1
        if depth < 0:
            return True
    return False


def _fault(text: bytes, start: int) -> str:
    """What is wrong with an object, and where in it."""
    try:
        json.JSONDecoder(parse_constant=_refused).raw_decode(text[start:].decode("utf-8", "replace"))
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:
        return str(error)
    return "other programs could not read it"


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number in JSON")


def _line_end(text: bytes, start: int) -> int | None:
    """The end of an object that goes to the end of its line: the usual case, read at the speed of C."""
    alone = not start or text[start - 1] == 0x0A
    # On a long line that has more than one, the same text would be copied again and again.
    end = text.find(b"\n", start, len(text) if alone else start + SHORT_LINE)
    if end < 0 and not alone and len(text) - start > SHORT_LINE:
        return None
    line = text[start : end if end >= 0 else len(text)].rstrip()
    if not line.endswith(b"}"):
        return None
    try:
        msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None
    return start + len(line)


def _walked(text: bytes, start: int) -> tuple[bool, int]:
    """Whether there is a valid object at a position, and where it ends."""
    stack = [b"{"]
    expected, position, has_key = b"first key", start + 1, False
    while token := _TOKEN.match(text, position):
        kind = token.lastgroup or ""
        word = token[kind]
        follows = _EXPECTED[expected].get(word if kind == "mark" else kind)
        if follows is None:
            break
        if follows == b"close":
            if stack[-1] != (b"{" if word == b"}" else b"["):
                break
            stack.pop()
            if not stack:
                return True, token.end()
            follows = b"more"
        elif follows == b"next":
            follows = b"key" if stack[-1] == b"{" else b"value"
        elif word in (b"{", b"[") and kind == "mark":
            stack.append(word)
            if len(stack) > DEEPEST:
                raise Unreadable(f"the object at byte {start} has more than {DEEPEST:,} levels")
        position = token.end()
        has_key = has_key or word == b":"
        expected = follows
    else:
        if has_key and _CUT.match(text, position):
            raise Unreadable(f"the text ends inside the object that begins at byte {start}")
    return False, _loose_end(text, position, len(stack))


def _loose_end(text: bytes, position: int, depth: int) -> int:
    """Where something ends that is not JSON: at its last bracket, or at a fresh start."""
    for part in _LOOSE.finditer(text, position):
        if part[0] == b"{" and _LINE_START.match(text, part.start()) and _is_fresh_start(text, part.start()):
            return part.start()
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(part[0], 0)
        if depth == 0:
            return part.end()
    return len(text)
