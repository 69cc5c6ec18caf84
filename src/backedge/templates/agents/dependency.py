"""A team with a missing dependency: replace it step by step with your own
programs, or with `agent: claude` in backedge.yaml.

The plan has no model for refunds. The service that needs it reports that, and
the planner adds a step for it.
"""

import json
import sys
from typing import Any


def plan(briefing: Any) -> Any:
    models = {"payment": "Payment"}
    added = {}
    for request in briefing["feedback"]["requests"]:
        if request["kind"] == "dependency_missing":
            models["refund"] = "Refund"
            # A step, written as in backedge.yaml. The step that asked for it
            # needs it from now on.
            added["refund"] = {
                "phase": "code",
                "needs": ["plan"],
                "agent": "coder",
                "writes": [],
            }
    return {
        "output": models,
        "add_steps": added,
        "summary": f"models: {', '.join(models.values())}",
    }


def payment(_: Any) -> Any:
    return {
        "output": {"model": "Payment", "fields": ["amount"]},
        "summary": "the model Payment",
    }


def refund(_: Any) -> Any:
    return {
        "output": {"model": "Refund", "fields": ["amount", "reason"]},
        "summary": "the model Refund",
    }


def refund_service(briefing: Any) -> Any:
    models = [
        made["model"]
        for made in briefing["inputs"].values()
        if "model" in made
    ]
    if "Refund" not in models:
        missing = {
            "kind": "dependency_missing",
            "message": "there is no model Refund",
            "suggested_fix": "a model Refund with an amount and a reason",
        }
        return {
            "output": None,
            "feedback": [missing],
            "summary": "cannot start",
        }
    return {"output": {"uses": models}, "summary": f"uses {', '.join(models)}"}


def spec(briefing: Any) -> Any:
    made = briefing["inputs"]["refund_service"]
    if made and "Refund" in made["uses"]:
        return {"verdict": "pass"}
    return {
        "verdict": "fail",
        "findings": [{"description": "nothing can be refunded"}],
    }


briefing = json.load(sys.stdin)
print(json.dumps(globals()[briefing["step"]](briefing)))
