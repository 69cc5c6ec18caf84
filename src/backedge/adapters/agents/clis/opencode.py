"""opencode.

It reports every step of a turn with its tokens and cost, and does not enforce a schema: the prompt asks for it, and the
final message is read. It has no flag for tools or turns; `permission_mode` is `auto` or one of its own agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Event, count, mapping, money, words
from backedge.adapters.agents.clis.provider_limit import ReachedLimit, is_limit
from backedge.adapters.agents.clis.tool_calls import denied_call, denied_line, tool_call
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
        # Errors that it retries are in no event, only in its log.
        found = ["run", "--format", "json", "--print-logs", "--log-level", "ERROR"]
        found += ["-m", options.model] if options.model else []
        # Its default agent may edit files: a judge must not change what it judges.
        mode = options.permission_mode or ("plan" if call.judges else "")
        if mode:
            found += ["--auto"] if mode == "auto" else ["--agent", mode]
        return [*found, *(["--session", call.resume] if call.resume else [])]

    def read(self, events: Iterable[Event], stderr: str, before: Usage) -> CliReport:  # noqa: ARG002
        session, transcript, pieces, usage, cached = None, [], list[str](), Usage(), 0
        complete, problem = False, ""
        denied: list[str] = []
        limit: ReachedLimit | None = None
        heard = 0
        for event in events:
            heard = max(heard, count(event.get("timestamp")))
            session = words(event.get("sessionID")) or session
            kind, part = event.get("type"), mapping(event.get("part"))
            if kind == "step_start":
                pieces = []
            elif kind == "text":
                pieces.append(words(part.get("text")))
                transcript.append(pieces[-1])
            elif kind == "tool_use":
                refused, line = _tool(part)
                denied += [refused] if refused else []
                transcript.append(line)
            elif kind == "step_finish":
                usage += _usage(part)
                cached += count(mapping(mapping(part.get("tokens")).get("cache")).get("read"))
                reason = words(part.get("reason"))
                complete = reason != "tool-calls"
                problem = (
                    "" if reason in ("stop", "tool-calls") else f"opencode stopped early ({reason or 'no reason'})"
                )
            elif kind == "error":
                complete, problem = True, f"opencode failed: {_error(mapping(event.get('error')))}"
                limit = _limit(problem, mapping(mapping(event.get("error")).get("data")))
        return CliReport(
            complete=complete,
            problem=problem,
            text="".join(pieces),
            usage=usage,
            cached=cached,
            session=session,
            unknown_session=session is None and "Session not found" in stderr,
            transcript=tuple(transcript),
            denied=tuple(dict.fromkeys(denied)),
            limit=limit if complete else _waiting(stderr, heard),
        )


def _tool(part: Event) -> tuple[str, str]:
    """The tool if it was denied, and the line about it. A tool that is switched off is reported as an invalid one."""
    name, state = words(part.get("tool")), mapping(part.get("state"))
    given = mapping(state.get("input"))
    if name == "invalid" and "unavailable tool" in words(given.get("error")):
        refused = denied_call(words(given.get("tool")), {})
    elif state.get("status") == "error" and "permission" in words(state.get("error")):
        refused = denied_call(name, given)
    else:
        return "", tool_call(name, given)
    return refused, denied_line(refused)


def _limit(problem: str, data: Event) -> ReachedLimit | None:
    if not is_limit(problem, data.get("statusCode")):
        return None
    stated = words(mapping(data.get("responseHeaders")).get("retry-after"))
    return ReachedLimit(problem, wait=float(stated) if stated.isascii() and stated.isdigit() else None)


def _waiting(stderr: str, heard: int) -> ReachedLimit | None:
    """The limit that it was waiting for when it was ended: it logs each refusal, and answers come after. `heard` is the time
    of its last event in milliseconds."""
    refusals = list(_REFUSAL.finditer(stderr))
    if not refusals or not is_limit(refusals[-1]["message"]):
        return None
    if datetime.fromisoformat(refusals[-1]["time"]).timestamp() * 1000 < heard:
        return None
    return ReachedLimit(f"opencode waits: {one_line(refusals[-1]['message'])[:300]}")


_REFUSAL = re.compile(
    r'^timestamp=(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z) .*message="stream error".*'
    r'error\.error="(?P<message>(?:[^"\\]|\\.)*)"',
    re.MULTILINE,
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
