"""Plays a coder: replace it with your own program in any language, or with
`agent: claude` in backedge.yaml.

It forgets something the first time, so that you see a finding come back, get
fixed and be verified.
"""

import json
import sys
from pathlib import Path

FIRST = '''"""Greetings."""


def greet(name: str) -> str:
    """Greet a person by name."""
    return f"Hello, {name}!"
'''
FIXED = '''"""Greetings."""


def greet(name: str) -> str:
    """Greet a person by name."""
    if not name:
        message = "whom to greet?"
        raise ValueError(message)
    return f"Hello, {name}!"
'''

briefing = json.load(sys.stdin)

# `mode` is work, rework, verify or answer. A rework gets the findings to
# address, the most severe first.
findings = briefing["feedback"]["findings"]
for finding in findings:
    print(f"to fix: {finding['id']} {finding['description']}", file=sys.stderr)

target = Path("example/hello.py")
target.parent.mkdir(exist_ok=True)
target.with_name("__init__.py").write_text('"""An example."""\n')
again = findings or briefing["previous"]
target.write_text(FIXED if again else FIRST)
summary = (
    f"fixed {', '.join(finding['id'] for finding in findings)}"
    if findings
    else "wrote greet"
)
output = {"file": str(target)}
if not again:
    output["left"] = "FIX" + "ME: an empty name is greeted too"
print(json.dumps({"output": output, "summary": summary}))
