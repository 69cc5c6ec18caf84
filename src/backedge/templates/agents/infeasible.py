"""A team with a requirement that cannot be met: replace it step by step with
your own programs, or with `agent: claude`.

The architect finds that REQ-89 is infeasible, and the pm chooses an
alternative. Later the developer forgets REQ-12; the test reports it, and it
goes to the step that dropped it.
"""

import json
import sys
from typing import Any


def pm(briefing: Any) -> Any:
    requirements = {
        "REQ-12": "export as CSV and JSON",
        "REQ-89": "pages load in 0.5 s",
    }
    for request in briefing["feedback"]["requests"]:
        # The request has the whole analysis of the architect, with the
        # alternatives.
        requirements[request["requirement_id"]] = request["details"][
            "alternatives"
        ][0]
    return {
        "output": requirements,
        "summary": "; ".join(requirements.values()),
    }


def architect(briefing: Any) -> Any:
    wanted = briefing["inputs"]["pm"]["REQ-89"]
    if wanted == "pages load in 0.5 s":
        infeasible = {
            "kind": "technical_infeasibility",
            "requirement_id": "REQ-89",
            "message": f"{wanted}: not over mobile networks",
            "details": {
                "analysis": "1.5 MB at 6 Mbit/s take 2 s",
                "alternatives": [
                    "pages load in 2.5 s",
                    "pages load in 0.5 s without pictures",
                ],
            },
        }
        return {
            "output": None,
            "feedback": [infeasible],
            "summary": "REQ-89 is infeasible",
        }
    return {
        "output": {"REQ-12": "a writer per format", "REQ-89": wanted},
        "summary": "a design for both",
    }


def developer(briefing: Any) -> Any:
    functions = {"load_page": "REQ-89", "export_json": "the JSON writer"}
    for finding in briefing["feedback"]["findings"]:
        functions["export_csv"] = finding["requirement_id"]
    return {"output": functions, "summary": ", ".join(functions)}


def test(briefing: Any) -> Any:
    if "export_csv" in briefing["inputs"]["developer"]:
        return {"verdict": "pass"}
    missing = {
        "description": "there is no export as CSV",
        "category": "missing functionality",
        "requirement_id": "REQ-12",
        "evidence": "TC-45",
    }
    return {"verdict": "fail", "findings": [missing]}


briefing = json.load(sys.stdin)
print(json.dumps(globals()[briefing["step"]](briefing)))
