"""The part of a story file that people own: everything except the journal's fields and the refinement notes."""

from __future__ import annotations

import re

from backedge.stories.fields import FIELDS
from backedge.stories.rules.front_matter import parse_story

_NOT_FOR_AGENTS = ("priority", "max_refinement_attempts")
"""Fields that people own and agents do not need."""
_NOTE = re.compile(r"\n?### Refinement Iteration \d+\n\n.*\n(?:\n(?:(?:- |  ).*(?:\n|$))+)?")


def author_text(text: str, name: str) -> str:
    """The text of a story without the parts that backedge wrote. Raises StoryFileError."""
    left = parse_story(text.encode(), name).changed(dict.fromkeys((*FIELDS, *_NOT_FOR_AGENTS)))
    return _NOTE.sub("", left.replace("\r\n", "\n")).rstrip() + "\n"
