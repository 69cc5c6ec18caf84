"""The reporters that come with backedge, in the real runners."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backedge.adapters.reports.spec import ReportSpec
from backedge.adapters.reports.tests import ReportedTests
from backedge.catalog import REPORTERS, ReportKind
from backedge.engine.protocol import Outcome
from tests.reports.parts import RUNNERS, missing, read, write


def reported(kind: ReportKind, folder: Path, *argv: str) -> tuple[Outcome, ReportedTests, int]:
    reporter = ReportSpec(kind).reporter
    assert reporter is not None
    words = {"{reporter}": str(reporter), "{report}": str(folder / "report.xml")}
    command = [words.get(word, word) for word in argv]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (folder / "report.xml").exists(), done.stderr
    return *read(kind, (folder / "report.xml").read_bytes(), folder), done.returncode


def test_each_reporter_is_a_file() -> None:
    assert all((reporter := ReportSpec(kind).reporter) and reporter.is_file() for kind in REPORTERS)


UNITTEST = """\
import unittest


def setUpModule():
    pass


class TestShop(unittest.TestCase):
    def test_passes(self):
        pass

    def test_fails(self):
        self.assertEqual(1, 2, "bell \\x07 <&>")

    def test_breaks(self):
        raise RuntimeError("no database")

    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)

    @unittest.skip("later")
    def test_later(self):
        pass

    @unittest.expectedFailure
    def test_known(self):
        self.fail()

    @unittest.expectedFailure
    def test_surprise(self):
        pass


class TestBroken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError("no server")

    def test_never(self):
        pass


@unittest.skip("the whole class")
class TestAway(unittest.TestCase):
    def test_away(self):
        pass
"""


def test_unittest_names_every_test_with_its_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"shop/test_shop.py": UNITTEST, "shop/test_gone.py": "import no_such_module\n", "shop/__init__.py": ""},
    )
    python = [sys.executable, "-I", "-S"]  # without site packages, there is no backedge
    outcome, tests, code = reported("unittest", tmp_path, *python, "{reporter}", "{report}", "discover", "-s", "shop")
    assert code == 1
    assert tests.results == {
        "test_gone": "failed",
        "test_shop.TestAway::test_away": "skipped",
        "test_shop.TestBroken": "failed",
        "test_shop.TestShop::test_breaks": "failed",
        "test_shop.TestShop::test_fails": "failed",
        "test_shop.TestShop::test_known": "skipped",
        "test_shop.TestShop::test_later": "skipped",
        "test_shop.TestShop::test_parts": "failed",
        "test_shop.TestShop::test_passes": "passed",
        "test_shop.TestShop::test_surprise": "failed",
    }
    assert set(tests.files.items()) == {
        (id, "shop/test_gone.py" if id == "test_gone" else "shop/test_shop.py") for id in tests.results
    }
    described = {each.test: (each.description.partition(": ")[2], each.line) for each in outcome.findings}
    assert described["test_shop.TestShop::test_fails"] == ("AssertionError: 1 != 2 : bell \\x07 <&>", 13)
    assert described["test_shop.TestShop::test_breaks"] == ("RuntimeError: no database", 16)
    assert described["test_shop.TestBroken"] == ("RuntimeError: no server", 39)


def test_unittest_finds_the_modules_of_the_current_folder(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "product.py": "X = 1\n",
            "test_a.py": "import unittest\nimport product\n\n\nclass A(unittest.TestCase):\n    def test_x(self): pass\n",
        },
    )
    _, tests, code = reported("unittest", tmp_path, sys.executable, "{reporter}", "{report}")
    assert (tests.results, code) == ({"test_a.A::test_x": "passed"}, 0)
    _, tests, _ = reported("unittest", tmp_path, sys.executable, "{reporter}", "{report}", "test_a.A.test_x")
    assert tests.passed == {"test_a.A::test_x"}


NODE = """\
const { describe, it, test, before } = require("node:test");
const assert = require("node:assert");
test("adds", () => {});
test("adds", () => {});
test("wrong", () => assert.equal(1, 2));
test("away", { skip: true }, () => {});
test("to do", { todo: true }, () => { throw new Error("later"); });
describe("suite", () => {
  it("inner", () => {});
  describe("deep", () => { it("inner", () => {}); });
});
describe("broken", () => {
  before(() => { throw new Error("no server"); });
  it("never", () => {});
});
test("parent", async (t) => { await t.test("child", () => {}); });
test("failing parent", async (t) => { await t.test("good child", () => {}); throw new Error("by itself"); });
test("emoji \\u{1F600} bell \\x07 \\"quoted\\" <b>\\nnext line", () => {});
"""


@pytest.mark.parametrize("place", ["of the machine", "of the tests"])
def test_node_names_every_test_with_its_file(place: str, tmp_path: Path) -> None:
    node = shutil.which("node") if place == "of the machine" else str(RUNNERS / "bin" / "node")
    if node is None or not Path(node).exists():
        missing(f"the node {place}")
    write(
        tmp_path,
        {
            "test/a.test.js": NODE,
            "test/b.test.mjs": 'import "./gone.mjs";\n',
            "test/c.test.js": 'require("node:test").test("adds", () => {});\n',
        },
    )
    words = ("--test", "--test-reporter", "{reporter}", "--test-reporter-destination", "{report}")
    outcome, tests, code = reported("node", tmp_path, str(node), *words)
    a = "test/a.test.js"
    hook = {id: result for id, result in tests.results.items() if "broken" in id}
    assert hook and set(hook.values()) == {"failed"}
    assert {id: result for id, result in tests.results.items() if id not in hook} == {
        f"{a}::adds": "passed",
        f"{a}::adds #2": "passed",
        f"{a}::wrong": "failed",
        f"{a}::away": "skipped",
        f"{a}::to do": "skipped",
        f"{a}::suite::inner": "passed",
        f"{a}::suite::deep::inner": "passed",
        f"{a}::parent::child": "passed",
        f"{a}::failing parent::good child": "passed",
        f"{a}::failing parent": "failed",
        f'{a}::emoji \U0001f600 bell \\x07 "quoted" <b> next line': "passed",
        "test/b.test.mjs": "failed",
        "test/c.test.js::adds": "passed",
    }
    assert set(tests.files) == set(tests.results)
    assert code == 1
    described = {each.test: each for each in outcome.findings}
    assert "Cannot find module" in described["test/b.test.mjs"].description
    assert (described[f"{a}::wrong"].file, described[f"{a}::wrong"].line) == (a, 5)
