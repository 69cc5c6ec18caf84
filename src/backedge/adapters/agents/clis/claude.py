"""Claude Code.

A `result` with subtype success may be an error (`is_error`), whatever the exit code; a tool that was not permitted is
only in `permission_denials`. From 2.1.3xx on `total_cost_usd` counts the whole conversation after a resume, and
`model_usage_since_last_result` this invocation; before, `total_cost_usd` was this invocation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Event, count, items, mapping, money, words
from backedge.core.model import Usage
from backedge.core.text import one_line


class Claude(Cli):
    name = "claude"
    package = "@anthropic-ai/claude-code"
    options = frozenset({"model", "allowed_tools", "permission_mode", "max_turns", "max_budget_usd"})
    modes = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "manual", "plan")
    has_schema = True
    mentions = True
    env = {"DISABLE_AUTOUPDATER": "1"}

    def arguments(self, call: Call) -> list[str]:
        options = call.options
        # A stream needs --verbose. If the process is killed, its output so far is available.
        found = ["-p", "--output-format", "stream-json", "--verbose"]
        found += ["--json-schema", json.dumps(call.schema, ensure_ascii=False)]
        mode = options.permission_mode or ("" if call.judges else "acceptEdits")
        for flag, value in (
            ("--model", options.model),
            ("--permission-mode", mode),
            ("--max-turns", options.max_turns),
            ("--max-budget-usd", options.max_budget_usd),
            ("--resume", call.resume),
        ):
            if value not in ("", None):
                found += [flag, str(value)]
        if options.allowed_tools:
            found += ["--allowedTools", *options.allowed_tools]
        return found

    def read(self, events: Iterable[Event], stderr: str, before: Usage) -> CliReport:  # noqa: ARG002
        result: Event | None = None
        session, transcript, spent = None, [], {}
        for event in events:
            session = words(event.get("session_id")) or session
            if event.get("type") == "assistant":
                message = mapping(event.get("message"))
                spent[words(message.get("id"))] = _tokens(mapping(message.get("usage")))
                transcript += [
                    line for block in items(message.get("content")) if (line := _transcript_line(mapping(block)))
                ]
            elif event.get("type") == "result":
                result = event
        if result is None:
            usage = sum(spent.values(), Usage())
            lost = "No conversation found" in stderr and not transcript
            return CliReport(
                usage=usage, session=None if lost else session, unknown_session=lost, transcript=tuple(transcript)
            )
        lost = not transcript and any("No conversation found" in words(each) for each in items(result.get("errors")))
        return CliReport(
            complete=True,
            problem=_problem(result),
            text=words(result.get("result")),
            structured=result.get("structured_output"),
            usage=_usage(result),
            session=None if lost else session,
            unknown_session=lost,
            transcript=(*transcript, *_warning(result)),
        )


def _warning(result: Event) -> tuple[str, ...]:
    """A warning about an attempt that gave an answer in spite of a problem."""
    denied = _denied(result)
    return (f"warning: claude was denied {denied}, and answered without it",) if denied else ()


def _denied(result: Event) -> str:
    return ", ".join(dict.fromkeys(_denial(mapping(each)) for each in items(result.get("permission_denials"))))


def _problem(result: Event) -> str:
    denied = _denied(result)
    message = one_line("; ".join(map(words, items(result.get("errors")))) or words(result.get("result")))
    subtype, status = words(result.get("subtype")), result.get("api_error_status")
    if subtype == "error_max_turns":
        problem = (
            f"claude stopped at max_turns{f' ({message})' if message else ''}: raise it, or give the step less to do"
        )
    elif subtype == "error_max_budget_usd":
        problem = f"claude stopped at max_budget_usd{f' ({message})' if message else ''}: raise it, or give the step less to do"
    elif result.get("is_error") or subtype != "success":
        # An error may have the subtype success: naming that would confuse.
        kind = f"API error {status}" if status else "" if subtype == "success" else subtype or "no subtype"
        problem = f"claude failed{f' ({kind})' if kind else ''}: {message or 'it printed nothing'}"
    elif denied and result.get("structured_output") is None:
        return f"claude was denied {denied}: name it in `allowed_tools`, or choose another `permission_mode`"
    else:
        return ""
    return f"{problem}; it was also denied {denied}" if denied else problem


def _denial(denial: Event) -> str:
    given = mapping(denial.get("tool_input"))
    what = one_line(next((words(given[key]) for key in ("command", "file_path", "url") if key in given), ""))
    return f"{words(denial.get('tool_name')) or 'a tool'}{f' ({what[:100]})' if what else ''}"


def _usage(result: Event) -> Usage:
    models = mapping(result.get("model_usage_since_last_result"))
    if not models:
        tokens = _tokens(mapping(result.get("usage")))
        return Usage(money(result.get("total_cost_usd")), tokens.tokens_in, tokens.tokens_out)
    total = Usage()
    for each in map(mapping, models.values()):
        read = sum(count(each.get(key)) for key in ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"))
        total += Usage(money(each.get("costUSD")), read, count(each.get("outputTokens")))
    return total


def _tokens(usage: Event) -> Usage:
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Usage(0.0, sum(count(usage.get(key)) for key in keys), count(usage.get("output_tokens")))


def _transcript_line(block: Any) -> str:
    if block.get("type") == "text":
        return words(block.get("text"))
    if block.get("type") == "tool_use":
        return f"[{words(block.get('name'))}] {json.dumps(block.get('input'), ensure_ascii=False)}"
    return ""


CLI = Claude()
