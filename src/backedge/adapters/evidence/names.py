"""Paths of files as names that are safe to store and to show, and back again.

A path may hold any byte but NUL: line breaks, text that runs backwards, bytes that are not UTF-8. Its name has only
printable characters, and different paths have different names.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:\\|x([89a-f][0-9a-f])|u\{([0-9a-f]{1,6})\})")


def name_of(path: str) -> str:
    """The name of a path as Python has it, undecodable bytes included. Most paths are their own names."""
    if path.isprintable() and "\\" not in path:
        return path
    return "".join(map(_escaped, path))


def path_of(name: str) -> str:
    """The path that has this name. Text that is not an escape stays as it is."""
    return _ESCAPE.sub(_original, name) if "\\" in name else name


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{{{code:x}}}"


def _original(found: re.Match[str]) -> str:
    raw, code = found.groups()
    if raw:
        return chr(0xDC00 + int(raw, 16))
    if code:
        return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else found[0]
    return "\\"
