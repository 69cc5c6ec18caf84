"""The diff of two versions of an artifact: pointers for values, line ranges for text."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core.diff import MAX_CHANGES, MAX_DEPTH, MAX_LINES_COMPARED, changed_lines, changes
from backedge.core.findings.identity import lies_in
from backedge.core.model import Change, Finding


def locations(before: Any, after: Any) -> list[str]:
    return [change.where for change in changes(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["/a"]),
        ({"a": 1}, {"a": 1, "b": 2}, ["/b"]),
        ({"a": 1, "b": 2}, {"a": 1}, ["/b"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["/a/b/1"]),
        ([1], [1, 2], ["/1"]),
        ([1, 2], [1], ["/1"]),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, ["/a~1b/~0"]),
        ({"a": 1}, [1], [""]),
        (1, True, [""]),
        (1, 1.0, [""]),
        (None, None, []),
        ("one", "two", [""]),
        ("one", "one", []),
    ],
)
def test_the_locations_that_differ_are_named(before: Any, after: Any, expected: list[str]) -> None:
    assert locations(before, after) == expected


def test_text_of_several_lines_reports_line_ranges() -> None:
    assert changes({"t": "a\nb\nc"}, {"t": "a\nB\nc"}) == (Change("/t", ((2, 2),)),)


def test_text_of_one_line_has_no_line_ranges() -> None:
    assert changes("a", "b") == (Change(""),)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a\nb\nc", "a\nx\ny\nc", ((2, 3),)),
        ("a\nb\nc\nd\ne", "A\nb\nc\nd\nE", ((1, 1), (5, 5))),
        ("a\nb\nc", "a\nc", ((2, 2),)),
        ("a\nb", "a", ((2, 2),)),
        ("a", "a\nb\nc", ((2, 3),)),
        ("a\nb\na", "a\nb\na", ()),
    ],
)
def test_line_ranges_refer_to_the_new_text(before: str, after: str, expected: tuple[tuple[int, int], ...]) -> None:
    assert changed_lines(before, after) == expected


def test_long_texts_are_compared_from_both_ends_only() -> None:
    inner = [f"old {n}" for n in range(MAX_LINES_COMPARED)]
    before = "\n".join(["first", *inner, "last"])
    after = "\n".join(["first", "new", *inner[1:-1], "new", "last"])
    assert changed_lines(before, after) == ((2, MAX_LINES_COMPARED + 1),)
    assert changed_lines(before, "first\nlast") == ((2, 2),)


def test_too_many_changes_are_reported_as_one() -> None:
    before = {str(n): 0 for n in range(MAX_CHANGES + 1)}
    assert len(changes(before, {**dict.fromkeys(before, 1), "0": 0})) == MAX_CHANGES
    assert changes(before, dict.fromkeys(before, 1)) == (Change(""),)


def nested(depth: int, value: int) -> Any:
    return {"a": nested(depth - 1, value)} if depth else value


def test_deeply_nested_values_are_compared_as_a_whole() -> None:
    deep = MAX_DEPTH + 3
    assert locations(nested(deep, 1), nested(deep, 2)) == ["/a" * MAX_DEPTH]
    assert locations(nested(deep, 1), nested(deep, 1)) == []


def at(**fields: Any) -> Finding:
    return Finding("wrong", **fields)


@pytest.mark.parametrize(
    ("finding", "change", "inside"),
    [
        (at(path="/api/users"), Change("/api"), True),
        (at(path="/api"), Change("/api/users"), True),
        (at(path="/api/users/"), Change("/api/users"), True),
        (at(path="/api"), Change("/apix"), False),
        (at(path="/api"), Change("/db"), False),
        (at(path="/api"), Change(""), True),
        (at(file="a.py"), Change("a.py"), True),
        (at(file="a.py"), Change("b.py"), False),
        (at(file="a.py"), Change("/files/a.py"), True),
        (at(file="src/a.py"), Change("/files/src~1a.py"), True),
        (at(file="a.py"), Change(""), True),
        (at(file="./a.py"), Change("a.py"), True),
        (at(file="a.py"), Change("././a.py"), True),
        (at(file="a.py"), Change("", ((1, 3),)), True),
        (at(file="a.py", line=3), Change("a.py", ((1, 3),)), True),
        (at(file="a.py", line=4), Change("a.py", ((1, 3),)), False),
        (at(file="a.py", line=1), Change("a.py", ((2, 3), (7, 8))), False),
        (at(file="a.py", line=7), Change("a.py", ((2, 3), (7, 8))), True),
        (at(file="a.py", line=7), Change("a.py"), True),
        (at(line=2), Change("", ((2, 2),)), True),
        (at(line=2), Change("", ((3, 3),)), False),
        (at(line=2), Change("/t", ((2, 2),)), False),
        (at(line=2, path="/t"), Change("/t", ((9, 9),)), False),
        (at(line=9, path="/t"), Change("/t", ((9, 9),)), True),
        (at(line=2, path="/t"), Change("/t/0", ((9, 9),)), True),
        (at(), Change(""), False),
        (at(), Change("", ((1, 9),)), False),
    ],
)
def test_a_finding_lies_in_a_change_only_if_its_location_does(finding: Finding, change: Change, inside: bool) -> None:
    assert lies_in(finding, [change]) is inside


def test_if_changes_name_files_the_output_does_not_count_for_others() -> None:
    changed = [Change(""), Change("a.py")]
    assert lies_in(at(file="a.py"), changed)
    assert not lies_in(at(file="b.py"), changed)
    assert lies_in(at(path="/api"), changed)


def test_a_finding_lies_in_a_fix_that_rewrote_everything() -> None:
    before, after = ({f"k{key}": value for key in range(250)} for value in (1, 2))
    assert lies_in(at(path="/k1"), changes(before, after))
    assert lies_in(at(path="/0/k"), changes({"k": 1}, [{"k": 2}]))


def test_a_finding_lies_in_no_change_if_nothing_changed() -> None:
    assert not lies_in(at(file="a.py"), [])
