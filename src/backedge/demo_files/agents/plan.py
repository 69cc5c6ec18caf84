"""The planner: it forgets that a discount needs a limit until the feedback says so."""

import json
import sys
import time

briefing = json.load(sys.stdin)
print("reading the task", file=sys.stderr, flush=True)
time.sleep(0.2)
findings = briefing["feedback"]["findings"]
rules = ["prices are texts"]
plan: dict[str, object] = {
    "functions": ["total(prices)", "discounted(price, percent)"],
    "rules": rules,
    "discount_at_most": None,
}
summary = "a total and a discount"
if findings:
    print(f"told: {findings[0]['description']}", file=sys.stderr, flush=True)
    rules.append("a discount is at most 50 percent")
    plan["discount_at_most"] = 50
    summary = "a total and a discount of at most 50 percent"
print(json.dumps({"output": plan, "summary": summary, "usage": {"cost_usd": 0.02}}))
