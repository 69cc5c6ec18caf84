"""Front matter: unchanged parts stay identical byte for byte, and errors name their place."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from backedge.stories.rules.front_matter import parse_story, yaml_scalar
from backedge.stories.rules.front_matter_reader import StoryFileError
from backedge.stories.rules.summary import _quick, read_summary

STORY = """\
---
# A comment of mine
id: story-1   # the id
title: "A: b"
status: ready # for now
tags: [a, b]  # two
labels:
  - x
  - y
  # after y
nested:
    a: 1
    b:
      - c
long: |
  hello
  there

empty:
last_error: old
quoted: 'it''s'
---
# The text

---
status: not this one
"""


def read(text: str) -> Any:
    return parse_story(text.encode(), "s.md")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_one_value_is_changed_and_every_other_byte_stays(newline: str, start: str) -> None:
    text = start + STORY.replace("\n", newline)
    story = read(text)
    same = {name: value for name, value in story.values.items() if value is not None}
    assert story.changed({}) == story.changed(same) == text
    changed = story.changed({"status": "in-progress", "last_error": None, "empty": "x", "count": 3})
    expected = text.replace("status: ready #", "status: in-progress #", 1).replace(f"last_error: old{newline}", "")
    expected = expected.replace(f"empty:{newline}", f"empty: x{newline}")
    assert changed == expected.replace(f"'it''s'{newline}", f"'it''s'{newline}count: 3{newline}")


def test_lists_and_blocks_are_replaced_whole_and_comments_around_them_stay() -> None:
    story = read(STORY)
    changed = story.changed({"labels": [{"n": 1, "w": "a: b"}, {"n": 2}], "long": "short", "nested": [], "tags": "x"})
    assert 'labels:\n  - n: 1\n    w: "a: b"\n  - n: 2\n  # after y\nnested: []\nlong: short\nempty:\n' in changed
    assert "tags: x\n" in changed
    assert read(changed).values["labels"] == [{"n": 1, "w": "a: b"}, {"n": 2}]


def test_the_values_of_front_matter() -> None:
    values = read(STORY).values
    assert values["nested"] == {"a": 1, "b": ["c"]}
    assert (values["quoted"], values["empty"], values["long"]) == ("it's", None, "hello\nthere\n")


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("no front matter\n", "1:1", "has no front matter: start the file with ---"),
        ("---\ntitle: x\n", "3:1", "the front matter does not end: put --- on a line of its own"),
        ("---\ntitle: [a\n---\n", "2:8", "not valid YAML"),
        ("---\ntitle: a\ntitle: b\n---\n", "3:1", "'title' appears twice: keep one"),
        ("---\n- a\n---\n", "2:1", "write one key per line"),
        ("---\n{a: 1}\n---\n", "2:1", "write one key per line"),
        ("---\ntitle: a: b\n---\n", "2:9", "not valid YAML"),
        ("---\n? [a]\n: b\n---\n", "2:3", "a key must be a word"),
        ("---\ntitle: \x07\n---\n", "2:8", "a character that YAML does not allow"),
        (f"---\na: {'[' * 50}{']' * 50}\n---\n", "2:25", "nested more than 20 deep"),
    ],
)
def test_invalid_front_matter_is_refused_with_its_place(text: str, where: str, what: str) -> None:
    with pytest.raises(StoryFileError) as error:
        read(text)
    assert str(error.value).startswith(f"s.md:{where}: ")
    assert what in str(error.value)


def test_bytes_that_are_not_text_are_refused_with_their_place() -> None:
    with pytest.raises(StoryFileError, match=r"s\.md:2:8: is not UTF-8 text: save it as UTF-8"):
        parse_story(b"---\ntitle: \xff\n---\n", "s.md")
    with pytest.raises(StoryFileError, match="has more than 1048576 bytes"):
        parse_story(b"---\n---\n" + b"x" * 2_000_000, "s.md")


@pytest.mark.parametrize(
    ("line", "where", "what"),
    [
        ("id: a b", "3:5", "id is 'a b': use letters"),
        ("id: ../../etc", "3:5", "id is '../../etc'"),
        ("status: doing", "3:9", "status is 'doing': use one of backlog, ready, in-progress, done, blocked"),
        ("status: In_Progress", "3:9", "status is 'In_Progress': did you mean 'in-progress'?"),
        ("priority: high", "3:11", "priority is 'high': expected a whole number"),
        ("priority: true", "3:11", "priority is True"),
        ("max_refinement_attempts: 11", "3:26", "expected a whole number from 0 to 10"),
        ("dependencies: {a: b}", "3:15", "dependencies is {'a': 'b'}: write a list of words"),
        ("labels: [a, [b]]", "3:9", "write a list of words"),
        ("epic: [a, b]", "3:7", "epic is not one name"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(line: str, where: str, what: str) -> None:
    with pytest.raises(StoryFileError) as error:
        read_summary(f"---\n# x\n{line}\n---\n".encode(), "s.md", "s")
    assert str(error.value).startswith(f"s.md:{where}: ") and what in str(error.value)


@pytest.mark.parametrize("lists", ["[0042, b, b]", '\n  - 0042\n  # a comment\n  - "b"', "\n- 0042\n- b"])
def test_dependencies_labels_and_the_epic_are_words(lists: str) -> None:
    told = read_summary(f"---\ndependencies: {lists}\nlabels: {lists}\nepic: 1.10\n---\n".encode(), "s.md", "s")
    assert (told.dependencies, told.labels, told.epic) == (("0042", "b"), ("0042", "b"), "1.10")
    assert read_summary(b"---\nlabels: one word\n---\n", "s.md", "s").labels == ("one word",)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Words.\n# A  thing #\n# Other\n", "A thing"),
        ("```sh\n# a comment\n```\n# The thing", "The thing"),
        ("## Too low\n#hashtag\n", "stem"),
        ("~~~\n# never closed\n", "stem"),
    ],
)
def test_without_a_title_the_first_heading_is_the_title(text: str, title: str) -> None:
    assert read_summary(f"---\nid: a\n---\n{text}".encode(), "s.md", "stem").title == title
    assert read_summary(f"---\ntitle: Own\n---\n{text}".encode(), "s.md", "stem").title == "Own"


def test_the_summary_of_a_story_and_its_defaults() -> None:
    told = read_summary(b"---\nid: 7\ntitle: A thing\npriority: -2\nmax_refinement_attempts: 5\n---\n", "s.md", "s")
    assert (told.id, told.title, told.priority, told.status, told.max_refinements) == ("7", "A thing", -2, "backlog", 5)
    assert read_summary(b"---\n---\n", "s.md", "stem").id == "stem"


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)
values = st.one_of(st.none(), st.booleans(), st.integers(-(10**17), 10**17), words)
fields = st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), values, max_size=8)


@given(words)
@example("a\u2028b\x85c\x7f")
@example("yes")
@example("null")
@example("1e3")
@example("- a")
@example("")
def test_every_yaml_reader_reads_what_we_write(text: str) -> None:
    line = f"a: {yaml_scalar(text)}\n"
    assert read(f"---\n{line}---\n").values == {"a": text}
    assert YAML(typ="safe", pure=True).load(line) == {"a": text}


@given(fields, fields, words)
def test_any_change_can_be_read_back_and_no_change_changes_nothing(
    before: dict[str, Any], after: dict[str, Any], body: str
) -> None:
    text = read("---\n---\n").changed(before) + body
    story = read(text)
    assert story.values == {name: value for name, value in before.items() if value is not None}
    assert story.changed(before) == text
    changed = story.changed(after)
    expected = {name: value for name, value in {**before, **after}.items() if value is not None}
    assert read(changed).values == expected
    assert changed.endswith(body)
    untouched = [line for line in text.split("\n") if line.partition(":")[0] in set(before) - set(after)]
    assert [line for line in changed.split("\n") if line in untouched][: len(untouched)] == untouched


LINES = """id: a|id: 0042|title: b|title: 1.10|title: ~|priority: 3|- x|- x: y|  - y|  - y: "\\"z\\""|    w: 1|  w: 1
  w:|x:|y: |x: [a, b]|# c|  # c||  z: 1|&a|k: *a|q: 'a|b'|q: "b"|title: "a\\u0041\\n"|title: c # d|status: ready|status: "a|k: a:b|k: a - b
