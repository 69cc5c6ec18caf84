"""The coder: sloppy at first, thorough once it gets feedback, and stubborn about floating point."""

import json
import sys
import time
from pathlib import Path

UNUSED = "import os\n\n"
FLOATS = """
def total(prices: list[str]) -> float:
    return sum(float(price) for price in prices)
"""
ROUNDED = """
def total(prices: list[str]) -> float:
    return round(sum(float(price) for price in prices), 2)
"""
DECIMALS = """
def total(prices: list[str]) -> Decimal:
    exact = sum((Decimal(price) for price in prices), Decimal(0))
    return exact.quantize(Decimal("0.01"), ROUND_HALF_UP)
"""
DISCOUNT = """
def discounted(price: str, percent: int) -> Decimal:
    return Decimal(price) * (100 - percent) / 100
"""
LIMITED = """
def discounted(price: str, percent: int) -> Decimal:
    if not 0 <= percent <= {most}:
        raise ValueError(f"a discount of {{percent}} percent: at most {most}")
    return Decimal(price) * (100 - percent) / 100
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


briefing = json.load(sys.stdin)
feedback = briefing["feedback"]
target = Path("till/price.py")
target.parent.mkdir(exist_ok=True)
(target.parent / "__init__.py").touch()
known = target.read_text() if target.exists() else ""
for finding in feedback["findings"]:
    place = f"{finding['file']}:{finding['line']} " if finding["file"] else ""
    say(f"to fix: {finding['id']} {place}{finding['description']}")
for advice in feedback["advice"]:
    say(f"a person says: {advice}")

first = not known
told_decimal = "ROUND_HALF_UP" in known or any("Decimal" in advice for advice in feedback["advice"])
most = briefing["inputs"]["plan"]["discount_at_most"]
total = DECIMALS if told_decimal else FLOATS if first else ROUNDED
for step in ("thinking", "writing till/price.py", "looking at it once more"):
    say(step)
    time.sleep(0.4 if first else 0.6)
imports = "from decimal import ROUND_HALF_UP, Decimal\n\n" if told_decimal else "from decimal import Decimal\n\n"
discount = LIMITED.format(most=most) if most else DISCOUNT
target.write_text((UNUSED if first else "") + imports + total + "\n" + discount)
summary = {FLOATS: "prices as floats", ROUNDED: "floats, rounded", DECIMALS: "decimals, rounded half up"}[total]
if most:
    summary += f", discounts of at most {most} percent"
print(json.dumps({"output": {"file": str(target)}, "summary": summary, "usage": {"cost_usd": 0.05}}))
