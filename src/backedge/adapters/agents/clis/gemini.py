"""Gemini CLI.

It reports tokens and no cost, and does not enforce a schema: the prompt asks for it, and the final message is read. In a
mode without approval, tools that would need one are not offered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Event, count, mapping, words
from backedge.core.model import Usage
from backedge.core.text import one_line


class Gemini(Cli):
    name = "gemini"
    package = "@google/gemini-cli"
    options = frozenset({"model", "allowed_tools", "permission_mode"})
    modes = ("default", "auto_edit", "yolo", "plan")
    mentions = True

    def arguments(self, call: Call) -> list[str]:
        options = call.options
        mode = options.permission_mode or ("default" if call.judges else "auto_edit")
        # Without a terminal it cannot ask whether the folder is trusted.
        found = ["--output-format", "stream-json", "--skip-trust", "--approval-mode", mode]
        found += ["-m", options.model] if options.model else []
        for tool in options.allowed_tools or ():
            found += ["--allowed-tools", tool]
        return [*found, *(["--resume", call.resume] if call.resume else [])]

    def read(self, events: Iterable[Event], stderr: str, before: Usage) -> CliReport:  # noqa: ARG002
        session, transcript, pieces, result = None, [], list[str](), None
        for event in events:
            kind = event.get("type")
            if kind == "init":
                session = words(event.get("session_id")) or None
            elif kind == "message" and event.get("role") == "assistant":
                pieces.append(words(event.get("content")))
            elif kind == "tool_use":
                # A message before a tool call is not the final message.
                transcript += ["".join(pieces)] if pieces else []
                transcript.append(f"[{words(event.get('tool_name'))}] {json.dumps(event.get('parameters'))}")
                pieces = []
            elif kind == "error":
                transcript.append(f"error: {words(event.get('message'))}")
            elif kind == "result":
                result = event
        text = "".join(pieces)
        transcript += [text] if text else []
        if result is None:
            lost = session is None and "Error resuming session" in stderr
            return CliReport(session=session, unknown_session=lost, transcript=tuple(transcript))
        return CliReport(
            complete=True,
            problem=_problem(result),
            text=text,
            usage=_usage(result),
            session=session,
            transcript=tuple(transcript),
        )


def _problem(result: Event) -> str:
    if result.get("status") == "success":
        return ""
    message = one_line(words(mapping(result.get("error")).get("message")))
    return f"gemini failed: {message or 'it printed nothing'}"


def _usage(result: Event) -> Usage:
    stats = mapping(result.get("stats"))
    read, total = count(stats.get("input_tokens")), count(stats.get("total_tokens"))
    # Thinking tokens are in the total only.
    return Usage(0.0, read, max(count(stats.get("output_tokens")), total - read))


CLI = Gemini()
