"""A team that has to pass gates: replace it step by step with your own
programs, or with `agent: claude` in backedge.yaml.

The ux forgets about contrast, which the gate `accessibility` finds before any
step builds on it. The page is too heavy at first: the gate `performance` sends
a request to all three steps that can reduce its size.
"""

import json
import sys
from typing import Any


def asked_by(gate: str, briefing: Any) -> bool:
    """Whether a gate found something, now or before."""
    found = [
        finding["found_by"] for finding in briefing["feedback"]["findings"]
    ]
    return gate in found or gate in (briefing["previous"] or {}).get(
        "fixed", []
    )


def fixed(briefing: Any, **output: Any) -> Any:
    gates = [
        gate
        for gate in ("accessibility", "performance")
        if asked_by(gate, briefing)
    ]
    fixes = [
        finding["suggested_fix"]
        for finding in briefing["feedback"]["findings"]
    ]
    return {
        "output": {**output, "fixed": gates},
        "summary": ", ".join(fixes) or "a first version",
    }


def ux(briefing: Any) -> Any:
    violations = (
        []
        if asked_by("accessibility", briefing)
        else ["color_contrast", "aria_labels"]
    )
    return fixed(
        briefing,
        violations=violations,
        pictures_kb=100 if asked_by("performance", briefing) else 900,
    )


def architect(briefing: Any) -> Any:
    return fixed(
        briefing,
        libraries_kb=200 if asked_by("performance", briefing) else 800,
    )


def developer(briefing: Any) -> Any:
    inputs = briefing["inputs"]
    code = 100 if asked_by("performance", briefing) else 800
    return fixed(
        briefing,
        total_kb=code
        + inputs["ux"]["pictures_kb"]
        + inputs["architect"]["libraries_kb"],
    )


def audit(briefing: Any) -> Any:
    total = briefing["inputs"]["developer"]["total_kb"]
    score = max(0, 100 - total // 75)
    causes = [] if score >= 90 else [f"bundle of {total} kB, at most 750 kB"]
    return {
        "output": {"score": score, "causes": causes},
        "summary": f"score {score}",
    }


def deploy(_: Any) -> Any:
    return {"output": "deployed", "summary": "deployed"}


briefing = json.load(sys.stdin)
print(json.dumps(globals()[briefing["step"]](briefing)))
