"""A key that is in one JSON object twice is an error that names it, wherever agents and tools write JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from backedge.adapters.agents.clis.schemas import unwrapped
from backedge.adapters.agents.report_value import ReportValue
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.reports import ReportSpec
from backedge.core.errors import AgentError
from backedge.engine.unique_keys import duplicate_key
from tests.agents.parts import Hands, outcome_of, play, shell, told

TWICE = {
    "at the top": ('{"verdict": "fail", "summary": "no", "verdict": "pass"}', "verdict"),
    "nested": ('{"output": {"a": [{"b": 1, "b": 2}]}, "verdict": "pass"}', "b"),
    "in a finding": (
        '{"verdict": "fail", "findings": [{"severity": "low", "description": "x", "severity": "high"}]}',
        "severity",
    ),
    "spelt differently": ('{"verdict": "fail", "\\\\u0076erdict": "pass", "summary": "no"}', "verdict"),
    "with the same value": ('{"verdict": "pass", "verdict": "pass"}', "verdict"),
}


@pytest.mark.parametrize("where", ["stdout", "file", "file with a secret"])
@pytest.mark.parametrize(("text", "key"), TWICE.values(), ids=TWICE)
def test_an_outcome_with_a_key_twice_is_an_error_that_names_it(text: str, key: str, where: str, tmp_path: Path) -> None:
    secrets = Secrets({"TOKEN": "top-secret"} if "secret" in where else {})
    (tmp_path / "text").write_text(text.replace("\\\\", "\\").replace('"no"', '"no top-secret"'))
    copy = "cat text" if where == "stdout" else 'cat text > "$BACKEDGE_OUTCOME"'
    with pytest.raises(AgentError, match=f"has the key '{key}' twice in one object"):
        outcome_of(tmp_path, shell(copy), judges=True, secrets=secrets)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", '[{"description": "a", "description": "b"}]'),
        ("json", '{"verdict": "fail", "verdict": "pass"}'),
        ("sarif", '{"version": "2.1.0", "runs": [{"results": [{}]}], "runs": [{"results": []}]}'),
    ],
)
def test_a_report_with_a_key_twice_is_an_error(kind: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(text)
    with pytest.raises(AgentError, match=r"report has the key '(description|verdict|runs)' twice"):
        outcome_of(tmp_path, shell("cat text > {report}"), judges=True, report=ReportSpec(kind))  # type: ignore[arg-type]


def test_the_report_of_a_gate_with_a_key_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "coverage.json").write_text('{"total": 10, "total": 90}')
    with pytest.raises(AgentError, match=r"the report 'coverage.json' has the key 'total' twice"):
        play(ReportValue(tmp_path, "coverage.json", "/total").work(told(), Hands()))


def test_json_inside_the_answer_of_a_cli_has_every_key_once() -> None:
    with pytest.raises(AgentError, match="has the key 'a' twice"):
        unwrapped({"output": '{"a": 1, "a": 2}'})
    assert unwrapped({"output": '{"a": 1}', "answer": "{a, a}"}) == {"output": {"a": 1}, "answer": "{a, a}"}


@pytest.mark.parametrize(
    "text", ["", "no JSON", '{"a": 1, "b": {"a": 2}}', '[{"a": 1}, {"a": 2}]', "[" * 100_000, "9" * 9999]
)
def test_the_same_key_in_different_objects_and_text_that_is_no_json_are_none_of_its_business(text: str) -> None:
    assert duplicate_key(text) is None
