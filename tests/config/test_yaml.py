"""YAML is loaded safely, by the rules of YAML 1.2, and everything in it has a place."""

from __future__ import annotations

import time

import pytest

from backedge.config.problems import WorkflowFileError
from backedge.config.yaml import MAX_BYTES, Document, loaded


def document(text: str) -> Document:
    return loaded(text.encode())


def refused(data: bytes) -> str:
    with pytest.raises(WorkflowFileError) as caught:
        loaded(data)
    return str(caught.value).removeprefix("backedge.yaml:")


def told(text: str) -> list[str]:
    return [str(problem).removeprefix("backedge.yaml:") for problem in document(text).problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("12", 12),
        ("-12", -12),
        ("010", 10),
        ("0o10", 8),
        ("0xff", 255),
        ("1_000", "1_000"),
        ("1.50", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("|\n  two\n  lines", "two\nlines"),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(text: str, value: object) -> None:
    found = document(f"a: {text}\n").value["a"]
    assert (found, type(found)) == (value, type(value)) or found == f"{value}\n"


def test_every_key_and_value_has_a_place() -> None:
    found = document("a: 1\nb:\n  - x\n  - {c: y}\n")
    assert found.value == {"a": 1, "b": ["x", {"c": "y"}]}
    assert found.position(("b",), at_key=True) == (2, 1)
    assert found.position(("b", 0)) == (3, 5)
    assert found.position(("b", 1, "c"), at_key=True) == (4, 6)
    assert found.position(("b", 1, "c")) == (4, 9)


def test_what_is_not_in_the_file_has_the_place_of_its_parent() -> None:
    found = document("# first\na:\n  b: 1\n")
    assert found.position(("a", "zzz", 3)) == (2, 1)
    assert found.position(("zzz",)) == (2, 1)
    assert loaded(b"").position(("zzz",)) == (1, 1)


def test_an_empty_value_has_the_place_of_its_key() -> None:
    assert document("a:\n  b:\n\n\nc: 1\n").position(("a", "b")) == (2, 3)


def test_a_number_can_be_had_as_it_is_written() -> None:
    assert document("a: [3.10, 0x0F, '7']\n").written(("a", 0)) == "3.10"


def test_a_byte_order_mark_and_windows_line_ends_move_nothing() -> None:
    found = loaded(b"\xef\xbb\xbfa: 1\r\nb:\r\n  c: 2\r\n")
    assert found.value == {"a": 1, "b": {"c": 2}}
    assert found.position(("a",), at_key=True) == (1, 1)
    assert found.position(("b", "c")) == (3, 6)


def test_anchors_and_merge_keys_are_followed() -> None:
    found = document("base: &b {q: 1, r: 2}\none:\n  <<: *b\n  q: 3\ntwo: *b\nthree: {<<: [{q: 9}, *b]}\n")
    assert found.value["one"] == {"q": 3, "r": 2}
    assert found.value["two"] == {"q": 1, "r": 2}
    assert found.value["three"] == {"q": 9, "r": 2}
    assert found.problems == ()
    assert found.position(("one", "r")) == (1, 20)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a:\n  c: 1\n  c: 2\n", "3:3: a.c: is defined twice, in line 2, column 3 and in line 3, column 3: keep one"),
        (
            "<<: {a: 1}\n<<: {b: 1}\n",
            "2:1: <<: is defined twice, in line 1, column 1 and in line 2, column 1: keep one",
        ),
        ("a: !foo x\n", "1:4: a: the tag '!foo' is not supported: put text that starts with ! in quotes"),
        (
            "a: !!python/object/apply:os.system [id]\n",
            "1:4: a: the tag 'tag:yaml.org,2002:python/object/apply:o…' is not supported: put text that starts with ! in quotes",
        ),
        ("a: [*.py]\n", "1:5: a[0]: there is no anchor &.py above: put text that starts with * in quotes"),
        ("a: &x [*x]\n", "1:8: a[0]: there is no anchor &x above: put text that starts with * in quotes"),
        ("a: .inf\n", "1:4: a: is not a finite number: write a number, or false to switch a limit off"),
        ("a: 1e999\n", "1:4: a: is not a finite number: write a number, or false to switch a limit off"),
        ("a: 9223372036854775808\n", "1:4: a: is too large: expected a number of at most 64 bits"),
        ("a: " + "9" * 10_000 + "\n", "1:4: a: is too large: expected a number of at most 64 bits"),
        ('a: "x\\0y"\n', "1:4: a: contains a NUL character: remove it"),
        ('a: "\\ud800"\n', "1:4: a: contains half of a surrogate pair: write the character itself"),
        ('"x\\0": 1\n', "1:1: a key contains a NUL character: remove it"),
        ("1: x\n", '1:1: the key 1 is not text: write "1" in quotes'),
        ("true: x\n", '1:1: the key true is not text: write "true" in quotes'),
        (".inf: x\n", '1:1: the key .inf is not text: write ".inf" in quotes'),
        (": x\n", "1:1: there is no key before the colon"),
        ("? [a]\n: b\n", '1:3: a key must be text: put braces and brackets in quotes, as in "{name}"'),
        ("a: {<<: 3}\n", "1:9: a: only a mapping can be merged: write <<: *anchor"),
    ],
)
def test_a_slip_is_told_and_the_rest_is_read(text: str, problem: str) -> None:
    assert told(text + "z: 1\n") == [problem]
    assert document(text + "z: 1\n").value["z"] == 1


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a:\n\tb: 1\n", "2:1: a tab character: use spaces"),
        (b"a: 1\nb: \xff\n", "2:4: the byte 0xff is not UTF-8: save the file as UTF-8"),
        (b"\xff\xfea\0", "1:1: the file is not UTF-8: save it as UTF-8"),
        (b"a: 1\nb: x\x07\n", "2:5: the control character U+0007 is not allowed: remove it"),
        (b"a: b: c\n", "1:5: a colon is not expected here: look at the indentation, or put the text in quotes"),
        (b"a: [1, 2\nb: 3\n", "2:2: expected , or ] here: the list that starts in line 1, column 4 is not closed"),
        (b"a: {b: 1\nc: 3\n", "2:2: expected , or } here: the mapping that starts in line 1, column 4 is not closed"),
        (b"a: {\n", "2:1: the file ends in the middle of a list or mapping: close it with ] or }"),
        (b"a: 'x\n", "1:4: the quoted text that starts in line 1, column 4 is not closed"),
        (b"a: @x\n", "1:4: a value cannot start with @: put the text in quotes"),
        (b"a: `x`\n", "1:4: a value cannot start with `: put the text in quotes"),
        (b"a:\n  b: 1\n c: 2\n", "3:2: this is not indented like the block that starts in line 1, column 1"),
        (b"a: 1\nb\nc: 1\n", "2:1: expected `key: value`: the colon is missing"),
        (b"a: 1\n---\nb: 1\n", "2:1: a second document starts here: a workflow file has one"),
        (
            b'a: "\\Uffffffff"\n',
            "1:1: not valid YAML: this value or the next one has an escape that is not a character",
        ),
        (b"%YAML 3.0\n---\na: 1\n", "1:1: not valid YAML: found incompatible YAML document (version 1.* is required)"),
        (b"[" * 1000, "1:52: nested more than 50 deep: make it flatter"),
        (
            b"a" * (MAX_BYTES + 1),
            "1:1: the file has more than 1048576 bytes: move long texts into separate files",
        ),
    ],
)
def test_what_cannot_be_read_is_one_located_sentence(data: bytes, problem: str) -> None:
    assert refused(data) == problem


def test_bombs_of_aliases_and_merges_are_bounded() -> None:
    tenfold = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    tenfold += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    merges = "- &a0 {k: 1}\n" + "".join(f"- &a{i} {{k{i}: 1, <<: *a{i - 1}}}\n" for i in range(1, 3000))
    deep = "- &a0 [x]\n" + "".join(f"- &a{i} [*a{i - 1}]\n" for i in range(1, 3000))
    start = time.monotonic()
    assert "more than 100000 values once aliases are expanded" in refused(tenfold.encode())
    assert "more than 100000 values" in refused(merges.encode())
    assert "nested more than 50 deep once aliases are expanded" in refused(deep.encode())
    assert time.monotonic() - start < 20
