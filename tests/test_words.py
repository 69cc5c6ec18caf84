"""The documentation, and the texts in src/, are free of words that only this project used."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "backedge"
TEXT_FILES = (".md", ".yaml", ".sh")

VERBS = (
    "answers|asked|asks|calls|came|can|chose|complained|complains|decides|did|does|finds|found|gets|had|has|is|judges|made|"
    "makes|may|met|missed|must|needs|raised|reads|reworks|said|says|sends|waits|wants|was|works|writes|wrote"
)
OLD_WORDS = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b": "again, or reset",
    r"\bin mid-work\b": "while it runs",
    r"\b[Ww]ho(m|so)?ever\b": "name the person, process or step",
    rf"\bWho (?:{VERBS})\b(?![^.\n]*\?)": "name the person, process or step",
    rf"\b(?:to|of|for|by|than|and|but|from|with|only) who (?:{VERBS})\b": "name the person, process or step",
    r"\btold of\b": "gets, or receives",
    r"(?<![Tt]here )\b(?:is|was) no (?!longer\b|more\b|less\b)[a-z]+": "is not a …",
    r"\bpass(?:ed|es)? over\b": "skip",
    r"\bknown? (?:\w+ )?again\b": "recognise",
    r"\bbut for which\b": "that caused",
    r"\bin (?:its|their) turn\b": "itself",
    r"\bh[eo]lds? against\b": "compared with, or checked against",
    r"\bdoors?\b": "name what it is",
    r"\bdear(?:er|est)\b": "more expensive, most expensive",
    r"\bmisfits?\b": "error",
    r"\bbesides\b": "also",
    r"\bstands? (?:beside|here|there|above|below)\b": "is",
    r"\b(?:nobody|somebody) (?:executes|waits|asks|answers|looks|reads)\b": "no process …, no person …",
    r"\bwhat ends (?:that|it|the subscription)\b": "a function that unsubscribes",
    r"\bstands? under\b": "the value at",
    r"\b(?:not|do|does) add up\b": "is inconsistent, or is damaged",
    r"\bown (?:accord|affair)\b": "name the program, or say that it decides",
    r"\btold twice\b": "announced twice, or reported twice",
    r"\ball that is wrong\b": "all problems",
    r"\bwhere (?:a|the|every) run stands\b": "the state of the run",
    r"\b(?:not|never) (?:possible yet|one that this version knows)\b": "not supported yet, or unknown",
    r"\bsound journal\b": "valid journal",
}
"""What must not be written, and what to write instead."""

NOT_YET_PLAIN: frozenset[str] = frozenset()
"""Files below src/backedge whose texts still have such words. The list may only get shorter."""


def old_words(text: str) -> list[str]:
    """Each forbidden word with the words around it and what to write instead."""
    found = []
    for word, better in OLD_WORDS.items():
        for match in re.finditer(word, text):
            around = " ".join(text[max(0, match.start() - 30) : match.end() + 30].split())
            found.append(f"…{around}… (write: {better})")
    return found


def page_text(path: Path) -> str:
    """A page without the parts that are drawn from src/ and without what commands print."""
    text = re.sub(r"<!-- drawn: .*?<!-- /drawn -->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^```text\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def source_text(path: Path) -> str:
    """The strings and comments of a module, or all of a text file."""
    text = path.read_text(encoding="utf-8")
    return "\n".join(strings_and_comments(text)) if path.suffix == ".py" else text


def strings_and_comments(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [path for path in sorted(SOURCE.rglob("*")) if path.suffix in (".py", *TEXT_FILES)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_no_old_words(path: Path) -> None:
    assert old_words(page_text(path)) == []


def test_texts_in_the_source_have_no_old_words() -> None:
    found = {str(path.relative_to(SOURCE)): old_words(source_text(path)) for path in SOURCES}
    assert {name: words for name, words in found.items() if words and name not in NOT_YET_PLAIN} == {}


def test_a_file_that_became_plain_leaves_the_list() -> None:
    still = {str(path.relative_to(SOURCE)) for path in SOURCES if old_words(source_text(path))}
    assert sorted(NOT_YET_PLAIN - still) == [], "remove these from NOT_YET_PLAIN"


def test_old_words_are_found_in_strings_and_comments_but_not_in_names() -> None:
    code = 'def mended(x):\n    """Whoever asks."""\n    raise ValueError(f"{x} is no choice")  # counts anew\n'
    found = old_words("\n".join(strings_and_comments(code)))
    assert len(found) == 3
    assert not old_words("Who decides? There is no need to fix it again.")
