"""Whatever a tool writes: it is read, or it is an error of the agent. Nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backedge.adapters.reports.places import FileNames
from backedge.adapters.reports.spec import ReportSpec
from backedge.catalog import REPORTS, ReportKind
from backedge.core.errors import AgentError
from tests.reports.parts import RECORDED

SHARED = settings(deadline=None)
KINDS = st.sampled_from(REPORTS)
RECORDINGS = {path.name: path.read_bytes() for path in sorted(RECORDED.iterdir())}


def is_read_or_refused(kind: ReportKind, text: bytes, log: bytes = b"", code: int | None = 1) -> None:
    try:
        outcome, tests = ReportSpec(kind).read(text, code, "", FileNames(RECORDED), log=log)
    except AgentError:
        return
    assert outcome.verdict in ("pass", "fail", "needs_improvement")
    for id in (*tests.results, *tests.files):
        assert id and id == " ".join(id.split()) and len(id) <= 510
    failing = {each.test for each in outcome.findings if each.test}
    assert failing <= tests.failed, "a finding of a test that did not fail"
    assert bool(tests.failed) <= bool(outcome.findings), "a test that failed without a finding"
    assert set(tests.files) <= set(tests.results)
    for file in tests.files.values():
        assert not file.startswith("/") and ".." not in file.split("/")


@SHARED
@given(KINDS, st.binary(max_size=300), st.binary(max_size=100), st.sampled_from([0, 1, None]))
def test_random_bytes(kind: ReportKind, text: bytes, log: bytes, code: int | None) -> None:
    is_read_or_refused(kind, text, log, code)


NAMES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["test", "a.test.js", "test/a.test.js", "tests.test_a", '"before all" hook', "x" * 600, "..", "\0", "/", "a#2"]
    ),
)


def attribute(text: str) -> str:
    plain = "".join(each for each in text if each.isprintable() or each in "\n\t")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


@st.composite
def cases(draw: st.DrawFn) -> str:
    keys = draw(st.lists(st.sampled_from(["name", "classname", "file", "line", "time"]), unique=True))
    words = " ".join(f'{key}="{attribute(draw(NAMES))}"' for key in keys)
    tags = st.sampled_from(
        ["failure", "error", "skipped", "flakyFailure", "rerunFailure", "system-out", "testcase", "testsuite"]
    )
    inside = "".join(
        f'<{tag} message="{attribute(draw(NAMES))}" type="{draw(st.sampled_from(["todo", "x"]))}">{attribute(draw(NAMES))}</{tag}>'
        for tag in draw(st.lists(tags, max_size=3))
    )
    return f"<testcase {words}>{inside}</testcase>"


SUITES = st.recursive(
    cases(),
    lambda inner: st.builds(
        lambda name, parts, count: (
            f'<testsuite name="{attribute(name)}" failures="{attribute(count)}">{"".join(parts)}</testsuite>'
        ),
        NAMES,
        st.lists(inner, max_size=3),
        st.sampled_from(["0", "1", "x", ""]),
    ),
    max_leaves=8,
)


@SHARED
@given(st.lists(SUITES, max_size=4), st.sampled_from(["testsuites", "testsuite", "a:testsuites"]))
def test_random_suites(parts: list[str], root: str) -> None:
    is_read_or_refused("junit", f"<{root}>{''.join(parts)}</{root}>".encode())


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), NAMES)
KEYS = st.sampled_from(
    [
        *("testResults", "assertionResults", "name", "status", "title", "ancestorTitles", "failureMessages", "message"),
        *("Action", "Package", "Test", "Output", "runs", "results", "version", "invocations", "locations", "ruleIndex"),
        *("verdict", "findings", "description", "severity", "numFailedTests", "ImportPath", "FailedBuild"),
    ]
)
VALUES = st.recursive(
    st.one_of(SCALARS, st.sampled_from(["failed", "passed", "pass", "fail", "run", "2.1.0"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=5)),
    max_leaves=12,
)


@SHARED
@given(st.sampled_from(["jest", "gotest", "sarif", "json"]), st.lists(VALUES, min_size=1, max_size=3))
def test_random_json(kind: ReportKind, values: list[Any]) -> None:
    is_read_or_refused(kind, "\n".join(json.dumps(each) for each in values).encode())


@SHARED
@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES))
def test_a_jest_report_with_odd_parts(suite: dict[str, Any], case: dict[str, Any]) -> None:
    whole = {
        "testResults": [
            {"name": "a.test.js", "assertionResults": [{"status": "failed", "title": "t", **case}], **suite}
        ]
    }
    is_read_or_refused("jest", json.dumps(whole).encode())


@pytest.mark.parametrize("kind", REPORTS)
@SHARED
@given(st.sampled_from(sorted(RECORDINGS)), st.data())
def test_damaged_reports_of_real_tools(kind: ReportKind, name: str, data: st.DataObject) -> None:
    """Bytes that were lost, changed or repeated."""
    text = RECORDINGS[name]
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 400)))
    middle = data.draw(st.one_of(st.just(b""), st.just(text[begin:end] * 2), st.binary(max_size=10)))
    log = RECORDINGS["cargo.stderr"]
    is_read_or_refused(kind, text[:begin] + middle + text[end:], log)
