"""Opening an escalation: every question to a person starts here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backedge.core import events as e
from backedge.core.escalation.policy import apply_policy
from backedge.core.escalation.roles import roles_asked
from backedge.core.evidence.values import ProtectedFile, RestoredFiles
from backedge.core.feedback.loop import Loop
from backedge.core.feedback.undoable import obstacle
from backedge.core.model import Breach, Question
from backedge.core.state.run import ASKED, NO_APPROVER, Escalation, RunState
from backedge.core.text import amount
from backedge.core.transaction import Transaction
from backedge.core.value import replace

MOST_NAMED = 10
"""How many files a question names."""
WITHDRAWN = "withdrawn"
"""The choice recorded for a question that needs no answer any more; the note says why."""


LOOP_OPTIONS = ("continue", "revise", "reassign", "reclassify", "rollback", "resolve", "accept", "skip", "cancel")


ASKED_OPTIONS = ("resolve", "accept", "skip", "cancel")


VERIFY_OPTIONS = ("resolve", "continue", "revise", "reassign", "accept", "cancel")


STEP_OPTIONS = ("continue", "skip", "cancel")


DO_OPTIONS = ("resolve", "skip", "cancel")


VOTE_OPTIONS = ("resolve", "continue", "skip", "cancel")


RUN_OPTIONS = ("continue", "cancel")


PROTECTED_OPTIONS = ("approve", "reject", "cancel")


FILES_OPTIONS = ("continue", "rollback", "cancel")


REFUSED_OPTIONS = ("continue", "cancel")


def escalate_loop(
    tx: Transaction, loop: Loop, breach: Breach | None, reason: str = "", without: tuple[str, ...] = ()
) -> None:
    """Hand a loop to a person. If a limit was reached, the workflow's `on_breach` applies. The options in `without`
    could not be carried out."""
    if not any(share.findings for share in loop.shares.values()):
        without = (*without, "reclassify")
    if obstacle(tx.state, loop.id) is not None:
        without = (*without, "rollback")
    options = tuple(option for option in LOOP_OPTIONS if option not in without)
    _escalate(tx, reason or _breach_reason(breach), options, loop=loop.id, breach=breach)


def _breach_reason(breach: Breach | None) -> str:
    """Which limit was reached. The numbers of `diverging` are not a count and a bound, so they are explained."""
    if breach is not None and breach.limit == "diverging":
        added, removed = amount(breach.count), amount(breach.bound)
        return f"limit {breach}: the last two fixes introduced {added} findings and removed {removed}"
    return f"limit {breach}"


def ask_person(tx: Transaction, loop: Loop) -> None:
    """Put feedback for a person into the inbox, as a question without a breach. It replaces an earlier question about the
    same loop."""
    for packet in [each for each in tx.state.escalations.values() if each.loop == loop.id and each.reason == ASKED]:
        withdraw(tx, packet, "replaced by a newer question")
    _open(tx, ASKED, ASKED_OPTIONS, loop=loop.id)


def ask_to_do(tx: Transaction, step: str, about: Question) -> None:
    """Ask a person to do this step. Their answer is its outcome."""
    _open(tx, ASKED, DO_OPTIONS, step=step, about=about)


def ask_to_verify(tx: Transaction, loop: Loop) -> None:
    """Ask a person whether the fix resolves their own feedback, because the target has no judges."""
    _open(tx, "the fix waits for your verification", VERIFY_OPTIONS, loop=loop.id)


def ask_approval(tx: Transaction, step: str, about: Question) -> None:
    """Ask a person to approve a step that is ready to start."""
    reason = f"{NO_APPROVER}: {step!r} runs only if a person approves it: approve or reject"
    _open(tx, reason, STEP_OPTIONS, step=step, about=about)


def ask_about_changes(tx: Transaction, changes: tuple[ProtectedFile, ...], reason: str) -> None:
    """Ask a person to answer for changes of protected files."""
    ids = tuple(each.id for each in changes)
    _open(tx, reason, PROTECTED_OPTIONS, protected=ids)


def ask_about_files(tx: Transaction, workspaces: Mapping[str, RestoredFiles]) -> None:
    """Ask a person about the files of a rollback that cannot simply be restored."""
    reasons = []
    for workspace, found in workspaces.items():
        where = f" (in {workspace})" if workspace else ""
        for names, why in ((found.edited, "edited since"), (found.lost, "not kept as they were")):
            if names:
                reasons.append(f"{_listed(names)}{where}: {why}")
        reasons += [f"{found.problem}{where}"] if found.problem else []
    reason = f"the rollback has restored no file yet: {'; '.join(reasons)}"
    _open(tx, reason, FILES_OPTIONS, restores=True)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def escalate_refused(tx: Transaction, source: str, reason: str, message: str) -> None:
    """Tell a person about serious feedback that could not be delivered, so that it is not lost. An agent that raises the
    same feedback again does not ask twice."""
    if not _about_refused(tx, source, message):
        told = f"refused feedback of {source!r}: {reason}; it said: {message or 'nothing'}"
        number = len(tx.state.refused)
        _open(tx, told, REFUSED_OPTIONS, refused=number)


def withdraw_refused(tx: Transaction, source: str, message: str) -> None:
    """Take back what a person was told about refused feedback: it was raised again, and delivered."""
    for packet in _about_refused(tx, source, message):
        withdraw(tx, packet, "it was raised again, and delivered")


def _about_refused(tx: Transaction, source: str, message: str) -> list[Escalation]:
    """The open escalations about refused feedback of a source with this message."""
    told = [packet for packet in tx.state.escalations.values() if packet.refused]
    return [each for each in told if _said(tx.state, each) == (source, message)]


def _said(state: RunState, packet: Escalation) -> tuple[str, str]:
    refused = state.refused[packet.refused - 1]
    return refused.source, refused.message


def escalate_step(tx: Transaction, step: str, breach: Breach | None, reason: str) -> None:
    _escalate(tx, reason, STEP_OPTIONS, step=step, breach=breach)


def escalate_vote(tx: Transaction, step: str, loop: str, breach: Breach | None, reason: str, last: bool) -> None:
    """Hand over a target of a choice that cannot take a position. The others still choose, unless it is the last one."""
    _open(tx, reason, VOTE_OPTIONS, step=step, breach=breach, vote=loop, failed=(loop,) if last else ())


def escalate_run(tx: Transaction, breach: Breach) -> None:
    _escalate(tx, f"budget {breach} is used up", RUN_OPTIONS, breach=breach)


def escalate_stuck(tx: Transaction) -> None:
    """Hand over a run in which nothing can start. The rules should never lead here."""
    _escalate(tx, "nothing can start, and no rule says why: cancel the run and report this as a bug", ("cancel",))


def withdraw(tx: Transaction, packet: Escalation, reason: str) -> None:
    """Take back a question that needs no answer any more."""
    tx.add(e.EscalationDecided(tx.now, packet.id, WITHDRAWN, note=reason))


def _escalate(
    tx: Transaction,
    reason: str,
    options: tuple[str, ...],
    loop: str | None = None,
    step: str | None = None,
    breach: Breach | None = None,
) -> None:
    escalation = _open(tx, reason, options, loop=loop, step=step, breach=breach)
    if breach is not None:
        apply_policy(tx, escalation, reason)


def _open(tx: Transaction, reason: str, options: tuple[str, ...], **what: Any) -> str:
    """Record the question, with the roles of those who are asked."""
    opened = e.EscalationOpened(tx.now, tx.next_escalation(), reason, options, **what)
    tx.add(replace(opened, for_roles=roles_asked(tx.state, opened)))
    return opened.escalation
