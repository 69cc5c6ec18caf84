"""Whatever stands in a file, it is a workflow or a located list of problems, and never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backedge.config import SCHEMA, WorkflowFile, WorkflowFileError, mermaid, picture
from backedge.config.workflow_file import workflow_file
from backedge.core.workflow.definition import Workflow
from tests.config.files import EXAMPLE
from tests.config.test_schema import ANYTHING, fitting
from tests.config.test_workflow_file import EVERYTHING


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fuzz")
    for name, content in {"prompts/code.md": "x", "schemas/plan.json": "{}"}.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(content)
    return made


def survives(data: bytes, folder: Path) -> WorkflowFile | None:
    try:
        file = workflow_file(data, folder / "backedge.yaml")
    except WorkflowFileError as error:
        found = error.located
    else:
        return sound(file)
    assert found
    for problem in found:
        assert problem.line >= 1 <= problem.column
        assert problem.text
        assert str(problem).isprintable()
    return None


def sound(file: WorkflowFile) -> WorkflowFile:
    assert msgspec.json.decode(msgspec.json.encode(file.definition), type=Workflow) == file.definition
    named = {name for step in file.definition.steps for name in step.agents} - {"human"}
    named |= {check.name for check in file.definition.checks if check.command}
    assert named == {name for name, agent in file.agents.items() if agent.kind != "human"}
    assert mermaid(file.definition)
    assert picture(file.definition)
    return file


@settings(max_examples=300)
@given(data=st.binary(max_size=200))
def test_any_bytes(data: bytes, folder: Path) -> None:
    survives(data, folder)


SNIPPETS = ["a", ": ", "- ", "\n", "  ", "[", "]", "{", "}", ",", "&x ", "*x", "!t ", "|\n", ">", "'", '"', "#", "? ", "%", "\t", "---\n", "...\n", "<<: ", "steps", "name: w\n", "\\", "~", "1", ".inf", "@", "\r\n", "\u2028", "\ufeff", "\x85"]  # fmt: skip


@settings(max_examples=600)
@given(parts=st.lists(st.sampled_from(SNIPPETS), max_size=25))
def test_any_text_of_yaml_signs(parts: list[str], folder: Path) -> None:
    survives("".join(parts).encode(), folder)


@settings(max_examples=300)
@given(text=st.text(max_size=100))
def test_any_text(text: str, folder: Path) -> None:
    survives(text.encode("utf-8", "surrogatepass"), folder)


def test_the_originals_load(folder: Path) -> None:
    assert survives(EXAMPLE.encode(), folder)
    assert survives(EVERYTHING.encode(), folder)


@settings(max_examples=500)
@given(
    original=st.sampled_from([EXAMPLE, EVERYTHING]),
    place=st.floats(0, 1, exclude_max=True),
    length=st.integers(0, 12),
    put=st.lists(st.sampled_from(SNIPPETS), max_size=3).map("".join),
)
def test_any_cut_and_paste_in_a_good_file(original: str, place: float, length: int, put: str, folder: Path) -> None:
    start = int(place * len(original))
    survives((original[:start] + put + original[start + length :]).encode(), folder)


@pytest.mark.parametrize("original", [EXAMPLE, EVERYTHING])
def test_any_line_can_be_missing(original: str, folder: Path) -> None:
    lines = original.splitlines(keepends=True)
    for gone in range(len(lines)):
        survives("".join(lines[:gone] + lines[gone + 1 :]).encode(), folder)


@pytest.mark.parametrize("original", [EXAMPLE, EVERYTHING])
@pytest.mark.parametrize("put", ["x", "7", "true", "", "[]", "{}", "{q: [1]}", "-1", "'text'"])
def test_any_value_can_be_of_another_type_and_any_key_another_word(original: str, put: str, folder: Path) -> None:
    from ruamel.yaml import YAML

    words = {str(getattr(event, "value", "")) for event in YAML(typ="safe", pure=True).parse(original)}
    for word in sorted(words - {"", "None"}):
        for found in (f"{word}:", f" {word}", f"[{word}"):
            if found in original:
                survives(original.replace(found, found.replace(word, put, 1), 1).encode(), folder)


@settings(max_examples=300)
@given(document=fitting(SCHEMA) | ANYTHING)
def test_any_document_that_is_nearly_right(document: Any, folder: Path) -> None:
    survives(msgspec.json.encode(document), folder)
