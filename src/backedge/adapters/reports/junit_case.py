"""One test case of a JUnit report: its id, its result, its file, and the finding if it failed.

Runners fill in the attributes in different ways. This is what they write, by the runners themselves:

    pytest      classname="tests.test_a.TestCart" name="test_total[0]"; a file that cannot be loaded: name="tests.test_a"
    node        classname="test" name="adds", suites nested; file="/…/a.test.js" since Node 24; a file that cannot be loaded:
                name="test/a.test.js"
    vitest      classname="src/a.test.js" name="suite > adds"; a file that cannot be loaded: name is the classname
    jest-junit  classname and name are "suite adds"; file="src/a.test.js" if its configuration asks for it
    mocha       classname="suite" name="adds" file="/…/a.js"; a hook that fails: name='"before all" hook for "adds"'
    surefire    classname="org.shop.CartTest" name="adds"; <flakyFailure> and <rerunFailure> for tests that it ran again
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from backedge.adapters.reports.places import FileNames, evidence_of, first_line, line_of
from backedge.adapters.reports.tests import HOOKS, Result, id_of
from backedge.engine.protocol import Finding

PLACE = re.compile(
    r"^(?P<file>[^\s:][^:\n]*\.\w+):(?P<line>\d+): "  # pytest and compilers
    r"|^ *❯ (?:[^\n]* )?(?P<file2>[^\s:]+\.\w+):(?P<line2>\d+):\d+$"  # vitest
    r"|^ *at (?:[^\n]*\()?(?P<file3>(?:file://)?[^\s:()]+\.\w+):(?P<line3>\d+):\d+\)?,?(?: \{)?$"  # Node
    r'|^  File "(?P<file4>[^"\n]+)", line (?P<line4>\d+)',  # Python
    re.MULTILINE,
)
"""The lines of a failure that say where it happened."""
_HOOK = re.compile(r'"(?:before|after) (?:all|each)" hook\b.*', re.DOTALL)
_SCRIPT = re.compile(r"\.[cm]?[jt]sx?$")
_RETRIED = ("flakyFailure", "flakyError")
_JVM = tuple(
    f"src/{kind}/{language}/" for kind in ("test", "androidTest") for language in ("java", "kotlin", "groovy", "scala")
)
_SOURCES = (("", ".py"), *((root, suffix) for root in ("", *_JVM) for suffix in (".java", ".kt", ".groovy", ".scala")))
"""Where the class of a test can be, and how its file ends."""


@dataclass
class JUnitCase:
    """A test case, as far as it was read."""

    attributes: Mapping[str, str]
    suites: Sequence[str]
    """The names of the suites around it, outer ones first."""
    many: bool = True
    """Whether the report begins with <testsuites>."""
    messages: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    listed_as: str = ""
    """The id that it got in the list of all tests."""

    def note(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take in an element of the test case."""
        if tag == "skipped" and attributes.get("type") == "todo":
            tag = "todo"
        if tag in ("failure", "error"):
            self.messages.append(attributes.get("message", ""))
        self.kinds.add(tag)

    @property
    def result(self) -> Result:
        # Node runs tests that are still to be done, and their failures do not count.
        if "todo" in self.kinds:
            return "skipped"
        if self.messages:
            return "failed"
        return "skipped" if "skipped" in self.kinds else "passed"

    @property
    def flaky(self) -> bool:
        return self.result == "passed" and not self.kinds.isdisjoint(_RETRIED)

    @property
    def is_hook(self) -> bool:
        """Whether it stands for a suite whose hook failed."""
        return _HOOK.match(self.attributes.get("name", "")) is not None

    def whole_file(self, names: FileNames) -> str | None:
        """The file that it stands for, because the file could not be loaded or has no tests; None if it is a test."""
        given, name = self.attributes.get("classname", "").strip(), self.attributes.get("name", "").strip()
        if given not in ("test", name, "Test suite failed to run") or not _SCRIPT.search(name):
            return None
        path = names.of(name)
        return path if path is not None and names.has(path) and not (given == "test" and self.suites) else None

    def continues(self, before: JUnitCase | None) -> bool:
        """Whether it only adds an error to the case before it: pytest lists a test twice whose teardown fails too."""
        return (
            before is not None
            and before.result == "failed"
            and self.kinds & {"failure", "error"} == {"error"}
            and "failure" in before.kinds
            and self._own_name == before._own_name
        )

    @property
    def _own_name(self) -> tuple[str | None, ...]:
        return tuple(self.attributes.get(key) for key in ("classname", "name", "file"))

    def id(self, names: FileNames) -> str:
        """Says which test it is. A runner that gives no class, or the same for all, is helped by file and suites."""
        given, name = self.attributes.get("classname", "").strip(), self.attributes.get("name", "").strip()
        whole_file = self.whole_file(names)
        if whole_file is not None:
            return id_of(whole_file)
        file = names.of(self.attributes.get("file")) or ""
        own = HOOKS if self.is_hook else name
        if given == "test":  # Node
            return id_of(file, *(self.suites if self.many else ()), own)
        if not given:
            return id_of("" if _is_module(file, name) else file, *self.suites[1:], own)
        if given == name and file:  # jest-junit
            return id_of(file, own)
        return id_of(file if _is_apart(file, given) else "", given, own)

    def file(self, names: FileNames) -> str | None:
        """The file of the test: as the report says, or the file that its class or its failure leads to."""
        declared = names.of(self.attributes.get("file"))
        if declared is not None:
            return declared
        for word in (self.attributes.get("classname"), self.attributes.get("name"), *self.suites[-1:]):
            named = names.of(word) if word and "/" in word else None
            if named is not None and names.has(named):
                return named
        return self._file_of_class(names) or self._file_of_failure(names)

    def _file_of_class(self, names: FileNames) -> str | None:
        given = self.attributes.get("classname") or self.attributes.get("name", "")
        parts = given.partition("$")[0].split(".")
        if "" in parts or any("/" in part or "\0" in part for part in parts) or len(parts) > 50:
            return None
        for end in range(len(parts), 0, -1):
            for root, suffix in _SOURCES:
                candidate = f"{root}{'/'.join(parts[:end])}{suffix}"
                if names.has(candidate):
                    return candidate
        return None

    def _file_of_failure(self, names: FileNames) -> str | None:
        """The outermost file of the workspace in the failure of a Node test: the test called everything else."""
        if self.attributes.get("classname") != "test" and self.attributes.get("classname") != self.attributes.get(
            "name"
        ):
            return None
        found = [place for text in self.texts for place in places_in(text, names)]
        return found[-1][0] if found else None

    def _message(self) -> str:
        """What went wrong, in one line."""
        said = next((headline for each in self.messages if (headline := first_line(each))), "")
        if said == "collection failure":  # pytest; the reason is in its last line that begins with an E
            reasons = re.findall(r"^E   (\S.*)$", "\n".join(self.texts), re.MULTILINE)
            return first_line(f"{said}: {reasons[-1]}") if reasons else said
        titled = "Test suite failed to run"  # jest-junit
        texts = (re.sub(rf"^ *● {titled}$", "", each, flags=re.MULTILINE) for each in self.texts)
        return said or next((headline for each in texts if (headline := first_line(each))), "failed")

    def finding(self, names: FileNames, test_file: str | None) -> Finding:
        text = "\n".join(each for each in self.texts if each.strip())
        message = self._message()
        declared = names.of(self.attributes.get("file"))
        file, line = declared, line_of(self.attributes.get("line"))
        wanted = declared or test_file
        for path, number in places_in(text, names):
            # The last location is where it failed; the attributes, if there are any, say where the test begins.
            if wanted in (None, path):
                file, line = path, number
        return Finding(
            f"{self.listed_as}: {message}",
            category="test",
            evidence=evidence_of(text or "\n".join(self.messages)),
            file=file or test_file,
            line=line,
            test=self.listed_as,
        )


def _is_module(file: str, name: str) -> bool:
    """Whether a name is that of the module in a file, as in tests.test_cart and tests/test_cart.py."""
    return f".{file.rpartition('.')[0].replace('/', '.')}".endswith(f".{name}")


def _is_apart(file: str, classname: str) -> bool:
    """Whether a class does not say in which file it is, so that another file could have one of the same name."""
    path = PurePosixPath(file)
    return path.name not in classname and path.name.partition(".")[0] not in re.split(r"[./\\:$ ]", classname)


def places_in(text: str, names: FileNames) -> list[tuple[str, int | None]]:
    found = []
    for match in PLACE.finditer(text):
        groups = match.groupdict()
        key = next(key for key in ("file", "file2", "file3", "file4") if groups[key] is not None)
        path = names.of(groups[key])
        if path is not None and "node_modules" not in path.split("/"):
            found.append((path, line_of(groups[key.replace("file", "line")])))
    return found
