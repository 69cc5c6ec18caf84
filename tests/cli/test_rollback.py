"""From the outside: fixes that make things worse are rolled back, and the files of broken attempts are restored."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import PYTHON, Project, failed, finished, killed, passed, until
from tests.cli.test_evidence import JUDGE

TESTS = "total 6\ncount 3\nempty 0\n"
WRONG = "total 5\ncount 3\nempty 0\n"
WORSE = "total 5\ncount 0\nempty 7\n"
RIGHT = "total 6\ncount 3\nempty 0\n"

# Makes the edits of its attempt. Keys with a bang are for itself: what it does before it reports.
CODER = """\
import json, os, pathlib, sys, time
told = json.load(sys.stdin)
here = pathlib.Path(__file__).parent
number, step = told["attempt"], told["step"]
found = {str(path): path.read_text() for path in sorted(pathlib.Path(".").rglob("*.txt")) if ".backedge" not in str(path)}
(here / f"found-{step}-{number}.json").write_text(json.dumps(found))
(here / f"told-{step}-{number}.json").write_text(json.dumps(told))
edits = json.load(open(here / f"edits-{step}.json"))
edits = edits[min(number, len(edits)) - 1]
for name, content in edits.items():
    if name.startswith("!"):
        continue
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content) if content is not None else path.unlink()
if "!hang" in edits:
    (here / "hangs").touch()
    time.sleep(60)
if "!break" in edits:
    sys.exit("it broke")
