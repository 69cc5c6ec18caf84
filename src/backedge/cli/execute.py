"""`run` and `resume`: execute a run until it ends or needs a person."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import click
import msgspec
from msgspec.structs import replace

from backedge.analytics.report import Report
from backedge.app import Engine, Run
from backedge.cli.common import (
    EXIT,
    existing,
    import_option,
    journal_option,
    json_option,
    print_json,
    say,
    shown,
    tell_not_imported,
    terminal_width,
    the_run,
    where,
    wrapped,
)
from backedge.cli.in_place import answered
from backedge.cli.live import RunProgress, view_on
from backedge.cli.people import me, require_person
from backedge.cli.placing import placed
from backedge.cli.run_summary import closing_words, next_words, summary_lines
from backedge.cli.serve import PORT, require_serve
from backedge.cli.stepping import at_terminal, once, stepped
from backedge.config import WorkflowFile, find
from backedge.core.errors import IllegalCommand, WorkflowError
from backedge.core.events import Event
from backedge.core.scheduling.pending import RunOutcome
from backedge.core.workflow.bound import max_attempts
from backedge.engine.live_run import resting
from backedge.engine.starting import new_run_id
from backedge.engine.store import files_of
from backedge.project import (
    FileWorkflow,
    Project,
    agents_of,
    changed_since,
    checked_file,
    end_agent,
    keep_workflow_file,
    missing_programs,
    not_imported,
    sandbox_words,
    sandboxes,
    secrets_of,
    settle_workflow_file,
)
from backedge.project.results import stdout_for_results
from backedge.stories.files import has_stories
from backedge.stories.work import refresh_story

INTERRUPTED = 130
MAX_PARALLEL = 256


Begin = Callable[[Engine], Coroutine[Any, Any, Run]]


class EndedEarly(Exception):
    """The command was interrupted before there was a run to go on with."""


@dataclass(frozen=True)
class CommandRun:
    """How to execute and show a run, from the options of the command."""

    auto: bool
    step: bool
    max_parallel: int | None
    wait: bool
    quiet: bool
    plain: bool
    log: bool
    journal: Path | None
    as_json: bool
    serve: bool

    def __post_init__(self) -> None:
        if self.auto and self.step:
            raise click.UsageError("--auto and --step exclude each other: make all attempts, or one at a time")

    @property
    def asks(self) -> bool:
        """Whether there is a terminal to ask at before each attempt."""
        return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))

    @property
    def answers(self) -> bool:
        """Whether questions to a person can be asked and answered right here."""
        return self.asks and not self.quiet and not self.as_json and not self.serve

    def tell(self, result: str) -> None:
        """Print the result on stdout, or on stderr if stdout has the JSON."""
        if not self.quiet:
            click.echo(wrapped(result, self.results), err=self.as_json)

    @property
    def results(self) -> TextIO:
        return sys.stderr if self.as_json else sys.stdout

    def progress(self, spot: Project) -> RunProgress:
        # A question and a live frame would overwrite each other.
        plain = self.plain or self.step
        return RunProgress(spot, say, None if self.quiet else view_on(sys.stderr, say, spot.state, plain, self.log))


def execution_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that `run` and `resume` share."""
    auto = "Make all attempts until the run ends or waits for a person: the default, except for stories."
    step = "Stop after one attempt. On a terminal, ask before each attempt."
    for option in (
        json_option,
        journal_option,
        click.option("--log", is_flag=True, help="Show progress as plain lines, with the logs of the agents."),
        click.option("--plain", is_flag=True, help="Show progress as plain lines, even on a terminal."),
        click.option("--quiet", "-q", is_flag=True, help="Print nothing; the exit code tells the result."),
        click.option(
            "--wait", is_flag=True, help="Do not exit when only a person can continue; wait for the decision."
        ),
        click.option(
            "--max-parallel",
            type=click.IntRange(1),
            help="How many attempts run at once (default: 256), or how many stories (default: 1).",
        ),
        click.option(
            "--serve", is_flag=True, help="Show the run in a browser while it runs, and wait for decisions there."
        ),
        click.option("--step", is_flag=True, help=step),
        click.option("--auto", is_flag=True, help=auto),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--input", "pairs", multiple=True, metavar="KEY=VALUE", help="Set one key of the input. Repeatable.")
@click.option(
    "--input-file", type=click.Path(dir_okay=False, path_type=Path), help="Read the input from a file: JSON or text."
)
@click.option("--story", type=click.Path(dir_okay=False, path_type=Path), help="Work on this story: a file or an id.")
@click.option("--epic", metavar="NAME", help="Work on the stories of this epic.")
@click.option(
    "--max-iterations",
    type=click.IntRange(0),
    metavar="N",
    help="The most refinements of a story. Default: as the story or the project says.",
)
@click.option("--watch", is_flag=True, help="Work through the stories, and continue whenever one changes.")
@click.option("--run", "run_id", metavar="ID", help="The id of the new run.")
@click.option(
    "--worktree",
    is_flag=True,
    help="Work in a git worktree on a branch of its own, from the last commit; see `merge` and `discard`.",
)
@click.option("--dry-run", is_flag=True, help="Check everything and list what would start, without starting it.")
@import_option
@execution_options
def run(
    file: Path | None,
    pairs: tuple[str, ...],
    input_file: Path | None,
    story: Path | None,
    run_id: str | None,
    worktree: bool,
    dry_run: bool,
    epic: str | None,
    max_iterations: int | None,
    watch: bool,
    imports: bool,
    **how: Any,
) -> None:
    """Start a run of the workflow in this folder, or of FILE.

    In a project with stories, it does one action: the first one that `backedge next` lists. With `--auto` it continues
    until nothing is left, or until everything that is left waits for a person. With `--input` or `--run` it starts a
    single run instead.

    The exit code is 0 if the run is verified or done, 4 if it is accepted, 1 if it failed or was cancelled, and 3 if it
    waits for a person. Ctrl-C stops it cleanly (130); `backedge resume` continues it.

    With --worktree the run starts from the last commit and does not touch this folder: it works in `.backedge/worktrees`, on
    the branch backedge/RUN. At the end, `backedge merge RUN` or `backedge discard RUN` decides what becomes of its work.

    \b
    Example:
      backedge run --input task="add a login page"
      backedge run --step
    """
    if imports and not dry_run:
        raise click.UsageError("--import is for --dry-run: a run imports its functions anyway")
    imports = imports or not dry_run
    source = checked_file(file or find(Path.cwd()), imports)
    execution = CommandRun(**how)
    if execution.serve:
        require_serve()
    spot = where(execution.journal, source.path)
    if not dry_run:
        require_person(execution.journal, spot)
    if not (pairs or input_file or run_id) and has_stories(source):
        if worktree:
            raise click.UsageError(
                "--worktree is for a single run (--input, --input-file or --run); stories have `worktree: true` in `stories:`"
            )
        only = StoriesWanted(str(story) if story is not None else None, epic, max_iterations)
        if execution.serve:
            raise click.UsageError("--serve is for a single run: for stories use `backedge serve` in another terminal")
        _work_through(source, spot, only, watch, dry_run, execution)
        return
    for_stories = {"--watch": watch, "--epic": epic is not None, "--max-iterations": max_iterations is not None}
    for flag in (flag for flag, is_given in for_stories.items() if is_given):
        single = f"{flag} works on stories, and --input, --input-file and --run start a single run: leave one out"
        none = f"{flag} works on stories, and this project has none: `backedge init --template stories` adds some"
        raise click.UsageError(single if has_stories(source) else none)
    progress = execution.progress(spot)
    given = secrets_of(source).value(_input(pairs, input_file, story))
    if dry_run:
        agents_of(source, spot, progress.paths, imports=imports)
        _dry_run(source, [] if imports else not_imported(source), execution.as_json)
        return
    name = run_id or new_run_id(time.time())
    if worktree:
        with placed(source, spot, name, say if not execution.quiet else lambda _: None) as there:
            _start(there, spot, name, given, progress, execution, new=run_id is not None)
    else:
        _start(source, spot, name, given, progress, execution, new=run_id is not None)


def _start(
    source: WorkflowFile, spot: Project, name: str, given: Any, progress: RunProgress, execution: CommandRun, new: bool
) -> None:
    """Start a run and execute it. With `new`, a person chose its id: it must not exist yet."""
    agents = agents_of(source, spot, progress.paths)
    for warning in () if execution.quiet else missing_programs(source):
        say(f"warning: {shown(warning, 300)}")

    async def start(engine: Engine) -> Run:
        if new and any(head.run == name for head in await engine.runs()):
            raise IllegalCommand(
                f"run {name!r} already exists: continue it with `backedge resume {name}`, or choose another id"
            )
        keep_workflow_file(spot, name, source)
        if not execution.quiet:
            say(f"run {name} of {shown(source.definition.name)}")
        _tell_sandbox(source, spot, progress.remark)
        workflow = FileWorkflow(source, spot, agents, progress.paths, progress.remark)
        return await engine.start(workflow, given, name)

    _execute(spot, start, progress, execution)


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@execution_options
def resume(run_name: str | None, **how: Any) -> None:
    """Continue RUN, or the newest run, from its journal.

    A run keeps the workflow that it started with, including prompts and schemas, and its folder (for a story, its
    worktree if it has one). If a crash left attempts in doubt, they are adopted, awaited, run again or escalated, but
    never silently run twice.

    \b
    Example:
      backedge resume
    """
    from backedge.stories.story_run import refresh_input, workflow_file_of

    execution = CommandRun(**how)
    if execution.serve:
        require_serve()
    require_person(execution.journal)
    spot = existing(execution.journal)
    progress = execution.progress(spot)

    async def continued(engine: Engine) -> Run:
        found = await the_run(engine, run_name)
        past = await found.events()
        progress.load(found.id, past)
        if (await found.state()).ended is not None:
            await found.end_attempts(partial(end_agent, spot))
            return found
        for name in settle_workflow_file(spot, found.id, await files_of(engine.journal, past)):
            say(f"the copy of {shown(name)} that run {found.id} keeps was changed: the journal's version is used")
        source = workflow_file_of(spot, found.id, spot.folder)
        await refresh_input(spot, found)
        for name in () if execution.quiet else changed_since(spot, found.id):
            say(
                f"{name} has changed since run {found.id} started: the run continues with the old version; only a new run uses the new one"
            )
        agents = agents_of(source, spot, progress.paths)
        if await engine.journal.holder(found.id) is None:  # else it is refused, or goes on elsewhere
            _tell_sandbox(source, spot, progress.remark)
        going = await engine.resume(found.id, FileWorkflow(source, spot, agents, progress.paths))
        if not going.executed_here:
            say(f"run {found.id} continues; it is executed by {await engine.journal.holder(found.id)}")
        return going

    _execute(spot, continued, progress, execution)


def _tell_sandbox(source: WorkflowFile, spot: Project, remark: Callable[[str], None]) -> None:
    """Say what confines the agents of a run or of stories, if something does."""
    confined = sandbox_words(sandboxes(source, spot))
    if confined:
        remark(confined)


def _execute(spot: Project, begin: Begin, progress: RunProgress, execution: CommandRun) -> None:
    with stdout_for_results():
        try:
            outcome, report, events = asyncio.run(_executed(spot, begin, progress, execution))
        except EndedEarly:
            if not execution.quiet:
                say("interrupted before an agent ran: nothing was changed")
            sys.exit(INTERRUPTED)
    more = summary_lines(report, events, spot)
    width = terminal_width(execution.results)
    ended = report if outcome is not None else replace(report, outcome="interrupted")
    next = next_words(spot, report)
    for line in closing_words(ended, changes=outcome is not None, more=more, width=width, next=next):
        execution.tell(line)
    if outcome is None and not execution.quiet:
        say(wrapped(f"interrupted; continue with `backedge resume {report.run}`", sys.stderr))
    if outcome == "running" and not execution.quiet:
        say(
            f"`backedge resume {report.run} --step` makes the next attempt, `backedge resume {report.run}` all the rest"
        )
    if execution.as_json:
        print_json(report)
    sys.exit(INTERRUPTED if outcome is None else EXIT[outcome])


async def _executed(
    spot: Project, begin: Begin, progress: RunProgress, execution: CommandRun
) -> tuple[RunOutcome | None, Report, Sequence[Event]]:
    """Execute until the run ends, waits for a person or is interrupted. After an interruption, the outcome is None."""
    stop, engine = asyncio.Event(), Engine(spot.journal, max_parallel=execution.max_parallel or MAX_PARALLEL)
    loop = asyncio.get_running_loop()

    executing = asyncio.current_task()

    def interrupted() -> None:
        if stop.is_set():
            # The second signal: attempts that are being stopped get no more time, but are still recorded.
            engine.kill_now()
            for task in asyncio.all_tasks() - {executing}:
                task.cancel()
        else:
            progress.stopping()
        stop.set()

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A signal that was ignored when we started (nohup) stays ignored.
        if signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, interrupted)
    async with progress, engine, _page(engine, spot, execution, progress):
        engine.subscribe(progress.tell)
        if execution.step:
            engine.allow(0)
        going = await _begun(begin(engine), stop)
        rest = asyncio.create_task(_rested(engine, going, spot, progress, execution))
        stopped = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait({rest, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        outcome: RunOutcome | None = None
        if rest in done and not rest.cancelled():
            await refresh_story(spot, going, say)
            outcome = rest.result()
            if outcome not in ("cancelled", "failed"):
                return outcome, await _reported(spot, engine, going, execution), await going.events()
        rest.cancel()
        run = going.id
    # Leaving the engine stopped the running attempts and recorded their usage: read the report after that.
    async with Engine(spot.journal) as reading:
        found = await reading.find(run)
        return outcome, await _reported(spot, reading, found, execution), await found.events()


@asynccontextmanager
async def _page(engine: Engine, spot: Project, execution: CommandRun, progress: RunProgress) -> AsyncIterator[None]:
    """With --serve, the page of the runs while this process executes one of them."""
    if not execution.serve:
        yield
        return
    from backedge.web.server import Serving, listening_near, served

    sock = listening_near("127.0.0.1", PORT)
    try:
        async with served(engine, spot, me() or "local", Serving(), progress.remark, sock) as address:
            say(f"follow it and answer at {address}")
            yield
    finally:
        sock.close()


async def _reported(spot: Project, engine: Engine, run: Run, execution: CommandRun) -> Report:
    """The report; for --json with what open questions are about."""
    report = await run.report()
    if not execution.as_json or report.outcome in ("verified", "done"):
        return report
    from backedge.reading.attempt_changes import last_changes, under_discussion

    state = await run.state()
    return replace(
        report,
        changes=await last_changes(engine.journal, spot, state, await run.events(), under_discussion(state)),
    )


async def _begun(beginning: Coroutine[Any, Any, Run], stop: asyncio.Event) -> Run:
    """The run, once it has begun. The baselines may take as long as all tests do: an interruption ends them."""
    task, stopped = asyncio.create_task(beginning), asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not task.done():
        task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        raise EndedEarly from None


async def _rested(engine: Engine, run: Run, spot: Project, progress: RunProgress, execution: CommandRun) -> RunOutcome:
    """Wait until this process has nothing more to do."""
    if execution.step and run.executed_here:
        under_way = any(step.running for step in (await run.state()).steps.values())
        outcome = await stepped(engine, run, at_terminal if execution.asks else once(under_way))
        if outcome is not None:
            return outcome
    while True:
        outcome = await run.at_rest()
        if outcome == "waiting" and execution.answers and await answered(engine, run, spot, progress):
            continue
        state = await run.state()
        if not (execution.wait or execution.serve) or outcome != "waiting":
            return outcome
        if resting(state) == "waiting":
            await run.changed(state.seq)


@dataclass(frozen=True)
class StoriesWanted:
    """Which stories to work on, and how often they may be refined, from the options of the command."""

    story: str | None
    epic: str | None
    max_iterations: int | None


def _work_through(
    source: WorkflowFile, spot: Project, wanted: StoriesWanted, watch: bool, dry_run: bool, execution: CommandRun
) -> None:
    from backedge.cli.backlog import TerminalNarrator, work_through
    from backedge.cli.stories import print_next
    from backedge.stories.limits import with_max_iterations
    from backedge.stories.work import Work

    if wanted.story is not None and wanted.epic is not None:
        raise click.UsageError("--story and --epic exclude each other: name one story, or one epic")
    source = with_max_iterations(source, wanted.max_iterations)
    if dry_run:
        print_next(source, spot, 1, execution.as_json, story=wanted.story, epic=wanted.epic)
        return
    agents_of(source, spot)  # a missing agent is an error before anything starts
    narrator = TerminalNarrator(execution.quiet)
    _tell_sandbox(source, spot, narrator.remark)
    work = Work(source, spot, narrator, wanted.story, wanted.epic, me(), execution.max_parallel or 1)
    work.until_done = execution.wait and not watch
    staying = watch or (execution.wait and execution.auto)
    work_through(work, narrator, "watch" if staying else "all" if execution.auto else "one", execution.as_json)


def _dry_run(source: WorkflowFile, unchecked: list[str], as_json: bool) -> None:
    first = [step.name for step in source.definition.steps if not step.needs and not step.judges]
    bound = max_attempts(source.definition)
    if as_json:
        told = {"workflow": source.definition.name, "starts": first, "max_attempts": bound}
        print_json({**told, "not_imported": unchecked})
    else:
        click.echo(f"{source.definition.name}: would start {', '.join(first)}; at most {bound} attempts in all")
        tell_not_imported(unchecked)


def _input(pairs: tuple[str, ...], input_file: Path | None, story: Path | None) -> Any:
    given: Any = None
    if input_file is not None:
        given = _read_input(input_file)
    if story is not None or pairs:
        if given is None:
            given = {}
        if not isinstance(given, dict):
            raise WorkflowError("--input-file is not a JSON object: --input and --story cannot be added to it")
    if story is not None:
        given = {**given, "story": {"path": str(story), "text": _text(story)}}
    seen = set[str]()
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise WorkflowError(f"--input {pair!r}: expected KEY=VALUE")
        if key in seen:
            raise WorkflowError(f"--input has {key!r} twice: give it once")
        seen.add(key)
        given = {**given, key: _value(value)}
    return given


def _value(text: str) -> Any:
    """A value on the command line: JSON if it can be read as JSON, text otherwise."""
    try:
        return _json(text)
    except ValueError:
        return text


def _json(text: str) -> Any:
    """A JSON value that can be stored: no NaN, no huge number, no endless nesting. Raises ValueError."""
    try:
        return msgspec.json.decode(text, strict=True) if text.strip() else json.loads(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _read_input(path: Path) -> Any:
    text = _text(path)
    try:
        return _json(text)
    except ValueError as error:
        if path.suffix == ".json":
            raise WorkflowError(f"--input-file {path} is not JSON: {error}") from None
        return text


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise WorkflowError(f"{path} cannot be read: {error.strerror}: name a file that exists") from error
    except UnicodeDecodeError as error:
        raise WorkflowError(f"{path} cannot be read: it is not UTF-8 text") from error