k: -1|? a|{|%TAG|t: >|\t|x: [-]|x: [a, -]|x: [--, a]|k: it's|k: a#b|k: a:|k: - a|- - a|...|blocked_reason: 07
labels:|labels: [a, 07]|labels: x|dependencies:|dependencies: [0042, b-1]|- 07|  - 'q'  # c|epic: 1.0""".replace(
    "\n", "|"
).split("|")
ODD = "\x00\x07\x7f\x85\xa0\u2028\ufeff\r\t ab:#-'\""
SOUP = st.lists(st.sampled_from(LINES) | st.text(ODD, max_size=6).map("k: ".__add__), max_size=8)


@settings(max_examples=1000)
@given(SOUP, st.sampled_from(["\n", "\r\n"]))
@example(["title: a\x00b"], "\n")
@example(["x:", "  - a: 1", "    b: [", "status: ready"], "\n")
@example(["# c\rstatus: done"], "\n")
@example([f"{'k' * 2000}: 1"], "\n")
def test_the_quick_reader_agrees_with_the_parser_or_leaves_the_file_to_it(lines: list[str], newline: str) -> None:
    text = "".join(f"{line}{newline}" for line in lines)
    quick = _quick(text)
    if quick is None:
        return
    whole = read(f"---\n{text}---\n").values
    assert list(quick) == list(whole)
    for name, value in whole.items():
        assert quick[name] == value or (quick[name] in (None, []) and isinstance(value, list | dict))


def test_the_quick_reader_can_read_what_we_write() -> None:
    """The quick reader can read the fields that backedge writes into a story file."""
    reviews = [{"timestamp": "2024-01-09T10:30:00Z", "decision": "FAILED", "feedback": 'said "no":\n# \x07 x'}] * 2
    theirs = {"nested": None, "long": None, "quoted": None}
    text = read(STORY).changed({**theirs, "review_history": reviews, "last_error": 'a "b" \n', "x": ["a"]})
    assert _quick(text.split("---\n")[1]) is not None


@pytest.mark.parametrize("name", ["0042", "1_0", "1e3", "true", "2024-01-01"])
def test_an_id_and_a_title_are_read_as_text(name: str) -> None:
    for line in (f"id: {name}\ntitle: {name}", f"id: {name}\ntitle: {name}\nx: {{a: b}}"):
        told = read_summary(f"---\n{line}\n---\n".encode(), "s.md", "s")
        assert (told.id, told.title) == (name, name)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_story_or_refused(data: bytes) -> None:
    for each in (data, b"---\n" + data + b"\n---\n"):
        with suppress(StoryFileError):
            assert parse_story(each, "s.md").changed({}).encode() == each
