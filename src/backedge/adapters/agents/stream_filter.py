"""Removes secrets from a stream of bytes, even if one arrives in two pieces.

As a program it runs between an agent and its files: it reads the secrets from stdin, then copies between the descriptors
that its arguments name. It imports only the standard library, so it starts fast. It survives a crash of backedge, so what
an agent prints after that is redacted too.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import sys
from collections.abc import Iterable, Mapping

CHUNK = 64 * 1024
SHORTEST_LINE = 8
"""Characters that one line of a secret must have to be removed on its own."""


def mask(name: str) -> str:
    """The replacement for a secret. It is valid inside a JSON string."""
    return f"[redacted {name}]"


def spellings(secret: bytes) -> set[bytes]:
    """A secret as programs print it: as it is, inside JSON, inside JSON within JSON, and line by line."""
    found = {secret}
    for _ in range(2):
        for each in tuple(found):
            text = each.decode("utf-8", "surrogateescape")
            found |= {_escaped(text, ascii_only) for ascii_only in (True, False)}
    found |= {each.replace(b"/", b"\\/") for each in found}
    lines = re.split(rb"\r?\n", secret)
    if len(lines) > 1:
        found |= {spelt for line in lines if len(line) >= SHORTEST_LINE for spelt in spellings(line)}
    return found


def _escaped(text: str, ascii_only: bool) -> bytes:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogateescape")


def masks(secrets: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """What to replace by what; longest first, so that a secret that contains another is replaced as a whole."""
    found = {spelt: mask(name).encode() for name, secret in secrets.items() for spelt in spellings(secret)}
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


class Stream:
    """Bytes in pieces. A possible beginning of a secret is held back until more arrives."""

    def __init__(self, masks: Mapping[bytes, bytes]) -> None:
        self._masks = masks
        self._secret = re.compile(b"|".join(map(re.escape, masks)))
        self._first = re.compile(b"[" + b"".join(re.escape(each[:1]) for each in masks) + b"]")
        self._longest = max(map(len, masks))
        self._rest = b""

    def fed(self, more: bytes) -> bytes:
        """What is certain so far."""
        text, position, out = self._rest + more, 0, []
        while True:
            found, begun = self._secret.search(text, position), self._beginning(text, position)
            if found is None or found.start() >= begun:
                break
            out += [text[position : found.start()], self._masks[found[0]]]
            position = found.end()
        self._rest = text[begun:]
        return b"".join([*out, text[position:begun]])

    def ended(self) -> bytes:
        """What was held back: it was not the beginning of a secret."""
        rest, self._rest = self._rest, b""
        return self._secret.sub(lambda found: self._masks[found[0]], rest)

    def _beginning(self, text: bytes, position: int) -> int:
        """Where a secret may begin that continues after the end of the text."""
        for found in self._first.finditer(text, max(position, len(text) - self._longest + 1)):
            start = text[found.start() :]
            if any(len(start) < len(secret) and secret.startswith(start) for secret in self._masks):
                return found.start()
        return len(text)


def copy(masks: Mapping[bytes, bytes], pairs: Iterable[tuple[int, int]]) -> None:
    """Copy from each first descriptor to its second one, until all of the first have ended."""
    with selectors.DefaultSelector() as waiting:
        for source, target in pairs:
            waiting.register(source, selectors.EVENT_READ, (Stream(masks), target))
        while waiting.get_map():
            for key, _ in waiting.select():
                stream, target = key.data
                piece = os.read(key.fd, CHUNK)
                _write(target, stream.fed(piece) if piece else stream.ended())
                if not piece:
                    waiting.unregister(key.fd)


def _write(target: int, text: bytes) -> None:
    try:
        while text:
            text = text[os.write(target, text) :]
    except OSError:
        return  # a full disk: go on reading, or the agent would block for ever


def main() -> None:
    # It ends with the agent: when the agent's output ends.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    secrets = {name: bytes.fromhex(value) for name, value in json.load(sys.stdin).items()}
    copy(masks(secrets), [(int(source), int(target)) for source, target in (word.split(":") for word in sys.argv[1:])])


if __name__ == "__main__":
    main()
