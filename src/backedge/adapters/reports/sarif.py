"""SARIF 2.1.0: what linters and scanners write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from backedge.adapters.reports.places import FileNames, evidence_of, first_line, line_of
from backedge.core.errors import AgentError
from backedge.core.value import Json
from backedge.engine.protocol import Finding
from backedge.engine.unique_keys import duplicate_key

_SEVERITY = {"error": "high", "warning": "medium", "note": "low", "none": "low"}


def read_sarif(text: bytes, names: FileNames) -> list[Finding]:
    """A finding for each result. Raises AgentError if it is not a SARIF log, or if the tool did not finish."""
    try:
        log = msgspec.json.decode(text.decode("utf-8-sig", "replace"))
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise AgentError(f"the SARIF report is not JSON: {error}; the tool may have been cut off") from error
    twice = duplicate_key(text)
    if twice is not None:
        raise AgentError(f"the SARIF report has the key {twice[:200]!r} twice in one object: correct the tool")
    if not isinstance(log, dict) or not isinstance(log.get("runs"), list):
        raise AgentError("the SARIF report has no runs: expected a log of version 2.1.0")
    if log.get("version") != "2.1.0":
        raise AgentError(f"the SARIF report has version {str(log.get('version'))[:20]!r}: expected '2.1.0'")
    if not log["runs"]:
        raise AgentError("the SARIF report has no runs: nothing was analysed; correct the command")
    try:
        return [found for run in log["runs"] for found in _run(run, names)]
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise AgentError(
            f"the SARIF report cannot be read: {type(error).__name__} {error}; expected a log of version 2.1.0"
        ) from error


def _run(run: Mapping[str, Any], names: FileNames) -> list[Finding]:
    for invocation in run.get("invocations") or ():
        if invocation.get("executionSuccessful") is False:
            notes = [note["message"].get("text", "") for note in invocation.get("toolExecutionNotifications") or ()]
            reasons = "; ".join(first_line(note) for note in notes) or "without saying why"
            raise AgentError(f"the SARIF report says that the tool did not succeed: {reasons}")
    if run.get("results") is None:
        # This is how SARIF says that the tool did not get to its analysis.
        raise AgentError("the SARIF report has a run without results: the tool did not finish; run it again")
    return [_finding(result, run, names) for result in run["results"] if _counts(result)]


def _counts(result: Mapping[str, Any]) -> bool:
    """Whether a result is a defect: not one that is gone or suppressed."""
    if result.get("kind", "fail") not in ("fail", "open", "review") or result.get("baselineState") == "absent":
        return False
    suppressions = result.get("suppressions") or ()
    return not suppressions or any(each.get("status") in ("underReview", "rejected") for each in suppressions)


def _finding(result: Mapping[str, Any], run: Mapping[str, Any], names: FileNames) -> Finding:
    rule = _rule(result, run)
    name = result.get("ruleId") or (result.get("rule") or {}).get("id") or rule.get("id") or ""
    level = result.get("level") or (rule.get("defaultConfiguration") or {}).get("level") or "warning"
    message = _message(result.get("message") or {}, rule)
    where = (result.get("locations") or [{}])[0].get("physicalLocation") or {}
    region = where.get("region") or {}
    return Finding(
        first_line(message) or f"{name or 'a rule'} is violated",
        severity=_SEVERITY.get(level, "medium"),
        category=str(name),
        evidence=evidence_of(
            "\n".join(part for part in (message, (region.get("snippet") or {}).get("text", "")) if part)
        ),
        file=names.of(_uri(where.get("artifactLocation") or {}, run)),
        line=line_of(region.get("startLine")),
    )


def _rule(result: Mapping[str, Any], run: Mapping[str, Any]) -> Mapping[str, Any]:
    rules = ((run.get("tool") or {}).get("driver") or {}).get("rules") or []
    index = result.get("ruleIndex", (result.get("rule") or {}).get("index", -1))
    if isinstance(index, int) and 0 <= index < len(rules):
        found: Mapping[str, Any] = rules[index]
        return found
    return next((rule for rule in rules if rule.get("id") == result.get("ruleId")), {})


def _message(message: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
    text = message.get("text") or message.get("markdown")
    if text is None and "id" in message:
        text = ((rule.get("messageStrings") or {}).get(message["id"]) or {}).get("text", "")
    arguments: list[Json] = message.get("arguments") or []

    def filled(match: re.Match[str]) -> str:
        number = int(match[1])
        return str(arguments[number]) if number < len(arguments) else match[0]

    return re.sub(r"\{(\d{1,3})\}", filled, str(text or "")) if arguments else str(text or "")


def _uri(location: Mapping[str, Any], run: Mapping[str, Any]) -> str | None:
    if "uri" not in location and "index" in location:
        location = run["artifacts"][location["index"]]["location"]
    uri = location.get("uri")
    base = ((run.get("originalUriBaseIds") or {}).get(location.get("uriBaseId")) or {}).get("uri", "")
    return f"{base}{uri}" if uri and base and "://" not in uri else uri
