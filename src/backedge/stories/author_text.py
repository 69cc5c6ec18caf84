"""What people own of a story's file: all but the fields that the journal owns, and our notes below the text."""

from __future__ import annotations

import re

from backedge.stories.fields import FIELDS
from backedge.stories.rules.front_matter import parse_story

_APART = ("priority", "max_refinement_attempts")
"""Theirs, too, but nothing that an agent has to know."""
_NOTE = re.compile(r"\n?### Refinement Iteration \d+\n\n.*\n(?:\n(?:(?:- |  ).*(?:\n|$))+)?")


def author_text(text: str, name: str) -> str:
    """The text of a story without what we wrote into it. Raises StoryFileError."""
    left = parse_story(text.encode(), name).changed(dict.fromkeys((*FIELDS, *_APART)))
    return _NOTE.sub("", left.replace("\r\n", "\n")).rstrip() + "\n"
