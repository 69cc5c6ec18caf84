"""What the recorded output of each CLI means; no CLI is needed here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.agents.attempt_folder import Ended
from backedge.adapters.agents.clis.cli import NONE, CliReport, Session
from backedge.adapters.agents.clis.folder import CliFolder
from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.agents.clis.report import outcome_of
from backedge.adapters.agents.clis.tool_calls import tool_call
from backedge.adapters.agents.clis.transcript import Transcript
from backedge.core.errors import AgentError
from backedge.core.model import Usage
from backedge.engine.protocol import Outcome

Line = Mapping[str, Any]


def read(cli: str, *lines: Line, stderr: str = "", before: Usage = NONE) -> CliReport:
    return CLIS[cli].read(iter(lines), stderr, before)


def result(**more: Any) -> Line:
    """The last line of Claude Code 2.1.197, as it was recorded."""
    usage = {"input_tokens": 1200, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 30}
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "api_error_status": None,
        "num_turns": 1,
        "result": "x",
        "session_id": "0f5c",
        "total_cost_usd": 0.00675,
        "usage": usage,
        "modelUsage": {"m": {"inputTokens": 1200, "costUSD": 0.00675}},
        "permission_denials": [],
        **more,
    }


def test_an_older_claude_without_usage_per_invocation_is_read() -> None:
    report = read("claude", result())
    assert report.usage == Usage(0.00675, 1212, 30)
    assert report.complete
    assert report.problem == ""


def test_claude_counts_all_its_models_since_the_last_result() -> None:
    since = {
        "large": {"inputTokens": 100, "outputTokens": 10, "cacheReadInputTokens": 5, "costUSD": 0.5},
        "small": {"inputTokens": 1, "outputTokens": 2, "cacheCreationInputTokens": 3, "costUSD": 0.25},
    }
    assert read("claude", result(total_cost_usd=9.0, model_usage_since_last_result=since)).usage == Usage(0.75, 109, 12)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"is_error": True, "api_error_status": 529, "result": "Overloaded"},
            "claude failed (API error 529): Overloaded",
        ),
        ({"is_error": True, "result": "Connection error."}, "claude failed: Connection error."),
        ({"subtype": "error_max_turns", "errors": ["Reached (3)"]}, "claude stopped at max_turns (Reached (3))"),
        ({"subtype": "error_max_budget_usd", "errors": ["($1)"]}, "claude stopped at max_budget_usd (($1))"),
        ({"subtype": "error_during_execution", "errors": ["boom"]}, "claude failed (error_during_execution): boom"),
        (
            {"permission_denials": [{"tool_name": "Write", "tool_input": {"file_path": "a"}}]},
            "claude was denied Write (a)",
        ),
        (
            {"subtype": "error_max_turns", "errors": [], "permission_denials": [{"tool_name": "Bash"}]},
            "it was also denied Bash",
        ),
    ],
)
def test_errors_are_read_from_the_fields_of_claude(more: dict[str, Any], said: str) -> None:
    assert said in read("claude", result(**more)).problem


def test_a_killed_claude_still_reports_its_usage_and_session() -> None:
    message = {
        "id": "m1",
        "content": [{"type": "text", "text": "Looking."}],
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    report = read(
        "claude",
        {"type": "system", "subtype": "init", "session_id": "0f5c"},
        {"type": "assistant", "message": message, "session_id": "0f5c"},
        {"type": "assistant", "message": message, "session_id": "0f5c"},
    )
    assert report == CliReport(usage=Usage(0.0, 5, 1), session="0f5c", transcript=("Looking.", "Looking."))


CODEX = (
    {"type": "thread.started", "thread_id": "0199"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "0", "type": "reasoning", "text": "Thinking."}},
    {"type": "item.completed", "item": {"id": "1", "type": "file_change", "changes": [{"path": "a"}]}},
    {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": '{"output": "7"}'}},
    {"type": "turn.completed", "usage": {"input_tokens": 6000, "cached_input_tokens": 100, "output_tokens": 90}},
)


def test_codex_reports_the_whole_conversation_and_we_count_the_difference() -> None:
    report = read("codex", *CODEX, before=Usage(0.0, 2400, 60))
    assert report.usage == Usage(0.0, 3600, 30)
    assert report.used == Usage(0.0, 6000, 90)
    assert report.transcript[:2] == ("Thinking.", "update a")


def test_a_codex_that_restarts_its_count_is_believed() -> None:
    assert read("codex", *CODEX, before=Usage(0.0, 90_000, 60)).usage == Usage(0.0, 6000, 90)


def test_a_failed_codex_keeps_the_usage_of_its_conversation() -> None:
    report = read("codex", CODEX[0], {"type": "turn.failed", "error": {"message": "401"}}, before=Usage(0.0, 10, 1))
    assert report.problem == "codex failed: 401"
    assert report.usage == NONE
    assert report.used == Usage(0.0, 10, 1)


def test_the_last_message_of_gemini_comes_in_pieces() -> None:
    report = read(
        "gemini",
        {"type": "init", "session_id": "9dcf", "model": "m"},
        {"type": "message", "role": "user", "content": '{"output": "not this"}'},
        {"type": "message", "role": "assistant", "content": "First ", "delta": True},
        {"type": "tool_use", "tool_name": "write_file", "parameters": {"file_path": "a"}},
        {"type": "tool_result", "status": "success"},
        {"type": "message", "role": "assistant", "content": '{"output"', "delta": True},
        {"type": "message", "role": "assistant", "content": ": 1}", "delta": True},
        {
            "type": "result",
            "status": "success",
            "stats": {"total_tokens": 150, "input_tokens": 100, "output_tokens": 20},
        },
    )
    assert report.text == '{"output": 1}'
    assert report.usage == Usage(0.0, 100, 50), "what it thought was paid for too"
    assert report.session == "9dcf"


def test_a_failed_gemini_says_why() -> None:
    assert (
        read("gemini", {"type": "result", "status": "error", "error": {"message": "quota"}}).problem
        == "gemini failed: quota"
    )


def finish(reason: str, cost: float = 0.25) -> Line:
    tokens = {"input": 10, "output": 2, "reasoning": 1, "cache": {"write": 3, "read": 4}}
    return {"type": "step_finish", "sessionID": "ses_1", "part": {"reason": reason, "tokens": tokens, "cost": cost}}


def test_opencode_adds_up_its_steps() -> None:
    report = read(
        "opencode",
        {"type": "step_start", "sessionID": "ses_1", "part": {}},
        {"type": "text", "sessionID": "ses_1", "part": {"text": "I will write."}},
        {"type": "tool_use", "sessionID": "ses_1", "part": {"tool": "write", "state": {"input": {"filePath": "a"}}}},
        finish("tool-calls"),
        {"type": "step_start", "sessionID": "ses_1", "part": {}},
        {"type": "text", "sessionID": "ses_1", "part": {"text": '{"output": 1}'}},
        finish("stop"),
    )
    assert report.complete
    assert report.text == '{"output": 1}'
    assert report.usage == Usage(0.5, 34, 6)


def test_a_truncated_opencode_report_is_not_a_success() -> None:
    assert not read("opencode", finish("tool-calls")).complete
    assert "length" in read("opencode", finish("length")).problem
    failed = {
        "type": "error",
        "sessionID": "ses_1",
        "error": {"name": "APIError", "data": {"message": "no", "statusCode": 401}},
    }
    assert read("opencode", failed).problem == "opencode failed: no (API error 401)"


@pytest.mark.parametrize("cli", CLIS)
def test_fields_of_unexpected_types_do_not_crash(cli: str) -> None:
    for value in (None, 1, "x", [], [1], {"type": 3}, {"content": [None, 1]}, float("nan"), -1, True):
        for kind in ("assistant", "result", "item.completed", "turn.completed", "turn.failed", "message", "step_finish", "error", "text", "tool_use", "init"):  # fmt: skip
            keys = ("message", "usage", "item", "part", "error", "stats", "errors", "permission_denials", "session_id",
                    "sessionID", "thread_id", "result", "model_usage_since_last_result", "total_cost_usd")  # fmt: skip
            read(cli, {"type": kind, "role": "assistant", **dict.fromkeys(keys, value)})


@pytest.mark.parametrize("cli", CLIS)
def test_silence_is_a_failure_whatever_the_exit_code(cli: str) -> None:
    for ended in (Ended(code=0), Ended(code=1), Ended(signal=15)):
        with pytest.raises(AgentError, match=f"{cli} ended without a report .*: out of memory"):
            outcome_of(CLIS[cli], read(cli), ended, "out of memory", None)
    assert outcome_of(CLIS[cli], read(cli), Ended(), "", None) is None, "nobody saw the end: a doubt"


def test_a_complete_report_counts_whatever_the_exit_code() -> None:
    report = read("claude", result(structured_output={"output": 1}))
    assert outcome_of(CLIS["claude"], report, Ended(code=1), "", None) == Outcome(output=1)
    with pytest.raises(AgentError, match="timeout"):
        outcome_of(CLIS["claude"], report, Ended(signal=15, because="timeout: no outcome after 1 s"), "", None)


def test_the_last_object_of_the_last_message_is_the_outcome() -> None:
    report = read(
        "claude", result(result='First {"a": 1}, then\n```json\n{"output": {"b": 2}, "summary": null}\n```\nBye.')
    )
    assert outcome_of(CLIS["claude"], report, Ended(code=0), "", None) == Outcome(output={"b": 2})
    with pytest.raises(AgentError, match=r"not understood.*outptu"):
        outcome_of(CLIS["claude"], read("claude", result(result='{"outptu": 1}')), Ended(code=0), "", None)
    with pytest.raises(AgentError, match="cannot be read"):
        outcome_of(CLIS["claude"], read("claude", result(result='{"output": {')), Ended(code=0), "", None)


def test_a_conversation_is_kept_as_a_text_that_only_its_own_cli_understands() -> None:
    for session in (Session("claude", "0f5c-1"), Session("codex", "0199", Usage(0.0, 2400, 60))):
        assert Session.of(str(session), session.cli) == session
        assert Session.of(str(session), "gemini") is None
    for text in (None, "", "claude", "claude:", "claude:--resume", "claude:a b", "claude:a/../b", "0f5c"):
        assert Session.of(text, "claude") is None


def test_lines_that_are_not_events_are_skipped(tmp_path: Path) -> None:
    folder = CliFolder(tmp_path, "r-1", "code", 1)
    assert list(folder.events()) == []
    folder.make()
    lines = [
        b"warning: old node",
        b'{"type": "a"}',
        b"[1]",
        b"{broken",
        b"\xff\xfe",
        b"{" * 100_000,
        b'{"type": "b"}',
        b'{"type": "c',
    ]
    folder.stdout.write_bytes(b"\n".join(lines))
    assert [json.loads(json.dumps(event)) for event in folder.events()] == [{"type": "a"}, {"type": "b"}]


def test_an_answer_of_claude_counts_even_if_a_tool_was_denied_and_the_log_says_so() -> None:
    report = read("claude", result(structured_output={"output": 1}, permission_denials=[{"tool_name": "Bash"}]))
    assert report.problem == ""
    assert (report.transcript[-1], report.denied) == ("! denied Bash", ("Bash",))
    assert "max_turns: raise it" in read("claude", result(subtype="error_max_turns", errors=[], result="")).problem


def test_a_tool_call_is_told_in_a_few_words() -> None:
    edit = {"file_path": "signer.py", "old_string": "a\nb", "new_string": "a\nx\ny\nb"}
    for name, given, words in (
        ("Edit", edit, "Edit signer.py +2 −0"),
        ("edit", {"filePath": "a.py", "oldString": "x", "newString": "y"}, "edit a.py +1 −1"),
        ("MultiEdit", {"file_path": "a.py", "edits": [edit, edit]}, "MultiEdit a.py +4 −0"),
        ("Write", {"file_path": "a.py", "content": "1\n2\n"}, "Write a.py +2 −0"),
        ("Bash", {"command": "pytest\n-q", "description": "tests"}, "Bash pytest -q"),
        ("Grep", {"pattern": "def", "path": "src"}, "Grep src “def”"),
        ("Task", {"x": 1}, 'Task {"x": 1}'),
        ("Bash", {"command": "x" * 500}, f"Bash {'x' * 154}…"),
    ):
        assert tool_call(name, given) == words


DENIALS = {
    "claude": (
        {
            "type": "assistant",
            "message": {"content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "curl x"}}]},
        },
        {"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "tool_use_id": "t"},
        {
            "type": "result",
            "permission_denials": [{"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "curl x"}}],
        },
    ),
    "codex": (
        {"type": "item.completed", "item": {"type": "command_execution", "command": "curl x", "status": "declined"}},
    ),
    "gemini": (
        {"type": "tool_use", "tool_name": "Bash", "tool_id": "Bash__1", "parameters": {"command": "curl x"}},
        {"type": "tool_result", "tool_id": "Bash__1", "status": "error", "error": {"type": "tool_not_registered"}},
    ),
    "opencode": (
        {
            "type": "tool_use",
            "part": {
                "tool": "Bash",
                "state": {
                    "status": "error",
                    "input": {"command": "curl x"},
                    "error": "The user rejected permission to use this specific tool call.",
                },
            },
        },
    ),
}
"""As the CLIs report a denied tool."""


@pytest.mark.parametrize("cli", DENIALS)
def test_a_denied_tool_is_one_line_at_once_and_in_pieces(cli: str) -> None:
    events = DENIALS[cli]
    tool = "command" if cli == "codex" else "Bash"
    report = read(cli, *events)
    assert report.denied == (f"{tool} (curl x)",)
    assert [line for line in report.transcript if line.startswith("!")] == [f"! denied {tool} (curl x)"]
    pieces = Transcript(cli)
    told = [line for event in events for line in pieces.lines([json.dumps(event).encode()])]
    assert [line for line in told if line.startswith("!")] == [
        "! denied Bash" if cli == "gemini" else f"! denied {tool} (curl x)"
    ]


def test_cached_tokens_are_counted_for_prices() -> None:
    usage = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 5}
    assert read("codex", {"type": "turn.completed", "usage": usage}).cached == 60
    begun = {"type": "init", "session_id": "s", "model": "gemini-2.5-flash"}
    gemini = read("gemini", begun, {"type": "result", "status": "success", "stats": {"input_tokens": 9, "cached": 4}})
    assert (gemini.cached, gemini.model) == (4, "gemini-2.5-flash")
    tokens = {"input": 1, "output": 2, "cache": {"read": 7, "write": 0}}
    assert read("opencode", {"type": "step_finish", "part": {"reason": "stop", "tokens": tokens}}).cached == 7


@pytest.mark.parametrize("text", ["codex:0199", "codex:0199:2400:60", "codex:0199:2400:60:1200"])
def test_a_conversation_is_read_as_it_was_written(text: str) -> None:
    session = Session.of(text, "codex")
    assert session is not None
    assert str(session) == text
    assert session.cached == (1200 if text.endswith("1200") else 0)
