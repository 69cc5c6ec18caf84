"""Every runner of the how-to page, with the real program: honest work is verified, a test that disappears is noticed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.reports.parts import ROOT, RUNNERS, runner, write

PAGE = (ROOT / "docs" / "how-to" / "test-runners.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## (?P<name>.+?)\n(?P<text>.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
BLOCKS = {
    section["name"]: block[1]
    for section in SECTION.finditer(PAGE)
    if (block := re.search(r"^```yaml\n(.*?)^```$", section["text"], re.DOTALL | re.MULTILINE))
}
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    """A small project with a wrong function and a failing test for it."""

    programs: tuple[str, ...]
    files: Mapping[str, str]
    product: str
    """The file with the wrong function: `1 - 1` should be `1 + 1`."""
    failing: str
    """The id of the failing test."""
    tests: str
    """The file of the tests."""
    without: tuple[str, str]
    """How to take the failing test out of its file: a pattern and what replaces it."""
    env: Mapping[str, str] = field(default_factory=dict)


JS_TEST = (
    'const {{ two }} = require("../shop.js");\ntest("passes", () => {{}});\ntest("two is two", () => {{ {check} }});\n'
)
CASES = {
    "pytest": Case(
        ("pytest",),
        {
            "shop.py": "def two():\n    return 1 - 1\n",
            "tests/test_shop.py": "from shop import two\n\n\ndef test_passes():\n    pass\n\n\ndef test_two():\n    assert two() == 2\n",
            "conftest.py": "",
        },
        "shop.py",
        "tests.test_shop::test_two",
        "tests/test_shop.py",
        ("def test_two", "def later"),
    ),
    "unittest": Case(
        ("python3",),
        {
            "shop.py": "def two():\n    return 1 - 1\n",
            "tests/test_shop.py": "import unittest\nfrom shop import two\n\n\nclass TestShop(unittest.TestCase):\n    def test_passes(self):\n        pass\n\n"
            "    def test_two(self):\n        self.assertEqual(two(), 2)\n",
        },
        "shop.py",
        "test_shop.TestShop::test_two",
        "tests/test_shop.py",
        ("    def test_two", "    @unittest.skip('later')\n    def test_two"),
    ),
    "node --test": Case(
        ("node",),
        {
            "shop.js": "exports.two = () => 1 - 1;\n",
            "test/shop.test.js": 'const test = require("node:test");\nconst assert = require("node:assert");\n'
            + JS_TEST.format(check="assert.equal(two(), 2)"),
        },
        "shop.js",
        "test/shop.test.js::two is two",
        "test/shop.test.js",
        ('test."two', 'test.skip("two'),
    ),
    "Vitest": Case(
        ("vitest",),
        {
            "shop.js": "export const two = () => 1 - 1;\n",
            "test/shop.test.js": 'import { expect, test } from "vitest";\nimport { two } from "../shop.js";\n'
            'test("passes", () => {});\ntest("two is two", () => { expect(two()).toBe(2); });\n',
            "package.json": '{"type": "module"}\n',
        },
        "shop.js",
        "test/shop.test.js::two is two",
        "test/shop.test.js",
        ('test."two', 'test.skip("two'),
    ),
    "Jest": Case(
        ("jest",),
        {
            "shop.js": "exports.two = () => 1 - 1;\n",
            "test/shop.test.js": JS_TEST.format(check="expect(two()).toBe(2)"),
            "package.json": "{}\n",
        },
        "shop.js",
        "test/shop.test.js::two is two",
        "test/shop.test.js",
        ('test."two', 'test.skip("two'),
    ),
    "Mocha": Case(
        ("mocha",),
        {
            "shop.js": "exports.two = () => 1 - 1;\n",
            "test/shop.test.js": 'const assert = require("node:assert");\nconst test = it;\n'
            + JS_TEST.format(check="assert.equal(two(), 2)"),
            "package.json": "{}\n",
        },
        "shop.js",
        "test/shop.test.js::two is two",
        "test/shop.test.js",
        ('test."two', 'it.skip("two'),
    ),
    "go test": Case(
        ("go",),
        {
            "go.mod": "module example.org/shop\n\ngo 1.21\n",
            "shop.go": "package shop\n\nfunc Two() int { return 1 - 1 }\n",
            "shop_test.go": 'package shop\n\nimport "testing"\n\nfunc TestPasses(t *testing.T) {}\n\n'
            'func TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Error("not 2")\n\t}\n}\n',
        },
        "shop.go",
        "example.org/shop::TestTwo",
        "shop_test.go",
        ("func TestTwo.t .testing.T. {", 'func TestTwo(t *testing.T) {\n\tt.Skip("later")'),
        env={"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOCACHE": str(RUNNERS / "go-cache")},
    ),
    "cargo test": Case(
        ("cargo",),
        {
            "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": "pub fn two() -> i32 { 1 - 1 }\n",
            "tests/shop.rs": "#[test]\nfn passes() {}\n\n#[test]\nfn two_is_two() { assert_eq!(shop::two(), 2); }\n",
            ".gitignore": "target\n",
        },
        "src/lib.rs",
        "shop::two_is_two",
        "tests/shop.rs",
        ("#.test.\nfn two", "#[test]\n#[ignore]\nfn two"),
        env={"CARGO_NET_OFFLINE": "true"},
    ),
}


def test_every_runner_of_the_page_is_tried() -> None:
    assert set(CASES) == set(BLOCKS) - {"Flaky tests", "Tests that write files"}


def link_packages(folder: Path) -> None:
    """Installed packages, as links: a runner writes its caches beside them."""
    folder.mkdir()
    for entry in (RUNNERS / "node_modules").iterdir():
        if entry.name == ".bin" or not entry.name.startswith("."):
            (folder / entry.name).symlink_to(entry)


def environment(case: Case) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), str(RUNNERS / "bin"), os.environ["PATH"]])
    # In a sandbox the agent could not write to node_modules at all.
    return {**os.environ, **case.env, "PATH": path, "BACKEDGE_SANDBOX": "off"}


def worked(name: str, folder: Path, edits: Mapping[str, tuple[str, str]], first: str = "") -> dict[str, Any]:
    """A run of the page's workflow in which a script plays the agent: when it reworks, it edits files, given by globs,
    after it ran a command."""
    case = CASES[name]
    for program in case.programs:
        runner(program)
    write(folder, case.files)
    if "node_modules" in BLOCKS[name]:
        link_packages(folder / "node_modules")
    block = BLOCKS[name].replace("code: {agent: claude}", "code: {run: [python3, agent.py]}")
    assert "agent.py" in block
    agent = (
        "import os, pathlib, re\n"
        f"edits = {dict(edits)!r}\n"
        "if os.environ['BACKEDGE_ATTEMPT'] != '1':\n"
        f"    os.system({first!r})\n"
        "    for name, (before, after) in edits.items():\n"
        "        for path in pathlib.Path().glob(name):\n"
        "            path.write_text(re.sub(before, lambda _: after, path.read_text()))\n"
        "print('{}')\n"
    )
    write(folder, {"backedge.yaml": f"limits: {{rounds_per_loop: 1}}\n{block}", "agent.py": agent})
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    env = environment(case)
    done = subprocess.run(
        ["backedge", "run", "--json"], cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("name", CASES)
def test_a_fix_is_verified_by_the_test_that_failed(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    report = worked(name, tmp_path, {case.product: ("1 - 1", "1 + 1")})
    assert report["outcome"] == "verified", report
    [finding] = report["findings"]
    assert finding["test"] == case.failing
    assert finding["file"] == case.tests
    assert report["steps"]["test"]["attempts"] == 2
    assert (report["steps"]["test"]["tests"]["tests"], report["steps"]["test"]["tests"]["before"]) == (2, 2)


@pytest.mark.parametrize("name", CASES)
def test_a_failing_test_that_is_skipped_instead_is_not_fixed(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    report = worked(name, tmp_path, {case.tests: case.without})
    assert case.files[case.tests] != (tmp_path / case.tests).read_text(), "the agent did not skip the test"
    assert report["outcome"] != "verified"
    assert report["findings"][0]["test"] == case.failing
    assert report["findings"][0]["status"] != "fixed"


def test_compiled_tests_that_an_agent_changed_do_not_count(tmp_path: Path) -> None:
    """Vitest runs what it finds in its cache, without comparing it with the files."""
    edits = {"node_modules/.vitest-cache/*": (r"toBe\(2\)", "toBe(0)")}
    report = worked("Vitest", tmp_path, edits, first="node_modules/.bin/vitest run >/dev/null 2>&1")
    changed = [path for path in tmp_path.glob("node_modules/.vitest-cache/*") if "toBe(0)" in path.read_text()]
    assert changed, "Vitest keeps its compiled tests elsewhere now"
    env = environment(CASES["Vitest"])
    by_hand = subprocess.run(
        ["node_modules/.bin/vitest", "run"], cwd=tmp_path, env=env, capture_output=True, check=False
    )
    assert by_hand.returncode == 0, "Vitest no longer believes its cache"
    assert report["outcome"] != "verified"


def test_a_program_that_an_agent_built_from_other_files_does_not_count(tmp_path: Path) -> None:
    """cargo builds again only what is newer than the last build. So the agent builds the fix, and takes it back."""
    fix = "sed -i.old 's/1 - 1/1 + 1/' src/lib.rs && cargo test >/dev/null 2>&1"
    back = "touch -r Cargo.toml src/lib.rs.old && mv src/lib.rs.old src/lib.rs"
    report = worked("cargo test", tmp_path, {}, first=f"{fix}; {back}")
    assert "1 - 1" in (tmp_path / "src/lib.rs").read_text()
    by_hand = subprocess.run(
        ["cargo", "test"], cwd=tmp_path, env=environment(CASES["cargo test"]), capture_output=True, check=False
    )
    assert by_hand.returncode == 0, "cargo noticed that the file is not the one it built"
    assert report["outcome"] != "verified"
