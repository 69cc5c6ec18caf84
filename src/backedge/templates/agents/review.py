"""Plays a reviewer: replace it with your own program in any language, or with
`agent: claude` in backedge.yaml.

It looks for unfinished work. A finding may name the phase that caused the
defect (`affected_phase`); it goes back to the step of that phase.
"""

import json
import sys
from collections.abc import Iterator

MARK = "FIX" + "ME"


def texts(value: object) -> Iterator[str]:
    """All text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


briefing = json.load(sys.stdin)
findings = []
for producer, output in briefing["inputs"].items():
    for line in "\n".join(texts(output)).splitlines():
        # In a diff, a removed line is not a defect.
        if MARK in line and not line.startswith("-"):
            finding = {
                "description": f"{producer} is not finished: "
                f"{line.strip()[:200]}",
                "severity": "high",
            }
            findings.append(finding)
print(f"looked at {', '.join(briefing['inputs'])}", file=sys.stderr)

# Answer for each earlier finding: fixed, not_fixed, withdrawn or duplicate.
again = {finding["description"] for finding in findings}
resolutions = [
    {
        "finding": issue["id"],
        "status": "not_fixed" if issue["description"] in again else "fixed",
    }
    for issue in briefing["verify"]
]
outcome = {
    "verdict": "fail" if findings else "pass",
    "findings": findings,
    "resolutions": resolutions,
}
print(json.dumps(outcome))
