"""`logs`: what the attempts of a run were told, did and printed, whichever process executes them."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from backedge.cli.common import idle_words, journal_option, reading, run_id, say, shown, where
from backedge.core import events as e
from backedge.core.errors import JournalError, NotFound
from backedge.core.state.evolve import replay
from backedge.core.suggestions import did_you_mean
from backedge.core.text import clean, counted, escaped
from backedge.engine.store import events_of
from backedge.ports import JournalWithClaims
from backedge.project import Project
from backedge.reading.attempt_log import AttemptOutput
from backedge.reading.story_runs import STORY

TICK = 0.2
"""Seconds between two looks at the files of running attempts."""
PROMPT_LINES = 10
"""How many lines of a prompt to print without --prompt."""
MOST_NAMED = 10
"""How many findings of a verdict to name."""
COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_cyan", "bright_yellow", "bright_green")


@dataclass(frozen=True)
class Asked:
    """The run, and which of its attempts to print."""

    run: str
    steps: tuple[tuple[str, int | None], ...] = ()
    """Each with the number of one attempt, or None for all of them. Without steps, everything."""

    def wants(self, step: str, attempt: int) -> bool:
        return not self.steps or any(each in ((step, None), (step, attempt)) for each in self.steps)


@click.command()
@click.argument("words", metavar="[RUN] [STEP[-N]]...", nargs=-1)
@click.option("--follow", "-f", is_flag=True, help="Continue with what running attempts print, until the run stops.")
@click.option(
    "--tail", type=click.IntRange(0), metavar="N", help="Print only the last N lines of each attempt. Default: all."
)
@click.option(
    "--prompt", "whole_prompt", is_flag=True, help=f"Print all of each prompt, not only {PROMPT_LINES} lines."
)
@journal_option
@click.option("--json", "as_json", is_flag=True, help="Print each line as a line of JSON.")
def logs(
    words: tuple[str, ...],
    follow: bool,
    tail: int | None,
    whole_prompt: bool,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Print the prompts, tool calls and output of the attempts of RUN, or of the newest run.

    Name one or more steps to see only their attempts, or a step and a number to see one: code-2. The name of a story
    stands for its run. Lines that begin with > are what an attempt was told, and a tool that an agent CLI was denied is a line with !.

    \b
    Example:
      backedge logs -f
      backedge logs code review --tail 20
      backedge logs r-0193 code-2 --prompt
    """
    spot = where(journal)

    async def ask(journal: JournalWithClaims) -> None:
        asked, steps = await _asked(journal, words)
        named = [step for step, _ in asked.steps] or steps
        widest = max(map(len, named), default=0) + 2 if len(asked.steps) != 1 else 0
        printer = Printer(journal, spot, asked, tail, None if whole_prompt else PROMPT_LINES, as_json, widest)
        await printer.catch_up()
        while follow and not printer.over:
            if await journal.holder(asked.run) is None and not await printer.catch_up():
                say(idle_words(spot, asked.run).strip())
                break
            await asyncio.sleep(TICK)
            await printer.catch_up()
        printer.flush()
        for line in printer.missing():
            say(line)

    try:
        reading(journal, ask)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return


async def _asked(journal: JournalWithClaims, words: Sequence[str]) -> tuple[Asked, list[str]]:
    """What to print, and the steps of the run. The first word is a step of the newest run, or a run."""
    newest = await run_id(journal, None)
    steps = await _steps(journal, newest)
    if not words or _step_of(words[0], steps) is not None:
        return Asked(newest, _chosen(newest, words, steps)), steps
    try:
        run = await run_id(journal, words[0])
    except NotFound as error:
        stories = [head.run for head in await journal.runs() if head.run == f"{STORY}{words[0]}"]
        if not stories:
            hint = did_you_mean(words[0], steps)
            raise NotFound(f"{error}; run {newest} has no step of this name either: {hint}") from None
        run = stories[0]
    steps = await _steps(journal, run)
    return Asked(run, _chosen(run, words[1:], steps)), steps


def _chosen(run: str, words: Sequence[str], steps: Sequence[str]) -> tuple[tuple[str, int | None], ...]:
    found = []
    for word in words:
        step = _step_of(word, steps)
        if step is None:
            raise NotFound(f"run {run} has no step {word!r}: {did_you_mean(word, steps)}")
        found.append(step)
    return tuple(found)


async def _steps(journal: JournalWithClaims, run: str) -> list[str]:
    """The steps of a run, and those that made attempts and were removed since."""
    events = await events_of(journal, run)
    state = replay(events)
    made = [event.step for event in events if isinstance(event, e.AttemptStarted)]
    return list(dict.fromkeys([*(state.steps if state is not None else ()), *made]))


def _step_of(word: str, steps: Sequence[str]) -> tuple[str, int | None] | None:
    """A step, or one of its attempts: code, code-2."""
    if word in steps:
        return word, None
    step, _, number = word.rpartition("-")
    return (step, int(number)) if step in steps and number.isdecimal() else None


