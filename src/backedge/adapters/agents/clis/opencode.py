"""opencode.

It reports every step of a turn with its tokens and cost, and does not enforce a schema: the prompt asks for it, and the
final message is read. It has no flag for tools or turns; `permission_mode` is `auto` or one of its own agents.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Event, count, mapping, money, words
from backedge.core.model import Usage
from backedge.core.text import one_line


class OpenCode(Cli):
    name = "opencode"
    package = "opencode-ai"
    options = frozenset({"model", "permission_mode"})
    modes = ("auto", "build", "plan")
    env = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}

    def arguments(self, call: Call) -> list[str]:
        options = call.options
        found = ["run", "--format", "json"]
        found += ["-m", options.model] if options.model else []
        # Its default agent may edit files: a judge must not change what it judges.
        mode = options.permission_mode or ("plan" if call.judges else "")
        if mode:
            found += ["--auto"] if mode == "auto" else ["--agent", mode]
        return [*found, *(["--session", call.resume] if call.resume else [])]

    def read(self, events: Iterable[Event], stderr: str, before: Usage) -> CliReport:  # noqa: ARG002
        session, transcript, pieces, usage = None, [], list[str](), Usage()
        complete, problem = False, ""
        for event in events:
            session = words(event.get("sessionID")) or session
            kind, part = event.get("type"), mapping(event.get("part"))
            if kind == "step_start":
                pieces = []
            elif kind == "text":
                pieces.append(words(part.get("text")))
                transcript.append(pieces[-1])
            elif kind == "tool_use":
                transcript.append(f"[{words(part.get('tool'))}] {json.dumps(mapping(part.get('state')).get('input'))}")
            elif kind == "step_finish":
                usage += _usage(part)
                reason = words(part.get("reason"))
                complete = reason != "tool-calls"
                problem = (
                    "" if reason in ("stop", "tool-calls") else f"opencode stopped early ({reason or 'no reason'})"
                )
            elif kind == "error":
                complete, problem = True, f"opencode failed: {_error(mapping(event.get('error')))}"
        return CliReport(
            complete=complete,
            problem=problem,
            text="".join(pieces),
            usage=usage,
            session=session,
            unknown_session=session is None and "Session not found" in stderr,
            transcript=tuple(transcript),
        )


def _usage(part: Event) -> Usage:
    tokens = mapping(part.get("tokens"))
    cache = mapping(tokens.get("cache"))
    read = sum(map(count, (tokens.get("input"), cache.get("read"), cache.get("write"))))
    return Usage(money(part.get("cost")), read, count(tokens.get("output")) + count(tokens.get("reasoning")))


def _error(error: Event) -> str:
    data = mapping(error.get("data"))
    status = f" (API error {data['statusCode']})" if data.get("statusCode") else ""
    return f"{one_line(words(data.get('message'))) or words(error.get('name')) or 'it printed nothing'}{status}"


CLI = OpenCode()
