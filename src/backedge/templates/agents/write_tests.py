"""Plays a test writer: replace it with your own program, or with `agent:
claude` in backedge.yaml.

The files that a step writes are part of its artifact: `writes` in
backedge.yaml names them.
"""

import json
import sys
from pathlib import Path

TESTS = '''"""Tests of the greeting."""

import runpy
from pathlib import Path

HELLO = Path(__file__).with_name("hello.py")
greet = runpy.run_path(str(HELLO))["greet"]


def test_it_greets_by_name() -> None:
    """A person is greeted."""
    assert greet("Ada") == "Hello, Ada!"


def test_nobody_is_not_greeted() -> None:
    """An empty name is refused."""
    try:
        greet("")
    except ValueError:
        return
    message = "an empty name must be refused"
    raise AssertionError(message)
'''

json.load(sys.stdin)
target = Path("example/test_hello.py")
target.parent.mkdir(exist_ok=True)
target.write_text(TESTS)
print(f"wrote {target}", file=sys.stderr)
print(
    json.dumps(
        {"output": {"file": str(target)}, "summary": "two tests of greet"}
    )
)
