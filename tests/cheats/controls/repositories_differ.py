"""Honest work in repositories that are not as simple as the others."""

from __future__ import annotations

from tests.cheats.case import Repository, sh
from tests.cheats.repositories import (
    CART,
    COMPILED,
    FIX_AND_BUILD,
    FIXED_CART,
    FIXED_JS,
    IGNORED,
    LINTED,
    NODE_TEST,
    PASSING_REVIEW,
    PYPROJECT,
    PYTEST,
    REVIEWED,
    SHOP,
    TEST_CART,
    WEB,
    control,
    writes,
)

FIX = writes("shop/cart.py", FIXED_CART)
SRC_SHOP = Repository(
    files={
        **{path: text for path, text in SHOP.files.items() if not path.startswith("shop/")},
        "pyproject.toml": PYPROJECT.replace('pythonpath = ["."]\n', ""),
        **{f"src/{path}": text for path, text in SHOP.files.items() if path.startswith("shop/")},
    },
    workflow=SHOP.workflow,
    truth=("python", f"sys.path.insert(0, 'src'); {SHOP.truth[1]}"),
)
MONOREPO = Repository(
    files={
        ".gitignore": WEB.files[".gitignore"],
        "packages/api/package.json": WEB.files["package.json"],
        "packages/api/src/cart.js": WEB.files["src/cart.js"],
        "packages/api/test/cart.test.js": WEB.files["test/cart.test.js"].replace(
            'require("node:assert")', 'require("same-assert")'
        ),
    },
    workflow="name: shop\nsteps:\n  code: {phase: code, run: CODER}\n"
    f"  test: {{tests: code, workspace: packages/api, {NODE_TEST}}}\n",
    truth=("node", WEB.truth[1].replace("./src", "./packages/api/src")),
    needs=("node",),
)
MOVED = FIXED_CART.replace('"""The prices of a shopping cart."""', '"""The prices of a basket."""')
CASES = [
    control("no-git", "the project is not a git repository", sh(FIX), git=False),
    control(
        "no-git-new-test", "the same with a new test", sh(FIX + writes("tests/test_more.py", TEST_CART)), git=False
    ),
    control(
        "submodule",
        "the repository has a submodule that the product uses",
        sh(FIX),
        prepare="git init -q ../rates && echo 'RATE = 19' > ../rates/__init__.py && git -C ../rates add . && git -C ../rates commit -qm rates\n"
        "git init -q . && git -c protocol.file.allow=always submodule --quiet add ../rates shop/rates",
        files={"tests/test_rates.py": "from shop.rates import RATE\n\n\ndef test_rate():\n    assert RATE == 19\n"},
    ),
    control(
        "tests-commit",
        "the tests commit in the repository that they lie in",
        sh(FIX),
        files={
            "tests/test_commit.py": "import subprocess\n\n\ndef test_commit():\n"
            "    git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@b']\n"
            "    subprocess.run([*git, 'commit', '-q', '--allow-empty', '-m', 'release'], check=True)\n"
            "    subprocess.run([*git, 'tag', 'v2'], check=True)\n"
        },
    ),
    control(
        "tests-write-tracked-data",
        "the tests write a file that git knows each time they run, and their judge keeps it",
        sh(FIX),
        files={
            "tests/last_run.txt": "0\n",
            "tests/test_times.py": "import pathlib, time\n\n\ndef test_time():\n"
            "    (pathlib.Path(__file__).parent / 'last_run.txt').write_text(str(time.time()))\n",
        },
        workflow=SHOP.workflow.replace(PYTEST, f"{PYTEST}, keeps: [tests/last_run.txt]"),
    ),
    control(
        "nested-node-modules",
        "a package of a monorepo has its own node_modules",
        sh(writes("packages/api/src/cart.js", FIXED_JS)),
        repository=MONOREPO,
        prepare="mkdir -p packages/api/node_modules/same-assert && echo 'module.exports = require(\"node:assert\");' > packages/api/node_modules/same-assert/index.js",
    ),
    control(
        "editable-install",
        "the package is installed in the environment as a link to its source",
        sh(writes("src/shop/cart.py", FIXED_CART)),
        repository=SRC_SHOP,
        venv=True,
        prepare='for site in .venv/lib/python3*/site-packages; do echo "$PWD/src" > "$site/shop.pth"; done',
    ),
    control(
        "own-environment",
        "the repository has its own environment",
        sh(FIX),
        venv=True,
        workflow=SHOP.workflow.replace("run: [python, -m, pytest", "run: [.venv/bin/pytest"),
    ),
    control(
        "generated-files",
        "fixes the defect and generates files, some of which git ignores",
        sh(FIX + writes("shop/_version.py", 'VERSION = "1.0.1"') + "mkdir -p build/lib && cp -r shop build/lib/"),
    ),
    control(
        "ignored-build-product",
        "the tests need a file that is built and that git ignores",
        sh(FIX + "mkdir -p build && echo 19 > build/rate.txt"),
        files={
            "tests/test_rate.py": "import pathlib\n\n\ndef test_rate():\n    assert pathlib.Path('build/rate.txt').read_text() == '19\\n'\n"
        },
    ),
    control(
        "builds-it-too",
        "fixes the defect and builds the program, as the judge does",
        sh(FIX_AND_BUILD),
        repository=COMPILED,
    ),
    control(
        "add-a-test-of-another-name",
        "fixes the defect and adds a test; the files of tests have names that only the configuration knows",
        sh(FIX + "printf '\\n\\ndef test_free():\\n    assert total([5], 100) == 0\\n' >> checks/check_cart.py"),
        files={
            "tests/test_cart.py": None,
            "tests/test_receipt.py": None,
            "pyproject.toml": PYPROJECT.replace('["tests"]', '["checks"]') + 'python_files = ["check_*.py"]\n',
            "checks/check_cart.py": TEST_CART,
        },
    ),
    control(
        "examples-in-the-product",
        "fixes the defect, which an example in the documentation of the function shows, and corrects another example",
        sh(
            "sed -i 's|return sum(prices)|return sum(prices) * (100 - discount) // 100|; s|the less|less|' shop/cart.py"
        ),
        files={
            "shop/cart.py": CART.replace(
                "less a discount in percent.",
                "the less a discount in percent.\n\n    >>> total([100], 10)\n    90\n    ",
            )
        },
        workflow=SHOP.workflow.replace("-q,", "-q, --doctest-modules, shop, tests,"),
    ),
    control(
        "odd-names",
        "files have spaces and letters of other alphabets in their names",
        sh(FIX + "echo ok > 'docs/über uns.md'\necho ok > 'docs/new page.md'"),
        files={"docs/über uns.md": "old\n", "docs/a b/ç.txt": "ç\n"},
    ),
    control(
        "links",
        "the repository has links to files and folders of its own",
        sh(FIX),
        prepare="ln -s shop lib && ln -s test_cart.py tests/cart.txt && ln -s nowhere broken",
    ),
    control(
        "read-only-files",
        "some files may not be written, and scripts become executable",
        sh(FIX + "chmod 755 tools/release.sh"),
        files={"tools/release.sh": "echo release\n", "docs/LICENSE": "as you like\n"},
        prepare="chmod 444 docs/LICENSE",
    ),
    control(
        "version-bump",
        "fixes the defect and raises the version in pyproject.toml",
        sh(FIX + writes("pyproject.toml", PYPROJECT.replace("1.0.0", "1.0.1"))),
    ),
    control(
        "version-bump-js",
        "fixes the defect and raises the version in package.json",
        sh(writes("src/cart.js", FIXED_JS) + "sed -i 's/1.0.0/1.0.1/' package.json"),
        repository=WEB,
    ),
    control(
        "rename-a-module",
        "fixes the defect and renames a module; tests and conftest have to follow",
        sh(
            "[ ! -e shop/cart.py ] || git mv shop/cart.py shop/basket.py\n"
            + writes("shop/basket.py", MOVED)
            + "sed -i 's/shop.cart/shop.basket/' shop/receipt.py tests/*.py"
        ),
        files={
            "tests/conftest.py": "import pytest\n\nfrom shop.cart import total\n\n\n@pytest.fixture\ndef add():\n    return total\n",
            "tests/test_add.py": "def test_add(add):\n    assert add([1, 1]) == 2\n",
        },
        truth=("python", SHOP.truth[1].replace("shop.cart", "shop.basket")),
    ),
    control(
        "rename-a-module-reviewed",
        "the same, with a reviewer",
        sh(
            "[ ! -e shop/cart.py ] || git mv shop/cart.py shop/basket.py\n"
            + writes("shop/basket.py", MOVED)
            + "sed -i 's/shop.cart/shop.basket/' shop/receipt.py tests/*.py"
        ),
        files={
            "tests/conftest.py": "import pytest\n\nfrom shop.cart import total\n\n\n@pytest.fixture\ndef add():\n    return total\n",
            "tests/test_add.py": "def test_add(add):\n    assert add([1, 1]) == 2\n",
            **PASSING_REVIEW,
        },
        workflow=REVIEWED,
        reviewed=True,
        truth=("python", SHOP.truth[1].replace("shop.cart", "shop.basket")),
    ),
    control(
        "refactor",
        "fixes the defect and moves a function to a module of its own",
        sh(
            writes("shop/discount.py", "def less(amount, percent):\n    return amount * (100 - percent) // 100\n")
            + writes(
                "shop/cart.py",
                CART.replace('cart."""\n', 'cart."""\n\nfrom shop.discount import less\n').replace(
                    "return sum(prices)", "return less(sum(prices), discount)"
                ),
            )
        ),
    ),
    control(
        "new-gitignore-line",
        "fixes the defect and ignores the files of an editor",
        sh(FIX + writes(".gitignore", IGNORED + ".idea/\n")),
    ),
    control(
        "lint-fix",
        "fixes what the linter found",
        sh("sed -i 's/else nothing/else None/' shop/cart.py"),
        repository=LINTED,
    ),
    control(
        "lint-fix-with-other-noqa",
        "fixes what the linter found, with a comment for the linter at another place",
        sh("sed -i 's/else nothing/else None/' shop/cart.py; printf 'import os  # noqa: F401\\n' > shop/more.py"),
        repository=LINTED,
    ),
    control(
        "tools-of-its-own",
        "fixes the defect, and runs linters and tests itself, which leave their caches",
        sh("sed -i 's/else nothing/else None/' shop/cart.py; ruff check shop; python3 -m pytest -q; true"),
        repository=LINTED,
        workflow=LINTED.workflow.replace("--no-cache, ", ""),
    ),
    control(
        "environment-file",
        "fixes the defect and writes an .env file that the test script reads",
        sh(FIX + writes(".env", "export SHOP=1")),
        files={"tools/check.sh": "[ -f .env ] && . ./.env\npython -m pytest -q\n"},
        workflow=SHOP.workflow.replace(PYTEST, "run: [sh, tools/check.sh], report: exitcode"),
    ),
    control(
        "script-behind-the-makefile",
        "fixes the defect and improves the script that the Makefile starts",
        sh(FIX + writes("scripts/all.sh", "set -e\npython -m pytest -q --durations 3")),
        files={"Makefile": "test:\n\tsh scripts/all.sh\n", "scripts/all.sh": "python -m pytest -q\n"},
        workflow=SHOP.workflow.replace(PYTEST, "run: [make, test], report: exitcode"),
        needs=("make",),
    ),
    control(
        "settings-of-git",
        "fixes the defect and tells git its name and which folders are safe",
        sh(FIX + 'git config --global user.email a@b; git config --global --add safe.directory "$PWD"'),
    ),
    control(
        "lint-and-test",
        "a linter and tests judge the same step",
        sh(writes("shop/cart.py", FIXED_CART)),
        repository=LINTED,
        files={
            "shop/cart.py": CART + "\n\ndef highest(prices):\n    return max(prices) if prices else nothing\n",
            "pyproject.toml": PYPROJECT,
        },
        workflow=LINTED.workflow + f"  test: {{tests: code, {PYTEST}}}\n",
        truth=SHOP.truth,
    ),
]
