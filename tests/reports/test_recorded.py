"""Reports that the real tools wrote: who ran, with which result, from which file."""

from __future__ import annotations

from pathlib import Path

import pytest

from backedge.adapters.reports.places import FileNames
from backedge.adapters.reports.spec import ReportSpec
from backedge.catalog import ReportKind
from backedge.core.errors import AgentError
from tests.reports.parts import read, recorded, write


def listed(kind: ReportKind, name: str, folder: Path, log: str = "") -> list[str]:
    """Every test as one line: its result, its id and its file."""
    _, tests = read(kind, recorded(name, folder), folder, recorded(log, folder) if log else b"")
    flaky = dict.fromkeys(tests.flaky, " flaky")
    return [f"{result}{flaky.get(id, '')} {id} in {tests.files.get(id)}" for id, result in tests.results.items()]


def described(kind: ReportKind, name: str, folder: Path, log: str = "") -> list[str]:
    outcome, _ = read(kind, recorded(name, folder), folder, recorded(log, folder) if log else b"")
    return [f"{each.description} ({each.file}:{each.line})" for each in outcome.findings]


JS = {"src/a.test.js": "", "src/b.test.js": "", "src/c.test.js": "", "src/f.test.js": ""}
NODE = {"test/a.test.js": "", "test/b.test.mjs": "", "test/c.test.js": ""}


def test_node_names_the_file_of_every_test_since_version_24(tmp_path: Path) -> None:
    write(tmp_path, NODE)
    assert listed("junit", "node-24.xml", tmp_path) == [
        "passed test/a.test.js::adds in test/a.test.js",
        "failed test/a.test.js::wrong in test/a.test.js",
        "passed test/a.test.js::adds #2 in test/a.test.js",
        "skipped test/a.test.js::skipped in test/a.test.js",
        "skipped test/a.test.js::todo in test/a.test.js",
        "passed test/a.test.js::suite::inner in test/a.test.js",
        "failed test/a.test.js::suite::bad in test/a.test.js",
        "passed test/a.test.js::suite::deep::inner in test/a.test.js",
        "passed test/a.test.js::parent::child in test/a.test.js",
        "passed test/a.test.js::a <name> & &quot;quotes&quot; newline ? in test/a.test.js",
        "failed test/b.test.mjs in test/b.test.mjs",
        "passed test/c.test.js::adds in test/c.test.js",
    ]
    assert described("junit", "node-24.xml", tmp_path) == [
        "test/a.test.js::wrong: Expected values to be strictly equal: (test/a.test.js:3)",
        "test/a.test.js::suite::bad: boom?x (test/a.test.js:7)",
        "test/b.test.mjs: test failed (test/b.test.mjs:None)",
    ]


def test_with_node_20_the_file_of_a_failing_test_is_in_its_stack(tmp_path: Path) -> None:
    write(tmp_path, NODE)
    found = listed("junit", "node-20.xml", tmp_path)
    assert found[:3] == ["passed adds in None", "failed wrong in test/a.test.js", "passed adds #2 in None"]
    assert "failed suite::bad in test/a.test.js" in found
    assert "failed test/b.test.mjs in test/b.test.mjs" in found
    assert found[-1] == "passed adds #3 in None"


VITEST = [
    "passed src/a.test.js::adds in src/a.test.js",
    "failed src/a.test.js::wrong in src/a.test.js",
    "passed src/a.test.js::adds #2 in src/a.test.js",
    "skipped src/a.test.js::skipped in src/a.test.js",
    "skipped src/a.test.js::todo in src/a.test.js",
    "passed src/a.test.js::xfail in src/a.test.js",
    "passed src/a.test.js::each 1 in src/a.test.js",
    "passed src/a.test.js::each 2 in src/a.test.js",
    "passed src/a.test.js::suite > inner in src/a.test.js",
    "failed src/a.test.js::suite > bad in src/a.test.js",
    "passed src/a.test.js::suite > deep > inner in src/a.test.js",
]


def test_vitest(tmp_path: Path) -> None:
    write(tmp_path, JS)
    rest = ["failed src/b.test.js in src/b.test.js", "passed src/c.test.js::adds in src/c.test.js"]
    flaky = "src/a.test.js::flaky in src/a.test.js"
    assert listed("junit", "vitest.xml", tmp_path) == [*VITEST, f"passed {flaky}", *rest]
    # Only the JSON report says that a test passed when it was tried again.
    assert listed("jest", "vitest.json", tmp_path) == [*VITEST, f"passed flaky {flaky}", *rest]
    assert described("junit", "vitest.xml", tmp_path)[0] == (
        "src/a.test.js::wrong: expected 1 to be 2 // Object.is equality (src/a.test.js:3)"
    )