print(json.dumps({"output": step, "summary": f"edit {number}"}))
"""


class Shop:
    """A project with a product in text files, a coder, and a judge that compares them with tests."""

    def __init__(self, make: Make, *edits: dict[str, Any], git: bool = True, plan: bool = False, **more: Any) -> None:
        self.project: Project = make()
        self.folder = self.project.folder
        self.beside = self.folder.parent / f"{self.folder.name}-tools"
        self.beside.mkdir()
        (self.beside / "judge.py").write_text(JUDGE)
        (self.beside / "coder.py").write_text(CODER)
        self.edits("code", *edits)
        (self.folder / "tests").mkdir()
        (self.folder / "tests/test_cart.txt").write_text(TESTS)
        (self.folder / "cart.txt").write_text(WRONG)
        steps = {
            **({"plan": {"phase": "planning", "run": self.coder}} if plan else {}),
            "code": {"phase": "code", "needs": ["plan"] if plan else [], "run": self.coder, **more.pop("code", {})},
            "test": {"tests": "code", "run": [*PYTHON, str(self.beside / "judge.py"), "{report}"], "report": "junit"},
            **more.pop("steps", {}),
        }
        self.project.write({"steps": steps, "sandbox": "off", "on_worse": "rollback", **more})
        if git:
            who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
            for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
                subprocess.run(["git", *who, *words], cwd=self.folder, check=True)

    @property
    def coder(self) -> list[str]:
        return [*PYTHON, str(self.beside / "coder.py")]

    def edits(self, step: str, *edits: dict[str, Any]) -> None:
        (self.beside / f"edits-{step}.json").write_text(json.dumps(edits))

    def found(self, step: str, attempt: int) -> dict[str, str]:
        """The files that an attempt found."""
        return dict(json.loads((self.beside / f"found-{step}-{attempt}.json").read_text()))

    def told(self, step: str, attempt: int) -> dict[str, Any]:
        return dict(json.loads((self.beside / f"told-{step}-{attempt}.json").read_text()))

    def read(self, name: str = "cart.txt") -> str:
        return (self.folder / name).read_text()


@pytest.mark.parametrize("git", [True, False])
def test_the_next_round_starts_from_the_files_before_the_worse_fix(make: Make, git: bool) -> None:
    worse = {"cart.txt": WORSE, "new/more.txt": "more", "tests/test_cart.txt": TESTS + "more 1\n"}
    shop = Shop(make, {"notes.txt": "first"}, worse, {"cart.txt": RIGHT}, git=git)
    result = shop.project.run()
    assert (result.code, result.report["outcome"]) == (0, "verified"), result.err
    assert shop.found("code", 3) == {"cart.txt": WRONG, "notes.txt": "first", "tests/test_cart.txt": TESTS}
    assert not (shop.folder / "new").exists()
    assert "⤺ rolled back code to version 1: " in result.err
    assert "⤺ 3 files restored; what was undone is in" in result.err
    (loop,) = result.report["loops"]
    assert (loop["state"], loop["rounds"]) == ("resolved", 2)
    assert [(each["round"], each["targets"], each["versions"]["code"]) for each in loop["rolled_back"]] == [
        (1, ["code"], 1)
    ]
    patch = next(shop.folder.rglob("undone.diff"))
    assert "+count 0" in patch.read_text()
    told = shop.told("code", 3)["rolled_back"]
    assert [each["why"] for each in told] == [loop["rolled_back"][0]["why"]]
    assert {each["status"] for each in result.report["findings"]} == {"fixed", "rolled_back"}
    assert result.report["protected"] == [], "nobody has to answer for a test that is as it was"


@pytest.mark.parametrize("rule", ["on_worse", "on_error", "writes"])
def test_the_summary_counts_no_change_that_was_taken_back(make: Make, rule: str) -> None:
    taken_back: dict[str, dict[str, Any]] = {
        "on_worse": {"cart.txt": WORSE, "new.txt": "more\n"},
        "on_error": {"cart.txt": WORSE, "!break": True},
        "writes": {"cart.txt": WORSE, "other.txt": "more\n"},
    }
    first = {"notes.txt": "first\n"}
    code = {"writes": ["cart.txt", "notes.txt", "new.txt"], "on_error": "restore"}
    shop = Shop(make, first, taken_back[rule], {"cart.txt": RIGHT}, code=code)
    told = shop.project.backedge("run").out
    assert told.startswith("verified: ")
    assert "  changed: 2 files, +2 −1: notes.txt +1 −0, cart.txt +1 −1" in told.splitlines()


def waiting(make: Make, **more: Any) -> Shop:
    """A run that waits for a decision, after a fix that did not help and changed three files."""
    edits = {"cart.txt": WORSE, "new/more.txt": "more", "old.txt": None}
    shop = Shop(
        make, {"old.txt": "old"}, edits, {"cart.txt": RIGHT}, on_worse="keep", limits={"rounds_per_loop": 1}, **more
    )
    result = shop.project.run()
    assert result.code == 3, result.err
    assert "rollback" in result.escalation["options"]
    return shop


BEFORE = {"cart.txt": WRONG, "old.txt": "old", "tests/test_cart.txt": TESTS}


def test_a_person_decides_to_roll_back_and_a_crash_before_or_amid_the_restore_loses_nothing(make: Make) -> None:
    shop = waiting(make)
    packet = shop.project.backedge("inbox").out
    assert "rollback" in packet and "the last fix is undone, with its files (code to version 1)" in packet
    shop.project.decide("E-1", "rollback", "--by", "ann")
    assert shop.read() == WORSE, "the decision is recorded first, and the files are restored by what executes the run"
    # A process that was killed amid the restore has restored some of the files.
    (shop.folder / "old.txt").write_text("old")
    result = shop.project.resume()
    assert (result.outcome, shop.found("code", 3)) == ("verified", BEFORE)
    assert [(each["by"], each["files_kept"]) for each in result.loop["rolled_back"]] == [("ann", False)]
    assert [each["rolled_back"] for each in result.loop["history"]] == [True, False]
    assert "rolled back code to version 1: ann decided it" in shop.project.backedge("show", "--all").out
    kinds = [event["type"] for event in shop.project.events()]
    assert kinds.index("rolled_back/1") < kinds.index("files_restored/1")


@pytest.mark.slow
def test_kill_9_at_any_moment_around_the_restore_changes_nothing(make: Make) -> None:
    shop = waiting(make)
    shop.project.decide("E-1", "rollback")
    for patience in (0.25, 0.32, 0.4, 0.5):
        process = shop.project.started("resume", "--json")
        time.sleep(patience)
        killed(process)
    result = shop.project.resume()
    while result.outcome == "waiting":  # an attempt that was killed with its process is in doubt
        result = shop.project.answer(result.escalation["id"], "continue")
    assert result.outcome == "verified"
    first = min(n for n in range(3, 9) if (shop.beside / f"found-code-{n}.json").exists())
    assert shop.found("code", first) == BEFORE


@pytest.mark.parametrize("word", ["keep", "restore"])
def test_a_person_is_asked_about_files_that_somebody_has_edited_since(make: Make, word: str) -> None:
    shop = waiting(make)
    (shop.folder / "cart.txt").write_text("total 5\ncount 3\nempty 7\n# by hand\n")
    result = shop.project.answer("E-1", "rollback")
    assert (result.code, shop.read("new/more.txt")) == (3, "more"), "no file is touched before somebody has answered"
    assert result.escalation["reason"] == "the rollback has restored no file yet: cart.txt: edited since"
    assert result.escalation["words"] == ["continue", "rollback", "cancel"]
    result = shop.project.answer("E-2", word)
    assert result.outcome == "verified", result.err
    found = shop.found("code", 3)
    if word == "keep":
        assert ("# by hand" in found["cart.txt"], found["new/more.txt"]) == (True, "more")
        assert shop.told("code", 3)["rolled_back"][0]["files_kept"] is True
    else:
        assert found == BEFORE
        assert any("# by hand" in patch.read_text() for patch in shop.folder.rglob("undone*.diff")), "nothing is lost"


def test_a_cascade_of_steps_goes_back_with_all_files_and_two_judges_are_compared(make: Make) -> None:
    worse = {"cart.txt": WORSE, "plan.txt": "by code"}
    shop = Shop(make, {"cart.txt": WRONG}, worse, {"cart.txt": RIGHT}, plan=True, steps={"review": {"reviews": "code"}})
    shop.edits("plan", {"plan.txt": "one"}, {"plan.txt": "two"}, {"plan.txt": "three"})
    wrong = {"description": "the plan forgets discounts", "affected_phase": "planning"}
    shop.project.script(review=[failed(wrong), passed(), passed()])
    result = shop.project.run()
    assert result.outcome == "verified", result.err
    assert shop.found("plan", 3) == {"cart.txt": WRONG, "plan.txt": "one", "tests/test_cart.txt": TESTS}
    rolled_back = [event for event in shop.project.events() if event["type"] == "rolled_back/1"]
    assert [event["versions"] for event in rolled_back] == [{"plan": 1, "code": 1, "review": 1, "test": 1}]
    assert [event["attempts"] for event in rolled_back] == [[["plan", 2], ["code", 2]]]
    states = {loop["id"]: loop["state"] for loop in result.loops}
    assert states["L-1"] == "resolved", "the review had passed the fix, which made the tests worse"
    assert result.report["reason"] == ""


def test_the_files_of_a_broken_attempt_do_not_reach_the_next_one(make: Make) -> None:
    broken = {"cart.txt": WORSE, "new.txt": "half", "!break": True}
    shop = Shop(make, broken, {"cart.txt": RIGHT})
    result = shop.project.run()
    assert result.outcome == "verified", result.err
    assert shop.found("code", 2) == {"cart.txt": WRONG, "tests/test_cart.txt": TESTS}
    error = shop.told("code", 2)["last_error"]
    assert "it broke; what it had changed was undone: cart.txt, new.txt; the change is kept in" in error
    patch = Path(error.rpartition("kept in ")[2])
    assert "+count 0" in patch.read_text()


def test_the_files_of_a_broken_attempt_stay_if_the_workflow_says_so(make: Make) -> None:
    broken = {"cart.txt": WORSE, "!break": True}
    shop = Shop(make, broken, {"more.txt": ""}, {"cart.txt": RIGHT}, on_error="keep", on_worse="rollback")
    shop.project.run()
    assert shop.found("code", 2)["cart.txt"] == WORSE
    shop = Shop(make, broken, {"more.txt": ""}, on_error="keep", code={"on_error": "restore"})
    shop.project.run()
    assert shop.found("code", 2)["cart.txt"] == WRONG, "a step can differ"


def test_the_files_of_an_interrupted_attempt_are_restored(make: Make) -> None:
    shop = Shop(make, {"cart.txt": WORSE, "!hang": True}, {"cart.txt": RIGHT})
    process = shop.project.started("run", "--json")
    until((shop.beside / "hangs").exists)
    process.send_signal(signal.SIGINT)
    assert finished(process).code == 130
    assert shop.read() == WRONG
    assert shop.project.resume().outcome == "verified"
    assert shop.found("code", 2)["cart.txt"] == WRONG


def test_the_summary_names_no_file_that_was_undone(make: Make) -> None:
    worse = {"cart.txt": WORSE, "new.txt": "more\n"}
    told = Shop(make, {"notes.txt": "first\n"}, worse, {"cart.txt": RIGHT}).project
    assert "\n  changed: 2 files, +2 −1: notes.txt +1 −0, cart.txt +1 −1\n" in told.backedge("run", "--plain").out
    assert "\n  undone, because it was rolled back:\n" in told.backedge("show", "--diff").out
    broken = {"cart.txt": WORSE, "new.txt": "half\n", "!break": True}
    told = Shop(make, broken, {"cart.txt": RIGHT}).project
    assert "\n  changed: cart.txt +1 −1\n" in told.backedge("run", "--plain").out
    assert "\n  undone, because the attempt gave no result:\n" in told.backedge("show", "--diff").out
    # What stays because a person wants it so is part of what the run changed.
    waits = waiting(make).project
    (waits.folder / "cart.txt").write_text("total 5\n# by hand\n")
    waits.answer("E-1", "rollback")
    waits.decide("E-2", "keep")
    assert "new/more.txt +1 −0" in waits.backedge("resume", "--plain").out
