"""Plays a reviewer: replace it with your own program in any language, or with
`agent: claude` in backedge.yaml.

It reports the first item of the plan that the code does not have yet, and
answers for its earlier findings.
"""

import json
import sys

briefing = json.load(sys.stdin)
done = briefing["inputs"]["code"]["done"]
missing = [
    unit for unit in briefing["inputs"]["plan"]["units"] if unit not in done
]
findings = [
    {"description": f"missing: {unit}", "severity": "blocker"}
    for unit in missing[:1]
]
resolutions = [
    {"finding": issue["id"], "status": "fixed"} for issue in briefing["verify"]
]
print(
    json.dumps(
        {
            "verdict": "fail" if findings else "pass",
            "findings": findings,
            "resolutions": resolutions,
        }
    )
)
