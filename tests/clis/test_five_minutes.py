"""The pages "in five minutes", followed to the letter with the real CLI. Only its model is a stand-in, with a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clis.model import Call, Text, Turn, model
from tests.clis.parts import environment, needs
from tests.test_docs import DOCS, MARK, blocks, fits, name_of, script_of

FIRST = "def total(prices):\n    if min(prices) <= 0:\n        raise ValueError(prices)\n    return sum(prices)\n"
FIXED = FIRST.replace("<= 0", "< 0")
ROUNDED = FIXED.replace("sum(prices)", "round(sum(prices))")
ZERO = {"description": "a price of 0 is refused too", "severity": "high", "file": "price.py", "line": 2}
SOLVED = [{"finding": "F-1", "status": "fixed"}]
QUESTION = {
    "kind": "context_request",
    "to": ["human"],
    "message": "Which unit?",
    "blocking": True,
    "options": [{"option": "cents"}, {"option": "euros"}],
}


def claude(folder: Path) -> tuple[Callable[[str], list[Turn]], Callable[..., Turn]]:
    """How claude changes the file, and how it answers."""

    def write(text: str) -> list[Turn]:
        path = str(folder / "price.py")
        return [Call("Read", {"file_path": path}), Call("Write", {"file_path": path, "content": text})]

    return write, lambda **outcome: Call("StructuredOutput", outcome)


def codex(_: Path) -> tuple[Callable[[str], list[Turn]], Callable[..., Turn]]:
    def write(text: str) -> list[Turn]:
        return [Call("exec_command", {"cmd": f"cat > price.py <<'END'\n{text}END"})]

    def answer(**outcome: Any) -> Turn:
        known = {"findings": None} if "verdict" in outcome else {"output": None, "feedback": None}
        return Text(json.dumps({**known, "resolutions": None, **outcome}))

    return write, answer


@pytest.mark.slow
@pytest.mark.parametrize("cli", [claude, codex], ids=["claude", "codex"])
def test_the_page_can_be_followed_to_the_letter(
    cli: Callable[[Path], tuple[Callable[[str], list[Turn]], Callable[..., Turn]]], tmp_path: Path
) -> None:
    name = cli.__name__
    needs(name)
    page = DOCS / f"{'claude-code' if name == 'claude' else name}-in-five-minutes.md"
    folder, script = tmp_path / "till", tmp_path / "page.py"
    folder.mkdir()
    script.write_text(script_of(page), encoding="utf-8")
    write, answer = cli(folder)
    with model() as standin:
        standin.says(
            *(*write(FIRST), answer(output="price.py", summary="total() refuses negative prices")),
            answer(verdict="fail", summary="too strict", findings=[dict(ZERO)]),
            *(*write(FIXED), answer(output="price.py", summary="0 is a price", resolutions=SOLVED)),
            answer(verdict="pass", summary="good", findings=[], resolutions=SOLVED),
            answer(output="nothing yet", summary="I need to know the unit", feedback=[dict(QUESTION)]),
            *(*write(ROUNDED), answer(output="price.py", summary="whole cents")),
            answer(verdict="pass", summary="good", findings=[]),
        )
        env = environment(name, standin, tmp_path / "home")
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
        # In a home below the folder for temporary files, codex does not start its own sandbox.
        (tmp_path / "tmp").mkdir()
        env["TMPDIR"] = str(tmp_path / "tmp")
        argv = [sys.executable, str(script)]
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        assert standin.turns == [], f"it ended early:\n{done.stdout}\n{done.stderr}"
    said = [part.partition("\n")[2].strip() for part in f"\n{done.stdout}".split(f"\n{MARK}")[1:]]
    for block, got in zip(blocks(page), said, strict=True):
        if block.output is not None:
            assert fits(got, block.output), f"{name_of(page)}:{block.line} printed\n{got}\n{done.stderr}"
    assert (folder / "price.py").read_text() == ROUNDED