def test_jest(tmp_path: Path) -> None:
    write(tmp_path, JS)
    rest = [
        "failed src/b.test.js in src/b.test.js",
        "passed flaky src/f.test.js::flaky in src/f.test.js",
        "passed src/c.test.js::adds in src/c.test.js",
    ]
    assert listed("jest", "jest.json", tmp_path) == [*VITEST, *rest]
    assert described("jest", "jest.json", tmp_path)[1:] == [
        "src/a.test.js::suite > bad: Error: boomx (src/a.test.js:9)",
        "src/b.test.js: Cannot find module './nope' from 'src/b.test.js' (src/b.test.js:1)",
    ]


def test_jest_junit(tmp_path: Path) -> None:
    write(tmp_path, JS)
    found = listed("junit", "jest-junit.xml", tmp_path)
    assert found[:3] == VITEST[:3]
    assert "passed src/a.test.js::suite deep inner in src/a.test.js" in found
    assert found.count("failed src/b.test.js in src/b.test.js") == 1
    assert described("junit", "jest-junit.xml", tmp_path)[-1] == (
        "src/b.test.js: Cannot find module './nope' from 'src/b.test.js' (src/b.test.js:1)"
    )


def test_mocha_names_a_suite_whose_hook_failed(tmp_path: Path) -> None:
    write(tmp_path, {"test/a.js": ""})
    assert listed("junit", "mocha.xml", tmp_path) == [
        "passed test/a.js::adds in test/a.js",
        "passed test/a.js::adds #2 in test/a.js",
        "failed test/a.js::s::x in test/a.js",
        "skipped test/a.js::s::y in test/a.js",
        "skipped test/a.js::s::z in test/a.js",
        "failed test/a.js::s t::(hooks) in test/a.js",
    ]


def test_surefire_ran_flaky_and_failing_tests_again(tmp_path: Path) -> None:
    file = "src/test/java/org/shop/CartTest.java"
    write(tmp_path, {file: ""})
    assert listed("junit", "surefire.xml", tmp_path) == [
        f"passed org.shop.CartTest::adds in {file}",
        f"passed flaky org.shop.CartTest::flaky in {file}",
        f"failed org.shop.CartTest::wrong in {file}",
        f"skipped org.shop.CartTest$Nested::later in {file}",
    ]
    [finding] = described("junit", "surefire.xml", tmp_path)
    assert finding.startswith("org.shop.CartTest::wrong: expected: 3 but was: 2")


GO = {
    "go.mod": "module example.org/shop\n",
    "a_test.go": "func TestAdd(t *testing.T) {\nfunc TestWrong(\nfunc TestSkip(\nfunc TestTable(\nfunc ExampleAdd()\n",
    "pan/p_test.go": "func TestOk(t *testing.T)\nfunc TestPanics(t *testing.T)\n",
    "sub/s_test.go": "",
}


def test_go_test(tmp_path: Path) -> None:
    write(tmp_path, GO)
    assert listed("gotest", "go.jsonl", tmp_path) == [
        "passed example.org/shop::TestAdd in a_test.go",
        "failed example.org/shop::TestWrong in a_test.go",
        "skipped example.org/shop::TestSkip in a_test.go",
        "failed example.org/shop::TestTable in a_test.go",
        "passed example.org/shop::TestTable/a_b in a_test.go",
        "failed example.org/shop::TestTable/c in a_test.go",
        "passed example.org/shop::ExampleAdd in a_test.go",
        "passed example.org/shop/pan::TestOk in pan/p_test.go",
        "failed example.org/shop/pan::TestPanics in pan/p_test.go",
        "failed example.org/shop/sub::(package) in None",
    ]
    assert described("gotest", "go.jsonl", tmp_path) == [
        "example.org/shop::TestWrong: got 3 (a_test.go:6)",
        "example.org/shop::TestTable/c: bad c (a_test.go:8)",
        "example.org/shop/pan::TestPanics: panic: boom [recovered, repanicked] (pan/p_test.go:6)",
        "example.org/shop/sub: undefined: broken (sub/s_test.go:5)",
    ]


