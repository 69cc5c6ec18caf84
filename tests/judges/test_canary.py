"""A canary: which files are broken, how, and what follows if a judge does not notice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backedge.adapters.evidence.tree import Tree
from backedge.adapters.judges.canary import LARGEST, Trial, blind_spots, broken, candidates, never_loaded


@pytest.mark.parametrize(
    ("name", "content", "first"),
    [
        ("shop/cart.py", b"x = 1\n", b"raise SystemExit('canary')"),
        ("a.JS", b"x = 1\n", b"throw new Error('canary');"),
        ("a.ts", b"x = 1\n", b"throw new Error('canary');"),
        ("a.sh", b"true\n", b"exit 97"),
        ("a.go", b"package a\n", b"canary ((( this line must not be accepted"),
    ],
)
def test_a_broken_file_begins_with_a_line_that_must_fail(name: str, content: bytes, first: bytes) -> None:
    made = broken(name, content)
    assert made is not None and made.splitlines() == [first, *content.splitlines()]


@pytest.mark.parametrize(
    ("name", "shebang", "second"),
    [
        ("run", b"#!/usr/bin/env python3", b"raise SystemExit('canary')"),
        ("run", b"#!/usr/bin/node", b"throw new Error('canary');"),
        ("run", b"#!/bin/sh", b"exit 97"),
        ("run", b"#!/usr/bin/awk -f", b"canary ((( this line must not be accepted"),
        ("run.py", b"#!/bin/sh", b"raise SystemExit('canary')"),
    ],
)
def test_a_program_keeps_its_first_line(name: str, shebang: bytes, second: bytes) -> None:
    made = broken(name, shebang + b"\nrest\n")
    assert made is not None and made.splitlines() == [shebang, second, b"rest"]
    assert broken(name, shebang) == shebang + b"\n" + second + b"\n"


@pytest.mark.parametrize("content", [b"", b" \n", b"a\0b", b"x" * (LARGEST + 1)])
def test_a_file_that_is_empty_large_or_not_text_is_left_alone(content: bytes) -> None:
    assert broken("a.py", content) is None


@pytest.mark.parametrize(("name", "command"), [("a.py", [sys.executable]), ("a.sh", ["sh"])])
def test_the_line_really_fails(tmp_path: Path, name: str, command: list[str]) -> None:
    (tmp_path / name).write_bytes(broken(name, b"true = 1\n" if name == "a.py" else b"true\n") or b"")
    assert subprocess.run([*command, name], cwd=tmp_path, check=False, capture_output=True).returncode != 0


def test_changed_product_files_are_broken_programs_first() -> None:
    base = Tree({"same.py": "f:1", "old.py": "f:1", "gone.py": "f:1"})
    now = Tree(
        {
            "same.py": "f:1",
            "old.py": "f:2",
            "a.go": "f:1",
            "new.py": "x:1",
            "README.md": "f:1",
            "link.py": "l:1",
            "tests/test_a.py": "f:1",
        }
    )
    assert candidates(base, now, {"tests/test_a.py": "test"}) == ["new.py", "old.py", "a.go"]


def test_a_judge_is_blind_only_to_files_that_it_reads() -> None:
    trials = [
        Trial("seen.py", passed=True, opened=True),
        Trial("unread.py", passed=True, opened=False),
        Trial("noticed.py", passed=False, opened=True),
    ]
    (found,) = blind_spots(trials)
    assert (found.description, found.severity, found.file) == (
        "the judge does not notice a broken seen.py",
        "high",
        "seen.py",
    )
    assert never_loaded("test", trials) == ["test does not load unread.py: its pass says nothing about it"]
    assert never_loaded("test", trials[:1]) == []
