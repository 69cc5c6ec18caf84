"""A team whose design is circular: replace it step by step with your own
programs, or with `agent: claude`.

An invoice has payments, and a payment has an invoice: the coder of payments
finds that each needs the other. The planner breaks the cycle with a model
between them.
"""

import json
import sys
from typing import Any


def plan(briefing: Any) -> Any:
    needs: dict[str, list[str]] = {
        "customer": [],
        "invoice": ["payment"],
        "payment": ["invoice"],
    }
    added = {}
    if briefing["mode"] == "rework":
        needs |= {
            "invoice": [],
            "payment": [],
            "invoice_payment": ["invoice", "payment"],
        }
        step = {"phase": "code", "agent": "coder", "writes": []}
        added["payment"] = {
            **step,
            "needs": ["plan"],
            "reads": {"plan": ["/payment"]},
        }
        added["invoice_payment"] = {
            **step,
            "needs": ["plan", "invoice", "payment"],
        }
    return {"output": needs, "add_steps": added, "summary": ", ".join(needs)}


def coded(briefing: Any) -> Any:
    model = briefing["step"]
    needs = briefing["inputs"]["plan"][model]
    cycle = [
        each
        for each in needs
        if model in briefing["inputs"].get(each, {}).get("needs", [])
    ]
    if cycle:
        issue = {
            "kind": "architecture_issue",
            "severity": "critical",
            "message": f"a cycle: {model} → {cycle[0]} → {model}",
            "suggested_fix": "a model between them",
        }
        return {
            "output": None,
            "feedback": [issue],
            "summary": "found a cycle",
        }
    return {
        "output": {"model": model, "needs": needs},
        "summary": f"{model}, which needs {needs or 'nothing'}",
    }


def review(briefing: Any) -> Any:
    needs = {
        name: made["needs"]
        for name, made in briefing["inputs"].items()
        if made
    }
    cycles = [
        f"{one} → {other} → {one}"
        for one in needs
        for other in needs[one]
        if one in needs.get(other, [])
    ]
    return {
        "verdict": "fail" if cycles else "pass",
        "findings": [{"description": each} for each in cycles],
    }


briefing = json.load(sys.stdin)
print(
    json.dumps(
        {"plan": plan, "review": review}.get(briefing["step"], coded)(briefing)
    )
)
