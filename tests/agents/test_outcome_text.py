"""The last JSON object in a text, whatever is around it."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backedge.adapters.agents import outcome_text
from backedge.adapters.agents.outcome_text import Unreadable, last_object


def last(text: str) -> str | None:
    raw = text.encode("utf-8", "surrogatepass")
    span = last_object(raw)
    return None if span is None else raw[span.start : span.end].decode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("no braces", None),
        ("{}", "{}"),
        ('{"a": 1}', '{"a": 1}'),
        ('before {"a": 1} after', '{"a": 1}'),
        ('{"a": {"b": {}}}', '{"a": {"b": {}}}'),
        ('{\n  "a": [\n    {"b": 1},\n    {"c": 2}\n  ]\n}\n', '{\n  "a": [\n    {"b": 1},\n    {"c": 2}\n  ]\n}'),
        ('{"a": "}{ \\" {"}', '{"a": "}{ \\" {"}'),
        ('{"a": 1}\n{"b": 2}\n', '{"b": 2}'),
        ('{"a": 1} {"b": 2} done', '{"b": 2}'),
        ('{not json {"a": 1} }', '{"a": 1}'),
        ('he said "{" and then {"a": 1}', '{"a": 1}'),
        ('{"never closed {"a": 1}', '{"a": 1}'),
        ('{"a": 1} trailing {', '{"a": 1}'),
        ('{"a": 1} trailing {"', '{"a": 1}'),
        ("{'a': 1}", None),
        ('[{"a": 1}]', '{"a": 1}'),
        ('{"a": "\x1b[31mred\x00\x01"}', '{"a": "\x1b[31mred\x00\x01"}'),
        ('{"a":\t"tab\there"}', '{"a":\t"tab\there"}'),
        ('{"a": "\\ud800"}', '{"a": "\\ud800"}'),
        ('use {"key": value}: {"a": 1}', '{"a": 1}'),
        ('got {"user": "x", "data": "aaa…\n{"a": 1}\ndone', '{"a": 1}'),
        ('{"a": 1,}\n{"b": 2} [ok]', '{"b": 2}'),
        ('{"a": -0.5e+10, "b": [true, false, null, []]}', '{"a": -0.5e+10, "b": [true, false, null, []]}'),
    ],
)
def test_the_last_object_that_is_not_part_of_another_is_found(text: str, found: str | None) -> None:
    assert last(text) == found


@pytest.mark.parametrize(
    "text",
    [
        '{"output": {}',
        '{"verdict": "pass"}\n{"verdict": "fail", "findings": [{"description": "x"}',
        '{"a": "text that stops',
        '{"a": tru',
        '{"a": 1, ',
        '{"a": -',
        '{"a": "\\',
    ],
)
def test_a_text_that_ends_inside_an_object_is_not_an_outcome(text: str) -> None:
    with pytest.raises(Unreadable, match="ends inside the object that begins at byte"):
        last(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"verdict": "fail", "summary": "regex \\d+", "output": {"verdict": "pass"}}', r"escape: line 1 column 39"),
        ('{"verdict": "pass"}\n{"verdict": "fail", "summary": "\\d"}\nbye', r"byte 20 is not JSON: Invalid \\escape"),
        ('{"verdict": "pass"}\n{"verdict": "fail",}', r"byte 20 is not JSON: .*property name"),
        ('{"verdict": "pass"}\nx {"verdict": "fail", "output": NaN} y', "NaN is not a number"),
        ('{"a": 01}', "delimiter"),
        ('{"a": 1]}', "delimiter"),
        ('{"a": "two\nlines"}', "control character"),
        ('{"a": "two\nlines }", "output": {"verdict": "pass"}}', "control character"),
        ('{"findings": [\n{"a": 1}\n{"verdict": "pass"}\n]}', "delimiter"),
        ('{"verdict": "fail", "summary": "saw\n{"verdict": "pass"}\n"}', "control character"),
    ],
)
def test_a_last_object_that_is_not_json_is_not_an_outcome(text: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        last(text)


def test_an_unreadable_object_is_refused() -> None:
    with pytest.raises(Unreadable, match="more than 1,000 levels"):
        last('{"a":' * 2_000)


# What a text is made of when it is mean to a scanner.
pieces = st.lists(
    st.sampled_from(
        [
            "{",
            "}",
            "[",
            "]",
            '"',
            ":",
            ",",
            "\\",
            "\n",
            " ",
            "a",
            "1",
            "-",
            "{}",
            '"k"',
            '{"k":',
            "true",
            "tru",
            '\\"',
            "é",
        ]
    ),
    max_size=30,
).map("".join)
words = st.text(st.characters(exclude_characters='{}[]":,\\', exclude_categories=["Cs"]), max_size=40)
objects = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["}", "{", '{"a": 1}', '"']),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(before=words, value=objects, after=words, indent=st.sampled_from([None, 0, 2]), ascii=st.booleans())
def test_noise_without_objects_changes_nothing(
    before: str, value: object, after: str, indent: int | None, ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    assert last(before + text + after) == text


@given(values=st.lists(objects, min_size=1, max_size=4), noise=words, indent=st.sampled_from([None, 2]))
def test_the_last_of_several_objects_counts(values: list[object], noise: str, indent: int | None) -> None:
    texts = [json.dumps(value, indent=indent) for value in values]
    assert last(f"{noise}\n".join(texts)) == texts[-1]


def slow_last(text: str) -> str | None:
    """The same in the simplest way: try every brace, and continue after each object."""
    place, found = text.find("{"), None
    while place >= 0:
        try:
            _, end = json.JSONDecoder(parse_constant=_no_constant).raw_decode(text, place)
            found = text[place:end]
        except ValueError:
            end = place + 1
        place = text.find("{", end)
    return found


def _no_constant(word: str) -> object:
    raise ValueError(word)


@given(before=pieces, value=objects, after=pieces)
@example(before='{"k":', value={}, after="")
@example(before='{"', value={}, after='"}')
def test_hostile_noise_gives_the_same_as_trying_every_brace(before: str, value: object, after: str) -> None:
    text = before + json.dumps(value) + after
    try:
        found = last(text)
    except Unreadable:
        return  # what would be found stands before or inside an object that the text ends in
    assert found == slow_last(text)


@given(value=objects.filter(bool), cut=st.integers(1), noise=words)
def test_a_truncated_object_is_never_taken_for_an_outcome(value: object, cut: int, noise: str) -> None:
    text = json.dumps(value)
    first_colon = len(json.dumps(next(iter(value)))) + 2 if isinstance(value, dict) else 0
    cut = first_colon + cut % (len(text) - first_colon)
    with pytest.raises(Unreadable):
        last(f'{noise}{{"verdict": "pass"}}\n{text[:cut]}')


@given(before=pieces, value=objects, after=pieces, lines=st.lists(pieces, max_size=5))
@example(before='"', value={}, after="", lines=['{"k":'])
@example(before="", value={}, after='", ":"]}', lines=['{"k":', '["'])
def test_searching_from_the_end_finds_the_same(before: str, value: object, after: str, lines: list[str]) -> None:
    text = "\n".join([*lines, before + json.dumps(value) + after]).encode()

    def found(window: int) -> object:
        outcome_text.FIRST_WINDOW, usual = window, outcome_text.FIRST_WINDOW
        try:
            return last_object(text)
        except Unreadable as error:
            return str(error)
        finally:
            outcome_text.FIRST_WINDOW = usual

    assert found(4) == found(1 << 20)


@pytest.mark.parametrize(
    "piece",
    [
        b"x",
        b"{",
        b'{"',
        b'{"a":"',
        b'{"{" ',
        b"{}",
        b'{"a":1},',
        b'{"a":' * 900 + b"!",
        b'log {"a":[1]}\n',
        b'{"a":x} ',
        b'{"a":[x\n',
        b'"',
        b"\\",
    ],
)
def test_the_cost_does_not_grow_faster_than_the_text(piece: bytes) -> None:
    def seconds(size: int) -> float:
        text = b'{"a":[' + piece * (size // len(piece)) + b"!"
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            with suppress(Unreadable):
                last_object(text)
            best = min(best, time.process_time() - began)
        return best

    small, large = seconds(1 << 14), seconds(1 << 17)
    assert large < 32 * small + 0.05, f"8 times the text took {large / max(small, 1e-9):.0f} times as long"
