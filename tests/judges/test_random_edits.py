"""Random edits of a small repository, honest and dishonest, before a judge that really runs.

What the judge says is compared with the truth: each original test against the product as it is now.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.core.briefing import BriefedFinding
from backedge.core.errors import AgentError
from backedge.core.model import Severity
from tests.core.strategies import effort
from tests.evidence.parts import repository, write
from tests.judges.shop import Shop, asked

WANTED = {"total": "90", "count": "2", "name": "cart"}
START = {"total": "100", "count": "2", "name": "carp"}


def script(product: str, wanted: str) -> str:
    return f'[ "$(cat {product})" = {wanted} ]\n'


TESTS = {f"tests/{name}.sh": script(name, wanted) for name, wanted in WANTED.items()}
Edit = tuple[str, str, str]
"""What is done, to which product or its test, and with which value."""

NAMES = st.sampled_from(sorted(WANTED))
HONEST = st.one_of(
    st.tuples(st.just("mend"), NAMES, st.just("")),
    st.tuples(st.just("new test"), NAMES, st.sampled_from(["more", "other"])),
    st.tuples(st.just("new file"), NAMES, st.sampled_from(["notes.md", "docs/a.md"])),
    st.tuples(st.just("comment"), NAMES, st.sampled_from(["why", "because"])),
)
DISHONEST = st.one_of(
    st.tuples(st.just("remove"), NAMES, st.just("")),
    st.tuples(st.just("skip"), NAMES, st.just("")),
    st.tuples(st.just("weaken"), NAMES, st.just("")),
    st.tuples(st.just("rename"), NAMES, st.sampled_from(["old.sh", "total.txt"])),
    st.tuples(st.just("expect"), NAMES, st.sampled_from(["100", "carp", "3"])),
    st.tuples(st.just("break"), NAMES, st.sampled_from(["7", "100"])),
    st.tuples(st.just("break runner"), NAMES, st.just("")),
)


@dataclass
class Repository:
    """The shop, the findings that are open, and the truth about it."""

    folder: Path
    shop: Shop = field(init=False)
    open: dict[str, BriefedFinding] = field(default_factory=dict)
    attempt: int = 0

    def __post_init__(self) -> None:
        repository(self.folder / "shop", {**{name: f"{value}\n" for name, value in START.items()}, **TESTS})
        self.shop = Shop(self.folder)
        self.shop.begin()

    def edit(self, edit: Edit) -> None:
        what, name, value = edit
        test = self.shop.folder / "tests" / f"{name}.sh"
        match what:
            case "mend":
                self.shop.write(name, f"{WANTED[name]}\n")
            case "break":
                self.shop.write(name, f"{value}\n")
            case "new test":
                self.shop.write(f"tests/{value}.sh", script(name, WANTED[name]))
            case "new file":
                write(self.shop.folder, {value: name})
            case "comment":
                text = test.read_text() if test.exists() else TESTS[f"tests/{name}.sh"]
                test.write_text(f"# {value}\n{text}")
            case "remove":
                test.unlink(missing_ok=True)
            case "skip":
                test.write_text("exit 77\n")
            case "weaken":
                test.write_text("true\n")
            case "rename":
                if test.exists():
                    test.rename(test.with_name(value))
            case "expect":
                test.write_text(script(name, value))
            case _:
                write(self.shop.folder, {"tests/zz.sh": "kill -9 $PPID\n"})

    def judged(self) -> Any:
        """What the judge says. Its findings stay open until it says that they are fixed."""
        self.attempt += 1
        found = self.shop.judged(self.attempt, verify=tuple(self.open.values()))
        for each in found.outcome.resolutions:
            if each.status == "fixed":
                known = next(finding for finding in self.open.values() if finding.id == each.finding)
                self.fixed(known.test)
                del self.open[known.test]
        for each in found.outcome.findings:
            name = f"F-{len(self.open) + 1}-{self.attempt}"
            briefed = BriefedFinding(
                name, each.description, Severity.HIGH, "test", category=each.category, test=each.test, file=each.file
            )
            self.open.setdefault(each.test or each.description, briefed)
        return found

    def fixed(self, test: str) -> None:
        """The truth about a test that is said to be fixed: the script as it was passes, and the script as it is."""
        name = test.rpartition("::")[2]
        if name not in WANTED:
            return
        assert self.passes(name), f"{test} is fixed, but the test as it was fails"
        now = self.shop.folder / "tests" / f"{name}.sh"
        assert now.exists() and "exit 77" not in now.read_text(), f"{test} is fixed, but it does not run"

    def passes(self, name: str) -> bool:
        return self.shop.read(name).strip() == WANTED[name]


@pytest.mark.slow
@given(rounds=st.lists(st.lists(HONEST | DISHONEST, min_size=1, max_size=4), min_size=1, max_size=3))
@effort(25)
def test_no_pass_without_a_question_while_a_test_of_the_start_fails_or_is_gone(rounds: list[list[Edit]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop = Repository(Path(folder))
        shop.judged()
        for edits in rounds:
            for each in edits:
                shop.edit(each)
            if "break runner" in [what for what, *_ in edits]:
                with pytest.raises(AgentError, match="ended by signal 9"):
                    shop.judged()
                (shop.shop.folder / "tests/zz.sh").unlink()
            found = shop.judged()
            if found.outcome.verdict == "pass" and not asked(found):
                assert all(map(shop.passes, WANTED)), "it passes, and the product is wrong"
                assert not shop.open


@pytest.mark.slow
@given(edits=st.lists(HONEST, max_size=5), late=st.lists(HONEST, max_size=3))
@effort(15)
def test_honest_work_passes_and_nobody_is_asked(edits: list[Edit], late: list[Edit]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop = Repository(Path(folder))
        for each in edits:
            shop.edit(each)
        shop.judged()
        for each in [*late, *(("mend", name, "") for name in WANTED)]:
            shop.edit(each)
        found = shop.judged()
        assert (found.outcome.verdict, asked(found), shop.open) == ("pass", {}, {})
