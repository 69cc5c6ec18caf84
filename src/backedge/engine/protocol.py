"""What an agent reports, in its own words: the same shape from a Python function and from JSON.

Agents may be loose (a severity by any of its names, one target or a list), so `Finding`, `Feedback` and `Outcome` exist
twice: here as agents write them, and in `core.model` as the rules read them. `to_model` and `to_feedback` translate.
Whatever agents write exactly as the rules read it has one shape, that of the core. Unknown keys and wrong types are
errors that name them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from sys import maxsize
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from backedge.core import model
from backedge.core.errors import AgentError
from backedge.core.evidence.values import Approval
from backedge.core.model import Decision, FindingResolution, Kind, Option, OutputDigest, Usage, severity_of
from backedge.core.ready_types import make_ready
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json
from backedge.engine.codec import canonical, plain
from backedge.engine.shape_errors import shape_errors

LONGEST_TEXT = 16_000
"""The most characters of one text in a finding or feedback; longer text belongs in the output."""
LARGEST_ASIDE = 262_144
"""The most bytes of an answer, and of the details of feedback: every command that shows a run reads all of them."""


Kinds = Sequence[tuple[str, Kind]]
"""The kinds of feedback that a workflow adds: (name, the kind that it behaves as)."""


class AgentMessage(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of what agents say."""


class Finding(AgentMessage, frozen=True):
    """One defect.

    `severity` is critical, high, medium or low, or a word that means one of them (blocker, major, warning, minor …).
    `affected_phase` names the phase that injected it; the engine sends it there.
    """

    description: str
    severity: str = "high"
    blocking: bool = False
    category: str = ""
    affected_phase: str | Sequence[str] = ()
    evidence: str = ""
    impact: str = ""
    file: str | None = None
    line: int | None = None
    path: str | None = None
    suggested_fix: str | None = None
    requirement_id: str | None = None
    test: str = ""


class Feedback(AgentMessage, frozen=True):
    """What goes back to the steps that can fix it. `to` names one target, several, or "human"."""

    kind: str
    to: str | Sequence[str] = ()
    message: str = ""
    severity: str = "high"
    blocking: bool = False
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: Sequence[str] = ()
    options: Sequence[Option] = ()
    requirement_id: str | None = None
    details: Json = None


class Outcome(AgentMessage, frozen=True):
    """Everything an attempt can report. Every field is optional: `Outcome()` means done, without an output."""

    output: Json = None
    summary: str = ""
    verdict: Literal["pass", "fail", "needs_improvement"] | None = None
    findings: Sequence[Finding] = ()
    resolutions: Sequence[FindingResolution] = ()
    feedback: Sequence[Feedback] = ()
    answer: Json = None
    decision: Decision | None = None
    usage: Usage = Usage()
    approvals: Sequence[Approval] = ()
    """What a reviewer says about changed tests and changed configuration of judges, by their ids in the briefing."""
    confidence: float | None = None
    """How confident the agent is of its result, from 0 to 1. Below the `confidence` of the step's approval, a person is
    asked."""
    add_steps: Mapping[str, Any] = {}
    """Steps by name, for one that plans: each as in the workflow file or, in Python, a Step or a mapping that names a
    registered agent. One that is there already is replaced."""
    remove_steps: Sequence[str] = ()


make_ready(Outcome, Finding, Usage, Option)


def passed(*findings: Finding | str, **more: Any) -> Outcome:
    """A verdict: what was judged is good. Lesser findings are recorded without starting a loop."""
    return Outcome(verdict="pass", findings=_stated(findings), **more)


def failed(*findings: Finding | str, **more: Any) -> Outcome:
    """A verdict: these defects must be fixed. A text stands for a finding of high severity."""
    return Outcome(verdict="fail", findings=_stated(findings), **more)


def _stated(findings: Sequence[Finding | str]) -> list[Finding]:
    return [Finding(each) if isinstance(each, str) else each for each in findings]


def parse_outcome(said: Json) -> Outcome:
    """An outcome from JSON. Raises AgentError, with all places, for unknown keys and wrong types."""
    try:
        return msgspec.convert(_in_small_letters(said), Outcome)
    except msgspec.ValidationError as error:
        wrong = "; ".join(shape_errors(_in_small_letters(said), Outcome))
        raise AgentError(f"the outcome is not understood: {wrong}", usage=_used(said)) from error


def _in_small_letters(said: Json) -> Json:
    """The outcome with its verdict and the statuses of its resolutions in lower case: many agents write PASS."""
    if not isinstance(said, dict):
        return said
    small = {**said}
    if "verdict" in said:
        small["verdict"] = _small(said["verdict"])
    if isinstance(said.get("resolutions"), list):
        small["resolutions"] = [
            {**each, "status": _small(each["status"])} if isinstance(each, dict) and "status" in each else each
            for each in said["resolutions"]
        ]
    return small


def _small(word: Json) -> Json:
    return word.strip().lower() if isinstance(word, str) else word


