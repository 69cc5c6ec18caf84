"""The decision packet of an escalation as one screen of text: the sentence, the numbers, what is still wrong and since
when, what was changed last, and what each choice does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from backedge.analytics.changes import AttemptChange
from backedge.analytics.inbox import InboxChange, InboxInput, InboxItem, StepSpent
from backedge.analytics.rounds import RoundReport
from backedge.cli.findings_table import finding_lines, findings_table, more_findings
from backedge.cli.page import Page, ago
from backedge.core.briefing import Request
from backedge.core.escalation.options import PacketOption
from backedge.core.model import Option
from backedge.core.text import amount, as_text, clean, counted, one_line

ONE_SCREEN = 40
"""How many lines a packet should have at most."""
BRIEFEST = 3
"""How often a packet is made briefer to fit."""
MOST_LINES = 12
"""How many lines of one artifact to show."""
MOST_DIFF_LINES = 40
"""How many lines of the difference of a protected file to show: somebody has to answer for each."""
FIX_LINES = 10
"""How many lines of the last fix to show."""
DETAILED = 3
"""How many findings to show in detail."""
SHORT = ("reassign", "reclassify", "cancel", "reject", "history")
"""The choices that one line explains."""
SHORT_REASON = 60
"""How much of a reason the first line says."""
LISTED = 8
"""How many findings to list."""


def packet_lines(item: InboxItem, page: Page, now: float, screen: int = ONE_SCREEN) -> list[str]:
    """One escalation, from its id to the command that decides it, on one screen if possible: whatever is long is shown
    more briefly until it fits `screen` lines. What is left out is named, with the command that shows it."""
    lines: list[str] = []
    for brief in range(BRIEFEST + 1):
        lines = list(_packet(item, Page(page.width, page.whole, brief), now))
        if len(lines) <= min(screen, ONE_SCREEN) or page.whole:
            break
    return lines


def _packet(item: InboxItem, page: Page, now: float) -> Iterator[str]:
    yield from page.own_line(_headline(item, page))
    yield from page.own_line(item.sentence, 2)
    yield from page.own_line(_since(item, now), 2)
    yield from _changed_lines(item, page)
    yield from _asked_lines(item, page)
    yield from _finding_lines(item, page)
    yield from _said_lines(item, page)
    for request in item.requests:
        yield from _request_lines(request, page)
    yield from _work_lines(item, page)
    counts = [f"{each.limit} {amount(each.count)}/{amount(each.bound)}" for each in item.numbers if each.count]
    if counts:
        yield from page.own_line(f"numbers: {', '.join(counts)}", 2)
    if item.spent and item.breach is not None:
        yield from page.own_line(f"used by: {_spent(item.spent, item.breach.limit)}", 2)
    for said in item.positions:
        why = f": {page.cut(said.reason, 100)}" if said.reason else ""
        yield from page.own_line(
            f"round {said.round}: {page.cut(said.who, 40)} is for “{page.cut(said.option, 60)}”{why}", 2
        )
    yield from choice_lines(item, page)


def _spent(spent: Sequence[StepSpent], limit: str) -> str:
    """Which step has used how much of a budget."""
    said = []
    for each in spent:
        tries = counted(each.attempts, "attempt")
        used = {
            "cost_usd": f"${each.cost_usd:.2f} in {tries}",
            "tokens": f"{each.tokens} tokens in {tries}",
            "wall_clock": f"{ago(each.seconds)} in {tries}",
        }.get(limit, tries)
        said.append(f"{each.step} {used}")
    return ", ".join(said)


def material_lines(item: InboxItem, page: Page) -> Iterator[str]:
    """What a question is about: changed tests, what is to be judged or approved, what was changed last."""
    yield from _changed_lines(item, page)
    yield from _work_lines(item, page)


def _changed_lines(item: InboxItem, page: Page) -> Iterator[str]:
    for changed in item.changes:
        yield from _change_lines(item, changed, page)


def _work_lines(item: InboxItem, page: Page) -> Iterator[str]:
    for made in item.inputs:
        yield from _input_lines(made, page)
    yield from fix_lines(item, page)


def _headline(item: InboxItem, page: Page) -> str:
    about = item.loop or item.step or "the run"
    reason = page.cut(item.reason, 1000)
    if len(reason) > SHORT_REASON:
        reason = page.cut(reason.partition(": ")[0], SHORT_REASON)  # the sentence below says the rest
    return f"{item.id}  {item.run}  {page.cut(item.workflow, 30)}  about {about}: {page.cut(reason, 100)}"


def _since(item: InboxItem, now: float) -> str:
    """How long it has waited, and whether the answer is overdue."""
    waits = f"asked {ago(now - item.opened_at)} ago"
    if item.blocking or item.severity == "critical":
        waits += "; the whole run waits for your answer"
    if item.for_roles:
        waits = f"for {one_line(' or '.join(item.for_roles))}, {waits}"
    if item.expires_at is not None:
        left = item.expires_at - now
        when = f"in {ago(left)}" if left > 0 else "as soon as a process looks"
        waits += f"; if no person answers, {item.default} is chosen {when}"
    if item.due_at is None:
        return waits
    if item.overdue:
        return f"overdue for {ago(now - item.due_at)}: {waits}"
    return f"{waits}; the answer is due in {ago(item.due_at - now)}"


def _asked_lines(item: InboxItem, page: Page) -> Iterator[str]:
    """Everything that was asked, without the findings."""
    if item.kind:
        word = " and blocks the run" if item.blocking else ""
        grade = f", {item.severity}{word}" if item.severity else ""
        targets = page.cut(", ".join(item.targets), 60)
        # A question about no loop and no step is about feedback that was refused.
        which = f"{item.loop} " if item.loop else "" if item.step else "not delivered: "
        yield from page.own_line(f"{which}{item.kind}: {page.cut(item.source, 40)} → {targets}{grade}", 2)
    told = (item.loop is not None or item.step is None or not item.kind) and not _is_longer(item.message)
    if item.message and not told and not (item.kind and item.findings):
        yield from page.text("message", item.message, 4)
    for label, text in (("requested", item.requested_info), ("suggested fix", item.suggested_fix)):
        if text:
            yield from page.text(label, text, 4)
    if item.requirement_id:
        yield from page.line(f"requirement: {item.requirement_id}", 4)
    if item.artifacts:
        yield from page.line(f"artifacts: {', '.join(item.artifacts)}", 4)
    if item.details is not None:
        yield from page.value("details", item.details, 4)
    if item.loop is None and item.kind:
        for option in item.offers:
            yield from page.own_line(f"option: {option_text(option, page)}", 4)
    for target, said in item.responses.items():
        yield from page.own_line(acknowledged(target, said["message"], said["action"], said["eta"], page), 2)
    yield from _error_lines(item, page)
    for each in item.rolled_back:
        caused = f"; it caused {', '.join(each.caused)}" if each.caused else ""
        who = f"{page.cut(each.by, 40)} decided it" if each.by else f"it left {each.why}"
        yield from page.own_line(f"round {each.round} was rolled back: {who}{caused}", 2)
    if item.advice:
        yield from page.text("earlier advice", item.advice, 2)


def acknowledged(target: str, message: str, action: str, eta: str, page: Page) -> str:
    """How a target confirmed that it has received feedback."""
    words = page.cut("; ".join(part for part in (message, action, f"until {eta}" if eta else "") if part), 200)
    return f"{page.cut(target, 40)} acknowledges{f': {words}' if words else ''}"


def _error_lines(item: InboxItem, page: Page) -> Iterator[str]:
    """What went wrong in the last attempts of a step, and where their output is."""
    for earlier in item.errors[:-1]:
        if earlier.error != item.last_error:
            yield from page.text(f"attempt {earlier.attempt} broke", earlier.error, 2, page.least(4, 2))
    if item.last_error:
        yield from page.text("last error", item.last_error, 2)
    if item.errors:
        yield from page.own_line(f"its output: backedge logs {item.run} {item.step}-{item.errors[-1].attempt}", 2)


def _is_longer(message: str) -> bool:
    """Whether the sentence does not have the whole message: it is on several lines, or very long."""
    return len(clean(message).strip().splitlines()) > 1 or len(message) > 300


def _finding_lines(item: InboxItem, page: Page) -> Iterator[str]:
    """The findings: a table if there were several verdicts, and the most severe ones in detail."""
    listed = list(item.findings)
    if len(item.verdicts) > 1:
        yield from findings_table(item, page)
        detailed = [each for each in listed if len(list(finding_lines(each, Page()))) > 1]
    else:
        detailed = listed
    detail = page.least(DETAILED, 1)
    most = len(detailed) if page.whole else page.least(LISTED, 4) if detailed is listed else detail
    for place, finding in enumerate(detailed[:most]):
        yield from finding_lines(finding, page, 2, brief=place >= detail and not page.whole)
    yield from more_findings(detailed[most:], item, page, 2)


def _said_lines(item: InboxItem, page: Page) -> Iterator[str]:
    """What the judge said last, in its own words."""
    last = item.verdicts[-1] if item.verdicts else None
    if last is not None and last.summary and not any(last.summary in each.description for each in item.findings):
        yield from page.text(f"{page.cut(last.judge, 40)} says", last.summary, 2, page.least(4, 2))


def _request_lines(request: Request, page: Page) -> Iterator[str]:
    yield from page.own_line(
        f"{request.loop} {request.kind} from {page.cut(request.source, 40)}: {page.cut(request.message, 300)}", 2
    )
    for label, text in (("suggested fix", request.suggested_fix), ("requested", request.requested_info)):
        if text:
            yield from page.text(label, text, 4)
    if request.requirement_id:
        yield from page.line(f"requirement: {request.requirement_id}", 4)
    if request.artifacts:
        yield from page.line(f"artifacts: {', '.join(request.artifacts)}", 4)
    if request.details is not None:
        yield from page.value("details", request.details, 4)
    for option in request.options:
        yield from page.own_line(f"option: {option_text(option, page)}", 4)


def option_text(option: Option, page: Page) -> str:
    """An option of feedback with its effort, its impact and what it means."""
    parts = (("effort", option.effort), ("impact", option.impact), ("rework of", ", ".join(option.rework)))
    known = [f"{label} {page.cut(text, 120)}" for label, text in parts if text]
    known += ["accepts the limitation"] if option.accept else []
    more = f" ({'; '.join(known)})" if known else ""
    return f"“{page.cut(option.option, 100)}”{more}"


def _input_lines(made: InboxInput, page: Page) -> Iterator[str]:
    """The beginning of an artifact, and the command that prints all of it."""
    summary = f": {page.cut(made.summary, 200)}" if made.summary else ""
    yield from page.own_line(f"{page.cut(made.step, 40)}, version {made.version}{summary}", 2)
    if made.output is None:
        return
    lines, most = clean(as_text(made.output)).expandtabs().splitlines(), page.least(MOST_LINES, 4)
    most = len(lines) if page.whole else most
    shown = list(page.block(lines[:most], 4, most))
    yield from shown
    if made.payload is not None or len(lines) > most or any(line.endswith("…") for line in shown):
        yield f"    all of it: {made.whole}"


def fix_lines(item: InboxItem, page: Page) -> Iterator[str]:
    """What is to be judged, or what the last fix changed."""
    if not item.changes:  # their differences are shown instead
        shown = {made.step for made in item.inputs if made.output is not None}
        yield from last_change_lines(item.last_changes, item.history, item.run, page, shown)


def last_change_lines(
    changes: Iterable[AttemptChange],
    history: Iterable[RoundReport],
    run: str,
    page: Page,
    shown: Collection[str] = (),
    indent: int = 2,
) -> Iterator[str]:
    """The last change of each step, or all those that are asked about. The first output of the steps in `shown` is not
    repeated."""
    tried = {work.step: work for turn in history for work in turn.work if not turn.options}
    changes = list(changes)
    newest = {change.step: change for change in changes}
    for change in changes:
        lines = change.files_diff or (() if change.step in shown and change.version == 1 else change.diff)
        if not lines and not change.files:
            continue
        what = "made" if change.version == 1 else "last changed" if change is newest[change.step] else "changed"
        yield from page.own_line(
            f"what {change.step} {what} (attempt {change.attempt}){_summary(change.summary, page)}", indent
        )
        last = tried.get(change.step)
        if last is not None and last.attempt > change.attempt:
            why = _summary(last.error or last.summary, page)
            yield from page.own_line(f"attempt {last.attempt} changed nothing{why}", indent + 2)
        if change.files:
            yield from page.own_line(f"files: {_files(change)}", indent + 2)
        left_out = change.files_left_out if change.files_diff else change.left_out
        most = page.least(FIX_LINES, 4 if len(changes) == 1 else 2)
        whole = f"backedge show {run} --diff --step {change.step}"
        yield from _diff_lines(lines, left_out, most, page, indent + 2, whole)


def _summary(summary: str, page: Page) -> str:
    return f": {page.cut(summary, 200)}" if summary else ""


def _files(change: AttemptChange) -> str:
    named = ", ".join(one_line(each.where) for each in change.files[:6])
    return f"{named} and {len(change.files) - 6} more" if len(change.files) > 6 else named


def _diff_lines(lines: Sequence[str], left_out: int, most: int, page: Page, indent: int, whole: str) -> Iterator[str]:
    """The beginning of a difference, without the lines that only name the versions. `whole` is the command that shows all
    of it."""
    told = [
        clean(line).expandtabs() for line in lines if not line.startswith(("--- ", "+++ ", "index ", "diff --git "))
    ]
    if page.brief > 1:  # only what changed
        told = [line for line in told if line.startswith(("+", "-"))] or told
    most = len(told) if page.whole else most
    yield from page.block(told[:most], indent, most)
    if len(told) + left_out > most:
        yield from page.own_line(f"… and {counted(len(told) - most + left_out, 'more line')}: {whole}", indent)


def _change_lines(item: InboxItem, changed: InboxChange, page: Page) -> Iterator[str]:
    """One changed protected file: why it is in question, the tests, and the difference."""
    by = f" by {page.cut(changed.step, 40)}" if changed.step else ""
    lines = f" ({page.cut(changed.lines, 100)})" if changed.lines else ""
    yield from page.own_line(f"{changed.id} {page.cut(changed.file, 100)} {changed.change}{by}{lines}", 2)
    if changed.question:
        yield from page.line(changed.question, 4)
    if changed.passed_by:
        why = (
            f"the pass of {', '.join(changed.passed_by)} is not enough: the change hides a failure of the start of the run, "
            f"so it needs your approval, or that of a reviewer who approves {changed.id} by its id"
        )
        yield from page.line(why, 4)
    if len(changed.tests) > 1:
        yield from page.line(f"tests: {', '.join(changed.tests)}", 4)
    if changed.note:
        yield from page.own_line(f"({changed.note})", 4)
    most = page.least(MOST_DIFF_LINES, 12)
    yield from page.block(list(changed.diff[:most]), 4, most)
    if len(changed.diff) > most:
        more = counted(len(changed.diff) - most, "more line")
        yield from page.own_line(f"… and {more}: backedge show {item.run} --diff", 4)


def choice_lines(item: InboxItem, page: Page) -> Iterator[str]:
    """The choices, the recommended one first, and the command."""
    best = item.choices[0] if item.choices else None
    if best is not None and best.recommended:
        yield from page.own_line(f"recommended: {best.choice} ({best.recommended})", 2)
    yield "  options:"
    for choice in item.choices:
        yield from _choice_lines(choice, item, page)
    words = "|".join(dict.fromkeys(choice.choice for choice in item.choices))
    yield from page.own_line(decide_command(item.id, words, item.run, page, 2), 2)


def decide_command(id: str, words: str, run: str, page: Page, indent: int) -> str:
    """The command that decides an escalation; without the words for the choices if they do not fit the line."""
    whole = f"backedge decide {id} {words} --run {run}"
    return whole if indent + len(whole) <= page.width else f"backedge decide {id} CHOICE --run {run}"


def _choice_lines(choice: PacketOption, item: InboxItem, page: Page) -> Iterator[str]:
    # If free text is allowed, the options are listed on lines of their own.
    words = f' --option "{page.cut(choice.option, 60)}"' if choice.option else ""
    words = words or (f" --{choice.needs[-1]} …" if choice.needs else "")
    line = f"{choice.choice}{words}: {page.cut(choice.next, 200)}"
    if page.brief == BRIEFEST and not page.whole:
        line = page.cut(line, page.width - 4)  # one line each
    yield from page.own_line(line, 4)
    short = choice.choice in SHORT or (page.brief and not choice.option)
    if short and (not choice.recommended or page.brief == BRIEFEST) and not page.whole:
        return
    effort = choice.effort
    if choice.choice in ("continue", "revise") and item.estimate is not None and item.estimate.seconds >= 1:
        money = f"${item.estimate.cost_usd:.2f}, " if item.estimate.cost_usd else ""
        effort = f"{effort}, about {money}{ago(item.estimate.seconds)} each"
    parts = [("effort", effort), ("impact", choice.impact)]
    told = "; ".join(f"{name}: {page.cut(part, 120)}" for name, part in parts if part not in ("", "none"))
    if told:
        yield from page.own_line(told, 6)
