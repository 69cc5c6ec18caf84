"""Which files there are, how each is known, and how each is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from backedge.analytics.files.contents import Contents
from backedge.analytics.files.defect_log import read_defects
from backedge.analytics.files.feedback_lines import read_lines
from backedge.analytics.files.iterations import read_progress_file, read_scratchpad
from backedge.analytics.files.loop_report import LIST, read_report
from backedge.core.errors import ImportRefused
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json

Form = Literal["loops", "feedback-jsonl", "defects", "progress", "scratchpad"]
FORMS: tuple[Form, ...] = get_args(Form)

_DOCUMENTS: dict[str, Callable[[Json], Contents]] = {
    "loops": read_report,
    "defects": read_defects,
    "progress": read_progress_file,
}
_TEXTS: dict[str, Callable[[str], Contents]] = {"feedback-jsonl": read_lines, "scratchpad": read_scratchpad}
_ITERATION = re.compile(r"^## Iteration \d+\s*$", re.MULTILINE)


def read(form: str, content: str) -> Contents:
    """What a file of that form says. Raises ImportRefused, with all that is wrong and where."""
    content = content.removeprefix("\ufeff")
    if form in _TEXTS:
        return _TEXTS[form](content)
    if form not in _DOCUMENTS:
        raise ImportRefused(f"form {form!r} is unknown: {did_you_mean(form, FORMS)}")
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ImportRefused(f"not JSON: {error}") from None
    if form == "loops" and isinstance(document, dict) and LIST not in document:
        raise ImportRefused(f"no {LIST!r} in it: expected an object with the list of loops under that name")
    return _DOCUMENTS[form](document)


def form_of(content: str) -> Form:
    """What a file seems to be, from what only files of that form have. Raises ImportRefused."""
    content = content.removeprefix("\ufeff")
    if _ITERATION.search(content):
        return "scratchpad"
    try:
        document = msgspec.json.decode(content)
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
    # A line that is damaged must be told of, so that the rest decides what the file is.
    if any(mark in content for mark in ('"from_node"', '"feedback_type"')):
        return "feedback-jsonl"
    raise ImportRefused(f"it cannot be seen what this file is: say it with --as, one of {', '.join(FORMS)}")