def _used(said: Json) -> Usage | None:
    """The usage in an outcome: it was spent, whatever else is wrong with the outcome."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(said.get("usage", {}), Usage) if isinstance(said, dict) else None
    return None


def checked_outcome(said: Outcome, most: int) -> Outcome:
    """The outcome with everything but its output as it will be read back. Raises AgentError for wrong types, for values
    that are not JSON and for more than `most` bytes: what a Python function builds is not checked before."""
    # Added steps may hold functions: they are checked by the resolver.
    rest = replace(said, output=None, add_steps={})
    if rest == _NOTHING_MORE:
        return said
    text = canonical(rest, most, "the outcome")
    try:
        heard = msgspec.convert(_in_small_letters(msgspec.json.decode(text)), Outcome)
        return replace(heard, output=said.output, add_steps=said.add_steps)
    except msgspec.ValidationError as error:
        raise AgentError(f"the outcome is not understood: {error}") from error


_INSTEAD = "write a file, or put it into the output, and say where it is"
_NOTHING_MORE = Outcome()


def to_model(said: Outcome, made: OutputDigest, kinds: Kinds = ()) -> model.Outcome:
    """The outcome in the engine's words; `kinds` are those that the workflow adds. Raises AgentError for unknown words."""
    size = len(msgspec.json.encode(said.answer)) if said.answer is not None else 0
    if size > LARGEST_ASIDE:
        raise AgentError(f"the answer has {size:,} bytes: at most {LARGEST_ASIDE:,} are kept; {_INSTEAD}")
    try:
        return model.Outcome(
            made=made,
            summary=_text(said.summary),
            verdict=said.verdict,
            findings=tuple(map(_finding, said.findings)),
            resolutions=tuple(replace(each, note=_text(each.note)) for each in said.resolutions),
            feedback=tuple(to_feedback(item, kinds) for item in said.feedback),
            answer=said.answer,
            decision=Decision(_text(said.decision.option), _text(said.decision.reason)) if said.decision else None,
            usage=said.usage,
            approvals=tuple(said.approvals),
            confidence=_confidence(said.confidence),
            lists_findings=said.findings is not _NOTHING_MORE.findings,
        )
    except ValueError as error:
        raise AgentError(str(error)) from error


def _confidence(said: float | None) -> float | None:
    if said is not None and not 0 <= said <= 1:
        raise ValueError(f"confidence is {said:g}: expected a number from 0 to 1")
    return said


def _finding(said: Finding) -> model.Finding:
    severity, blocking = severity_of(said.severity)
    return model.Finding(
        description=_text(said.description),
        severity=severity,
        blocking=said.blocking or blocking,
        category=_text(said.category),
        affected_phase=tuple(map(str.strip, _listed(said.affected_phase))),
        evidence=_text(said.evidence),
        impact=_text(said.impact),
        file=said.file,
        line=said.line,
        path=said.path,
        suggested_fix=_text(said.suggested_fix) if said.suggested_fix is not None else None,
        requirement_id=said.requirement_id,
        test=_text(said.test),
        word="" if said.severity == severity else said.severity,
    )


_feedback = msgspec.json.Decoder(Feedback)


def to_feedback(said: Feedback, kinds: Kinds = ()) -> model.Feedback | model.MalformedFeedback:
    """Feedback in the engine's words, or why it cannot be understood: then it is refused, without an agent error."""
    try:
        canonical(said.details, maxsize, "details")
        said = _feedback.decode(msgspec.json.encode(said, enc_hook=plain))
    except (AgentError, msgspec.ValidationError, TypeError, ValueError, RecursionError) as error:
        return model.MalformedFeedback((), f"the feedback is not understood: {error}")
    to = tuple(dict.fromkeys(_listed(said.to)))
    size = len(msgspec.json.encode((said.details, said.artifacts, said.options)))
    if size > LARGEST_ASIDE:
        wrong = f"the details of the feedback have {size:,} bytes: at most {LARGEST_ASIDE:,} are kept; {_INSTEAD}"
        return model.MalformedFeedback(to, wrong, _text(said.message))
    try:
        severity, blocking = severity_of(said.severity)
        kind, called = _kind(said.kind, dict(kinds))
    except ValueError as error:
        return model.MalformedFeedback(to, str(error), _text(said.message))
    return model.Feedback(
        kind=kind,
        to=to,
        message=_text(said.message),
        severity=severity,
        blocking=said.blocking or blocking,
        suggested_fix=_text(said.suggested_fix) if said.suggested_fix else None,
        requested_info=_text(said.requested_info) if said.requested_info else None,
        artifacts=tuple(said.artifacts),
        options=tuple(said.options) or _options_in_details(kind, said.details),
        requirement_id=said.requirement_id,
        details=said.details,
        called=called,
    )


def _options_in_details(kind: Kind, details: Json) -> tuple[Option, ...]:
    """The options of a constraint that other systems put into its details; none if they are not options."""
    listed = details.get("options") if kind is Kind.CONSTRAINT_VIOLATION and isinstance(details, dict) else None
    try:
        return tuple(msgspec.convert(listed or [], list[Option]))
    except msgspec.ValidationError:
        return ()


def _kind(word: str, own: Mapping[str, Kind]) -> tuple[Kind, str]:
    """The kind that a word stands for, and the word itself if the workflow adds it."""
    name = word.strip().lower()
    if name in own:
        return own[name], name
    known = [*(kind.value for kind in Kind), *own]
    if name not in known:
        raise ValueError(f"kind {word!r} is unknown: {did_you_mean(name, known)}")
    return Kind(name), ""


def _listed(words: str | Sequence[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _text(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text) - LONGEST_TEXT} more characters)"
