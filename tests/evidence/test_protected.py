"""What is evidence, by name alone."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.adapters.evidence.judge_files import judge_files
from backedge.adapters.evidence.protected import Protected, Protects

TESTS = [
    *("src/setupTests.js", "src/test-setup.ts", "lib/testUtils.mjs", "jest.helpers.js"),
    *("tests/test_cart.py", "tests/data/golden.json", "shop/test_cart.py", "shop/cart_test.py", "shop/tests.py"),
    *(
        "src/cart.test.ts",
        "src/cart.spec.jsx",
        "src/__tests__/cart.js",
        "src/__snapshots__/cart.js.snap",
        "cart_test.go",
    ),
    *(
        "spec/cart_spec.rb",
        "src/test/java/CartHelper.java",
        "CartTest.java",
        "CartTests.cs",
        "test/cart.sh",
        "testdata/x.txt",
    ),
    *("src/test-cart.js", "src/cart_unittest.cc", "t/slug.t", "Shop.Tests/cases.txt", "Shop.UnitTests/Helpers.cs"),
    *("fixture/cart.json", "expected_output/cart.txt", "shop/cart.expected.json"),
    *("e2e/login.ts", "checkout.feature", "pkg/golden/out.txt", "Tests/Test_Cart.py", "packages/a/tests/x.py"),
]
CONFIG = [
    *(
        "conftest.py",
        "tests/conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "ruff.toml",
    ),
    *(
        ".ruff.toml",
        "mypy.ini",
        ".flake8",
        ".eslintrc.json",
        "eslint.config.mjs",
        "jest.config.ts",
        "vitest.config.mts",
    ),
    *(
        "tsconfig.build.json",
        "package.json",
        "packages/a/package.json",
        ".npmrc",
        "Makefile",
        "GNUmakefile",
        "ci/rules.mk",
    ),
    *(".proverc", "shop/Shop.csproj", "Directory.Build.props", "build.xml", "mix.exs", "docker-compose.test.yml"),
    *(".gitignore", "docs/.gitattributes", "backedge.yaml", "Cargo.toml", ".cargo/config.toml", "sitecustomize.py"),
    *(
        "usercustomize.pyc",
        "CONFTEST.PY",
        "x.egg-info/entry_points.txt",
        ".claude/settings.json",
        "AGENTS.md",
        ".mocharc.yml",
    ),
]
PRODUCT = [
    *(
        "shop/cart.py",
        "src/index.ts",
        "src/setup.ts",
        "src/utils.ts",
        "README.md",
        "docs/testing.md",
        "contest.py",
        "Latest.java",
        "fastest.kt",
        "com.acme.latest/Cart.java",
        "pkg/build.py",
        "model.pth",
    ),
    *("src/features/login.ts", "src/snapshots/store.py", "shop/prompts/system.md", "attestation.go", "shop/pytest.py"),
    *(
        "shop/json.py",
        "cmd/main.go",
        "site/index.html",
        "types/index.d.ts",
        "requirements.txt",
        "uv.lock",
        "x.egg-info/PKG-INFO",
    ),
]
SHADOWS = [
    *("pytest.py", "pytest/__init__.py", "src/unittest/__init__.py", "_pytest.pyc", "json.py", "re/__init__.py"),
    *("tests/unittest.py", "coverage.cpython-311-x86_64-linux-gnu.so"),
]


@pytest.mark.parametrize("name", TESTS)
def test_tests_are_protected(name: str) -> None:
    assert Protected().kind(name) == "test"


@pytest.mark.parametrize("name", [*CONFIG, *SHADOWS])
def test_configuration_is_protected(name: str) -> None:
    assert Protected().kind(name) == "config"


@pytest.mark.parametrize("name", PRODUCT)
def test_the_product_is_not_protected(name: str) -> None:
    assert Protected().kind(name) is None


@pytest.mark.parametrize("name", ["json.py", "pytest/__init__.py", "src/unittest/__init__.py"])
def test_a_product_may_have_a_module_with_the_name_of_another(name: str) -> None:
    assert Protected(base=[name]).kind(name) is None


def test_a_module_beside_the_script_of_a_judge_shadows_too() -> None:
    judge = Protected(argvs=[["python", "agents/review.py"]])
    assert judge.kind("agents/review.py") == "judge"
    assert judge.kind("agents/json.py") == "config"
    assert judge.kind("shop/json.py") is None


def test_the_workflow_file_adds_and_leaves_out() -> None:
    said = Protected(Protects(add=("golden/**", "api.yaml"), leave_out=("pyproject.toml", "tests/tmp/**")))
    assert said.kind("golden/a/b.py") == "test"
    assert said.kind("api.yaml") == "test"
    assert said.kind("pyproject.toml") is None
    assert said.kind("tests/tmp/x") is None
    assert said.kind("tests/x") == "test"


def test_protection_can_be_switched_off() -> None:
    off = Protected(Protects(default=False), argvs=[["./check.sh"]])
    assert off.kind("tests/test_a.py") is None
    assert off.kind("check.sh") is None
    assert not off.counts("conftest.py")


def test_files_that_the_workflow_names_are_configuration() -> None:
    assert Protected(named=["prompts/review.md"]).kind("prompts/review.md") == "config"


def test_what_a_link_leads_to_is_what_the_link_is() -> None:
    linked = Protected(links={"tests": "checks", "other": "checks", "shop/conftest.py": "lib/setup_all.py"})
    assert linked.kind("checks/cart.py") == "test"
    assert linked.kind("checks") == "test"
    assert Protected().kind("tests") == "test"
    assert linked.kind("lib/setup_all.py") == "config"
    assert linked.kind("lib/other.py") is None


def test_an_ignored_file_among_the_tests_does_not_count() -> None:
    assert not Protected().counts("tests/out.log")
    assert Protected().counts("tests/conftest.py")
    assert Protected(argvs=[["./check.sh"]]).counts("check.sh")


@pytest.mark.parametrize(
    ("argv", "files"),
    [
        (
            ["pytest", "-c", "ci/pytest.ini", "checks/accept.py::test_a", "--junitxml", "{report}"],
            {"ci/pytest.ini", "checks/accept.py"},
        ),
        (["pytest", "--junitxml=report.xml", "--config-file=x.ini"], {"x.ini"}),
        (["pytest", "--doctest-modules", "shop/cart.py"], set()),
        (["python", "agents/review.py", "rubric.md", "shop/cart.py"], {"agents/review.py", "rubric.md"}),
        (["python3.12", "-X", "dev", "-m", "pytest", "checks"], {"checks"}),
        (
            ["python", "-m", "tools.check"],
            {"tools/check.py", "tools/check/__main__.py", "src/tools/check.py", "src/tools/check/__main__.py"},
        ),
        (["python", "-c", "import shop; shop.check()", "shop/cart.py"], set()),
        (["./check.sh"], {"check.sh"}),
        (["scripts/../check"], {"check"}),
        (["ruff", "check", "shop/cart.py", "--config", "ci/ruff.toml"], {"ci/ruff.toml"}),
        (["mypy", "shop"], set()),
        (["make", "-f", "ci/check.mk", "test"], {"ci/check.mk"}),
        (
            ["sh", "-ec", "ruff check shop/a.py && python tools/run.py; FAST=1 ./go.sh | tee out"],
            {"tools/run.py", "go.sh"},
        ),
        (["bash", "ci/test.sh", "unit"], {"ci/test.sh"}),
        (["uv", "run", "--frozen", "pytest", "checks/a.py"], {"checks/a.py"}),
        (["timeout", "60s", "coverage", "run", "-m", "pytest", "checks/a.py"], {"checks/a.py"}),
        (["env", "A=1", "node", "--import", "./setup.mjs", "--test", "run.mjs"], {"setup.mjs", "run.mjs"}),
        (["node", "run.mjs"], {"run.mjs"}),
        (["sh", "-c", "echo 'unfinished"], set()),
        (["python", "/etc/passwd"], set()),
        (["python", "../outside.py"], set()),
        ([], set()),
    ],
)
def test_a_command_line_names_the_files_of_its_judge(argv: list[str], files: set[str]) -> None:
    assert judge_files([argv]) == files


def test_an_absolute_path_in_the_workspace_is_a_file_of_it(tmp_path: Path) -> None:
    assert judge_files([["python", f"{tmp_path}/agents/a.py"]], str(tmp_path)) == {"agents/a.py"}


WORDS = st.sampled_from(
    [
        "tests",
        "src",
        "shop",
        "conftest.py",
        "a.py",
        "pytest.py",
        "..",
        ".",
        "",
        "\n",
        "\\x",
        "golden",
        "x.snap",
        "checks",
    ]
)
NAMES = (
    st.lists(WORDS, min_size=1, max_size=4).map("/".join) | st.text(max_size=8) | st.binary(max_size=5).map(os.fsdecode)
)


@given(
    NAMES,
    st.lists(NAMES, max_size=6),
    st.lists(st.lists(NAMES, max_size=4), max_size=3),
    st.randoms(use_true_random=False),
)
def test_every_name_has_an_answer_that_depends_on_no_order(
    name: str, base: list[str], argvs: list[list[str]], chance: random.Random
) -> None:
    links = {each: other for each, other in zip(base, reversed(base), strict=True) if each}
    answer = Protected(argvs=argvs, base=base, links=links, named=base[:1]).kind(name)
    assert answer in ("test", "config", "judge", None)
    named = base[:1]
    chance.shuffle(base)
    chance.shuffle(argvs)
    mixed = list(links.items())
    chance.shuffle(mixed)
    assert Protected(argvs=argvs, base=base, links=dict(mixed), named=named).kind(name) == answer
    if answer is None:
        assert Protected(argvs=argvs, base=base, links=links, named=named).kind(name) is None


@pytest.mark.parametrize(
    "name",
    [
        ".ignore",
        "docs/.rgignore",
        ".env",
        ".env.test",
        "bin/diff",
        "tools/node",
        "bin/bc",
        "bin/pytest",
        "shop/cart.pyi",
    ],
)
def test_new_files_that_tools_read_by_their_name_alone(name: str) -> None:
    assert Protected(base={"shop/cart.py"}).kind(name) == "config"


@pytest.mark.parametrize(
    "name", ["bin/diff", "shop/cart.pyi", "bin/slug", ".env.example", ".dockerignore", "shop/more.pyi"]
)
def test_programs_and_stubs_of_the_product_are_product(name: str) -> None:
    assert Protected(base={"shop/cart.py", "bin/diff", "shop/cart.pyi"}).kind(name) is None


@pytest.mark.parametrize("name", ["integration-tests/cart.txt", "unittests/helpers.py", "test_cases/cart.json"])
def test_folders_of_two_words_are_tests_too(name: str) -> None:
    assert Protected().kind(name) == "test"


@pytest.mark.parametrize("name", ["test_cases/models.py", "ab_test/split.py", "unittest_tools/run.py"])
def test_code_in_folders_that_may_be_products_is_not(name: str) -> None:
    assert Protected().kind(name) is None


def test_a_runner_in_a_folder_that_is_no_package_shadows() -> None:
    protected = Protected(base=["app/tool.py", "shop/__init__.py"])
    assert protected.kind("app/pytest.py") == "config"
    assert protected.kind("shop/pytest.py") is None
