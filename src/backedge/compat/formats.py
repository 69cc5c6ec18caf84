"""The formats: how each is recognised, and how each is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from backedge.compat.contents import Contents
from backedge.compat.defect_log import read_defects
from backedge.compat.feedback_jsonl import read_feedback
from backedge.compat.iterations import read_progress_document
from backedge.compat.loops_export import LIST, read_loops
from backedge.compat.scratchpad import read_scratchpad
from backedge.core.errors import ImportRefused
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json

Format = Literal["loops", "feedback-jsonl", "defects", "progress", "scratchpad"]
FORMATS: tuple[Format, ...] = get_args(Format)

_DOCUMENTS: dict[str, Callable[[Json], Contents]] = {
    "loops": read_loops,
    "defects": read_defects,
    "progress": read_progress_document,
}
_TEXTS: dict[str, Callable[[str], Contents]] = {"feedback-jsonl": read_feedback, "scratchpad": read_scratchpad}
_ITERATION = re.compile(r"^## Iteration \d+\s*$", re.MULTILINE)


def read(format: str, text: str) -> Contents:
    """Read the text of a file. Raises ImportRefused with every problem and its location."""
    text = text.removeprefix("\ufeff")
    if format in _TEXTS:
        return _TEXTS[format](text)
    if format not in _DOCUMENTS:
        raise ImportRefused(f"format {format!r} is unknown: {did_you_mean(format, FORMATS)}")
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ImportRefused(f"not JSON: {error}") from None
    if format == "loops" and isinstance(document, dict) and LIST not in document:
        raise ImportRefused(f"it has no {LIST!r}: expected an object with the list of loops under that key")
    return _DOCUMENTS[format](document)


def format_of(text: str) -> Format:
    """Recognise the format by keys that only its files have. Raises ImportRefused."""
    text = text.removeprefix("\ufeff")
    if _ITERATION.search(text):
        return "scratchpad"
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        document = None
    first = document[0] if isinstance(document, list) and document else document
    if isinstance(first, dict):
        if document is first and "feedback_loop" in first:
            return "progress"
        if (document is first and LIST in first) or "source_agent" in first:
            return "loops"
        if document is not first and not first.keys().isdisjoint(("injected_phase", "phase_injected")):
            return "defects"
    # A damaged line must be reported, so the other lines decide on the format.
    if any(mark in text for mark in ('"from_node"', '"feedback_type"', '"feedback_id"')):
        return "feedback-jsonl"
    raise ImportRefused(f"the format of this file is not recognised: name it with --as, one of {', '.join(FORMATS)}")
