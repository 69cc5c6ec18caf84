"""Writes the file of a new story. A file that exists is never changed."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from backedge.core.errors import WorkflowError
from backedge.core.text import clean, one_line
from backedge.stories.left_over import draft_name
from backedge.stories.rules.front_matter import MAX_BYTES, yaml_lines
from backedge.stories.rules.summary import first_heading

LONGEST_TITLE = 200
_LONGEST_NAME = 60
_NOT_STORIES = ("readme",)
"""Names that the backlog leaves out."""


def add_story(
    folder: Path, taken: Collection[str], title: str, text: str, fields: Mapping[str, Any], name: str = ""
) -> Path:
    """Write a new story, with an id and a file name made from its title, or `name`; returns its path. `taken` has the ids
    of the other stories. Fields that are None or empty are left out. Raises WorkflowError."""
    title = one_line(title)[:LONGEST_TITLE].rstrip()
    if not title:
        raise WorkflowError("the story has no title: give one, or a file with a heading")
    text = clean(text.replace("\r\n", "\n")).strip("\n")
    if re.match(r"\ufeff?---[ \t]*(\n|$)", text):
        raise WorkflowError(
            f"the text has front matter already: copy the file to {folder.name}/, or leave the lines between --- out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    known = {*(id.casefold() for id in taken), *_NOT_STORIES}
    number, name = 1, name or slug(title)
    while True:
        id = name if number == 1 else f"{name}-{number}"
        path = folder / f"{id}.md"
        if id not in known and not path.exists() and _created(path, _contents(id, title, text, fields)):
            return path
        number += 1


def slug(title: str) -> str:
    """A title as a file name: lower case, with letters, digits and dashes."""
    plain = unicodedata.normalize("NFKD", one_line(title).casefold()).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return words[:_LONGEST_NAME].rstrip("-") or "story"


def _contents(id: str, title: str, text: str, fields: Mapping[str, Any]) -> bytes:
    values = {"id": id, "title": title, **{name: each for name, each in fields.items() if each not in (None, "", [])}}
    lines = [line for name, value in values.items() for line in yaml_lines(name, value)]
    heading = "" if first_heading(text) else f"# {title}\n"
    body = "\n".join(part for part in (heading, text) if part)
    data = ("\n".join(["---", *lines, "---", ""]) + body.rstrip("\n") + "\n").encode()
    if len(data) > MAX_BYTES:
        raise WorkflowError(f"the story {title!r} has more than {MAX_BYTES} bytes: shorten its text")
    return data


def _created(path: Path, data: bytes) -> bool:
    """Create a file with all its contents at once; False if it exists."""
    draft = path.with_name(draft_name(path.name, b"", data))
    try:
        draft.write_bytes(data)
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True
