"""A stand-in for a planner: replace it with your own program in any language, or with `agent: claude` in backedge.yaml.

A step is told what to do by a JSON object on stdin, the briefing, and reports by one on stdout, the outcome. What it
writes to stderr is its log: `backedge run` shows it.
"""

import json
import sys

briefing = json.load(sys.stdin)
task = briefing["input"] or "greet people by their names"
print(f"planning: {task}", file=sys.stderr)

units = ["greet(name) greets somebody by name"]

# Exactly what this step must address: the findings that planning caused.
for finding in briefing["feedback"]["findings"]:
    units.append(f"{finding['id']}: {finding['suggested_fix'] or finding['description']}")

print(json.dumps({"output": {"task": task, "units": units}, "summary": "; ".join(units)}))
