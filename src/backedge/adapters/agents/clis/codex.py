"""Codex.

It reports tokens and no cost; after a resume the tokens are those of the whole conversation. A resumed conversation
does not keep its sandbox: `-c` sets it every time, since `resume` has no flag for it. The prompt is never an argument: a
single word would be read as a subcommand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Event, count, mapping, words
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
        session, transcript, text, used = None, [], "", before
        complete, problem, begun = False, "", False
        for event in events:
            kind, item = event.get("type"), mapping(event.get("item"))
            if kind == "thread.started":
                session, begun = words(event.get("thread_id")) or None, True
            elif kind == "item.completed":
                line = _transcript_line(item)
                transcript += [line] if line else []
                if item.get("type") == "agent_message":
                    text = words(item.get("text"))
            elif kind == "turn.completed":
                usage = mapping(event.get("usage"))
                complete, problem = True, ""
                used = Usage(0.0, count(usage.get("input_tokens")), count(usage.get("output_tokens")))
            elif kind == "turn.failed":
                complete = True
                problem = f"codex failed: {one_line(words(mapping(event.get('error')).get('message'))) or 'it printed nothing'}"
            elif kind == "error":
                transcript.append(f"error: {words(event.get('message'))}")
        return CliReport(
            complete=complete,
            problem=problem,
            text=text,
            usage=_since(before, used),
            used=used,
            session=session,
            unknown_session=not begun and "no rollout found" in stderr,
            transcript=tuple(transcript),
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
            return f"[command] {words(item.get('command'))} (exit code {item.get('exit_code')})"
        case "error":
            return f"error: {words(item.get('message'))}"
        case kind:
            return f"[{kind}] {json.dumps({key: value for key, value in item.items() if key not in ('id', 'type')})}"


CLI = Codex()
