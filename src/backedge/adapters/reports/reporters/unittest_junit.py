"""Runs unittest and writes JUnit XML: python unittest_junit.py REPORT [the arguments of python -m unittest].

It is started by its path with the Python of the project, from version 3.8 on, and uses the standard library only.
"""

from __future__ import annotations

import os
import re
import sys
import unittest
from typing import Any
from xml.sax.saxutils import escape, quoteattr

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_HOLDER = re.compile(r"\w+ \((.+)\)")


class Case:
    """One test: its names, its file and what went wrong."""

    def __init__(self, classname: str, name: str, file: str) -> None:
        self.classname, self.name, self.file = classname, name, file
        self.problems: list[tuple[str, str, str]] = []
        self.skipped: str | None = None

    def xml(self) -> str:
        names = f"classname={_attribute(self.classname)} name={_attribute(self.name)}"
        file = f" file={_attribute(self.file)}" if self.file else ""
        inside = [f"<skipped message={_attribute(self.skipped)}/>"] if self.skipped is not None else []
        inside += [
            f"<{tag} message={_attribute(message)}>{escape(_plain(text))}</{tag}>"
            for tag, message, text in self.problems
        ]
        return f"<testcase {names}{file}>{''.join(inside)}</testcase>"


class JUnitResult(unittest.TextTestResult):
    """Prints what unittest prints, and remembers every test."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cases: list[Case] = []
        self._running: Case | None = None

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - the names of unittest
        super().startTest(test)
        self._running = case_of(test)
        self.cases.append(self._running)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        self._running = None

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._problem(test, "error", err, self.errors[-1][1])

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._problem(test, "failure", err, self.failures[-1][1])

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            said = (self.failures if failed else self.errors)[-1][1]
            self._problem(test, "failure" if failed else "error", err, f"{subtest}\n{said}")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._case(test).skipped = reason

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self._case(test).skipped = "expected failure"

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self._case(test).problems.append(("failure", "unexpected success", ""))

    def _problem(self, test: unittest.TestCase, tag: str, err: Any, text: str) -> None:
        message = f"{err[0].__name__}: {err[1]}"
        self._case(test).problems.append((tag, message, text))

    def _case(self, test: unittest.TestCase) -> Case:
        """The running test, or one for a class or a module whose set-up or tear-down failed."""
        if self._running is None:
            self.cases.append(case_of(test))
            return self.cases[-1]
        return self._running


def case_of(test: unittest.TestCase) -> Case:
    """Says which test it is."""
    id = test.id()
    holder = _HOLDER.fullmatch(id)
    if holder is not None:  # setUpClass (tests.test_cart.TestCart)
        return Case(holder[1], "", _file(holder[1]))
    if type(test).__module__ == "unittest.loader":  # a module that could not be loaded
        name = getattr(test, "_testMethodName", id)
        return Case("", name, _file(name))
    name = getattr(test, "_testMethodName", "")
    owner = id[: -len(name) - 1] if name and id.endswith("." + name) else ""
    return Case(owner, name if owner else id, _file(type(test).__module__))


def _file(module: str) -> str:
    """The file of a module or a class, also of one that could not be loaded."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        loaded = sys.modules.get(".".join(parts[:end]))
        if loaded is not None and getattr(loaded, "__file__", None):
            return os.path.abspath(str(loaded.__file__))
        for folder in sys.path:
            found = os.path.join(folder or os.curdir, *parts[:end]) + ".py"
            if os.path.isfile(found):
                return os.path.abspath(found)
    return ""


def _plain(text: str) -> str:
    return _NOT_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _attribute(text: str | None) -> str:
    return quoteattr(_plain(text or ""))


def main() -> int:
    here = os.path.dirname(os.path.realpath(__file__))
    # Python puts the folder of a program first; `python -m unittest` would put the current folder there.
    if sys.path and os.path.realpath(sys.path[0]) == here:
        sys.path[0] = os.getcwd()
    if len(sys.argv) < 2:
        print("usage: unittest_junit.py REPORT [the arguments of python -m unittest]", file=sys.stderr)
        return 2
    report = os.path.abspath(sys.argv.pop(1))
    sys.argv[0] = "python -m unittest"
    results: list[JUnitResult] = []

    def result(*args: Any, **options: Any) -> JUnitResult:
        results.append(JUnitResult(*args, **options))
        return results[-1]

    class Runner(unittest.TextTestRunner):
        resultclass = staticmethod(result)

    program = unittest.main(module=None, testRunner=Runner, exit=False)
    cases = [case for each in results for case in each.cases]
    failed = sum(len(case.problems) for case in cases)
    with open(report, "w", encoding="utf-8") as file:
        file.write(f'<testsuites><testsuite name="unittest" tests="{len(cases)}" failures="{failed}">\n')
        file.write("".join(f"{case.xml()}\n" for case in cases))
        file.write("</testsuite></testsuites>\n")
    return 0 if program.result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
