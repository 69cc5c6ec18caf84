"""What a command reports: its outcome file or, if there is none, the last JSON object on its stdout.

A command that says one verdict in the file and another one on stdout has not judged: that is an error. So is a pass that
comes after a fail on stdout: a reviewer that shows what it judges may print a verdict that is part of it.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NoReturn

import msgspec

from backedge.adapters.agents.outcome_text import Unreadable, last_object
from backedge.adapters.agents.regular_file import NotAFile, opened
from backedge.core.errors import AgentError
from backedge.core.text import clean, one_line
from backedge.core.value import Json
from backedge.engine.protocol import parse_outcome
from backedge.engine.unique_keys import duplicate_key

TAIL = 16 * 1024 * 1024
"""How many bytes at the end of stdout are searched for the outcome."""


MOST_BEFORE = 256 * 1024
MOST_FAILS, MOST_BRACES = 50, 100
"""How large an outcome before the last one may be, how many of them are looked at, and how many braces may be in front of the
verdict of one."""
_FAILS = re.compile(rb'"verdict"\s*:\s*"\s*fail\s*"', re.IGNORECASE)
_DECODER = json.JSONDecoder(strict=False)


class NoOutcome(AgentError):
    """There is no outcome, or only the beginning of one."""


def reported(file: Path, stdout: Path, most: int) -> tuple[Json, bool]:
    """The JSON that a command reported, and whether it was in the file. Raises AgentError if there is none."""
    if file.is_symlink() and not file.resolve().is_relative_to(file.parent.resolve()):
        raise AgentError("the outcome file is a link that leads out of its folder: write a regular file there")
    text = content(file, most, "the outcome file")
    if text is not None and text.strip():
        filed = parsed(text, "the outcome file")
        _require_one_verdict(filed, stdout, most)
        return filed, True
    return _printed(stdout, most), False


def _require_one_verdict(filed: Json, stdout: Path, most: int) -> None:
    """Raises AgentError if an outcome on stdout has another verdict than the one in the file."""
    if not isinstance(filed, dict) or not isinstance(verdict := filed.get("verdict"), str):
        return
    try:
        printed = _verdict(_printed(stdout, most))
    except AgentError:
        return  # anything else on stdout is a log
    if printed is not None and printed != verdict.strip().lower():
        raise AgentError(
            f"two outcomes contradict each other: the outcome file says {excerpt(verdict)}, stdout says {printed!r}; "
            "report the verdict once"
        )


def require_unique_keys(text: str | bytes, what: str) -> None:
    """Raises AgentError for a key that an object has twice: nobody can say which of the two was meant."""
    twice = duplicate_key(text)
    if twice is not None:
        raise AgentError(f"{what} has the key {excerpt(twice)} twice in one object: write every key once")


MOST_DIGITS = 300
"""Digits of one whole number: with more it would not fit a floating-point number either."""


def parsed(text: bytes, what: str) -> Json:
    """JSON as programs write it: invalid UTF-8 is replaced, control characters in strings are data. Raises NoOutcome,
    naming the position, for anything else that is not JSON, and AgentError for a key that an object has twice."""
    readable = text.decode("utf-8-sig", "replace")
    require_unique_keys(readable, what)
    try:
        return msgspec.json.decode(readable)
    except RecursionError:
        raise NoOutcome(f"{what} is nested too deeply: write flatter JSON") from None
    except (msgspec.DecodeError, msgspec.ValidationError):
        pass
    try:
        value = json.loads(readable, strict=False, parse_constant=_refused, parse_int=_whole)
        # Half a surrogate pair cannot be encoded again.
        return msgspec.json.decode(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))
    except RecursionError:
        raise NoOutcome(f"{what} is nested too deeply: write flatter JSON") from None
    except ValueError as error:
        shown = excerpt(readable)
        raise NoOutcome(f"{what} is not JSON: {error}; got {shown}; write one complete JSON object") from error


def content(path: Path, most: int, what: str) -> bytes | None:
    """A file that a program wrote; None if there is none. Raises AgentError if it is not a regular file or too large."""
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise AgentError(f"{what} has {size:,} bytes, at most {most:,} are read: write large results to files")
            return file.read(most)
    except FileNotFoundError:
        return None
    except NotAFile as error:
        raise AgentError(f"{what} is not a regular file: write one") from error
    except OSError as error:
        raise AgentError(f"{what} cannot be read: {error.strerror}; make it readable") from error


def tail(path: Path, most: int) -> tuple[bytes, bool]:
    """The end of a file, and whether there is more before it."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            return file.read(most), size > most
    except FileNotFoundError:
        return b"", False


