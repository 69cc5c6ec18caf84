"""The reviewer: it tries the code, and names the phase that caused a defect."""

import json
import sys
import time

sys.path.insert(0, ".")
sys.dont_write_bytecode = True  # two versions within one second would share a compiled file
price = __import__("till.price", fromlist=["price"])
json.load(sys.stdin)
outcome: dict[str, object]
print("giving a discount of 200 percent", file=sys.stderr, flush=True)
time.sleep(0.2)
try:
    paid = price.discounted("10.00", 200)
except ValueError as error:
    outcome = {"verdict": "pass", "summary": f"refused: {error}"}
else:
    outcome = {
        "verdict": "fail",
        "findings": [
            {
                "description": "the plan does not limit discounts: with 200 percent off, the shop pays the customer",
                "severity": "critical",
                "category": "requirements",
                "affected_phase": "planning",
                "evidence": f"discounted('10.00', 200) is {paid}",
                "suggested_fix": "limit discounts in the plan",
            }
        ],
    }
print(json.dumps({**outcome, "usage": {"cost_usd": 0.01}}))
