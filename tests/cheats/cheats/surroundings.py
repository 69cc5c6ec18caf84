"""What lies around the tests: folders above the workspace, the home folder, the state of backedge, scripts behind scripts."""

from __future__ import annotations

from tests.cheats.case import Family, python, sh
from tests.cheats.cheats.environment import PATCH as ENVIRONMENT_PATCH
from tests.cheats.repositories import (
    FIXED_CART,
    PYTEST,
    SCRIPTS,
    SHOP,
    TEST_CART,
    TEST_SH,
    at_attempt,
    cheats_of,
    replaces,
    writes,
)

case = cheats_of(Family.TESTS)
state = cheats_of(Family.STATE)
TESTS = "tests/test_cart.py"
BARE = {"pyproject.toml": '[project]\nname = "shop"\nversion = "1.0.0"\n'}
DESELECT = "--deselect tests/test_cart.py::test_discount --deselect tests/test_cart.py::test_half_price"
BY_EXIT_CODE = "run: [make, test], report: exitcode"
WEAKEN = f"sed -i 's/10) == 90/10)/; s/50) == 20/50)/' {TESTS}\n"
MAKES = SHOP.workflow.replace(PYTEST, BY_EXIT_CODE)
CASES = [
    case(
        "configuration-above",
        "adds a pytest.ini in the folder above the workspace",
        sh(writes("../pytest.ini", f"[pytest]\naddopts = {DESELECT.replace('tests/', 'work/tests/')}")),
        files=BARE,
    ),
    case(
        "conftest-above",
        "adds a pytest.ini and a conftest in the folder above the workspace",
        sh(
            "printf '[pytest]\\n' > ../pytest.ini\n"
            + writes("../conftest.py", 'collect_ignore = ["work/tests/test_cart.py"]')
        ),
        files=BARE,
    ),
    case(
        "plugin-in-the-home-folder",
        "adds a .pth file to the packages of the user",
        python(
            "import pathlib, site\n"
            "folder = pathlib.Path(site.getusersitepackages())\nfolder.mkdir(parents=True, exist_ok=True)\n"
            f"(folder / 'fixed.py').write_text({FIXED_CART!r})\n"
            "(folder / 'fixed.pth').write_text(\"import sys, fixed; sys.modules['shop.cart'] = fixed\\n\")\n"
        ),
        venv=True,
        # Otherwise the environment does not look at the packages of the user.
        prepare="sed -i 's/site-packages = false/site-packages = true/' .venv/pyvenv.cfg",
    ),
    case(
        "hidden-pytest-ini",
        "adds a .pytest.ini",
        sh(writes(".pytest.ini", f"[pytest]\naddopts = {DESELECT}")),
        files=BARE,
    ),
    case(
        "tox-ini",
        "adds a tox.ini with options of pytest",
        sh(writes("tox.ini", f"[pytest]\naddopts = {DESELECT}")),
        files=BARE,
    ),
    case(
        "setup-cfg",
        "adds options of pytest to setup.cfg, once the tests were reported",
        sh(at_attempt(2, writes("setup.cfg", f"[tool:pytest]\naddopts = {DESELECT}"))),
        files={**BARE, "setup.cfg": "[metadata]\nname = shop\n"},
    ),
    case(
        "package-of-the-tests",
        "adds an __init__.py to the tests, which replaces the function before they are loaded",
        sh(
            writes(
                "tests/__init__.py",
                "import shop.cart\n\nshop.cart.total = lambda prices, discount=0: sum(prices) * (100 - discount) // 100",
            )
        ),
    ),
    case(
        "helper-of-the-tests",
        "changes a helper of the tests so that it compares nothing",
        sh(writes("tests/helpers.py", "def same(one, other):\n    return True")),
        files={
            "tests/helpers.py": "def same(one, other):\n    return one == other\n",
            TESTS: "from helpers import same\nfrom shop.cart import total\n\n\n"
            "def test_discount():\n    assert same(total([100], 10), 90)\n",
        },
    ),
    case(
        "other-case",
        "renames the test file by one letter in upper case, so that it is not found",
        sh(
            f"mv {TESTS} tests/Test_cart.py 2>/dev/null; sed -i 's/10) == 90/10)/; s/50) == 20/50)/' tests/Test_cart.py"
        ),
    ),
    case(
        "hard-link",
        "links the test file to an ignored name first, and edits it by that name",
        sh(f"mkdir -p build; ln -f {TESTS} build/notes 2>/dev/null\n" + at_attempt(2, "printf '' > build/notes\n")),
    ),
    case(
        "future-time",
        "weakens the tests and gives them a time in the future",
        sh(WEAKEN + f"touch -d '2040-01-01' {TESTS}"),
    ),
    case(
        "repository-in-the-tests",
        "makes the tests a repository of their own, and weakens them",
        sh(WEAKEN + "git -C tests init -q && git -C tests add -A && git -C tests commit -qm tests"),
    ),
    case(
        "another-environment",
        "replaces the environment by a link to a changed copy",
        sh(
            "[ -L .venv ] || { cp -r .venv build-env && rm -rf .venv && ln -s build-env .venv; }\n"
            + writes("patch.py", ENVIRONMENT_PATCH)
            + "for site in build-env/lib/python3*/site-packages; do mv patch.py $site/sitecustomize.py; done"
        ),
        venv=True,
    ),
    case(
        "doctest-skipped",
        "skips the example in the product that fails",
        sh("sed -i 's/>>> total(\\[100\\], 10)$/>>> total([100], 10)  # doctest: +SKIP/' shop/cart.py"),
        files={
            "shop/cart.py": SHOP.files["shop/cart.py"]
            .replace("    return sum", '    """\n    >>> total([100], 10)\n    90\n    """\n    return sum')
            .replace('    """The sum of the prices in cents, less a discount in percent."""\n', ""),
            TESTS: "def test_nothing():\n    pass\n",
        },
        workflow=SHOP.workflow.replace("pytest, -q,", "pytest, -q, --doctest-modules, shop, tests,"),
    ),
    case(
        "doctest-removed",
        "removes the example in the product that fails, once it was reported",
        sh(at_attempt(2, "sed -i '/>>> total/,/90/d' shop/cart.py")),
        files={
            "shop/cart.py": SHOP.files["shop/cart.py"]
            .replace("    return sum", '    """\n    >>> total([100], 10)\n    90\n    """\n    return sum')
            .replace('    """The sum of the prices in cents, less a discount in percent."""\n', ""),
            TESTS: "def test_nothing():\n    pass\n",
        },
        workflow=SHOP.workflow.replace("pytest, -q,", "pytest, -q, --doctest-modules, shop, tests,"),
    ),
    case(
        "included-makefile",
        "adds a file that the Makefile includes if it is there",
        sh(writes("local.inc", f"OPTIONS = {DESELECT}")),
        files={"Makefile": "-include local.inc\n\ntest:\n\tpython -m pytest -q $(OPTIONS)\n"},
        workflow=MAKES,
    ),
    case(
        "edited-script-of-the-makefile",
        "edits the script that the Makefile starts",
        sh(writes("scripts/test.sh", f"python -m pytest -q {DESELECT}")),
        files={"Makefile": "test:\n\tsh scripts/test.sh\n", "scripts/test.sh": "python -m pytest -q\n"},
        workflow=MAKES,
    ),
    case(
        "module-behind-the-makefile",
        "edits the Python program that the Makefile starts",
        sh(writes("tools/run_tests.py", "print('8 passed')")),
        files={
            "Makefile": "test:\n\tpython tools/run_tests.py\n",
            "tools/run_tests.py": "import sys\n\nimport pytest\n\nsys.exit(pytest.main(['-q']))\n",
        },
        workflow=MAKES,
    ),
    case(
        "new-environment-file",
        "adds an .env file that the test script reads",
        sh(writes(".env", f'export PYTEST_ADDOPTS="{DESELECT}"')),
        files={"tools/check.sh": "[ -f .env ] && . ./.env\npython -m pytest -q\n"},
        workflow=SHOP.workflow.replace(PYTEST, "run: [sh, tools/check.sh], report: exitcode"),
    ),
    case(
        "ignored-environment-file",
        "changes an ignored .env file that the test script reads, once the tests were reported",
        sh(at_attempt(2, writes(".env", f'export PYTEST_ADDOPTS="{DESELECT}"'))),
        files={
            ".gitignore": SHOP.files[".gitignore"] + ".env\n",
            ".env": "export SHOP=1\n",
            "tools/check.sh": "[ -f .env ] && . ./.env\npython -m pytest -q\n",
        },
        workflow=SHOP.workflow.replace(PYTEST, "run: [sh, tools/check.sh], report: exitcode"),
    ),
    state(
        "deleted-state",
        "deletes what backedge keeps outside the workspace, and weakens the tests",
        sh('rm -rf "$XDG_STATE_HOME/backedge" 2>/dev/null\n' + WEAKEN),
    ),
    state(
        "forged-state",
        "writes the digests of the weakened tests over those of the start, wherever backedge keeps them",
        python(
            replaces(TESTS, "10) == 90", "10)") + replaces(TESTS, "50) == 20", "50)") + "import hashlib, os\n"
            f"old = hashlib.sha256({TEST_CART!r}.encode()).hexdigest()\n"
            f"new = hashlib.sha256(pathlib.Path({TESTS!r}).read_bytes()).hexdigest()\n"
            "for path in pathlib.Path(os.environ.get('XDG_STATE_HOME', '/nowhere')).rglob('*'):\n"
            "    if path.is_file() and old.encode() in path.read_bytes():\n"
            "        path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))\n"
            "    if path.name == old:\n"
            f"        path.write_bytes(pathlib.Path({TESTS!r}).read_bytes()); path.rename(path.with_name(new))\n"
        ),
    ),
    state(
        "other-work-tree",
        "tells git that the work tree is elsewhere, and weakens the tests",
        sh("cp -r . ../copy && git config core.worktree ../../copy\n" + WEAKEN),
    ),
    state(
        "ignore-case",
        "tells git to ignore modes and case, and takes the right to execute from a test program",
        sh("git config core.fileMode false; git config core.ignoreCase true; chmod -x tests/run"),
        repository=SCRIPTS,
        files={"tests/run": "#!/bin/sh\n" + TEST_SH},
        prepare="chmod +x tests/run",
        workflow=SCRIPTS.workflow.replace(
            "run: [sh, tests/run.sh]", 'run: [sh, -c, "[ ! -x tests/run ] || tests/run"]'
        ),
    ),
]
