"""What make would not do again is not in the room of a judge."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from backedge.adapters.judges.make_targets import made_since
from tests.evidence.parts import write

MAKEFILE = """\
STAMPS := build/stamps
export CC ?= cc
.PHONY: all
all: test docs/index.html
\techo done
test check: $(STAMPS)/tested lib.o \\
    | ${STAMPS}
\techo ok
$(STAMPS)/tested: cart.py ; pytest && touch $@
${STAMPS}:

\tmkdir -p $@
lib.o: lib.h
%.out: %.py
\tpython $<
other: ; touch other
"""


def made(folder: Path, argv: Sequence[str], base: Sequence[str] = ()) -> list[str]:
    return made_since(argv, folder, base, 0)


@pytest.mark.parametrize(
    "argv",
    [
        ["make", "-j", "4", "test", "V=1"],
        ["sh", "-c", "cd . && make test"],
        ["env", "X=1", "gmake", "--file", "Makefile", "test"],
        ["make"],
    ],
)
def test_targets_on_the_way_to_the_goal_are_left_out(tmp_path: Path, argv: Sequence[str]) -> None:
    write(
        tmp_path, {"Makefile": MAKEFILE, "build/stamps/tested": "", "test": "", "other": "", "lib.o": "", "cart.py": ""}
    )
    assert set(made(tmp_path, argv)) == {"build/stamps", "build/stamps/tested", "test"}


def test_what_the_run_began_with_is_not_left_out(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": MAKEFILE, "build/stamps/tested": "", "check/a.txt": ""})
    assert made(tmp_path, ["make", "check"], ["build/stamps/tested", "check/a.txt"]) == []
    assert made_since(["make", "check"], tmp_path, [], time.time_ns() + 10**12) == []


def test_a_folder_of_the_name_of_a_goal_is_left_out_and_nothing_outside(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"sub/Makefile": "check: ../tested 'odd\n\truff\n../tested: ; touch $@\n", "sub/check/a": "", "tested": ""},
    )
    assert made(tmp_path, ["make", "-C", "sub", "check"]) == ["sub/check", "tested"]
    assert made(tmp_path / "sub", ["make", "check"]) == ["check"]


def test_other_programs_make_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": MAKEFILE, "test": ""})
    assert made(tmp_path, ["pytest", "test"]) == []
    assert made(tmp_path / "gone", ["make", "test"]) == []
