"""Text on one line: what a terminal would interpret is gone, and ordinary text stays as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.core.text import amount, as_text, clean, counted, escaped, finding_ids, json_text, one_line, shown
from backedge.core.value import Json


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("the login page is blank", "the login page is blank"),
        ("", ""),
        (" two  words\n", "two words"),
        ("`rm` it", "rm it"),
        ("a\x1b[31mred\x1b[0m word", "ared word"),
        ("tab\there", "tab here"),
        ("schön", "schön"),
        ("ends with a newline\n", "ends with a newline"),
    ],
)
def test_text_becomes_one_line(text: str, line: str) -> None:
    assert one_line(text) == line


@given(st.text(alphabet=st.characters(max_codepoint=0x24F) | st.sampled_from(" `\t\n\x1b\u2028\u202e"), max_size=40))
def test_ordinary_text_is_only_a_shortcut(text: str) -> None:
    assert one_line(text) == " ".join(clean(text).replace("`", "").split())


SEEN = [
    "größe, naïve, 漢字, עברית, اردو",
    "\U0001f469\u200d\U0001f4bb \U0001f3f3\ufe0f\u200d\U0001f308 ❤️ ☎︎ 1\ufe0f\u20e3 ✓ →",
    "می\u200cخواهم क्\u200dष",
]
"""Text in which every character does something that people see: joined pictures, joined letters."""
UNSEEN = [
    *(
        "\u00ad",
        "\u034f",
        "\u061c",
        "\u115f",
        "\u180e",
        "\u200b",
        "\u200c",
        "\u200d",
        "\u200e",
        "\u200f",
        "\u202a",
        "\u202e",
    ),
    *("\u2060", "\u2064", "\u2066", "\u2069", "\u3164", "\ufe00", "\ufe0e", "\ufe0f", "\ufeff", "\uffa0", "\ufff9"),
    *("\U000e0001", "\U000e0041", "\U000e007f", "\U000e0100"),
]


@pytest.mark.parametrize("text", SEEN)
def test_what_people_see_stays(text: str) -> None:
    assert clean(text) == text
    assert escaped(text.encode()).decode() == text


@pytest.mark.parametrize("hidden", UNSEEN, ids=ascii)
@pytest.mark.parametrize("around", ["{}", "test_{}cart", "1{}2", "é{}", "\U0001f469{}x"])
def test_a_character_that_nobody_sees_is_shown_as_its_code(hidden: str, around: str) -> None:
    if (around, hidden) in {("\U0001f469{}x", "\ufe0f"), ("\U0001f469{}x", "\ufe0e")}:
        return  # there it says how the picture is drawn
    code = f"\\u{ord(hidden):04x}" if ord(hidden) <= 0xFFFF else f"\\U{ord(hidden):08x}"
    assert clean(around.format(hidden)) == around.format(code)
    assert one_line(around.format(hidden)) == around.format(code)
    written = escaped(json.dumps(around.format(hidden), ensure_ascii=False).encode())
    assert hidden not in written.decode()
    assert json.loads(written) == around.format(hidden)


@given(st.text(max_size=60))
def test_json_keeps_its_values_and_cleaning_twice_changes_nothing(text: str) -> None:
    written = escaped(json.dumps(text, ensure_ascii=False).encode("utf-8"))
    assert json.loads(written) == text
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [(0, "run", "0 runs"), (1, "run", "1 run"), (2, "run", "2 runs"), (1, "more try", "1 more try"), (3, "more try", "3 more tries")],
)  # fmt: skip
def test_a_number_and_its_noun_agree(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words


@pytest.mark.parametrize(
    ("ids", "words"),
    [((), ""), ((3,), "F-3"), ((2, 1), "F-1, F-2"), (range(1, 17), "F-1…F-16"), ((1, 2, 3, 5, 8, 9), "F-1…F-3, F-5, F-8, F-9")],
)  # fmt: skip
def test_findings_in_a_row_are_named_as_a_range(ids: Iterable[int], words: str) -> None:
    assert finding_ids(ids) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(3, "3"), (3.0, "3"), (1_200_000, "1200000"), (1_200_000.0, "1200000"), (5.92999, "5.93"), (2.5, "2.5"), (0.05, "0.05"), (0.051249, "0.0512")],
)  # fmt: skip
def test_an_amount_is_written_as_people_write_it(number: float, words: str) -> None:
    assert amount(number) == words


def test_a_long_text_is_shown_as_one_short_line() -> None:
    assert shown("one\ntwo") == "one two"
    assert shown("word " * 1_000, 12) == "word word w…"


LONG = "x" * 96


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, None]}, '{"a": [1, null]}'),
        ({"a": LONG, "b": 1}, f'{{\n  "a": "{LONG}",\n  "b": 1\n}}'),
        ([LONG, [1]], f'[\n  "{LONG}",\n  [1]\n]'),
    ],
)  # fmt: skip
def test_json_that_does_not_fit_into_a_line_is_broken_into_lines(value: Json, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n", "as it is\n"),
        ({"a": "one line"}, '{"a": "one line"}'),
        (["a\nb"], '["a\\nb"]'),
        ({"log": "one\ntwo\n", "code": 1}, '{"code": 1}\nlog:\n  one\n  two'),
        ({"log": "one\ntwo"}, "log:\n  one\n  two"),
    ],
)
def test_texts_of_several_lines_are_not_written_as_json(value: Json, text: str) -> None:
    assert as_text(value) == text
