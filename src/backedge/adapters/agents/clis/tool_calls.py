"""The tool calls of an agent CLI in a few words: `Edit signer.py +4 −0`, `Bash pytest -q`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from backedge.core.text import one_line, shortened

FILES = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "dir_path")
COMMANDS = ("command", "cmd")
PATTERNS = ("pattern", "query", "url", "prompt", "description", "skill")
BEFORE_AFTER = (("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"))
CONTENTS = ("content", "file_text", "new_source")
DENIED_LINE = "! denied "
LONGEST = 160
"""How many characters of one call to show: a command can have a whole file in it."""
MOST_COMPARED = 2_000
"""How many lines of an edit to compare."""


def tool_call(name: str, given: Mapping[str, Any]) -> str:
    """One tool call: the tool, what it works on and, for an edit, how many lines it adds and removes."""
    file, command = _first(given, FILES), _first(given, COMMANDS)
    if command:
        words = [command]
    elif file:
        words = [file, *_lines(given), *([f"“{what}”"] if (what := _first(given, ("pattern", "query"))) else [])]
    elif what := _first(given, PATTERNS):
        words = [what]
    else:
        words = [json.dumps(given, ensure_ascii=False)] if given else []
    return shortened(" ".join([name or "a tool", *words]), LONGEST)


def denied_call(name: str, given: Mapping[str, Any]) -> str:
    """The same for a tool that the CLI was not permitted to use: `Bash (curl example.org)`."""
    what = _first(given, COMMANDS) or _first(given, FILES) or _first(given, ("url",))
    return one_line(f"{name or 'a tool'}{f' ({what[:100]})' if what else ''}")


def denied_line(denied: str) -> str:
    """The line of a transcript about a denied tool."""
    return f"{DENIED_LINE}{denied}"


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((one_line(value) for key in keys if isinstance(value := given.get(key), str) and value.strip()), "")


def _lines(given: Mapping[str, Any]) -> list[str]:
    """How many lines an edit adds and removes; empty if the call is not an edit."""
    edits = given.get("edits")
    counts = [_edit(each) for each in (edits if isinstance(edits, list) else [given]) if isinstance(each, Mapping)]
    known = [each for each in counts if each is not None]
    return [f"+{sum(added for added, _ in known)} −{sum(removed for _, removed in known)}"] if known else []


def _edit(given: Mapping[str, Any]) -> tuple[int, int] | None:
    for before, after in BEFORE_AFTER:
        old, new = given.get(before), given.get(after)
        if isinstance(old, str) and isinstance(new, str):
            return _difference(old.splitlines(), new.splitlines())
    content = next((given[key] for key in CONTENTS if isinstance(given.get(key), str)), None)
    return (len(content.splitlines()), 0) if content is not None else None


def _difference(old: list[str], new: list[str]) -> tuple[int, int]:
    if max(len(old), len(new)) > MOST_COMPARED:
        return len(new), len(old)
    same = sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return len(new) - same, len(old) - same
