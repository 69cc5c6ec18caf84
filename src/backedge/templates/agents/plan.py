"""Plays a planner: replace it with your own program in any language, or with
`agent: claude` in backedge.yaml.

A step gets its briefing as a JSON object on stdin and prints its outcome as a
JSON object on stdout. Its stderr is its log, which `backedge run` shows.
"""

import json
import sys

briefing = json.load(sys.stdin)
task = briefing["input"] or "greet people by name"
print(f"planning: {task}", file=sys.stderr)

units = ["greet(name) greets a person by name"]

# The findings that planning caused, which this step must address.
for finding in briefing["feedback"]["findings"]:
    fix = finding["suggested_fix"] or finding["description"]
    units.append(f"{finding['id']}: {fix}")

print(
    json.dumps(
        {"output": {"task": task, "units": units}, "summary": "; ".join(units)}
    )
)