def test_a_go_test_that_was_cut_off_is_an_error(tmp_path: Path) -> None:
    whole = recorded("go.jsonl", tmp_path).splitlines(keepends=True)
    with pytest.raises(AgentError, match=r"ends before 'example.org/shop/pan' ended: it was cut off"):
        read("gotest", b"".join(whole[:-1]), tmp_path)
    with pytest.raises(AgentError, match="printed no events, but 'go: no modules'"):
        read("gotest", b"go: no modules\n", tmp_path)


def test_a_go_test_that_never_ended_failed(tmp_path: Path) -> None:
    text = b'{"Action":"run","Package":"p","Test":"TestHangs"}\n{"Action":"fail","Package":"p"}\n'
    outcome, tests = read("gotest", text, tmp_path)
    assert tests.results == {"p::TestHangs": "failed"}
    assert [each.test for each in outcome.findings] == ["p::TestHangs"]


CARGO = {"src/lib.rs": "", "tests/cart.rs": ""}


def test_cargo_test(tmp_path: Path) -> None:
    write(tmp_path, CARGO)
    assert listed("cargo", "cargo.stdout", tmp_path, "cargo.stderr") == [
        "passed shop::tests::adds in src/lib.rs",
        "passed shop::tests::deep::adds in src/lib.rs",
        "failed shop::tests::not_panics in src/lib.rs",
        "failed shop::tests::result in src/lib.rs",
        "skipped shop::tests::slow in src/lib.rs",
        "skipped shop::tests::slower in src/lib.rs",
        "failed shop::tests::wrong in src/lib.rs",
        "passed shop::tests::panics in src/lib.rs",
        "passed cart::adds in tests/cart.rs",
        "failed cart::bad in tests/cart.rs",
        "passed docs::src/lib.rs in src/lib.rs",
    ]
    assert described("cargo", "cargo.stdout", tmp_path, "cargo.stderr")[2:] == [
        "shop::tests::wrong: assertion `left == right` failed: bad sum (src/lib.rs:9)",
        "cart::bad: multi (tests/cart.rs:1)",
    ]


def test_a_module_of_its_own_is_the_file_of_its_tests(tmp_path: Path) -> None:
    write(tmp_path, {**CARGO, "src/tests/deep.rs": "", "src/tests.rs": ""})
    found = listed("cargo", "cargo.stdout", tmp_path, "cargo.stderr")
    assert found[:2] == [
        "passed shop::tests::adds in src/tests.rs",
        "passed shop::tests::deep::adds in src/tests/deep.rs",
    ]


def test_what_does_not_compile_is_a_finding_at_its_place(tmp_path: Path) -> None:
    outcome, tests = read("cargo", b"", tmp_path, recorded("cargo-broken.stderr", tmp_path))
    assert not tests.results
    [error] = outcome.findings
    assert error.description == "it does not compile: expected one of `!` or `::`, found `<eof>`"
    assert (error.file, error.line, error.category) == ("tests/cart.rs", 2, "build")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (b"test tests::adds ... ok\n", b"", "names 7 tests, its counts say 8: run it without --quiet"),
        (b"test tests::adds ... ok\n", b"test tests::adds ... FAILED\n", "run it without --quiet"),
        (b"running 0 tests\n", b"\n", "names 4 test programs, but 3 printed results"),
        (b"test result: ok. 1 passed", b"", "ends before its tests ended"),
    ],
)
def test_an_output_of_cargo_that_does_not_add_up_is_an_error(
    before: bytes, after: bytes, problem: str, tmp_path: Path
) -> None:
    text = recorded("cargo.stdout", tmp_path).replace(before, after, 1)
    with pytest.raises(AgentError, match=problem):
        read("cargo", text, tmp_path, recorded("cargo.stderr", tmp_path))


def test_output_of_a_rust_test_before_its_result_does_not_hide_it(tmp_path: Path) -> None:
    text = recorded("cargo.stdout", tmp_path).replace(b"test tests::adds ... ok", b"test tests::adds ... hello\nok", 1)
    _, tests = read("cargo", text, tmp_path, recorded("cargo.stderr", tmp_path))
    assert tests.results["shop::tests::adds"] == "passed"


def test_tap(tmp_path: Path) -> None:
    outcome, tests = read("tap", recorded("node-20.tap", tmp_path), tmp_path)
    assert tests.results["suite::deep::inner"] == "passed"
    assert [tests.results[id] for id in ("adds", "wrong", "skipped", "todo")] == [
        "passed",
        "failed",
        "skipped",
        "skipped",
    ]
    assert "suite" not in tests.results
    assert outcome.findings[1].description == r"suite::bad: boom\x01x"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1..2\nok 1 - a\n", "has 1 tests, its plan says 2"),
        ("ok 1 - a\n", "its plan says nothing"),
        ("hello\n", "is not TAP"),
        ("1..1\nBail out! no database\n", "given up: no database"),
        ("1..1\nok 1 - a # SKIP later\n", "all skipped"),
    ],
)
def test_tap_that_does_not_add_up_is_an_error(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=problem):
        read("tap", text.encode(), tmp_path)


