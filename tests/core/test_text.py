"""Text on one line: what a terminal would interpret is gone, and ordinary text stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.core.text import clean, one_line


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
