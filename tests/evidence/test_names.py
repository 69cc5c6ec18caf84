from __future__ import annotations

import os

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from backedge.adapters.evidence.names import name_of, path_of

PATHS = st.binary(min_size=1, max_size=12).map(os.fsdecode) | st.text(st.sampled_from("a\\xuf{}0/8\n\u202e\udc80"))


def test_a_plain_path_is_its_own_name() -> None:
    assert name_of("src/päckage/größe mit Leerzeichen.py") == "src/päckage/größe mit Leerzeichen.py"


def test_what_a_terminal_would_obey_is_written_as_an_escape() -> None:
    assert name_of("a\nb") == "a\\u{a}b"
    assert name_of("safe\u202eyp.tset") == "safe\\u{202e}yp.tset"
    assert name_of(os.fsdecode(b"\xff.py")) == "\\xff.py"
    assert name_of("\\xff.py") == "\\\\xff.py"


@given(PATHS)
def test_every_path_has_a_printable_name_that_leads_back(path: str) -> None:
    name = name_of(path)
    assert name.isprintable()
    assert msgspec.json.decode(msgspec.json.encode(name)) == name
    assert path_of(name) == path


@given(PATHS, PATHS)
def test_different_paths_have_different_names(first: str, second: str) -> None:
    assert (name_of(first) == name_of(second)) == (first == second)


@given(st.text())
def test_any_text_can_be_read_as_a_name(text: str) -> None:
    assert isinstance(path_of(text), str)
