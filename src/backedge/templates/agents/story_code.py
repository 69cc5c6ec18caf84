"""Plays a coder: replace it with your own program in any language, or with
`agent: claude` in backedge.yaml.

It does one item of the plan, and one more each time a finding says what is
missing.
"""

import json
import sys
from pathlib import Path

briefing = json.load(sys.stdin)
for finding in briefing["feedback"]["findings"]:
    print(f"to fix: {finding['id']} {finding['description']}", file=sys.stderr)

done = briefing["inputs"]["plan"]["units"][: briefing["attempt"]]
target = Path("example") / f"{briefing['input']['story']['id']}.txt"
target.parent.mkdir(exist_ok=True)
target.write_text("".join(f"{unit}\n" for unit in done))
print(
    json.dumps(
        {
            "output": {"file": str(target), "done": done},
            "summary": f"{len(done)} done",
        }
    )
)