def test_a_tool_that_saw_restored_files_is_understood(tmp_path: Path) -> None:
    """A test file that was deleted is restored for the judge only: its tests still have a file."""
    kept = tmp_path / "kept"
    kept.write_text("func TestAdd(t *testing.T) {}\n")
    names = FileNames(tmp_path, restored={"tests/test_cart.py": kept, "go.mod": kept, "a_test.go": kept})
    text = b'<testsuite><testcase classname="tests.test_cart" name="test_total"/></testsuite>'
    _, tests = ReportSpec("junit").read(text, 0, "", names)
    assert tests.files == {"tests.test_cart::test_total": "tests/test_cart.py"}
    assert names.inside("") == ["a_test.go", "go.mod", "kept"]
    assert names.text("a_test.go") == kept.read_text()


def test_paths_of_a_room_elsewhere_are_those_of_the_workspace(tmp_path: Path) -> None:
    room = tmp_path / "room"
    text = f'<testsuite><testcase classname="test" name="adds" file="{room}/test/a.test.js"/></testsuite>'
    _, tests = ReportSpec("junit").read(text.encode(), 0, "", FileNames(tmp_path / "work", room))
    assert tests.files == {"test/a.test.js::adds": "test/a.test.js"}


# What pytest lists in unusual ways


def test_a_test_that_fails_again_in_its_teardown_is_one_test(tmp_path: Path) -> None:
    case = '<testcase classname="test_a" name="test_x">'
    text = f'<testsuite failures="1" errors="1">{case}<failure message="assert 0"/></testcase>{case}<error message="teardown"/></testcase></testsuite>'
    outcome, tests = read("junit", text.encode(), tmp_path)
    assert tests.results == {"test_a::test_x": "failed"}
    assert [each.description for each in outcome.findings] == ["test_a::test_x: assert 0"]


def test_a_skipped_test_whose_teardown_fails_failed(tmp_path: Path) -> None:
    text = b'<testsuite><testcase name="t"><skipped/><error message="teardown"/></testcase></testsuite>'
    assert read("junit", text, tmp_path)[1].results == {"t": "failed"}


def test_tests_of_one_name_are_numbered_in_their_order(tmp_path: Path) -> None:
    text = b'<testsuite><testcase name="t #2"/><testcase name="t"/><testcase name="t"/><testcase name="t"><failure/></testcase></testsuite>'
    tests = read("junit", text, tmp_path)[1]
    assert tests.results == {"t #2": "passed", "t": "passed", "t #3": "passed", "t #4": "failed"}


def test_names_with_line_breaks_and_control_characters_stay_apart(tmp_path: Path) -> None:
    text = b'<testsuite><testcase name="a&#10;b"/><testcase name="a&#10;c"/><testcase name="bell \x07 &#27;[1m"/></testsuite>'
    assert list(read("junit", text, tmp_path)[1].results) == ["a b", "a c", "bell ? ?[1m"]


def test_long_names_stay_apart(tmp_path: Path) -> None:
    cases = "".join(f'<testcase name="{"x" * 900}{end}"/>' for end in "ab")
    tests = read("junit", f"<testsuite>{cases}</testsuite>".encode(), tmp_path)[1]
    assert len(tests.results) == 2
    assert all(len(id) == 500 for id in tests.results)


def test_a_runner_that_fails_without_a_failing_test_is_an_error_even_if_tests_are_known(tmp_path: Path) -> None:
    """A coverage threshold, or an error after the last test."""
    passing = b'<testsuite><testcase name="t"/></testsuite>'
    with pytest.raises(AgentError, match=r"the tool failed \(exit 1\) but its report lists nothing"):
        ReportSpec("junit").read(passing, 1, "", FileNames(tmp_path), allow_empty=True)
    with pytest.raises(AgentError, match="lists nothing"):
        ReportSpec("json").read(b"[]", 2, "", FileNames(tmp_path), allow_empty=True)
    outcome, _ = ReportSpec("junit").read(b"<testsuite/>", 5, "", FileNames(tmp_path), allow_empty=True)
    assert outcome.verdict == "pass", "the caller knows which tests are missing"
