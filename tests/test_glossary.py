"""Names in the code use the words of the glossary in docs/concepts.md, each for one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import backedge

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "backedge"
CONCEPTS = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")

FORMATS_OF_OTHERS = {
    *("compat", "stories", "backlog", "files", "templates", "demo_files"),
    *("progress", "refinement", "tight_loop", "agentic_sdlc", "defects"),
}
"""Folders and modules that read, write or imitate the files of other systems, and so use their words."""

ANOTHER_MEANING = {
    "Session": "a conversation with an agent CLI",
    "UnknownSession": "a conversation with an agent CLI",
    "nodes": "YAML nodes",
    "Node": "a YAML node",
    "_node": "a YAML node",
}
"""Names in which such a word means something else than in the glossary."""

NOT_YET: set[str] = set()
"""Names that should use the word of the glossary. The list may only get shorter."""

USED_TWICE = {
    *("Feedback", "Finding", "Outcome"),  # as agents write them, and as the core reads them
    *("Step", "Workflow"),  # as Python developers write them, and as a run records them
}
"""Names of more than one public class. The list may only get shorter."""

EMPTY_WORDS = {"manager", "handler", "helper", "helpers", "service", "util", "utils"}
PLAIN_WORDS = {"backedge", "error", "memory", "sqlite"}
CORE_PACKAGES = {"state", "scheduling"}


def glossary() -> dict[str, set[str]]:
    """Each word of the glossary with what other systems say."""
    rows = re.findall(r"^\| ([A-Z][\w, ]*) \| [^|]+\|(?: ([^|]*)\|)?$", CONCEPTS, re.MULTILINE)
    return {word.lower(): set(re.findall(r"\w+", others)) for words, others in rows for word in words.split(", ")}


def words_of(name: str) -> list[str]:
    """The words of a name in lower case and in the singular: TrackedFinding is tracked, finding."""
    parts = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)
    return [part.lower().removesuffix("s") if len(part) > 3 else part.lower() for part in parts]


def names() -> Iterator[str]:
    """Every module, class and function that is ours to name."""
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if FORMATS_OF_OTHERS.isdisjoint({*place.parts, place.stem}):
            yield path.stem
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield node.name


def public_classes() -> Iterator[str]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name


def synonyms_in_names() -> dict[str, str]:
    """Names that use the word of another system: the name, and the word of the glossary."""
    instead = {other: word for word, others in glossary().items() for other in others}
    return {name: instead[word] for name in names() for word in words_of(name) if word in instead}


def test_the_glossary_is_read() -> None:
    words = glossary()
    assert words["workflow"] == {"pipeline"}
    assert words["gate"] == set()
    assert len(words) > 25
    assert words_of("HTTPFindingsReport") == ["http", "finding", "report"]


def test_every_word_of_the_glossary_names_something() -> None:
    used = {word for name in names() for word in words_of(name)}
    assert {word for word in glossary() if word.removesuffix("s") not in used} == set()


def test_no_word_has_two_meanings() -> None:
    words = glossary()
    assert {other for others in words.values() for other in others} & set(words) == set()


def test_names_do_not_use_the_words_of_other_systems() -> None:
    found = synonyms_in_names()
    assert {name: word for name, word in found.items() if name not in {*NOT_YET, *ANOTHER_MEANING}} == {}


def test_a_name_that_needs_no_exception_leaves_the_list() -> None:
    assert sorted({*NOT_YET, *ANOTHER_MEANING} - set(synonyms_in_names())) == [], "remove these exceptions"


def test_names_say_what_a_thing_is() -> None:
    assert [name for name in names() if not EMPTY_WORDS.isdisjoint(words_of(name))] == []


def test_the_python_api_is_named_by_the_glossary() -> None:
    known = {word for each in glossary() for word in words_of(each)} | PLAIN_WORDS
    classes = [name for name in backedge.__all__ if isinstance(getattr(backedge, name), type)]
    assert {name for name in classes if not known.issuperset(words_of(name))} == set()


def test_the_packages_of_the_core_are_named_by_the_glossary() -> None:
    packages = {path.name for path in (SOURCE / "core").iterdir() if (path / "__init__.py").exists()}
    assert {name for name in packages - CORE_PACKAGES if not set(words_of(name)) <= set(glossary())} == set()


def test_the_core_has_a_class_for_each_noun_that_moves_through_it() -> None:
    classes = {word for name in public_classes() for word in words_of(name)}
    nouns = "workflow run step agent attempt artifact finding verdict feedback route loop round limit breach escalation"
    assert set(f"{nouns} decision briefing outcome journal story".split()) <= classes


def test_a_class_name_is_used_once() -> None:
    twice = {name for name, count in Counter(public_classes()).items() if count > 1}
    assert sorted(twice - USED_TWICE) == []
    assert sorted(USED_TWICE - twice) == [], "remove these from USED_TWICE"
