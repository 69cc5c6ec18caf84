"""Files of tests whose names do not say so, but a runner is told to run them."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.adapters.evidence.told_tests import told_tests

SHOP = {"shop/__init__.py": "", "shop/cart.py": "import math\n"}
CHECKS = {"checks/check_cart.py": "from shop.cart import total\n", "checks/cases.txt": "1 2"}
DISCOVER = ("python", "-m", "unittest", "discover", "-s", "checks", "-p", "check*.py")


def told(files: Mapping[str, str], *argv: str) -> set[str]:
    return set(told_tests([argv], files, lambda name: files[name].encode()))


def test_all_files_of_a_folder_that_a_runner_is_given_are_tests() -> None:
    assert told({**SHOP, **CHECKS}, *DISCOVER) == set(CHECKS)
    assert told({**SHOP, **CHECKS}, "sh", "-ec", "cd . && pytest checks") == set(CHECKS)


def test_a_module_that_a_runner_is_given_is_a_test() -> None:
    assert told({**SHOP, **CHECKS}, "python", "-m", "unittest", "checks.check_cart") == {"checks/check_cart.py"}


def test_what_a_makefile_and_package_json_give_to_a_runner_counts() -> None:
    assert told({**SHOP, **CHECKS, "Makefile": "test:\n\t@pytest checks\n"}, "make") == set(CHECKS)
    web = {
        "package.json": '{"scripts": {"test": "node --test src/cartTest.js"}}',
        "src/cartTest.js": "",
        "src/a.js": "",
    }
    assert told(web, "npm", "test") == {"src/cartTest.js"}


def test_folders_in_the_configuration_of_pytest_count() -> None:
    for name, text in (
        ("pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = ["checks", "other"]\n'),
        ("setup.cfg", "[tool:pytest]\ntestpaths =\n    other\n    checks\n"),
    ):
        assert told({**SHOP, **CHECKS, name: text}, "pytest") == set(CHECKS)


def test_patterns_count_as_the_folder_before_them() -> None:
    web = {"checks/a.js": 'require("../src/cart");', "src/cart.js": ""}
    assert told(web, "mocha", "checks/**/*.js") == {"checks/a.js"}


def test_a_folder_that_has_the_product_is_not_all_tests() -> None:
    assert told(SHOP, "pytest", "shop") == set()
    used = {**SHOP, **CHECKS, "shop/cart.py": "from checks import helper\n"}
    assert told(used, *DISCOVER) == set()
    source = {"src/shop/cart.py": "from lib import money\n", "lib.py": "", "tests/test_cart.py": "import shop\n"}
    assert told(source, "pytest", "src") == set()


def test_a_folder_whose_names_say_what_is_a_test_is_left_to_them() -> None:
    files = {"common.py": "", "service/api.py": "import common\n", "service/test_api.py": "from service import api\n"}
    assert told(files, "pytest", "service") == set()


def test_what_other_programs_are_given_is_no_test() -> None:
    assert told({**SHOP, **CHECKS}, "ruff", "check", "checks") == set()
