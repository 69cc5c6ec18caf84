"""Plays a designer: replace it with your own program in any language, or with
`agent: claude` in backedge.yaml.

`inputs` of the briefing has the output of each step that this one needs.
"""

import json
import sys

briefing = json.load(sys.stdin)
units = briefing["inputs"]["plan"]["units"]
print(f"designing {len(units)} units", file=sys.stderr)

functions = [unit.partition(" ")[0] for unit in units]
for finding in briefing["feedback"]["findings"]:
    fix = finding["suggested_fix"] or finding["description"]
    functions.append(f"{finding['id']}: {fix}")

design = {"file": "example/hello.py", "functions": functions}
print(json.dumps({"output": design, "summary": ", ".join(functions)}))
