"""The real Gemini CLI and the real opencode with a fake model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backedge.adapters.agents.clis.cli import Options
from backedge.core.model import Usage
from tests.agents.parts import told
from tests.clis.model import IN, OUT, Call, Fail, Text, model
from tests.clis.parts import Bench

DONE = Text('It is done.\n```json\n{"output": {"files": 1}, "summary": "wrote it"}\n```')


@pytest.fixture(params=["gemini", "opencode"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with model() as script:
        yield Bench(request.param, script, tmp_path)


def options(bench: Bench) -> Options:
    names = {"gemini": "gemini-2.5-flash", "opencode": "anthropic/claude-sonnet-4-5"}
    return Options(model=names[bench.cli])


def write(bench: Bench) -> Call:
    file = str(bench.work / "greeting.txt")
    if bench.cli == "gemini":
        return Call("write_file", {"file_path": file, "content": "hello\n"})
    return Call("write", {"filePath": file, "content": "hello\n"})


def test_a_real_turn_edits_a_file_and_a_rework_continues_the_conversation(bench: Bench) -> None:
    bench.model.says(write(bench), DONE)
    (bench.work / "near.md").write_text("swordfish")
    first = bench.result(told(input="Write a greeting.\n@near.md"), options=options(bench), writes=("*.txt",))
    assert "swordfish" not in bench.model.asked_text(0), "files that data names are not read"
    assert (bench.work / "greeting.txt").read_text() == "hello\n"
    outcome = first.outcome
    assert outcome.output == {"files": 1}  # type: ignore[attr-defined]
    usage = outcome.usage  # type: ignore[attr-defined]
    assert (usage.tokens_in, usage.tokens_out) == (2 * IN, 2 * OUT)
    assert (usage.cost_usd > 0) == (bench.cli == "opencode")
    assert [change.where for change in first.files] == ["greeting.txt"]
    bench.model.says(Text('{"output": 2}'))
    second = bench.result(told(2, mode="rework", session=first.session), options=options(bench))
    assert second.session == first.session
    assert second.outcome.output == 2  # type: ignore[attr-defined]
    assert second.outcome.usage.tokens_in == IN  # type: ignore[attr-defined]
    assert "It is done." in bench.model.asked_text(-1), "the model sees what it said before"


def test_an_unknown_conversation_is_restarted_and_an_api_error_is_an_error_of_the_agent(bench: Bench) -> None:
    gone = {"gemini": "11111111-1111-4111-8111-111111111111", "opencode": "ses_11111111111111111111111111"}
    bench.model.says(*[Fail(401)] * 6)
    error = bench.error(told(2, session=f"{bench.cli}:{gone[bench.cli]}"), options=options(bench))
    assert f"{bench.cli} failed" in str(error)
    assert "401" in str(error)
    assert error.usage == Usage()
    assert b"does not know the conversation" in error.log
    assert (error.session or "").startswith(f"{bench.cli}:")
    assert gone[bench.cli] not in (error.session or "")


def test_a_judge_cannot_change_files(bench: Bench) -> None:
    bench.model.says(write(bench), Text('{"verdict": "pass", "summary": "good"}'))
    outcome = bench.outcome(judges=True, options=options(bench))
    assert outcome.verdict == "pass"
    assert not (bench.work / "greeting.txt").exists()
