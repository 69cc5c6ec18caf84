"""The real Codex with a fake model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backedge.adapters.agents.clis.cli import Options, Session
from backedge.core.briefing import BriefedFinding, FeedbackForAttempt
from backedge.core.feedback.guidelines import AnswerRules
from backedge.core.model import FindingResolution, Severity, Usage
from backedge.core.prices import Price
from backedge.engine.protocol import Finding
from tests.agents.parts import told
from tests.clis.model import IN, OUT, Call, Fail, Hang, Text, model
from tests.clis.parts import Bench


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Bench]:
    with model() as script:
        yield Bench("codex", script, tmp_path)


def shell(command: str) -> Call:
    return Call("exec_command", {"cmd": command})


def answer(**outcome: object) -> Text:
    """The answer of a model with a strict schema: no key is left out."""
    return Text(json.dumps({"output": None, "summary": "", "resolutions": None, "feedback": None, **outcome}))


ISSUE = BriefedFinding("F-1", "greets the wrong planet", Severity.HIGH, "review", file="greeting.txt")
UNSANDBOXED = Options(permission_mode="danger-full-access")


def test_a_real_turn_edits_a_file_and_reports_its_usage(codex: Bench) -> None:
    codex.model.says(shell("echo hello > greeting.txt"), answer(output='{"files": 1}', summary="wrote it"))
    result = codex.result(told(input="review"), options=UNSANDBOXED)
    assert (codex.work / "greeting.txt").read_text() == "hello\n"
    assert result.outcome.output == {"files": 1}  # type: ignore[attr-defined]
    assert result.outcome.usage == Usage(0.0, 2 * IN, 2 * OUT)  # type: ignore[attr-defined]
    assert [change.where for change in result.files] == ["greeting.txt"]
    session = Session.of(result.session, "codex")
    assert session is not None
    assert session.used == Usage(0.0, 2 * IN, 2 * OUT)
    assert b"command " in result.log
    asked = codex.model.asked[0]
    assert asked["text"]["format"]["strict"] is True


def test_a_failing_review_is_a_verdict_and_has_no_files(codex: Bench) -> None:
    finding = {"description": "greets the wrong planet", "severity": "high", "line": None, "affected_phase": None}
    said = {"verdict": "fail", "summary": "wrong", "findings": [finding], "resolutions": None}
    codex.model.says(Text(json.dumps(said)))
    result = codex.result(told(rules=AnswerRules(phases=("planning", "code"))), judges=True)
    assert result.outcome.verdict == "fail"  # type: ignore[attr-defined]
    assert result.outcome.findings == [Finding("greets the wrong planet")]  # type: ignore[attr-defined]
    assert result.workspace is None
    assert "read-only" in codex.model.asked_text()


def test_a_rework_continues_the_conversation_and_counts_only_its_own_tokens(codex: Bench) -> None:
    codex.model.says(shell("echo hello > greeting.txt"), answer(output="1"))
    first = codex.result(options=UNSANDBOXED)
    codex.model.says(
        shell("echo world >> greeting.txt"), answer(resolutions=[{"finding": "F-1", "status": "fixed", "note": None}])
    )
    briefing = told(2, mode="rework", round=1, session=first.session, feedback=FeedbackForAttempt(findings=(ISSUE,)))
    second = codex.result(briefing, options=UNSANDBOXED)
    one, two = Session.of(first.session, "codex"), Session.of(second.session, "codex")
    assert one is not None
    assert two is not None
    assert one.id == two.id
    assert second.outcome.usage == Usage(0.0, 2 * IN, 2 * OUT)  # type: ignore[attr-defined]
    assert two.used == Usage(0.0, 4 * IN, 4 * OUT), "codex counts the whole conversation"
    assert second.outcome.resolutions == [FindingResolution("F-1", "fixed")]  # type: ignore[attr-defined]
    assert (codex.work / "greeting.txt").read_text() == "hello\nworld\n"
    asked = codex.model.asked_text(-1)
    assert "echo hello" in asked, "the model sees what it did before"
    assert "greets the wrong planet" in asked


def test_an_unknown_conversation_is_restarted_once_and_the_log_says_so(codex: Bench) -> None:
    codex.model.says(answer())
    result = codex.result(told(2, session="codex:11111111-1111-4111-8111-111111111111:100:10"))
    assert b"does not know the conversation 11111111" in result.log
    assert result.outcome.usage == Usage(0.0, IN, OUT)  # type: ignore[attr-defined]
    assert len(codex.model.asked) == 1


def test_the_conversation_of_another_cli_is_not_continued(codex: Bench) -> None:
    codex.model.says(answer())
    result = codex.result(told(2, session="claude:11111111-1111-4111-8111-111111111111"))
    assert b"does not know" not in result.log
    assert (result.session or "").startswith("codex:")


def test_an_error_of_the_api_is_an_error_of_the_agent_with_its_conversation(codex: Bench) -> None:
    codex.model.says(*[Fail(401)] * 6)
    error = codex.error()
    assert "codex failed: unexpected status 401" in str(error)
    assert (error.session or "").startswith("codex:")
    assert error.usage == Usage()
    assert b"error: " in error.log


def test_a_hang_ends_at_the_timeout_with_everything_that_was_started(codex: Bench) -> None:
    codex.model.says(Hang())
    began = time.monotonic()
    error = codex.error(timeout=5.0)
    assert "timeout: no outcome after 5 s" in str(error)
    assert time.monotonic() - began < 20
    assert codex.model.hanging.is_set()
    assert codex.survivors() == []
    assert (error.session or "").startswith("codex:"), "the next attempt can go on"


def test_a_finished_report_is_adopted_after_a_crash_with_its_own_usage(codex: Bench) -> None:
    codex.model.says(answer(output="1"), answer(output="2"))
    first = codex.result()
    briefing = told(2, session=first.session)
    second = codex.result(briefing)
    (codex.folder(briefing).path / "ended.json").unlink()
    again = codex.recover(briefing)
    assert again is not None
    assert again.outcome == second.outcome
    assert again.session == second.session
    assert len(codex.model.asked) == 2


def test_a_producer_may_change_its_workspace_also_in_a_continued_conversation(codex: Bench) -> None:
    codex.model.says(answer(), answer())
    first = codex.result()
    codex.result(told(2, session=first.session))
    assert all("workspace-write" in codex.model.asked_text(which) for which in (0, 1))


def test_a_judge_cannot_change_files(codex: Bench) -> None:
    said = '{"verdict": "pass", "summary": "fine", "findings": [], "resolutions": null}'
    codex.model.says(shell("echo hello > greeting.txt"), Text(said))
    codex.outcome(judges=True)
    assert not (codex.work / "greeting.txt").exists()


PRICES = {"gpt-5-codex": Price(input=100.0, output=1000.0, cached_input=10.0)}


def test_the_prices_of_the_workflow_file_give_the_cost_of_each_attempt(codex: Bench) -> None:
    options = Options(model="gpt-5-codex", permission_mode="danger-full-access")
    costs = []
    briefing = told()
    for number in (2, 3):
        codex.model.says(answer(output="1"))
        result = codex.result(briefing, options=options, prices=PRICES)
        costs.append(result.outcome.usage.cost_usd)  # type: ignore[attr-defined]
        briefing = told(number, mode="rework", session=result.session)
    assert costs == pytest.approx([(IN * 100 + OUT * 1000) / 1e6] * 2), "the second counts only its own tokens"
