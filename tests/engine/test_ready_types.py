"""Types are read in several threads at once, also the first time: several attempts may end at the same moment."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "backedge"

# Threads take turns as often as Python allows, so that most processes die if a type is not ready.
AT_ONCE = """\
import sys, threading
from backedge.engine.protocol import parse_outcome
from backedge.adapters.evidence.store import Base, KnownTests
from backedge.adapters.agents.workspace import Snapshot
import msgspec
start = threading.Barrier(8)
def read():
    start.wait()
    {what}
threads = [threading.Thread(target=read) for _ in range(8)]
sys.setswitchinterval(1e-6)
for each in threads:
    each.start()
for each in threads:
    each.join()
"""


@pytest.mark.parametrize(
    "what",
    [
        'parse_outcome({"findings": [{"description": "d"}], "feedback": [{"kind": "fix_request", "to": "a", "message": "m"}]})',
        "msgspec.json.decode(b'{\"files\": {}}', type=Snapshot)",
    ],
    ids=["outcome", "snapshot"],
)
def test_several_threads_may_read_a_type_for_the_first_time(what: str) -> None:
    def once(_: int) -> int:
        return subprocess.run([sys.executable, "-c", AT_ONCE.format(what=what)], timeout=60, check=False).returncode

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(once, range(16))) == [0] * 16


def test_every_type_that_is_read_is_made_ready_on_import() -> None:
    read, ready = set(), set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            match ast.unparse(node.func).rpartition(".")[2]:
                case "decode":
                    read |= {ast.unparse(each.value) for each in node.keywords if each.arg == "type"}
                case "convert" | "read_record" | "_read" if len(node.args) == 2:
                    read.add(ast.unparse(node.args[1]))
        for statement in tree.body:  # of the module: what is in a function runs too late
            for node in ast.walk(statement) if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) else ():
                if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
                    "make_ready",
                    "Decoder",
                ):
                    ready |= {ast.unparse(each) for each in node.args}
    words = {word for each in read for word in re.findall(r"\b_?[A-Z]\w+", each)}
    assert {"Outcome", "Snapshot", "Ended", "Base"} <= words
    assert words <= {word for each in ready for word in re.findall(r"\b_?[A-Z]\w+", each)}
