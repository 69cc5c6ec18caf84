"""Gemini CLI.

It reports tokens and no cost, and does not enforce a schema: the prompt asks for it, and the final message is read. In a
mode without approval, tools that would need one are not offered.
"""

from __future__ import annotations

from collections.abc import Iterable

from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Event, count, mapping, words
from backedge.adapters.agents.clis.provider_limit import ReachedLimit, is_limit
from backedge.adapters.agents.clis.tool_calls import denied_call, denied_line, tool_call
from backedge.core.model import Usage
from backedge.core.text import one_line

DENIALS = ("tool_not_registered", "policy_violation", "permission_denied")
"""The errors of a tool that was not offered, or that a policy forbids."""


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
        session, transcript, pieces, result, model = None, [], list[str](), None, ""
        calls: dict[str, tuple[str, Event]] = {}
        denied: list[str] = []
        for event in events:
            kind = event.get("type")
            if kind == "init":
                session, model = words(event.get("session_id")) or None, words(event.get("model"))
            elif kind == "message" and event.get("role") == "assistant":
                pieces.append(words(event.get("content")))
            elif kind == "tool_use":
                # A message before a tool call is not the final message.
                transcript += ["".join(pieces)] if pieces else []
                call = words(event.get("tool_name")), mapping(event.get("parameters"))
                calls[words(event.get("tool_id"))] = call
                transcript.append(tool_call(*call))
                pieces = []
            elif kind == "tool_result" and mapping(event.get("error")).get("type") in DENIALS:
                id = words(event.get("tool_id"))
                denied.append(denied_call(*calls.get(id, (id.partition("__")[0], {}))))
                transcript.append(denied_line(denied[-1]))
            elif kind == "error":
                transcript.append(f"error: {words(event.get('message'))}")
            elif kind == "result":
                result = event
        text = "".join(pieces)
        transcript += [text] if text else []
        if result is None:
            lost = session is None and "Error resuming session" in stderr
            waiting = _waiting(stderr) if not text else None
            return CliReport(
                session=session,
                unknown_session=lost,
                transcript=tuple(transcript),
                denied=tuple(dict.fromkeys(denied)),
                limit=waiting,
            )
        problem = _problem(result)
        return CliReport(
            complete=True,
            problem=problem,
            text=text,
            usage=_usage(result),
            cached=count(mapping(result.get("stats")).get("cached")),
            model=model,
            session=session,
            transcript=tuple(transcript),
            denied=tuple(dict.fromkeys(denied)),
            limit=ReachedLimit(problem) if is_limit(problem) else None,
        )


def _waiting(stderr: str) -> ReachedLimit | None:
    """The limit that it was waiting for when it was ended: it prints each retry to stderr."""
    _, retry, message = stderr.rpartition("failed")
    if not retry or "Retrying" not in message or not is_limit(f"failed{message}"):
        return None
    return ReachedLimit(f"gemini waits: {one_line(message.partition('    at ')[0])[:300]}")


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
