"""Claude Code.

A `result` with subtype success may be an error (`is_error`), whatever the exit code; a tool that was not permitted is
only in `permission_denials`. From 2.1.3xx on `total_cost_usd` counts the whole conversation after a resume, and
`model_usage_since_last_result` this invocation; before, `total_cost_usd` was this invocation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Event, count, items, mapping, money, words
from backedge.adapters.agents.clis.provider_limit import STATUSES, ReachedLimit, is_limit
from backedge.adapters.agents.clis.tool_calls import denied_call, denied_line, tool_call
from backedge.core.model import Usage
from backedge.core.text import one_line

LONGEST_OWN_DELAY = 60.0
"""The longest that it waits between its retries, in seconds, if its provider does not ask for more."""


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
        calls: dict[str, tuple[str, Event]] = {}
        denied: dict[str, str] = {}
        limit: ReachedLimit | None = None
        refused = ""
        for event in events:
            session = words(event.get("session_id")) or session
            limit = _limit_after(limit, event)
            if event.get("type") == "assistant":
                message = mapping(event.get("message"))
                spent[words(message.get("id"))] = _tokens(mapping(message.get("usage")))
                blocks = [mapping(block) for block in items(message.get("content"))]
                transcript += [line for block in blocks if (line := _transcript_line(block))]
                calls |= {
                    words(each.get("id")): (words(each.get("name")), mapping(each.get("input"))) for each in blocks
                }
            elif event.get("subtype") == "permission_denied":
                call = words(event.get("tool_use_id"))
                denied[call] = denied_call(*calls.get(call, (words(event.get("tool_name")), {})))
                transcript.append(denied_line(denied[call]))
            elif event.get("type") == "user":
                refused = _refusal(event) or refused
            elif event.get("type") == "result":
                result = event
        if result is None:
            usage = sum(spent.values(), Usage())
            lost = "No conversation found" in stderr and not transcript
            return CliReport(
                usage=usage,
                session=None if lost else session,
                unknown_session=lost,
                transcript=tuple(transcript),
                denied=tuple(dict.fromkeys(denied.values())),
                limit=limit,
            )
        # Older versions name them only at the end.
        for place, denial in enumerate(map(mapping, items(result.get("permission_denials")))):
            call = words(denial.get("tool_use_id")) or f"denial {place}"
            if call not in denied:
                denied[call] = denied_call(words(denial.get("tool_name")), mapping(denial.get("tool_input")))
                transcript.append(denied_line(denied[call]))
        known = tuple(dict.fromkeys(denied.values()))
        lost = not transcript and any("No conversation found" in words(each) for each in items(result.get("errors")))
        return CliReport(
            complete=True,
            problem=_problem(result, ", ".join(known)),
            text=words(result.get("result")),
            structured=result.get("structured_output"),
            usage=_usage(result),
            session=None if lost else session,
            unknown_session=lost,
            transcript=tuple(transcript),
            denied=known,
            refused=refused,
            limit=_limit(result, limit, ", ".join(known)),
        )


_REFUSAL = "Output does not match required schema: "


def _refusal(event: Event) -> str:
    """Why an answer did not match the schema; empty if the event is about something else."""
    for block in map(mapping, items(mapping(event.get("message")).get("content"))):
        content = block.get("content")
        text = words(content) or "".join(words(mapping(part).get("text")) for part in items(content))
        _, refused, why = text.partition(_REFUSAL)
        if block.get("is_error") and refused:
            return one_line(why)
    return ""


def _limit_after(limit: ReachedLimit | None, event: Event) -> ReachedLimit | None:
    """The limit of the provider that is known after an event. It is over when the model answers."""
    if event.get("type") == "rate_limit_event":
        info = mapping(event.get("rate_limit_info"))
        if info.get("status") == "rejected":
            resets = info.get("resetsAt")
            kind = words(info.get("rateLimitType")).replace("_", " ") or "rate"
            return ReachedLimit(f"{kind} limit reached", float(resets) if isinstance(resets, int | float) else None)
        return limit
    if event.get("subtype") == "api_retry" and event.get("error_status") in STATUSES:
        delay = count(event.get("retry_delay_ms")) / 1000
        # Shorter delays are its own, longer ones are what the provider asked for.
        wait = delay if delay > LONGEST_OWN_DELAY else None
        return ReachedLimit(f"API error {event.get('error_status')} ({words(event.get('error'))})", wait=wait)
    return None if event.get("type") == "assistant" and not event.get("is_api_error_message") else limit


def _limit(result: Event, known: ReachedLimit | None, denied: str) -> ReachedLimit | None:
    """The limit of the provider that a failure is about; `known` says when it resets, if its message does not."""
    message = words(result.get("result"))
    if not result.get("is_error") or not is_limit(message, result.get("api_error_status")):
        return None
    found = ReachedLimit(_problem(result, denied))
    if known is not None and found.seconds() is None:
        return ReachedLimit(found.message, known.resets_at, known.wait)
    return found


def _problem(result: Event, denied: str) -> str:
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


def _transcript_line(block: Event) -> str:
    if block.get("type") == "text":
        return words(block.get("text"))
    if block.get("type") == "tool_use":
        return tool_call(words(block.get("name")), mapping(block.get("input")))
    return ""


CLI = Claude()
