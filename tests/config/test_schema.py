"""The published schema is a JSON Schema that explains itself, and says the same as the checker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from backedge.config import EDITOR_LINE, SCHEMA, SCHEMA_FILE, schema_text
from backedge.config.check import flaws_of
from backedge.config.pieces import Schema
from backedge.config.yaml import loaded
from backedge.core.workflow.limits import NAMES, OF_THE_RUN
from tests.config.files import EXAMPLE
from tests.config.test_workflow_file import EVERYTHING

VALIDATOR = Draft202012Validator(SCHEMA)


def schemas(schema: Schema, place: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema in a schema that describes a value."""
    yield place, schema
    for key, each in schema.get("properties", {}).items():
        yield from schemas(each, f"{place}.{key}")
    for each in schema.get("anyOf", ()):
        if "required" not in each:
            yield from schemas(each, place)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schemas(schema[key], f"{place}.{key}")


def test_it_is_a_valid_json_schema_and_valid_json() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(schema_text()) == SCHEMA
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_everything_has_a_description_of_one_sentence() -> None:
    for place, schema in schemas(SCHEMA):
        said = schema["description"]
        assert said.endswith("."), place
        assert said[0].isupper() or said.startswith("module"), place
        assert ". " not in said, place


def test_no_mapping_takes_unknown_keys_except_schemas_of_the_user() -> None:
    for place, schema in schemas(SCHEMA):
        if schema.get("type") == "object" and "a JSON Schema" not in schema.get("title", ""):
            assert schema["additionalProperties"] is False or "properties" not in schema, place
            assert "additionalProperties" in schema, place


def test_every_example_fits() -> None:
    for place, schema in schemas(SCHEMA):
        for example in schema.get("examples", ()):
            Draft202012Validator(schema).validate(example)
            assert not list(flaws_of(example, schema)), place


def test_alternatives_differ_by_type() -> None:
    for place, schema in schemas(SCHEMA):
        if "anyOf" in schema and "type" not in schema:
            kinds = [each["type"] for each in schema["anyOf"]]
            assert len(kinds) == len(set(kinds)), place


def test_every_limit_of_the_core_is_there() -> None:
    top = SCHEMA["properties"]
    assert tuple(top["limits"]["properties"]) == NAMES
    of_step = top["steps"]["additionalProperties"]["properties"]["limits"]["properties"]
    assert set(of_step) == set(NAMES) - set(OF_THE_RUN)


def test_the_editor_line_is_a_comment_that_names_the_published_file() -> None:
    assert EDITOR_LINE.strip() == "# yaml-language-server: $schema=" + SCHEMA_FILE
    assert loaded((EDITOR_LINE + EXAMPLE).encode()).value["name"] == "user-management"


def agree(document: Any) -> bool:
    """Both accept it, or both refuse it; gives which."""
    flaws, errors = list(flaws_of(document, SCHEMA)), list(VALIDATOR.iter_errors(document))
    assert bool(flaws) == bool(errors), (document, flaws, [error.message for error in errors])
    return not flaws


def test_both_accept_the_examples() -> None:
    for text in (EXAMPLE, EVERYTHING):
        assert agree(loaded(text.encode()).value)


WORDS = st.sampled_from(
    ["", "a", "plan", "x y", "off", "claude", "90s", "0s", "0.5h", "1.", "m:f", "A_1", "BACKEDGE_X", "/a~1", "~", "ü"]
)
NUMBERS = st.sampled_from([-1, 0, 1, 3, 1.0, 1.5, 0.0, 10**12, 10**12 + 1, 1e13])
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, WORDS)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=6
)


def fitting(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that mostly fit a schema, and sometimes do not."""
    if "anyOf" in schema and "type" not in schema:
        good: st.SearchStrategy[Any] = st.one_of([fitting(each) for each in schema["anyOf"]])
    elif "const" in schema:
        good = st.just(schema["const"])
    elif "enum" in schema:
        good = st.sampled_from(schema["enum"])
    elif schema["type"] == "object":
        good = _mapping(schema)
    elif schema["type"] == "array":
        good = st.lists(fitting(schema["items"]), min_size=schema.get("minItems", 0), max_size=2)
    elif schema["type"] == "boolean":
        good = st.booleans()
    elif schema["type"] in ("integer", "number"):
        good = NUMBERS
    else:
        good = st.sampled_from(schema["examples"]) if "examples" in schema else st.sampled_from(["a", "b"])
    return st.integers(0, 40).flatmap(lambda chance: ANYTHING if chance == 0 else good)


def _mapping(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    if "properties" not in schema:
        others = schema.get("additionalProperties", True)
        inner = fitting(others) if isinstance(others, dict) else ANYTHING
        return st.dictionaries(st.sampled_from(["a", "b", "A_1", "my step"]), inner, min_size=1, max_size=2)
    known = {key: fitting(each) for key, each in schema["properties"].items()}
    chosen = [each["required"][0] for each in (schema.get("oneOf") or schema.get("anyOf") or ())]

    @st.composite
    def made(draw: st.DrawFn) -> dict[str, Any]:
        keys = set(schema.get("required", ()))
        if chosen:
            keys.add(draw(st.sampled_from(chosen)))
        if rest := sorted(set(known) - set(chosen)):
            keys |= draw(st.sets(st.sampled_from(rest), max_size=3))
        if draw(st.integers(0, 20)) == 0:
            keys ^= {draw(st.sampled_from([*sorted(known), "nedds"]))}
        return {key: draw(known.get(key, ANYTHING)) for key in sorted(keys)}

    return made()


@settings(max_examples=400)
@given(fitting(SCHEMA))
def test_the_checker_and_the_schema_agree_on_documents_that_are_nearly_right(document: Any) -> None:
    agree(document)


@settings(max_examples=200)
@given(ANYTHING)
def test_the_checker_and_the_schema_agree_on_anything(document: Any) -> None:
    agree(document)


STEP = SCHEMA["properties"]["steps"]["additionalProperties"]


@settings(max_examples=400)
@given(fitting(STEP))
def test_the_checker_and_the_schema_agree_on_steps(step: Any) -> None:
    agree({"name": "w", "steps": {"a": step}})
