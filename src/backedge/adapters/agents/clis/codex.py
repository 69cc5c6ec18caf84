"""Codex.

It reports tokens and no cost; after a resume the tokens are those of the whole conversation. A resumed conversation
does not keep its sandbox: `-c` sets it every time, since `resume` has no flag for it. The prompt is never an argument: a
single word would be read as a subcommand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Event, count, items, mapping, words
from backedge.adapters.agents.clis.provider_limit import ReachedLimit, is_limit
from backedge.adapters.agents.clis.tool_calls import denied_call, denied_line, tool_call
from backedge.core.model import Usage
from backedge.core.text import one_line


class Codex(Cli):
    name = "codex"
    package = "@openai/codex"
    options = frozenset({"model", "permission_mode"})
    modes = ("read-only", "workspace-write", "danger-full-access")
    has_schema = True
    strict = True

    def arguments(self, call: Call) -> list[str]:
        sandbox = call.options.permission_mode or ("read-only" if call.judges else "workspace-write")
        found = ["exec", *(["resume"] if call.resume else []), "--json", "--skip-git-repo-check"]
        found += ["-c", f"sandbox_mode={json.dumps(sandbox)}", "--output-schema", str(call.schema_file)]
        found += ["-m", call.options.model] if call.options.model else []
        return [*found, *([call.resume] if call.resume else []), "-"]

    def read(self, events: Iterable[Event], stderr: str, before: Usage) -> CliReport:
        session, transcript, text, used, cached = None, [], "", before, 0
        complete, problem, begun, error = False, "", False, ""
        denied: list[str] = []
        for event in events:
            kind, item = event.get("type"), mapping(event.get("item"))
            if kind == "thread.started":
                session, begun = words(event.get("thread_id")) or None, True
            elif kind == "item.completed":
                line = _transcript_line(item)
                transcript += [line] if line else []
                if item.get("status") == "declined":
                    denied.append(denied_call(words(item.get("tool")) or "command", item))
                    transcript.append(denied_line(denied[-1]))
                if item.get("type") == "agent_message":
                    text = words(item.get("text"))
            elif kind == "turn.completed":
                usage = mapping(event.get("usage"))
                complete, problem = True, ""
                used = Usage(0.0, count(usage.get("input_tokens")), count(usage.get("output_tokens")))
                cached = count(usage.get("cached_input_tokens"))
            elif kind == "turn.failed":
                complete = True
                problem = f"codex failed: {one_line(words(mapping(event.get('error')).get('message'))) or 'it printed nothing'}"
            elif kind == "error":
                error = words(event.get("message"))
                transcript.append(f"error: {error}")
                continue
            error = "" if kind != "turn.failed" else error
        refused = problem if complete else f"codex waits: {error}" if error else ""
        return CliReport(
            complete=complete,
            problem=problem,
            text=text,
            usage=_since(before, used),
            used=used,
            cached=cached,
            session=session,
            unknown_session=not begun and "no rollout found" in stderr,
            transcript=tuple(transcript),
            denied=tuple(dict.fromkeys(denied)),
            limit=ReachedLimit(refused) if is_limit(refused) else None,
        )


def _since(before: Usage, used: Usage) -> Usage:
    if used.tokens_in < before.tokens_in or used.tokens_out < before.tokens_out:
        return used  # it started counting from zero
    return Usage(0.0, used.tokens_in - before.tokens_in, used.tokens_out - before.tokens_out)


def _transcript_line(item: Event) -> str:
    match item.get("type"):
        case "agent_message" | "reasoning":
            return words(item.get("text"))
        case "command_execution":
            code = item.get("exit_code")
            return tool_call("command", item) + (f" (exit code {code})" if code else "")
        case "file_change":
            changes = [mapping(each) for each in items(item.get("changes"))]
            return ", ".join(f"{words(each.get('kind')) or 'update'} {words(each.get('path'))}" for each in changes)
        case "mcp_tool_call":
            return tool_call(f"{words(item.get('server'))}.{words(item.get('tool'))}", mapping(item.get("arguments")))
        case "error":
            return f"error: {words(item.get('message'))}"
        case kind:
            return tool_call(str(kind), {key: value for key, value in item.items() if key not in ("id", "type")})


CLI = Codex()
