"""What backedge itself saw of an attempt, beside what its agent reported."""

from __future__ import annotations

from typing import Literal

from backedge.core.value import Value

FileChange = Literal["added", "changed", "removed"]
ChangeAnswer = Literal["approved", "rejected"]
MOST_FILES = 1_000
"""Changed files of an attempt that are recorded."""


class ProtectedChange(Value, frozen=True):
    """A protected file, such as a test or the configuration of a judge, that differs from the start of the run."""

    file: str
    change: FileChange
    digest: str = ""
    """The digest of its content now; empty if it was removed."""
    owned: bool = False
    """Whether the step owns the file: then the change needs no answer."""
    lines: str = ""
    """How many lines were added and removed, for people: +3 -7."""


class ProtectedQuestion(Value, frozen=True):
    """Why a judge cannot count the change of a protected file without an answer from a reviewer or a person.

    What a judge runs with is a file too: `.venv`, with a fingerprint as its digest.
    """

    file: str
    digest: str
    reason: str
    tests: tuple[str, ...] = ()
    red: bool = False
    """Whether it hides a failure that was there when the run began. Then the pass of a reviewer is not enough: it has to
    approve the change by its id."""


class TestCounts(Value, frozen=True):
    """How many tests a report lists."""

    __test__ = False  # pytest takes it for a test otherwise

    tests: int
    """How many there are."""
    failed: int = 0
    """How many of them failed."""
    skipped: int = 0
    """How many of them were skipped."""
    before: int | None = None
    """How many tests there were at the start of the run."""
    flaky: tuple[str, ...] = ()
    """The tests that failed and then passed when they were run again."""


class Evidence(Value, frozen=True):
    """What backedge saw of one attempt."""

    workspace: str = ""
    """The folder of the files, from the folder of the workflow file; empty for that folder itself."""
    tree: str = ""
    """The digest of all files: after a producer's attempt, or as a judge judged them. Empty if it was not measured."""
    after: str = ""
    """The digest of all files after a judge's attempt, if they changed meanwhile."""
    files: tuple[str, ...] = ()
    """The files that the attempt changed."""
    room: str = ""
    """How the judge was kept apart from the workspace: overlay or copy; empty if it was not."""
    sandbox: str = ""
    """What confined the agent; empty if nothing did."""
    held: bool = False
    """Whether the judge also ran with the protected files as they were."""
    protects: bool = True
    """Whether changes of tests and of configuration are noticed: not with `protects: false`."""
    environment: Literal["", "same", "changed"] = ""
    """Whether the programs and libraries of the judge are those of the start of the run."""
    tests: TestCounts | None = None
    report: str | None = None
    """The digest of the stored list of all tests with their results."""
    changes: tuple[ProtectedChange, ...] = ()
    """After a producer's attempt: all protected files that differ from the start of the run."""
    questions: tuple[ProtectedQuestion, ...] = ()
    """From a judge: the changes that somebody has to answer for."""
    ended: tuple[str, ...] = ()
    """The processes that the attempt left behind and that were ended, in words; with `NOT_ENDED` those that could not
    be."""
    notes: tuple[str, ...] = ()
    """What people should know, in sentences."""


RestoreRule = Literal["unless_edited", "anyway", "never"]
"""Which files a rollback restores: none if somebody has edited one of them since; all of them, edited or not; or none."""


class RestoredFiles(Value, frozen=True):
    """What became of the files of one workspace that a rollback has to restore."""

    files: tuple[str, ...] = ()
    """Those that are as they were before."""
    edited: tuple[str, ...] = ()
    """Those that somebody has edited since."""
    lost: tuple[str, ...] = ()
    """Those whose earlier content was not kept."""
    patch: str = ""
    """The file with what was undone, as a patch."""
    problem: str = ""
    """Why nothing could be restored."""
    evidence: Evidence = Evidence()
    """The workspace after that."""


NO_EVIDENCE = Evidence()
DENIED = "denied "
"""Before the name of a tool that an agent was not permitted to use, in the notes about its attempt."""
NOT_ENDED = " (it could not be ended)"
"""Behind the name of a process that an attempt left and that is still there."""


class Baseline(Value, frozen=True):
    """What a tool judge reports about the files of the start of the run."""

    judge: str
    tests: TestCounts | None = None
    """How many tests there are; null if the report does not name tests."""
    failing: tuple[str, ...] = ()
    """The first tests that failed before anything was changed."""
    report: str | None = None
    """The digest of the stored list of all tests with their results."""
    seconds: float = 0.0
    """How long it took."""
    cached: bool = False
    """Whether an earlier run on the same files measured it."""
    error: str = ""
    """Why the tool could not report on these files, for example because there are no tests yet."""
    start: str = ""
    """The digest of what was recorded about the files of the start. The record itself lies outside the journal."""
    changes: tuple[str, ...] = ()
    """The first files that the tool changed although it may only look. As long as it does, its verdicts do not count."""


class Approval(Value, frozen=True):
    """What a reviewer says about the change of a protected file."""

    change: str
    """Its id, such as P-1."""
    status: ChangeAnswer
    """Approved or rejected. A reviewer that rejects a change has to fail the work."""
    note: str = ""
    """Why."""


class ProtectedFile(Value, frozen=True):
    """A protected file that differs from the start of the run, and what was said about it."""

    id: int
    file: str
    change: FileChange
    digest: str
    step: str
    """The step that changed it."""
    attempt: int
    """The attempt that changed it; 0 if only a judge noticed it."""
    workspace: str = ""
    lines: str = ""
    approved: str = ""
    """The judge or person that approved it, or the step that owns it; empty if nobody did."""
    rejected: str = ""
    """The judge or person that rejected it."""
    by_id: bool = False
    """Whether a person approved it, or a reviewer by its id; else a reviewer only passed the work."""
    by_person: bool = False
    """Whether a person rejected it: then no reviewer can approve it."""
    questions: dict[str, ProtectedQuestion] = {}
    """Why it does not count without an answer, by the judge that asks."""

    @property
    def name(self) -> str:
        return f"P-{self.id}"

    @property
    def key(self) -> str:
        return file_key(self.workspace, self.file)

    @property
    def question(self) -> str:
        """Why it does not count without an answer; empty if no judge asks."""
        return "; ".join(dict.fromkeys(each.reason for each in self.questions.values()))

    @property
    def red(self) -> bool:
        """Whether a question is about a failure that was there when the run began."""
        return any(each.red for each in self.questions.values())

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that the questions are about."""
        return tuple(dict.fromkeys(test for each in self.questions.values() for test in each.tests))


def file_key(workspace: str, file: str) -> str:
    """The path of a file from the folder of the workflow file."""
    return f"{workspace}/{file}" if workspace else file
