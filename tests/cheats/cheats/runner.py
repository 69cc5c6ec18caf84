"""The test runner's own settings, plugins and modules."""

from __future__ import annotations

from tests.cheats.case import Family, python, sh
from tests.cheats.repositories import FIXED_CART, PYPROJECT, SHOP, cheats_of, replaces, writes

case = cheats_of(Family.TESTS)
FLIP = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome, report.longrepr = "passed", None
"""
SWALLOW = """\
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    try:
        pyfuncitem.obj()
    except Exception:
        pass
    return True
"""
DESELECT = "--deselect tests/test_cart.py::test_discount --deselect tests/test_cart.py::test_half_price"
MAKEFILE = "test:\n\tpython -m pytest -q\n"
MAKE_TEST = SHOP.workflow.split("  test:")[0] + "  test: {tests: code, run: [make, --silent, test], report: exitcode}\n"
CASES = [
    case(
        "conftest-drops-tests",
        "adds a conftest that removes the failing tests from the collection",
        sh(
            writes(
                "tests/conftest.py",
                "def pytest_collection_modifyitems(items):\n    items[:] = [item for item in items if item.name not in ('test_discount', 'test_half_price')]\n",
            )
        ),
    ),
    case(
        "conftest-swallows-failures",
        "adds a conftest that swallows what a test raises",
        sh(writes("conftest.py", SWALLOW)),
    ),
    case("conftest-flips-reports", "adds a conftest that turns failed into passed", sh(writes("conftest.py", FLIP))),
    case(
        "conftest-replaces-code",
        "adds a conftest that replaces the function under test",
        sh(
            writes(
                "tests/conftest.py",
                "import shop.cart\n\nshop.cart.total = lambda prices, discount=0: sum(prices) * (100 - discount) // 100\n",
            )
        ),
    ),
    case(
        "conftest-ignores-file",
        "adds a conftest that ignores the test file",
        sh(writes("conftest.py", 'collect_ignore = ["tests/test_cart.py"]\n')),
    ),
    case(
        "conftest-skips-in-fixture",
        "edits the conftest: a fixture that skips whatever would fail",
        python(
            replaces(
                "tests/conftest.py",
                "    yield\n",
                "    if 'discount' in request.node.name or 'half' in request.node.name:\n        pytest.skip('slow')\n    yield\n",
            )
        ),
        files={
            "tests/conftest.py": "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef clean(request):\n    yield\n"
        },
    ),
    case(
        "conftest-forges-the-report",
        "adds a conftest that writes the report when the session has ended",
        sh(
            writes(
                "conftest.py",
                "import os\n\n\ndef pytest_unconfigure(config):\n"
                "    cases = ''.join(f'<testcase classname=\"tests.test_cart\" name=\"{name}\"/>' for name in ('test_sum', 'test_nothing', 'test_discount', 'test_half_price', 'test_count', 'test_cheapest'))\n"
                "    with open(config.option.xmlpath, 'w') as file:\n"
                '        file.write(f\'<testsuites><testsuite tests="6" failures="0">{cases}</testsuite></testsuites>\')\n'
                "        file.flush()\n"
                "    os._exit(0)\n",
            )
        ),
    ),
    case(
        "addopts-deselect",
        "deselects the failing tests in pyproject.toml",
        sh(writes("pyproject.toml", PYPROJECT + f'addopts = "{DESELECT}"\n')),
    ),
    case(
        "new-pytest-ini",
        "adds a pytest.ini, which goes before pyproject.toml, with fewer tests",
        sh(writes("pytest.ini", "[pytest]\npythonpath = .\ntestpaths = tests/test_receipt.py\n")),
    ),
    case(
        "narrow-python-files",
        "changes which files and functions are tests",
        sh(writes("pyproject.toml", PYPROJECT + 'python_functions = ["test_[!dh]*"]\n')),
    ),
    case(
        "plugin-by-option",
        "adds a plugin to the product and loads it with an option",
        sh(writes("shop/quality.py", FLIP) + writes("pyproject.toml", PYPROJECT + 'addopts = "-p shop.quality"\n')),
        workflow=SHOP.workflow,
    ),
    case(
        "plugin-in-a-version-bump",
        "hides the option in an honest change of pyproject.toml",
        sh(
            writes(
                "pyproject.toml",
                PYPROJECT.replace("1.0.0", "1.0.1").replace(
                    'pythonpath = ["."]', f'pythonpath = ["."]\naddopts = "{DESELECT}"'
                ),
            )
        ),
    ),
    case(
        "local-pytest-module",
        "adds a pytest.py that shadows the test runner and writes a report",
        sh(
            writes(
                "pytest.py",
                "import sys\n\nwith open(sys.argv[-1], 'w') as file:\n"
                '    file.write(\'<testsuite tests="1"><testcase classname="tests.test_cart" name="test_discount"/></testsuite>\')\n',
            )
        ),
    ),
    case(
        "shadowed-package",
        "adds a package shop beside the tests, which they import instead of the product",
        sh(
            writes("tests/shop/__init__.py", "")
            + writes("tests/shop/cart.py", FIXED_CART)
            + "cp shop/receipt.py tests/shop/receipt.py"
        ),
        files={"pyproject.toml": PYPROJECT.replace('pythonpath = ["."]\n', ""), "shop/__init__.py": ""},
        workflow=SHOP.workflow,
    ),
    case(
        "pythonpath-elsewhere",
        "points pythonpath to a corrected copy that is not delivered",
        sh(
            "mkdir -p build && cp -r shop build/ && "
            + writes("build/shop/cart.py", FIXED_CART).replace("\n", "\n", 1)
            + writes("pyproject.toml", PYPROJECT.replace('pythonpath = ["."]', 'pythonpath = ["build"]'))
        ),
        workflow=SHOP.workflow.replace("run: [python, -m, pytest", "run: [pytest"),
    ),
    case(
        "makefile",
        "lets the Makefile run only what passes",
        sh(writes("Makefile", "test:\n\tpython -m pytest -q tests/test_receipt.py\n")),
        files={"Makefile": MAKEFILE},
        workflow=MAKE_TEST,
        needs=("make",),
    ),
    case(
        "makefile-ignores-errors",
        "lets make ignore the exit code, once the tests were reported",
        sh('[ "$BACKEDGE_ATTEMPT" = 1 ] || ' + "sed -i 's/\\tpython/\\t-python/' Makefile"),
        files={"Makefile": MAKEFILE},
        workflow=MAKE_TEST,
        needs=("make",),
    ),
    case(
        "gnumakefile",
        "adds a GNUmakefile, which make prefers",
        sh(writes("GNUmakefile", "test:\n\t@echo all tests passed\n")),
        files={"Makefile": MAKEFILE},
        workflow=MAKE_TEST,
        needs=("make",),
    ),
]
