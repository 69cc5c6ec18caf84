"""A tool as a judge: a test runner, a linter, a script. Its report decides, and the report is guarded.

The program runs in a room of its own, on the files as they are. If protected files changed, it runs once more with these
files as they were. `verdict.py` compares the two with what ran before.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from backedge.adapters.agents.file_digests import Stamp
from backedge.adapters.agents.step_schemas import StepSchemas
from backedge.adapters.evidence.store import KnownTests
from backedge.adapters.evidence.tree import Tree, differing
from backedge.adapters.judges.canary import Trial, blind_spots, never_loaded
from backedge.adapters.judges.canary_runs import tried
from backedge.adapters.judges.judge_program import JudgeCommand, JudgeProgram, NoRoom, Part, PartResult
from backedge.adapters.judges.known import excused, required
from backedge.adapters.judges.memory import gone_unfixed, remember, silenced
from backedge.adapters.judges.reference import ReferenceFiles
from backedge.adapters.judges.room_limits import room_limits
from backedge.adapters.judges.run_evidence import Restoration, RunEvidence
from backedge.adapters.judges.runs import Difference, Judgement, Reading, Runs
from backedge.adapters.judges.self_written import is_lock_file, is_self_written, outdated
from backedge.adapters.judges.verdict import judgement
from backedge.adapters.judges.workspace_evidence import WorkspaceEvidence
from backedge.adapters.reports.spec import judged
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.evidence.values import Evidence, file_key
from backedge.core.value import Json
from backedge.engine.protocol import Finding
from backedge.ports import Attempt, Result

MOST_COPIES = 3
"""How often a judge gets a copy if the files do not stand still while it is made."""
DELIVERED, HELD, AS_FAILED = "delivered", "held", "as-failed"


@dataclass(frozen=True)
class Measured:
    """The workspace just before the judge runs."""

    tree: Tree
    digest: str
    """The digest of what is judged."""
    reference: ReferenceFiles
    differences: Mapping[str, Difference]
    environment: Mapping[str, tuple[str, str]]
    as_failed: Mapping[str, str]
    """Files of open findings as they were when they failed, if the judge has to run once more with them."""


@dataclass(frozen=True)
class Parts:
    """Everything that one verdict is made of."""

    measured: Measured
    delivered: PartResult
    held: PartResult | None
    as_failed: PartResult | None
    flaky: Sequence[str]
    after: str
    """The digest of what is judged, after the judge has run."""
    trials: Sequence[Trial] = ()
    """What the judge did with broken files."""
    stirred: Sequence[str] = ()
    """Files that somebody changed while the judge could see it."""

    @property
    def all(self) -> list[PartResult]:
        return [each for each in (self.delivered, self.held, self.as_failed) if each is not None]


class ToolJudge:
    """Judges with the report of a program."""

    def __init__(self, evidence: WorkspaceEvidence, command: JudgeCommand, schemas: StepSchemas | None = None) -> None:
        self._evidence, self.command = evidence, command
        self._program = JudgeProgram(evidence, command)
        self._schemas = schemas or StepSchemas(None, None)

    async def work(self, briefing: Briefing, attempt: Attempt) -> Result:  # noqa: ARG002 - a tool raises no feedback
        result = await self._judged(briefing, recovering=False)
        assert result is not None
        return result

    async def recover(self, briefing: Briefing, attempt: Attempt) -> Result | None:  # noqa: ARG002
        """The result of an attempt that a crash interrupted; None if it may have changed files and its end is not known."""
        return await self._judged(briefing, recovering=True)

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        return self._schemas.input_errors(inputs)

    async def _judged(self, briefing: Briefing, recovering: bool) -> Result | None:
        run = await asyncio.to_thread(self._evidence.of, briefing.run)
        # A team that protects nothing may drop tests as it likes.
        protects = self._evidence.settings.judging.protects.default
        known = run.store.tests(self.command.step) if protects else KnownTests()
        parts = await self._parts(run, briefing, known, recovering, moving=False)
        for _ in range(MOST_COPIES):
            if parts is None or not parts.stirred:
                break
            # Somebody changed the files under the judge's eyes, and may have changed them back. A copy stands still.
            parts = await self._parts(run, briefing, known, recovering=False, moving=True)
        if parts is None:
            return None
        if parts.stirred:
            raise AgentError(
                f"the files change again and again while {self.command.step} looks at them: "
                f"{', '.join(parts.stirred[:10])}; find out which program writes there, and end it"
            )
        self._refuse_changes(parts)
        found = judgement(self._runs(run, briefing, known, parts))
        await asyncio.to_thread(remember, run, self.command.step, parts.measured.tree, known, found, _readings(parts))
        return self._result(found, parts)

    async def _parts(
        self, run: RunEvidence, briefing: Briefing, known: KnownTests, recovering: bool, moving: bool
    ) -> Parts | None:
        """Run the judge as often as needed; None if it is not known how it ended before a crash."""
        measured = await asyncio.to_thread(self._measured, run, briefing)
        states = await asyncio.to_thread(run.states, measured.tree)
        plain = Part(briefing.run, briefing.attempt, DELIVERED, allow_empty=bool(known.files), moving=moving)
        start = self._program.recover if recovering else self._program.run
        delivered = await start(plain)
        if delivered is None:
            return None
        flaky, delivered = await self._without_flaky(plain, delivered, recovering)
        held = as_failed = None
        if measured.differences:
            restoration = run.restoration(measured.differences, measured.reference)
            held = await self._restored(plain, HELD, restoration, recovering)
            more, held = await self._without_flaky(
                dataclasses.replace(plain, name=HELD, restore=restoration.restore, remove=restoration.remove),
                held,
                recovering,
                already=delivered.tests.failed,
            )
            flaky += more
        if measured.as_failed:
            wanted = {name: measured.reference.wanted(name) for name in measured.differences}
            restoration = run.restored({**wanted, **measured.as_failed})
            as_failed = await self._restored(plain, AS_FAILED, restoration, recovering)
        trials = (
            await tried(self._program, run, plain, measured.tree, recovering) if self._needs_canary(delivered) else ()
        )
        delivered = _with_findings(delivered, blind_spots(trials))
        touched = set(delivered.changed) & measured.tree.files.keys()
        delivered = _with_findings(delivered, outdated(self.command.step, touched))
        after = await asyncio.to_thread(run.tree)
        now = await asyncio.to_thread(run.states, measured.tree)
        found = Parts(measured, delivered, held, as_failed, tuple(dict.fromkeys(flaky)), run.digest(after), trials)
        return dataclasses.replace(found, stirred=self._stirred(found, after, states, now))

    def _stirred(
        self, parts: Parts, after: Tree, before: Mapping[str, Stamp | None], now: Mapping[str, Stamp | None]
    ) -> list[str]:
        """The files that changed while the judge could see it, by their contents and states before and after. A judge that
        looks at a copy sees only what changed until that was made; if the files are others in the end, it judges again
        anyway."""
        measured = parts.measured
        restored = {*measured.differences, *measured.as_failed}
        different = differing(measured.tree, after) if parts.after != measured.digest else []
        found: set[str] = set()
        for part in parts.all:
            if part.room == "overlay":
                found.update(different)
                found.update(name for name, _ in before.items() ^ now.items() if before != now)
            elif part.room == "copy" and not different:
                names = (now.keys() & measured.tree.files.keys()) - restored
                found.update(name for name in names if before.get(name) != part.copied.get(name))
        return sorted(found)

    def _needs_canary(self, delivered: PartResult) -> bool:
        return self.command.canary and delivered.reading.outcome.verdict == "pass"

    def _approved(self, briefing: Briefing) -> dict[str, str]:
        """The changes that count in the workspace of this judge, by their names there."""
        inside = file_key(self._evidence.settings.name, "")
        return {path.removeprefix(inside): digest for path, digest in briefing.approved if path.startswith(inside)}

    def _measured(self, run: RunEvidence, briefing: Briefing) -> Measured:
        approved = self._approved(briefing)
        tree, reference = run.tree(), run.reference(self.command.step, approved)
        files = run.store.tests(self.command.step).files
        failing = {files.get(each.test) or each.file or "" for each in briefing.verify if each.test}
        return Measured(
            tree,
            run.digest(tree),
            reference,
            {
                name: found
                for name, found in reference.differences(tree).items()
                if not run.notes.has(name, tree.files.get(name))
            },
            run.environment_changes(tree, approved, briefing.start),
            reference.others_as_failed(failing, tree),
        )

    async def _restored(self, plain: Part, name: str, restoration: Restoration, recovering: bool) -> PartResult:
        """The run with protected files as they were. If the tool cannot even begin with them, that is its result."""
        if restoration.lost:
            named = ", ".join(restoration.lost[:10])
            return PartResult(Reading(problem=f"the content of {named} was too large to be kept"))
        part = dataclasses.replace(
            plain, name=name, restore=restoration.restore, remove=restoration.remove, allow_empty=True
        )
        try:
            found = await (self._program.recover(part) if recovering else self._program.run(part))
        except NoRoom:
            raise
        except AgentError as error:
            return PartResult(Reading(problem=str(error)), log=error.log)
        assert found is not None  # with files restored there is always a room
        return found

    async def _without_flaky(
        self, part: Part, first: PartResult, recovering: bool, already: frozenset[str] = frozenset()
    ) -> tuple[list[str], PartResult]:
        """Run again while tests fail, as often as `reruns` says. A test that passes then is flaky, and counts as passed.
        Tests that fail `already` on other files need no second look."""
        flaky = sorted(first.tests.flaky)
        for number in range(1, self.command.reruns + 1):
            failed = first.tests.failed - already
            if not failed:
                break
            again = dataclasses.replace(part, name=f"{part.name}-rerun-{number}", allow_empty=True)
            second = await (self._program.recover(again) if recovering else self._program.run(again))
            passed = failed & second.tests.passed if second is not None else frozenset[str]()
            flaky += sorted(passed)
            first = _with_passed(first, passed)
        return flaky, first

    def _refuse_changes(self, parts: Parts) -> None:
        """A judge may only look. Its verdict on files that it changed itself says nothing about the delivered ones."""
        # What tools bring up to date themselves is a finding already.
        found = {name for name in parts.delivered.changed if not is_self_written(name)}
        found |= {name for part in parts.all[1:] for name in part.changed if not is_lock_file(name)}
        changed = sorted(found & parts.measured.tree.files.keys())
        if changed:
            raise AgentError(
                f"{self.command.step} changed what it judges: {', '.join(changed[:10])}; take `fix` or `--fix` out of its "
                "command and its configuration, or name what it may write in `keeps`",
                lasting=True,
            )

    def _runs(self, run: RunEvidence, briefing: Briefing, known: KnownTests, parts: Parts) -> Runs:
        measured, approved = parts.measured, self._approved(briefing)
        base = run.start.base.tree.files
        answered = (name for name, digest in approved.items() if digest != base.get(name, ""))
        test_files = frozenset(name for name in answered if run.start.protected.kind(name) == "test")
        return Runs(
            delivered=parts.delivered.reading,
            held=parts.held.reading if parts.held is not None else None,
            as_failed=parts.as_failed.reading if parts.as_failed is not None else None,
            required=required(known, approved),
            known=frozenset(known.files),
            baseline=frozenset(known.baseline),
            failed_before=frozenset(known.failed),
            found_before=known.found,
            approved=frozenset(approved),
            excused=excused(known, approved, test_files),
            files={test: file for test, file in known.files.items() if file},
            versions=known.versions,
            before=known.before,
            printed_before=known.printed,
            changed=measured.differences,
            open=briefing.verify,
            silenced=silenced(run, known, briefing.verify),
            gone=gone_unfixed(run, known, measured.tree, approved, briefing.verify),
            environment=measured.environment,
            flaky=parts.flaky,
        )

    def _result(self, found: Judgement, parts: Parts) -> Result:
        delivered, tree = parts.delivered, parts.measured.digest
        results = msgspec.json.encode(dict(sorted(delivered.tests.results.items())))
        digest = sha256(results).hexdigest() if delivered.tests.results else None
        again = any(part.again for part in parts.all)
        seen = Evidence(
            workspace=self._evidence.settings.name,
            tree=tree,
            after=parts.after if parts.after != tree else "",
            room=delivered.room,
            held=parts.held is not None,
            protects=self._evidence.settings.judging.protects.default,
            environment="changed" if parts.measured.environment else "same",
            tests=found.counts,
            report=digest,
            questions=found.questions,
            ended=tuple(dict.fromkeys(name for part in parts.all for name in part.ended)),
            notes=(
                *(("it was started again: it is not known how it ended before the crash",) if again else ()),
                *never_loaded(self.command.step, parts.trials),
                *room_limits(delivered),
            ),
        )
        return Result(found.outcome, log=delivered.log, evidence=seen, payloads={digest: results} if digest else {})


def _with_findings(part: PartResult, findings: Sequence[Finding]) -> PartResult:
    """A result with more findings, which makes it a fail."""
    if not findings:
        return part
    outcome = msgspec.structs.replace(
        part.reading.outcome, verdict="fail", findings=(*part.reading.outcome.findings, *findings)
    )
    return dataclasses.replace(part, reading=dataclasses.replace(part.reading, outcome=outcome))


def _readings(parts: Parts) -> list[Reading]:
    return [part.reading for part in (parts.delivered, parts.held) if part is not None]


def _with_passed(part: PartResult, passed: frozenset[str]) -> PartResult:
    """A result in which some tests passed after all."""
    if not passed:
        return part
    outcome, tests = part.reading.outcome, part.reading.tests
    findings = tuple(each for each in outcome.findings if each.test not in passed)
    results = {id: "passed" if id in passed else result for id, result in tests.results.items()}
    verdict = judged(findings, "").verdict
    return dataclasses.replace(
        part,
        reading=Reading(
            msgspec.structs.replace(outcome, findings=findings, verdict=verdict),
            dataclasses.replace(tests, results=results),
        ),
    )