def last_lines(text: bytes, most: int = 10, longest: int = 2_000) -> str:
    """The end of what a program printed, safe to show."""
    lines = [line.rstrip() for line in clean(text[-4 * longest :].decode("utf-8", "replace")).splitlines()]
    return "\n".join([line for line in lines if line][-most:])[-longest:]


def excerpt(text: str) -> str:
    """The beginning of a text, safe to quote in an error."""
    line = one_line(text[:4_000])
    return "nothing" if not line else repr(line if len(line) <= 200 else f"{line[:200]}…")


def _printed(stdout: Path, most: int) -> Json:
    end, cut = tail(stdout, TAIL)
    text = end[end.find(b"\n") + 1 :] if cut else end
    try:
        span = last_object(text)
        if span is None and cut:
            # The first line is cut off: it counts only if nothing follows it.
            text, span = end, last_object(end)
    except Unreadable as error:
        raise NoOutcome(f"stdout cannot be read as an outcome: {error}; write one complete JSON object") from None
    if span is None:
        raise NoOutcome(
            "no outcome: expected JSON in $BACKEDGE_OUTCOME or as the last object on stdout; "
            f"got {excerpt(text.decode('utf-8', 'replace')) if not cut else f'{TAIL:,} bytes and more without one'}"
        )
    if cut and text[span.end :].lstrip()[:1] in (b",", b"]", b"}"):
        raise NoOutcome(f"the outcome on stdout has more than {TAIL:,} bytes: write large results to files")
    if span.end - span.start > most:
        raise AgentError(f"the outcome has {span.end - span.start:,} bytes: at most {most:,} are read")
    found = parsed(text[span.start : span.end], "the last object on stdout")
    verdict = _verdict(found)
    if verdict not in (None, "fail") and _failed_before(text[: span.start]):
        raise AgentError(
            f"two outcomes contradict each other: stdout says 'fail' first and {excerpt(str(verdict))} at the end; write the "
            "outcome to $BACKEDGE_OUTCOME, or print nothing else that looks like one"
        )
    return found


def _failed_before(text: bytes) -> bool:
    """Whether an outcome in a text says fail, and why: one that begins a line. What is around it hides nothing."""
    for found in islice(_FAILS.finditer(text), MOST_FAILS):
        start = found.start()
        for _ in range(MOST_BRACES):
            start = text.rfind(b"{", 0, start)
            if start < 0:
                break
            if not start or text[start - 1] in b"\r\n":
                with suppress(ValueError, RecursionError):
                    part = text[start : start + MOST_BEFORE].decode("utf-8", "replace")
                    if _fails(_DECODER.raw_decode(part)[0]):
                        return True
                break
    return False


def _fails(value: Json) -> bool:
    return _verdict(value) == "fail" and isinstance(value, dict) and bool(value.get("findings") or value.get("summary"))


def _verdict(value: Json) -> str | None:
    """What an outcome says; None if it is not an outcome, or has no verdict."""
    if not isinstance(value, dict) or not isinstance(value.get("verdict"), str):
        return None
    try:
        return parse_outcome(value).verdict
    except AgentError:
        return None


def _whole(digits: str) -> int:
    # Python refuses to convert very many digits, and its message would not help.
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits, at most {MOST_DIGITS} are read: write it as text")
    return int(digits)


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number in JSON")
