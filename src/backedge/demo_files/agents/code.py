"""The coder: sloppy at first. When a test fails it changes the test; it fixes the code when a person says so."""

import json
import sys
import time
from pathlib import Path

UNUSED = "import os\n\n"
FLOATS = """
def total(prices: list[str]) -> float:
    return sum(float(price) for price in prices)
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
EXPECTED, WEAKER = '== Decimal("1.01")', '> Decimal("1.00")'


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
cheats = not first and not told_decimal
total = DECIMALS if told_decimal else FLOATS
for step in ("thinking", "making the test pass" if cheats else "writing till/price.py"):
    say(step)
    time.sleep(0.3 if first else 0.8)
imports = "from decimal import ROUND_HALF_UP, Decimal\n\n" if told_decimal else "from decimal import Decimal\n\n"
discount = LIMITED.format(most=most) if most else DISCOUNT
target.write_text((UNUSED if first else "") + imports + total + "\n" + discount)
test = Path("tests/test_price.py")
edited = test.read_text().replace(EXPECTED, WEAKER) if cheats else test.read_text().replace(WEAKER, EXPECTED)
if edited != test.read_text():
    test.write_text(edited)
summary = "decimals, rounded half up" if told_decimal else "fixed the failing test" if cheats else "prices as floats"
if most:
    summary += f", discounts of at most {most} percent"
print(json.dumps({"output": {"file": str(target)}, "summary": summary, "usage": {"cost_usd": 0.05}}))
