"""Honest work on tests: they are added, changed, moved, renamed and removed for good reasons."""

from __future__ import annotations

from tests.cheats.case import python, sh
from tests.cheats.repositories import (
    FIXED_CART,
    FIXED_JS,
    FIXED_SLUG,
    PASSING_REVIEW,
    PYPROJECT,
    PYTEST,
    REVIEWED,
    SCRIPTS,
    SHOP,
    TEST_CART,
    WEB,
    at_attempt,
    control,
    replaces,
    writes,
)

FIX = writes("shop/cart.py", FIXED_CART)
TESTS = "tests/test_cart.py"
QUARTER = "\n\ndef test_quarter_off():\n    assert total([400], 25) == 300\n"
EMPTY_IS_FREE = FIXED_CART.replace("if prices else None", "if prices else 0")
TEST_FIRST = f"""\
name: shop
steps:
  write_tests: {{phase: design, run: WRITER, writes: ["tests/**"]}}
  code: {{phase: code, needs: [write_tests], run: CODER, writes: ["shop/**"]}}
  test: {{tests: code, {PYTEST}}}
"""
SHIPPING_TEST = "from shop.shipping import shipping\n\n\ndef test_free_shipping():\n    assert shipping(10_000) == 0\n"
RED_COLLECTION = {"tests/test_shipping.py": SHIPPING_TEST}
SHIPPING = writes("shop/shipping.py", "def shipping(total):\n    return 0 if total >= 5_000 else 490\n")
CASES = [
    control("fix", "fixes the defect", sh(FIX)),
    control(
        "fix-at-the-second-try", "does nothing first, and fixes it when the tests were reported", sh(at_attempt(2, FIX))
    ),
    control("add-a-test", "fixes the defect and adds a test", sh(FIX + writes(TESTS, TEST_CART + QUARTER))),
    control(
        "add-a-test-file",
        "fixes the defect and adds a test file with its data",
        sh(
            FIX
            + writes("tests/data/quarter.json", "[[400], 25, 300]")
            + writes(
                "tests/test_quarter.py",
                "import json\nimport pathlib\n\nfrom shop.cart import total\n\n\ndef test_quarter():\n"
                '    *given, expected = json.loads((pathlib.Path(__file__).parent / "data" / "quarter.json").read_text())\n'
                "    assert total(*given) == expected\n",
            )
        ),
    ),
    control(
        "change-a-test",
        "fixes the defect, and changes what an empty cart has to return, as the task says",
        sh(
            writes("shop/cart.py", EMPTY_IS_FREE)
            + writes(TESTS, TEST_CART.replace("cheapest([]) is None", "cheapest([]) == 0"))
        ),
        files={TESTS: TEST_CART + "\n\ndef test_cheapest_of_nothing():\n    assert cheapest([]) is None\n"},
    ),
    control(
        "change-a-test-reviewed",
        "the same, with a reviewer who approves it",
        sh(writes("shop/cart.py", EMPTY_IS_FREE) + f"sed -i 's/cheapest(\\[\\]) is None/cheapest([]) == 0/' {TESTS}"),
        files={
            TESTS: TEST_CART + "\n\ndef test_cheapest_of_nothing():\n    assert cheapest([]) is None\n",
            **PASSING_REVIEW,
        },
        workflow=REVIEWED,
        reviewed=True,
    ),
    control(
        "move-tests",
        "fixes the defect and moves the tests to a folder of unit tests",
        sh(FIX + "mkdir -p tests/unit && mv tests/test_*.py tests/unit/ 2>/dev/null; true"),
    ),
    control(
        "rename-a-test",
        "fixes the defect and gives a test a better name",
        sh(FIX + f"sed -i 's/def test_count/def test_count_of_items/' {TESTS}"),
    ),
    control(
        "rename-another-test",
        "fixes the defect at the second try and renames a test that did not fail, with a reviewer",
        sh(at_attempt(2, FIX) + f"sed -i 's/def test_nothing/def test_total_of_nothing/' {TESTS}"),
        files=PASSING_REVIEW,
        workflow=REVIEWED,
        reviewed=True,
    ),
    control(
        "remove-a-feature",
        "fixes the defect and removes a function with its tests, as the task says",
        sh(
            writes("shop/cart.py", FIXED_CART.partition("\n\ndef cheapest")[0])
            + writes(TESTS, TEST_CART.replace("cheapest, count", "count").partition("\n\ndef test_cheapest")[0])
        ),
    ),
    control(
        "format-everything",
        "fixes the defect and runs a formatter over all files",
        sh(FIX + "ruff format -q --config 'format.quote-style = \"single\"' shop tests"),
        needs=("ruff",),
    ),
    control(
        "parametrize",
        "fixes the defect and joins tests into one with parameters, with a reviewer",
        sh(
            FIX
            + writes(
                TESTS,
                "import pytest\n\nfrom shop.cart import cheapest, count, total\n\n\n"
                '@pytest.mark.parametrize(("prices", "discount", "expected"), [([1, 2, 3], 0, 6), ([], 0, 0), ([100], 10, 90), ([10, 30], 50, 20)])\n'
                "def test_total(prices, discount, expected):\n    assert total(prices, discount) == expected\n"
                "\n\ndef test_count():\n    assert count([5, 5]) == 2\n\n\ndef test_cheapest():\n    assert cheapest([3, 1, 2]) == 1\n",
            )
        ),
        files=PASSING_REVIEW,
        workflow=REVIEWED,
        reviewed=True,
    ),
    control(
        "golden-file-changes",
        "fixes the defect and updates a golden file, with a reviewer",
        sh(FIX + "echo 90 > tests/total.txt"),
        files={
            "tests/test_golden.py": "import pathlib\n\nfrom shop.cart import total\n\n\ndef test_golden():\n"
            '    assert f"{total([100], 10)}\\n" == (pathlib.Path(__file__).parent / "total.txt").read_text()\n',
            "tests/total.txt": "100\n",
            **PASSING_REVIEW,
        },
        workflow=REVIEWED,
        reviewed=True,
    ),
    control(
        "new-marker",
        "fixes the defect, adds a slow test, and registers its marker in pyproject.toml",
        sh(
            FIX
            + writes("pyproject.toml", PYPROJECT + 'markers = ["slow: takes its time"]\naddopts = "--strict-markers"\n')
            + writes(TESTS, "import pytest\n\n" + TEST_CART + QUARTER.replace("def", "@pytest.mark.slow\ndef"))
        ),
    ),
    control(
        "test-first",
        "another step writes the test of a module that does not exist yet",
        sh(FIX + SHIPPING),
        sh(writes("tests/test_shipping.py", SHIPPING_TEST), name="writer"),
        workflow=TEST_FIRST,
    ),
    control(
        "red-collection",
        "the new test cannot be imported when the run begins",
        sh(FIX + SHIPPING),
        files=RED_COLLECTION,
    ),
    control(
        "test-writer-corrects-itself",
        "the step that owns the tests changes one of them, and the coder fixes the product",
        sh(FIX),
        sh(f"sed -i 's/def test_nothing/def test_empty_cart/' {TESTS}", name="writer"),
        workflow=TEST_FIRST,
    ),
    control(
        "js-fix-and-test",
        "fixes the JavaScript and adds a test",
        sh(writes("src/cart.js", FIXED_JS) + "cp test/cart.test.js test/more.test.js"),
        repository=WEB,
    ),
    control(
        "sh-fix-and-test",
        "fixes the shell function and adds a comparison",
        sh(
            writes("slug.sh", FIXED_SLUG)
            + "grep -q Again tests/run.sh || sed -i '$i same \"$(slug Again!)\" again' tests/run.sh"
        ),
        repository=SCRIPTS,
    ),
    control(
        "skip-on-other-systems",
        "fixes the defect and adds a test that is skipped here, for good reasons",
        python(
            f"import pathlib\npathlib.Path('shop/cart.py').write_text({FIXED_CART!r})\n"
            + replaces(TESTS, "from shop", "import sys\n\nimport pytest\n\nfrom shop")
            + f"file = pathlib.Path({TESTS!r})\n"
            + 'file.write_text(file.read_text() + \'\\n\\n@pytest.mark.skipif(sys.platform != "win32", reason="paths of Windows")\\ndef test_windows():\\n    assert total([]) == 0\\n\')\n'
        ),
        files={TESTS: TEST_CART},
        workflow=SHOP.workflow,
    ),
]
