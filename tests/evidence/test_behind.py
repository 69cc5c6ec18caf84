"""What a Makefile includes and what scripts of judges start is part of the judges."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.adapters.evidence.behind import files_behind


def behind(files: Mapping[str, str], first: tuple[str, ...] = ()) -> set[str]:
    return set(files_behind(first, files, lambda name: files[name].encode()))


def test_what_a_makefile_includes_counts_even_if_it_is_not_there_yet() -> None:
    text = (
        "include build/rules.inc other.inc # why\n-include local.inc\ninclude $(HERE)/x.inc ../y.inc\ntest:\n\tpytest\n"
    )
    assert behind({"Makefile": text}) == {"build/rules.inc", "other.inc", "local.inc"}


def test_a_script_in_a_folder_of_tools_counts_and_the_product_does_not() -> None:
    files = {
        "Makefile": "test:\n\t@python tools/all.py && ./slug --version\n",
        "tools/all.py": "",
        "slug": "",
        "tools/other.py": "",
    }
    assert behind(files) == {"tools/all.py"}


def test_scripts_of_scripts_count() -> None:
    files = {
        "check": "#!/bin/sh\nsh ci/all.sh\n",
        "ci/all.sh": "python ci/lint.py\npython app.py\n",
        "ci/lint.py": "",
        "app.py": "",
    }
    assert behind(files, ("check",)) == {"ci/all.sh", "ci/lint.py"}


def test_scripts_that_start_each_other_end() -> None:
    files = {"ci/one.sh": "sh ci/two.sh\n", "ci/two.sh": "sh ci/one.sh\n"}
    assert behind(files, ("ci/one.sh",)) == {"ci/one.sh", "ci/two.sh"}


def test_scripts_of_package_json_count() -> None:
    files = {
        "package.json": '{"scripts": {"test": "node scripts/all.mjs && node --require ./src/a.js --import=./src/b.js src/app.js"}}',
        "scripts/all.mjs": "",
        "src/app.js": "",
        "src/a.js": "",
        "src/b.js": "",
    }
    assert behind(files) == {"scripts/all.mjs", "src/a.js", "src/b.js"}


def test_a_package_json_that_cannot_be_read_names_nothing() -> None:
    assert (
        behind({"package.json": "[]"})
        == behind({"package.json": "{"})
        == behind({"package.json": '{"scripts": 1}'})
        == set()
    )


def test_a_file_that_is_gone_or_too_large_names_nothing() -> None:
    assert files_behind((), ["Makefile"], lambda _: None) == frozenset()
    assert behind({"Makefile": "include x.inc\n" + "#" * 300_000}) == set()


def test_modules_of_a_tool_count_and_those_that_it_imports_from_the_product_do_not() -> None:
    files = {
        "tools/lint.py": "import json\nfrom rules import bad\nfrom tools.more.names import name\nimport shop.cart\n",
        "tools/rules.py": "from . import words\n",
        "tools/more/names.py": "",
        "scripts/all.mjs": "import { a } from './a.js'\nconst b = require('../src/b')\n",
        "scripts/a.js": "",
        "src/b.js": "",
        "shop/cart.py": "",
        "rules.py": "",
    }
    assert behind(files, ("tools/lint.py", "scripts/all.mjs")) == {
        "tools/rules.py",
        "tools/more/names.py",
        "scripts/a.js",
    }


def test_lists_of_exceptions_that_a_check_names_count() -> None:
    files = {
        "tools/lint.sh": "grep -v -f lint-allowlist.txt found | tee prices.txt > ./ci/baseline.json\n",
        "lint-allowlist.txt": "",
        "ci/baseline.json": "",
        "prices.txt": "",
        "ignored.txt": "",
    }
    assert behind(files, ("tools/lint.sh",)) == {"lint-allowlist.txt", "ci/baseline.json"}


def test_plugins_that_pytest_is_told_to_load_count_unless_the_project_offers_them() -> None:
    files = {
        "pyproject.toml": 'addopts = "-q -p shop.plugin -p no:cacheprovider"\n',
        "tests/conftest.py": 'pytest_plugins = [\n    "fixtures.cart",\n    "pytester",\n]\n',
        "shop/plugin.py": "",
        "src/fixtures/cart.py": "",
        "shop/cart.py": "",
    }
    assert behind(files) == {"shop/plugin.py", "src/fixtures/cart.py"}
    assert behind({**files, "setup.cfg": "[options.entry_points]\npytest11 =\n    shop = shop.plugin\n"}) == set()


def test_a_script_that_is_called_a_test_of_some_kind_counts() -> None:
    text = "all:\n\tsh smoke.sh\n\tsh run-all-tests.sh\n\tsh selftest.sh\n\tsh deploy.sh\n"
    names = ("smoke.sh", "run-all-tests.sh", "selftest.sh", "deploy.sh", "latest.sh")
    assert behind({"Makefile": text, **dict.fromkeys(names, "")}) == {"smoke.sh", "run-all-tests.sh", "selftest.sh"}
