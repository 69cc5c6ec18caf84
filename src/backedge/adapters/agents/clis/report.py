"""What the report of a CLI means: an outcome, or why there is none. Its fields decide, never its exit code."""

from __future__ import annotations

from backedge.adapters.agents.attempt_folder import Ended
from backedge.adapters.agents.clis.cli import Cli, CliReport, Session
from backedge.adapters.agents.clis.provider_limit import ReachedLimit
from backedge.adapters.agents.clis.schemas import unwrapped, without_nulls
from backedge.adapters.agents.outcome import excerpt, last_lines, parsed
from backedge.adapters.agents.outcome_text import Unreadable, last_object
from backedge.core.errors import AgentError, ProviderLimit
from backedge.core.text import clean, one_line
from backedge.core.value import Json
from backedge.engine.protocol import Outcome, parse_outcome


class UnknownSession(AgentError):
    """The CLI did not find the conversation that it should continue. It has done nothing."""


def outcome_of(cli: Cli, report: CliReport, ended: Ended, stderr: str, resumed: Session | None) -> Outcome | None:
    """The outcome that a CLI reported; None if its end is not known and the report is incomplete.

    Raises AgentError unless it succeeded.
    """
    if ended.because and report.limit is not None:
        raise _limit(cli, report.limit, f"{ended.because}, while {cli.name} waited for a limit of its provider: ")
    if ended.because:
        raise AgentError(ended.because)
    if resumed is not None and report.unknown_session:
        raise UnknownSession(f"{cli.name} does not know the conversation {resumed.id}")
    if not report.complete:
        if not ended.beyond_doubt:
            return None
        if report.limit is not None:
            raise _limit(cli, report.limit)
        printed = last_lines(stderr.encode()) or "it printed nothing"
        raise AgentError(f"{cli.name} ended without a report ({_end(ended)}): {printed}{_denied(report, printed)}")
    if report.problem and report.limit is not None:
        raise _limit(cli, report.limit)
    if report.refused and report.structured is None:
        instead = f"; it then said {excerpt(report.text)}" if report.text else ""
        raise AgentError(f"the answer of {cli.name} does not match the schema: {report.refused}{instead}")
    if report.problem:
        raise AgentError(f"{report.problem}{_denied(report, report.problem)}")
    said_json = report.structured if report.structured is not None else _last(cli, report.text)
    return parse_outcome(without_nulls(unwrapped(said_json) if cli.strict else said_json))


def _limit(cli: Cli, limit: ReachedLimit, when: str = "") -> ProviderLimit:
    return ProviderLimit(f"{when}{one_line(limit.message) or f'{cli.name} printed nothing'}", limit.seconds())


def log_of(note: str, report: CliReport, stderr: str) -> bytes:
    """The log of an attempt for people: the messages and tool calls of the CLI, then its stderr."""
    parts = [note, *report.transcript, stderr.strip()]
    return "".join(f"{clean(part)}\n" for part in parts if part).encode("utf-8", "replace")


def _last(cli: Cli, text: str) -> Json:
    whole = text.encode("utf-8", "replace")
    try:
        span = last_object(whole)
    except Unreadable as error:
        raise AgentError(f"the answer of {cli.name} cannot be read: {error}") from None
    if span is None:
        raise AgentError(
            f"{cli.name} gave no outcome: got {excerpt(text)}, expected one JSON object at the end of its answer"
        )
    return parsed(whole[span.start : span.end], f"the answer of {cli.name}")


def _denied(report: CliReport, said: str) -> str:
    return f"; it was denied {', '.join(report.denied)}" if report.denied and "denied" not in said else ""


def _end(ended: Ended) -> str:
    return f"signal {ended.signal}" if ended.signal is not None else f"exit code {ended.code}"
