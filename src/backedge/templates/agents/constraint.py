"""A team that runs into a constraint: replace it step by step with your own
programs, or with `agent: claude` in backedge.yaml.

The developer finds that the hosting does not support WebSockets. The pm and
the architect choose what to do, and first disagree. Then the architect changes
the design, and the developer builds what they chose.
"""

import json
import sys
from typing import Any

OPTIONS = [
    {
        "option": "polling",
        "effort": "low",
        "impact": "a delay of 2 s",
        "rework": ["architect"],
    },
    {
        "option": "another hosting",
        "effort": "high",
        "impact": "a migration",
        "rework": ["architect"],
    },
    {
        "option": "not live",
        "effort": "none",
        "impact": "REQ-123 is left out",
        "accept": True,
    },
]


def pm(briefing: Any) -> Any:
    if briefing["mode"] == "decide":
        # The second round has the positions of the first: a single dissenter
        # gives way.
        others = [
            each
            for each in briefing["feedback"]["requests"][0]["positions"]
            if each["who"] != "pm"
        ]
        if others:
            return {
                "decision": {
                    "option": others[-1]["option"],
                    "reason": "2 s are as good as live",
                }
            }
        return {
            "decision": {
                "option": "another hosting",
                "reason": "people expect it to be live",
            }
        }
    return {
        "output": {"REQ-123": "several people edit one page, live"},
        "summary": "one requirement",
    }


def architect(briefing: Any) -> Any:
    if briefing["mode"] == "decide":
        return {
            "decision": {
                "option": "polling",
                "reason": "no migration in this quarter",
            }
        }
    choices = [
        request["choice"]["option"]
        for request in briefing["feedback"]["requests"]
        if request["choice"]
    ]
    transport = choices[-1] if choices else "websockets"
    return {
        "output": {"REQ-123": transport},
        "summary": f"REQ-123 by {transport}",
    }


def developer(briefing: Any) -> Any:
    transport = briefing["inputs"]["architect"]["REQ-123"]
    if transport == "websockets" and not briefing["feedback"]["resolutions"]:
        constraint = {
            "kind": "constraint_violation",
            "to": ["architect", "pm"],
            "severity": "blocking",
            "message": "the hosting does not support WebSockets",
            "requirement_id": "REQ-123",
            "options": OPTIONS,
        }
        return {
            "output": None,
            "feedback": [constraint],
            "summary": "stopped at a constraint",
        }
    return {
        "output": {"live": transport},
        "summary": f"built with {transport}",
    }


def test(briefing: Any) -> Any:
    if briefing["inputs"]["developer"] == {"live": "websockets"}:
        return {
            "verdict": "fail",
            "findings": [{"description": "the connection is refused"}],
        }
    return {"verdict": "pass"}


briefing = json.load(sys.stdin)
print(json.dumps(globals()[briefing["step"]](briefing)))