class Printer:
    """Prints the attempts of a run in the order in which they started, each with its name in front."""

    def __init__(
        self,
        journal: JournalWithClaims,
        spot: Project,
        asked: Asked,
        tail: int | None,
        prompt_lines: int | None,
        as_json: bool,
        widest: int,
    ) -> None:
        """`widest` is the width of the names in front of the lines."""
        self._journal, self._spot, self._asked = journal, spot, asked
        self._tail, self._prompt_lines, self._as_json = tail, prompt_lines, as_json
        self._seen, self._width = 0, widest
        self._open: dict[tuple[str, int], AttemptOutput] = {}
        self._verdicts: dict[tuple[str, int], e.VerdictGiven] = {}
        self._colours: dict[str, str] = {}
        self._made: Counter[str] = Counter()
        self.over = False
        """Whether the run has ended."""

    async def catch_up(self) -> bool:
        """Print what is new; whether there was a new event."""
        events = await events_of(self._journal, self._asked.run, self._seen)
        self._seen += len(events)
        if not self._seen:
            return False
        for step in [step for step, attempt in self._asked.steps if attempt == 0 and events]:
            await self._finish(step, 0, None)  # the baseline, before the first attempt
        self._verdicts |= {(each.judge, each.attempt): each for each in events if isinstance(each, e.VerdictGiven)}
        for event in events:
            await self._tell(event)
        for key, output in self._open.items() if self._tail is None or not events else ():
            self._print(*key, output.lines())
        return bool(events)

    def missing(self) -> Iterator[str]:
        """The steps that have not started, in words: silence could mean anything. Raises NotFound if there is no such
        attempt."""
        for step, attempt in self._asked.steps:
            made = self._made[step]
            if attempt is not None and attempt > made:
                raise NotFound(
                    f"{step} has made {counted(made, 'attempt')} in run {self._asked.run}: there is no {step}-{attempt}"
                )
            elif not made and attempt is None:
                yield f"{step} has not started yet in run {self._asked.run}"
        if not self._asked.steps and not self._made:
            yield f"no attempt of run {self._asked.run} has started yet"

    def flush(self) -> None:
        """Print what attempts that are still running have printed so far."""
        for key, output in self._open.items():
            self._print(*key, output.lines(last=True))

    async def _tell(self, event: e.Event) -> None:
        if isinstance(event, e.AttemptStarted):
            self._made[event.step] = max(self._made[event.step], event.attempt)
        match event:
            case e.AttemptStarted() if self._asked.wants(event.step, event.attempt):
                folder = AttemptOutput(self._spot.state, self._asked.run, event.step, event.attempt, self._prompt_lines)
                self._open[event.step, event.attempt] = folder
            case e.AttemptSucceeded() if (event.step, event.attempt) in self._open:
                cost = f"${event.usage.cost_usd:.2f}, " if event.usage.cost_usd else ""
                summary = f" {shown(event.summary, 400)}" if event.summary else ""
                end = f"done{':' if summary else ''}{summary} ({cost}{event.seconds:.1f} s)"
                verdict = self._verdicts.pop((event.step, event.attempt), None)
                await self._finish(event.step, event.attempt, event.log, end, *([_verdict(verdict)] if verdict else []))
            case e.AttemptFailed() if (event.step, event.attempt) in self._open:
                await self._finish(event.step, event.attempt, event.log, f"! broke: {shown(event.error, 1000)}")
            case e.AttemptDropped() if (event.step, event.attempt) in self._open:
                await self._finish(event.step, event.attempt, None, f"! {event.reason}")
            case e.RunEnded():
                self.over = True
            case _:
                pass

    async def _finish(self, step: str, attempt: int, log: str | None, *ends: str) -> None:
        """Print the rest of an attempt. If its files were removed, the journal still has the end of its log."""
        output = self._open.pop((step, attempt), None)
        output = output or AttemptOutput(self._spot.state, self._asked.run, step, attempt, self._prompt_lines)
        lines = list(output.lines(last=True))
        if not output.kept and log is not None:
            try:
                text = clean((await self._journal.payload(log)).decode("utf-8", "replace"))
            except JournalError as error:
                text = f"({error})"
            lines += [("output", line) for line in text.splitlines()]
        self._print(step, attempt, [*lines, *(("end", end) for end in ends)])

    def _print(self, step: str, attempt: int, lines: Sequence[tuple[str, str]] | Iterator[tuple[str, str]]) -> None:
        told = list(lines)
        if self._tail is not None:
            told = told[len(told) - min(self._tail, len(told)) :]
        name = f"{step}-{attempt}"
        self._width = max(self._width, len(name))
        for kind, text in told:
            if self._as_json:
                line = {"run": self._asked.run, "step": step, "attempt": attempt, "kind": kind, "text": text}
                click.echo(escaped(msgspec.json.encode(line)))
                continue
            colour = self._colours.setdefault(step, COLOURS[len(self._colours) % len(COLOURS)])
            prefix = click.style(f"{name:{self._width}} | ", fg=colour)
            body = f"> {text}" if kind == "prompt" else text
            red = body.startswith("! ")
            click.echo(prefix + (click.style(body, fg="red") if red else click.style(body, dim=kind == "prompt")))
        if told:
            sys.stdout.flush()


def _verdict(event: e.VerdictGiven) -> str:
    names = [f"F-{each.id}" for each in event.findings]
    found = f": {', '.join(names[:MOST_NAMED])}" if names else ""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{'✗' if event.word == 'fail' else '✓'} {event.word}{found}{more}"
