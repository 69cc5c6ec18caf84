"""The last JSON object in a text, whatever stands around it: log lines, braces, quotes, other objects.

Every opening brace may begin an object. `last_object` tries them from the left, goes on behind what is complete, and
inside what is not. The cost does not grow faster than the text: a brace that was part of the structure of an attempt
that failed fails at the same place, so it is not tried again, and of two attempts that cover the same place one takes
a quote there for the beginning of a string, the other for the end. No place is covered by a third.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

import msgspec

FIRST_WINDOW = 64 * 1024
"""Bytes at the end of a text that are looked at first."""

DEEPEST = 1_000
"""Objects and lists within each other that are followed; nothing reads a deeper one."""

# Control characters are not allowed in JSON strings, but programs print them: they are data. A line end stays what it
# is, for no string goes over the end of its line.
_PRINTED = bytes(0x20 if byte == 0x09 else 0x7F if byte < 0x20 and byte not in b"\n\r" else byte for byte in range(256))

_STRING = rb'"[^"\\\n\r]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\n\r]*+)*+"'
_SCALAR = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+|true|false|null"
_SPACE = rb"[ \n\r]*+"
_MEMBER = _STRING + _SPACE + rb":" + _SPACE + rb"(?:" + _STRING + rb"|" + _SCALAR + rb")" + _SPACE
_FLAT = rb"\{" + _SPACE + rb"(?:" + _MEMBER + rb"(?:," + _SPACE + _MEMBER + rb")*+)?+\}"
"""An object without anything inside its members: read in one piece, since the expression does it at the speed of C."""

_TOKEN = re.compile(
    _SPACE + rb"(?:(?P<string>" + _STRING + rb")|(?P<scalar>" + _SCALAR + rb"|" + _FLAT + rb")|(?P<mark>[{}\[\]:,]))"
)
_FLAT_ONES = re.compile(rb"(?:(" + _FLAT + rb")[^{]*+)++")
"""Objects one after the other, and what stands between them; the group is the last."""

_BRACE = re.compile(rb"\{(?=" + _SPACE + rb"(?:\}|" + _STRING + _SPACE + rb":))")
"""A brace that may begin an object."""

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
"""What may follow, by what is expected: the grammar of JSON without its brackets, which the stack keeps."""


class Span(NamedTuple):
    start: int
    end: int


class Unreadable(ValueError):
    """The text cannot be searched for an object: it ends inside one, or nests too deeply."""


def last_object(text: bytes) -> Span | None:
    """Where the last complete object is that is not part of a larger one; None if there is none.

    Raises Unreadable if the text ends inside an object that has begun with a key: what is complete inside that one, or
    stands before it, is not what the program meant to say last.
    """
    text = text.translate(_PRINTED)
    window = FIRST_WINDOW
    while window < len(text):
        # The outcome usually stands at the end. No string goes over the end of a line, so a line is a place to begin.
        start = text.find(b"\n", len(text) - window) + 1
        with suppress(Unreadable):
            best = _last_from(text, start) if start else None
            if best is not None and _stands_alone(text, best):
                return best
        window *= 8
    return _last_from(text, 0)


def _last_from(text: bytes, start: int) -> Span | None:
    """The last object, as far as it can be told from a place on."""
    best: Span | None = None
    hopeless: set[int] = set()
    brace = _BRACE.search(text, start)
    while brace is not None:
        place, end = brace.start(), None
        if place in hopeless:
            hopeless.discard(place)
        elif flat := _FLAT_ONES.match(text, place):
            best, end = Span(*flat.span(1)), flat.end()
        else:
            end = _line_end(text, place) or _walked(text, place, hopeless)
            best = best if end is None else Span(place, end)
        brace = _BRACE.search(text, place + 1 if end is None else end)
    return best


def _stands_alone(text: bytes, span: Span) -> bool:
    """Whether no object that began on an earlier line can contain this one: what stands before it on its line could
    not go on with one, or no value could follow there."""
    place = text.rfind(b"\n", 0, span.start) + 1
    while token := _TOKEN.match(text, place):
        if token.start(token.lastgroup or 0) >= span.start:
            before = text[max(0, span.start - FIRST_WINDOW) : span.start].rstrip()
            return bool(before) and before[-1:] not in (b":", b",", b"[")
        place = token.end()
        if place > span.start:
            return False  # it stands in a string
    return not _CUT.match(text, place)


def _line_end(text: bytes, start: int) -> int | None:
    """The end of an object that has a line of its own: the usual case, read at the speed of C."""
    if start and text[start - 1] != 0x0A:
        return None
    end = text.find(b"\n", start)
    line = text[start : end if end >= 0 else len(text)].rstrip()
    if not line.endswith(b"}"):
        return None
    try:
        msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return None
    return start + len(line)


def _walked(text: bytes, start: int, hopeless: set[int]) -> int | None:
    """The end of the object that begins at a place. If there is none, the open braces on the way are hopeless too."""
    stack = [(b"{", start)]
    expected, place, has_key = b"first key", start + 1, False
    while token := _TOKEN.match(text, place):
        kind = token.lastgroup or ""
        word = token[kind]
        follows = _EXPECTED[expected].get(word if kind == "mark" else kind)
        if follows is None:
            break
        place = token.end()
        if follows == b"close":
            if stack[-1][0] != (b"{" if word == b"}" else b"["):
                break
            stack.pop()
            if not stack:
                return place
            follows = b"more"
        elif follows == b"next":
            follows = b"key" if stack[-1][0] == b"{" else b"value"
        elif word in (b"{", b"[") and kind == "mark":
            stack.append((word, place - 1))
            if len(stack) > DEEPEST:
                raise Unreadable(f"the object at byte {start} has more than {DEEPEST:,} levels")
        has_key = has_key or word == b":"
        expected = follows
    else:
        if has_key and _CUT.match(text, place):
            raise Unreadable(f"the text ends inside the object that begins at byte {start}")
    hopeless.update(begun for bracket, begun in stack[1:] if bracket == b"{")
    return None
