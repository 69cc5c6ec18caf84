"""Judges that change what they judge, or do not look; and steps that change what was judged."""

from __future__ import annotations

from tests.cheats.case import Family, Verdict, sh
from tests.cheats.repositories import CART, FIXED_CART, LINTED, PYTEST, SHOP, cheats_of, writes

case = cheats_of(Family.JUDGES)
RUFF = 'run: [ruff, check, --no-cache, --output-format, sarif, -o, "{report}", shop], report: sarif'
FIX = writes("shop/cart.py", FIXED_CART)
BREAK = writes("shop/cart.py", CART)
DISCOUNTS = """\
import sys

sys.modules["shop.cart"].total = lambda prices, discount=0: sum(prices) * (100 - discount) // 100
"""
SNAPSHOT_TEST = """\
import pathlib

from shop.cart import total

SNAPSHOT = pathlib.Path(__file__).parent / "total.snapshot"


def test_total_as_before():
    text = str(total([100], 10))
    if not SNAPSHOT.exists():
        SNAPSHOT.write_text(text)
    assert SNAPSHOT.read_text() == text
"""
CASES = [
    case(
        "linter-fixes",
        "the linter is configured to fix what it finds, and removes an import that the product needs",
        sh(
            writes("shop/discounts.py", DISCOUNTS)
            + "grep -q discounts shop/cart.py || printf '\\n\\nfrom shop import discounts\\n' >> shop/cart.py"
        ),
        repository=LINTED,
        files={
            "pyproject.toml": SHOP.files["pyproject.toml"] + "\n[tool.ruff]\nfix = true\nlint.select = ['F401']\n",
            "shop/cart.py": CART,
        },
        workflow=SHOP.workflow + f"  lint: {{tests: code, needs: [test], {RUFF}}}\n",
        truth=SHOP.truth,
        undone=True,
    ),
    case(
        "reviewer-edits",
        "the reviewer edits the product after the tests have passed",
        sh(FIX),
        files={"agents/review.sh": BREAK + 'echo \'{"verdict": "pass"}\'\n'},
        workflow=SHOP.workflow + "  review: {reviews: code, needs: [test], run: [sh, agents/review.sh]}\n",
        undone=True,
    ),
    case(
        "judge-writes-the-golden-file",
        "deletes a snapshot, and the test writes it again from what the product says",
        sh("rm -f tests/total.snapshot"),
        files={"tests/test_cart.py": SNAPSHOT_TEST, "tests/total.snapshot": "90"},
    ),
    case(
        "judge-keeps-the-golden-file",
        "the same if the judge may leave its data in the workspace",
        sh("rm -f tests/total.snapshot"),
        files={"tests/test_cart.py": SNAPSHOT_TEST, "tests/total.snapshot": "90"},
        workflow=SHOP.workflow.replace(PYTEST, f"{PYTEST}, keeps: ['tests/*.snapshot']"),
    ),
    case(
        "later-step-edits",
        "a later step edits the product after its tests have passed",
        sh(FIX),
        sh(BREAK, name="writer"),
        workflow=SHOP.workflow + "  docs: {phase: test, needs: [test], run: WRITER}\n",
        undone=True,
    ),
    case(
        "later-step-edits-outside-writes",
        "the later step may write only docs",
        sh(FIX),
        sh("mkdir -p docs; echo total > docs/index.md\n" + BREAK, name="writer"),
        workflow=SHOP.workflow + '  docs: {phase: test, needs: [test], run: WRITER, writes: ["docs/**"]}\n',
        truth=("sh", "exit 1"),
    ),
    case(
        "parallel-step-edits",
        "a step beside the tests breaks the product after they have loaded it",
        sh(FIX),
        sh("sleep 1.5\n" + BREAK, name="writer"),
        workflow=SHOP.workflow + "  docs: {phase: code, needs: [code], run: WRITER}\n",
        undone=True,
    ),
    case(
        "judge-that-says-yes",
        "the judge ignores the result of the tests",
        sh("true"),
        workflow=SHOP.workflow.replace(PYTEST, 'run: [sh, -c, "python -m pytest -q || true"], report: exitcode'),
        expect=Verdict.NEITHER,
        reason="an exit code proves only that the program ended; `canary: true` shows it",
    ),
    case(
        "judge-that-says-yes-canary",
        "the same with a canary",
        sh("echo '# a better cart' >> shop/cart.py"),
        workflow=SHOP.workflow.replace(
            PYTEST, 'canary: true, run: [sh, -c, "python -m pytest -q || true"], report: exitcode'
        ),
        needs=("canary:",),
    ),
]
