"""A patch that `git apply` understands, exact for every file: text, other bytes, links, permissions, odd names."""

from __future__ import annotations

import base64
import os
import zlib
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha1

LONGEST = 100_000
"""Bytes of the longest text whose lines are compared. Comparing long texts takes very long in bad cases."""
_QUOTED = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


@dataclass(frozen=True, slots=True)
class Version:
    """A file at one moment."""

    content: bytes
    """For a link, where it leads."""
    mode: str
    """100644, 100755 or 120000, as git writes it."""


def patch_of(path: str, before: Version | None, after: Version | None) -> bytes:
    """How one file changed; None where there is no file. A path may have undecodable bytes, as Python has them."""
    if before == after:
        return b""
    if before is not None and after is not None and before.mode[:3] != after.mode[:3]:
        return patch_of(path, before, None) + patch_of(path, None, after)  # a file became a link, or the reverse
    old, new = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    lines = [f"diff --git {old} {new}"]
    if before is None and after is not None:
        lines.append(f"new file mode {after.mode}")
    elif after is None and before is not None:
        lines.append(f"deleted file mode {before.mode}")
    elif before is not None and after is not None and before.mode != after.mode:
        lines += [f"old mode {before.mode}", f"new mode {after.mode}"]
    first, second = before.content if before else b"", after.content if after else b""
    head = "".join(f"{line}\n" for line in lines).encode()
    if first == second and before is not None and after is not None:
        return head
    ids = f"{_id(before)}..{_id(after)}"
    if not first and not second:
        return head + f"index {ids}\n".encode()
    if _is_text(first) and _is_text(second):
        names = (old if before else "/dev/null", new if after else "/dev/null")
        return head + f"index {ids}\n".encode() + _unified(first, second, *names)
    return head + f"index {ids}\nGIT binary patch\n".encode() + _literal(second) + _literal(first)


def _is_text(content: bytes) -> bool:
    return len(content) <= LONGEST and b"\0" not in content


def _unified(first: bytes, second: bytes, old: str, new: str) -> bytes:
    # Every byte becomes one character and back: the texts may have any encoding. Only \n ends a line for git.
    before, after = (_lines(content.decode("latin-1")) for content in (first, second))
    made = list(unified_diff(before, after))[2:]
    body = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in made)
    return f"--- {old}{_tab(old)}\n+++ {new}{_tab(new)}\n".encode() + body.encode("latin-1")


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _tab(name: str) -> str:
    """Git ends a name that has spaces with a tab."""
    return "\t" if " " in name and not name.startswith('"') else ""


def _literal(content: bytes) -> bytes:
    """A whole content as git writes it in patches."""
    packed = zlib.compress(content)
    lines = []
    for start in range(0, len(packed), 52):
        piece = packed[start : start + 52]
        length = chr(ord("A") + len(piece) - 1) if len(piece) <= 26 else chr(ord("a") + len(piece) - 27)
        lines.append(length.encode() + base64.b85encode(piece, pad=True))
    return f"literal {len(content)}\n".encode() + b"".join(line + b"\n" for line in lines) + b"\n"


def _id(version: Version | None) -> str:
    """The name of the content as a git object. A patch with other bytes than text needs it whole."""
    if version is None:
        return "0" * 40
    return sha1(b"blob %d\0" % len(version.content) + version.content, usedforsecurity=False).hexdigest()


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes, if it has characters that a line could not hold."""
    raw = os.fsencode(name)
    if all(32 <= byte < 127 and byte not in _QUOTED for byte in raw):
        return name
    parts = (
        f"\\{_QUOTED[byte]}" if byte in _QUOTED else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}" for byte in raw
    )
    return f'"{"".join(parts)}"'
