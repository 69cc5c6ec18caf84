"""A patch holds every change exactly: `git apply` makes the new file from the old one, and the old one from the new."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backedge.adapters.evidence.patch import LONGEST, Version, patch_of
from tests.evidence.parts import git

MODES = st.sampled_from(["100644", "100755", "120000"])
LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"\n", b"c", b"\r\n", b"\xff\xfe\n", b"-- x\n", b"\\ No newline\n", b"\x0c\n"]),
    max_size=8,
)
CONTENTS = LINES.map(b"".join) | st.binary(max_size=200)


def put(folder: Path, path: str, version: Version | None) -> None:
    whole = folder / path
    whole.unlink(missing_ok=True)
    if version is not None and version.mode == "120000":
        whole.symlink_to(os.fsdecode(version.content))
    elif version is not None:
        whole.write_bytes(version.content)
        whole.chmod(int(version.mode[3:], 8))


def found(folder: Path, path: str) -> Version | None:
    whole = folder / path
    if whole.is_symlink():
        return Version(os.fsencode(os.readlink(whole)), "120000")
    if not whole.exists():
        return None
    return Version(whole.read_bytes(), "100755" if whole.stat().st_mode & 0o100 else "100644")


def versions(mode: str, content: bytes) -> Version:
    return Version(content.replace(b"\0", b"") or b"x", mode) if mode == "120000" else Version(content, mode)


def applies(path: str, before: Version | None, after: Version | None) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        put(folder, path, before)
        text = patch_of(path, before, after)
        assert bool(text) == (before != after)
        if text:
            git(folder, "apply", "--whitespace=nowarn", "-", given=text)
            assert found(folder, path) == after
            git(folder, "apply", "--whitespace=nowarn", "-R", "-", given=text)
            assert found(folder, path) == before


@settings(max_examples=60)
@given(st.none() | st.builds(versions, MODES, CONTENTS), st.none() | st.builds(versions, MODES, CONTENTS))
def test_a_patch_can_be_applied_and_taken_back(before: Version | None, after: Version | None) -> None:
    applies("file.txt", before, after)


@pytest.mark.parametrize(
    "path", ["a b.txt", 'q"uote', "tab\there", "line\nbreak", "ü", "back\\slash", os.fsdecode(b"\xff"), "\u202e"]
)
def test_every_name_can_be_in_a_patch(path: str) -> None:
    applies(path, Version(b"1\n", "100644"), Version(b"2\n", "100755"))
    applies(path, None, Version(b"\0binary", "100644"))


def test_a_long_text_is_kept_whole() -> None:
    applies("long", Version(b"a\n" * LONGEST, "100644"), Version(b"b\n" * LONGEST, "100644"))
