"""What `cargo test` prints: the tests on stdout, the programs that have them on stderr, in the same order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from backedge.adapters.reports.places import FileNames, evidence_of, first_line, line_of
from backedge.adapters.reports.tests import ReportedTests, Result, TestList, id_of, require_tests
from backedge.core.errors import AgentError
from backedge.core.text import clean, counted
from backedge.engine.protocol import Finding

MOST_ERRORS = 50
"""How many errors of the compiler become findings."""
_BEGIN = re.compile(r"running (\d{1,9}) tests?")
_TEST = re.compile(r"test (?P<name>.+?)(?: - should panic)? \.\.\. ?(?P<rest>.*)")
_RESULT = re.compile(r"(?:.*\b)?(?P<word>ok|FAILED|ignored|bench:)\b.*")
_END = re.compile(
    r"test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored; (\d{1,9}) measured; .*"
)
_OUTPUT = re.compile(r"---- (?P<name>.+?)(?: - should panic)? std(?:out|err) ----")
_PROGRAM = re.compile(r" +(?:Running (?:unittests )?(?P<source>\S+) \((?P<program>[^)]*)\)|Doc-tests (?P<docs>\S+))")
_ERROR = re.compile(
    r"^error(?:\[\w+\])?: (?P<said>.+)\n(?:.*\n){0,3}? *--> (?P<file>[^\n:]+):(?P<line>\d+):\d+", re.MULTILINE
)
_PANIC = re.compile(
    r"panicked at (?:'.*', )?(?P<file>[^\s:]+\.rs):(?P<line>\d+)|\bat (?P<file2>\S+\.rs):(?P<line2>\d+):\d+$",
    re.MULTILINE,
)
_LINE = re.compile(r"(?: -)? \(line \d+\)")
_WORDS: Mapping[str, Result] = {"ok": "passed", "bench:": "passed", "FAILED": "failed", "ignored": "skipped"}


@dataclass
class _Program:
    """One test program: what it ran, and what failing tests printed."""

    count: int
    results: list[tuple[str, Result]] = field(default_factory=list)
    output: dict[str, list[str]] = field(default_factory=dict)
    ended: tuple[int, ...] = ()

    def require_complete(self) -> None:
        """Refuse an output that lists other tests than it counts: lines are mixed up or missing."""
        found = [sum(result == wanted for _, result in self.results) for wanted in ("passed", "failed", "skipped")]
        if not self.ended:
            raise AgentError("the output of cargo test ends before its tests ended: the program crashed or was cut off")
        passed, failed, ignored, measured = self.ended
        if found != [passed + measured, failed, ignored] or len(self.results) != self.count:
            raise AgentError(
                f"the output of cargo test names {counted(len(self.results), 'test')}, its counts say {self.count}: "
                "run it without --quiet and without --nocapture"
            )


def read_cargo_test(
    text: bytes, log: bytes, names: FileNames, allow_empty: bool = False
) -> tuple[ReportedTests, list[Finding]]:
    """The tests with their results, and a finding for each that failed or does not compile. Raises AgentError if that is
    not the output of cargo test. `log` is what cargo printed on stderr."""
    programs = list(_programs(clean(text.decode("utf-8", "replace")).splitlines()))
    stderr = clean(log.decode("utf-8", "replace"))
    findings = [] if programs else _errors(stderr, names)
    if not programs and not findings:
        raise AgentError(f"cargo test ran nothing: {first_line(stderr) or 'it printed nothing'}; correct the command")
    owners = _owners(stderr, len(programs))
    listed = TestList()
    for program, owner in zip(programs, owners, strict=True):
        program.require_complete()
        for name, result in program.results:
            file = _file(owner, name, names)
            id = listed.add(id_of(_prefix(owner), _LINE.sub("", name)), result, file)
            if result == "failed":
                findings.append(_finding(id, file, "\n".join(program.output.get(name, ())), names))
    tests = listed.tests()
    require_tests(tests, findings, "the output of cargo test", allow_empty)
    return tests, findings


def _owners(stderr: str, count: int) -> list[re.Match[str]]:
    """The test program of each part of the output. The tests in documentation come last, and can have several parts."""
    found = [match for line in stderr.splitlines() if (match := _PROGRAM.match(line))]
    if found and len(found) < count and found[-1]["docs"]:
        found += [found[-1]] * (count - len(found))
    if count and len(found) != count:
        raise AgentError(
            f"cargo test names {len(found)} test programs, but {count} printed results: run it without --quiet"
        )
    return found[:count]


def _programs(lines: list[str]) -> Iterator[_Program]:
    program: _Program | None = None
    waiting = shown = ""
    for line in lines:
        begin = _BEGIN.fullmatch(line)
        if begin is not None and (program is None or program.ended):
            program, waiting, shown = _Program(int(begin[1])), "", ""
            yield program
            continue
        if program is None or program.ended:
            continue
        end = _END.fullmatch(line)
        if end is not None:
            program.ended = tuple(int(number) for number in end.groups())
        elif (output := _OUTPUT.fullmatch(line)) is not None:
            shown = output["name"]
        elif shown and line.startswith(("failures:", "test result:")):
            shown = ""
        elif shown:
            program.output.setdefault(shown, []).append(line)
        elif (test := _TEST.fullmatch(line)) is not None:
            waiting = "" if _result(program, test["name"], test["rest"]) else test["name"]
        elif waiting and _result(program, waiting, line):
            # With --nocapture, what a test prints stands before its result.
            waiting = ""


def _result(program: _Program, name: str, said: str) -> bool:
    found = (
        _RESULT.fullmatch(said) if said.startswith(("ignored", "bench:")) else re.fullmatch("(?P<word>ok|FAILED)", said)
    )
    if found is not None:
        program.results.append((name, _WORDS[found["word"]]))
    return found is not None


def _prefix(owner: re.Match[str]) -> str:
    """The crate of a test program. Its tests have the paths that Rust gives them."""
    if owner["docs"]:
        return "docs"
    crate = re.sub(r"-[0-9a-f]{8,}(?:\.exe)?$", "", owner["program"].replace("\\", "/").rpartition("/")[2])
    source = owner["source"]
    return crate if source.endswith("src/lib.rs") or source.startswith("tests/") else f"{crate} {source}"


def _file(owner: re.Match[str], test: str, names: FileNames) -> str | None:
    """The file of a test: that of its module, if the module has one."""
    if owner["docs"]:
        path = names.of(test.partition(" - ")[0])
        return path if path is not None and names.has(path) else None
    source = owner["source"].replace("\\", "/")
    folder, *modules = source.rpartition("/")[0], *test.split("::")[:-1]
    for end in range(len(modules), 0, -1):
        inside = "/".join(modules[:end])
        for candidate in (f"{folder}/{inside}.rs", f"{folder}/{inside}/mod.rs"):
            if names.has(candidate):
                return candidate
    return source if names.has(source) else None


def _finding(id: str, file: str | None, text: str, names: FileNames) -> Finding:
    line = None
    for found in _PANIC.finditer(text):
        path = names.of(found["file"] or found["file2"])
        if path is not None and names.has(path) and file in (None, path):
            file, line = path, line_of(found["line"] or found["line2"])
            break
    lines = [each for each in text.splitlines() if each.strip()]
    panic = next((number for number, each in enumerate(lines) if " panicked at " in each), None)
    said = lines[panic + 1] if panic is not None and panic + 1 < len(lines) else lines[0] if lines else ""
    described = f"{id}: {first_line(said) or 'failed'}"
    return Finding(described, category="test", evidence=evidence_of(text), file=file, line=line, test=id)


def _errors(stderr: str, names: FileNames) -> list[Finding]:
    """The errors of the compiler."""
    found = []
    for error in _ERROR.finditer(stderr):
        after = stderr[error.start() :].partition("\n\n")[0]
        found.append(
            Finding(
                f"it does not compile: {first_line(error['said'])}",
                category="build",
                evidence=evidence_of(after),
                file=names.of(error["file"]),
                line=line_of(error["line"]),
            )
        )
    return found[:MOST_ERRORS]
