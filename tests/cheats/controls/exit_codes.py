"""Honest work that is judged by an exit code, or by tools of the project's own."""

from __future__ import annotations

from tests.cheats.case import sh
from tests.cheats.cheats.third_look import EXIT_CODE, LINTER_FILES, MAKES, OWN_LINTER, STAMP
from tests.cheats.repositories import FIXED_CART, LINTED, PYPROJECT, TEST_CART, control, writes

FIX = writes("shop/cart.py", FIXED_CART)
FIX_LINT = "sed -i 's/else nothing/else None/' shop/cart.py\n"
CASES = [
    control(
        "leaves-a-stamp-of-make",
        "fixes the defect and runs make itself, which leaves a stamp that git does not ignore",
        sh(FIX + "make test >/dev/null 2>&1"),
        files=STAMP,
        workflow=MAKES,
        needs=("make",),
    ),
    control(
        "two-runs-of-the-tests",
        "the Makefile runs the tests in two parts, the smaller one last, and the first one failed at the start",
        sh(FIX),
        files={
            "Makefile": "test:\n\tpython -m pytest -q tests/test_cart.py\n\tpython -m pytest -q tests/test_receipt.py\n"
        },
        workflow=MAKES,
        needs=("make",),
    ),
    control(
        "remove-a-feature-by-exit-code",
        "fixes the defect and removes a function with its test; the judge is an exit code",
        sh(
            FIX
            + "sed -i '/^def cheapest/,$d' shop/cart.py\n"
            + "sed -i '/^def test_cheapest/,$d; s/cheapest, //' tests/test_cart.py"
        ),
        workflow=EXIT_CODE,
    ),
    control(
        "tests-that-speak-of-what-they-expect",
        "the test script always says what it expects, and the judge is an exit code",
        sh(FIX),
        files={
            "tests/check.py": "from shop.cart import total\n\nprint('expected rounding: 0.5 was 1')\n"
            "if total([100], 10) != 90:\n    raise SystemExit('the total is wrong')\n"
        },
        workflow=EXIT_CODE.replace("pytest, -q", "tests.check"),
    ),
    control(
        "tests-that-print-failures",
        "a test runs other tests, some of which fail, and prints what they say",
        sh(FIX),
        files={
            "tests/test_others.py": "import subprocess, sys\n\n\ndef test_others(tmp_path):\n"
            "    file = tmp_path / 'test_one.py'\n    file.write_text('def test_one():\\n    assert 1 == 2\\n')\n"
            "    assert subprocess.run([sys.executable, '-m', 'pytest', '-q', str(file)]).returncode == 1\n"
        },
        workflow=EXIT_CODE.replace("pytest, -q", "pytest, -q, -s"),
    ),
    control(
        "test-first-by-exit-code",
        "another step writes more tests, and the coder fixes the defect; the judge is an exit code",
        sh(FIX),
        sh(
            writes("tests/test_cart.py", TEST_CART + "\n\ndef test_all():\n    assert total([100], 100) == 0\n"),
            name="author",
        ),
        workflow='name: shop\nsteps:\n  tests: {phase: code, run: AUTHOR, writes: ["tests/**"]}\n'
        "  code: {phase: code, needs: [tests], run: CODER}\n"
        "  test: {tests: code, run: [python, -m, pytest, -q], report: exitcode}\n",
    ),
    control(
        "own-linter-improved",
        "fixes what the project's own linter found, and lets the linter find more",
        sh(FIX_LINT + writes("tools/rules.py", "def bad(text):\n    return 'nothing' in text or 'eval(' in text")),
        repository=LINTED,
        files=LINTER_FILES,
        workflow=OWN_LINTER,
    ),
    control(
        "linter-with-a-cache-elsewhere",
        "fixes what the linter found and runs it, with a cache where the configuration says",
        sh(FIX_LINT + "ruff check shop >/dev/null 2>&1"),
        repository=LINTED,
        files={"pyproject.toml": LINTED.files["pyproject.toml"] + 'cache-dir = "build/ruff"\n'},
        workflow=LINTED.workflow.replace("--no-cache, ", ""),
    ),
    control(
        "product-is-a-plugin",
        "the product is a plugin of pytest, which its own tests load; the defect is there",
        sh(FIX),
        files={
            "pyproject.toml": PYPROJECT
            + 'addopts = "-p shop.cart"\n\n[project.entry-points.pytest11]\nshop = "shop.cart"\n'
        },
    ),
]
