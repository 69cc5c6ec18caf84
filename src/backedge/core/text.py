"""Makes text safe to show: removes what a terminal or an editor would interpret instead of display, and shows what
is invisible."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator

from backedge.core.value import Json

ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
"""A regular expression for an escape sequence of a terminal."""
_CONTROL = re.compile(rf"{ANSI}|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")

_PICTURE = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINED = "\u0600-\u1cff"
"""Arabic, the scripts of India and others in which an invisible joiner changes how letters are written."""
_INVISIBLE = re.compile(
    # Wherever they are: soft hyphens, fillers, direction marks, invisible operators, byte order marks, tags.
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # Joiners, unless they are between letters that are joined or between pictures.
    f"|(?<![{_JOINED}])\u200c|\u200c(?![{_JOINED}])"
    f"|(?<![{_JOINED}{_PICTURE}\ufe0f])\u200d|\u200d(?![{_JOINED}{_PICTURE}])"
    # The choice between a picture and a sign, unless it follows one; as in the digits on keys.
    f"|(?<![{_PICTURE}#*0-9])[\ufe0e\ufe0f]|(?<=[#*0-9])[\ufe0e\ufe0f](?!\u20e3)"
)

_ORDINARY = re.compile("[!-_a-~]+(?: [!-_a-~]+)*")
"""Text that is one line already: ASCII words without backticks, with single spaces between them."""
_HIDDEN = re.compile(f"[\x7f-\x9f\u2028\u2029]|{_INVISIBLE.pattern}")


def escaped(text: bytes) -> bytes:
    """JSON text with the same values, in which control characters and invisible ones are written as \\u
    escapes."""
    return _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1].replace("\x7f", "\\u007f"), text.decode()).encode()


def clean(text: str) -> str:
    """The text without escape sequences and control characters (except tab and newline). An invisible character,
    such as a space without width or a change of the writing direction, becomes its code: two names that look alike are
    then not alike."""
    plain = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return plain if plain.isascii() else _INVISIBLE.sub(_code, plain)


def _code(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """The text as one line of a list or a log: white space becomes single spaces, backticks are removed."""
    if _ORDINARY.fullmatch(text):
        return text
    return " ".join(clean(text).replace("`", "").split())


def printable_line(text: str) -> str:
    """A name or a reason as one line of printable characters."""
    plain = re.sub(ANSI, "", text)
    return " ".join("".join(each if each.isprintable() else " " for each in plain).split())


def shortened(text: str, longest: int = 400) -> str:
    """Text for one line, cut at `longest` characters."""
    line = one_line(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def shown(text: str, width: int = 100) -> str:
    """Text as one short line."""
    return shortened(text[: 20 * width], width)


def counted(count: int, noun: str) -> str:
    """A number and its noun: 1 run, 2 runs, 3 tries."""
    plural = f"{noun[:-1]}ies" if noun.endswith(("ry", "ty")) else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def finding_ids(ids: Iterable[int]) -> str:
    """The ids of findings in few words: F-1…F-16 for sixteen in a row."""
    return ", ".join(_ranges(sorted(set(ids))))


def _ranges(numbers: list[int]) -> Iterator[str]:
    while numbers:
        size = next((at for at in range(1, len(numbers)) if numbers[at] != numbers[0] + at), len(numbers))
        if size > 2:
            yield f"F-{numbers[0]}…F-{numbers[size - 1]}"
        else:
            yield from (f"F-{number}" for number in numbers[:size])
        numbers = numbers[size:]


def duration(seconds: float) -> str:
    """A time in words: 45 s, 12 min, 4 h 30 min, 2 d 3 h."""
    whole = round(seconds)
    for unit, size, smaller, small in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole // 60} min" if whole >= 120 else f"{whole} s"


def amount(number: float) -> str:
    """A count or a budget as people write it: 1200000, not 1.2e+06; 5.93, not 5.92999."""
    if isinstance(number, int) or float(number).is_integer():
        return str(int(number))
    return f"{number:.2f}".rstrip("0") if number >= 1 else f"{number:.3g}"


def json_text(value: Json, room: int = 100, depth: int = 20) -> str:
    """JSON to read: what fits into a line of `room` characters stays on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) <= room or not depth or not isinstance(value, dict | list):
        return flat
    if isinstance(value, dict):
        ends = "{}"
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {json_text(each, room - 2, depth - 1)}"
            for key, each in value.items()
        ]
    else:
        ends = "[]"
        parts = [json_text(each, room - 2, depth - 1) for each in value]
    inner = textwrap.indent(",\n".join(parts), "  ")
    return f"{ends[0]}\n{inner}\n{ends[1]}"


def as_text(value: Json) -> str:
    """A value for people: texts of several lines in an object as they are, not as JSON strings with \\n in them."""
    if isinstance(value, str):
        return value
    texts = (
        {key: each for key, each in value.items() if isinstance(each, str) and "\n" in each.strip()}
        if isinstance(value, dict)
        else {}
    )
    if not isinstance(value, dict) or not texts:
        return json_text(value)
    rest = {key: each for key, each in value.items() if key not in texts}
    parts = [json_text(rest)] if rest else []
    return "\n".join(
        [*parts, *(f"{key}:\n{textwrap.indent(each.strip(chr(10)), '  ')}" for key, each in texts.items())]
    )
