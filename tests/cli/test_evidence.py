"""From the outside: what people see of the evidence of a run, and of tests that an agent changed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from backedge.adapters.agents import spawner
from backedge.core.events import EvidenceRecorded
from backedge.core.evidence.values import NOT_ENDED, Evidence
from backedge.reading.evidence_words import noticed
from tests.cli.conftest import Make
from tests.cli.project import COMMAND, PYTHON, Project, in_shell

TESTS = "total 6\ncount 3\nempty 0\n"
TOTAL = "tests/test_cart.txt::cart::total"
PRODUCT = "total 5\ncount 3\nempty 0\n"

JUDGE = """\
import sys
tests = [line.split() for line in open("tests/test_cart.txt") if line.strip()]
values = dict(line.split() for line in open("cart.txt") if line.strip())
cases = "".join(
    f'<testcase classname="cart" name="{name}" file="tests/test_cart.txt">'
    + ("" if wanted == values.get(name) else '<failure message="wrong"/>' if wanted != "skip" else "<skipped/>")
    + "</testcase>"
    for name, wanted in tests
)
open(sys.argv[1], "w").write(f"<testsuite>{cases}</testsuite>")
"""
CODER = """\
import json, os, pathlib, sys
told = json.load(sys.stdin)
for name, content in json.load(open(os.path.join(os.path.dirname(__file__), "edits.json")))[told["attempt"] - 1].items():
    if content is None:
        sys.exit("it broke")
    else:
        pathlib.Path(name).write_text(content)
print(json.dumps({"output": told["attempt"]}))
"""


def shop(make: Make, *edits: dict[str, str | None], **more: Any) -> Project:
    """A project whose coder makes these edits, one set in each attempt; tests are lines of a file."""
    project = make()
    beside = project.folder.parent / f"{project.folder.name}-tools"
    beside.mkdir()
    (beside / "judge.py").write_text(JUDGE)
    (beside / "coder.py").write_text(CODER)
    (beside / "edits.json").write_text(json.dumps(edits))
    (project.folder / "tests").mkdir()
    (project.folder / "tests/test_cart.txt").write_text(TESTS)
    (project.folder / "cart.txt").write_text(PRODUCT)
    code = {"phase": "code", "run": [*PYTHON, str(beside / "coder.py")], **more.pop("code", {})}
    test = {"tests": "code", "run": [*PYTHON, str(beside / "judge.py"), "{report}"], "report": "junit"}
    project.write({"steps": {"code": code, "test": {**test, **more.pop("test", {})}}, "sandbox": "off", **more})
    subprocess.run(["git", "init", "-q", "."], cwd=project.folder, check=True)
    return project


FIX = PRODUCT.replace("total 5", "total 6")
WEAKER = TESTS.replace("total 6", "total 5")


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def after(text: str, start: str) -> list[str]:
    """The lines from one that begins like this."""
    found = lines(text)
    first = next(number for number, line in enumerate(found) if line.startswith(start))
    return found[first:]


def test_a_run_says_what_was_in_force_and_how_many_tests_there_were(make: Make) -> None:
    project = shop(make, {"cart.txt": FIX})
    said = project.backedge("run", "--plain")
    assert said.code == 0
    told = said.err.splitlines()
    assert "baseline: test …" in told
    assert any("baseline: test … 3 tests, 1 failed, " in line for line in told)
    assert any(line.endswith("✓ test: pass (3 tests, was 3)") for line in told)
    summary = lines(said.out)
    assert summary[1] == "changed: cart.txt +1 −1"
    assert summary[2].startswith("evidence: ")
    assert summary[2].endswith(" room, no sandbox, baseline 3 tests, held not needed, environment same")


def test_a_run_that_protects_nothing_says_so_and_counts_what_a_failed_attempt_changed(make: Make) -> None:
    project = shop(make, {"tests/test_cart.txt": WEAKER, "cart.txt": None}, {}, protects=False, on_error="keep")
    said = project.backedge("run", "--plain")
    assert said.code == 0, "the test was weakened, and nobody asked"
    summary = lines(said.out)
    assert summary[1] == "changed: tests/test_cart.txt +1 −1"
    assert summary[2].endswith(" baseline 3 tests, held no, environment same")
    assert project.show().evidence["held"] == "no"


def test_json_stays_alone_on_stdout(make: Make) -> None:
    project = shop(make, {"cart.txt": FIX})
    result = project.run()
    assert (result.outcome, result.evidence["baseline"], result.evidence["held"]) == ("verified", True, "not needed")
    assert result.evidence["judges"]["test"]["tool"] is True
    assert (result.steps["test"]["tests"]["tests"], result.baselines[0]["failing"]) == (3, [TOTAL])


def test_files_that_a_judge_changes_are_named_before_anybody_works_until_it_keeps_them(make: Make) -> None:
    project = shop(make, {"cart.txt": FIX})
    judge = project.folder.parent / f"{project.folder.name}-tools" / "judge.py"
    judge.write_text(JUDGE + 'open("tests/last.txt", "a").write("again")\n')
    (project.folder / "tests/last.txt").write_text("once")
    said = project.backedge("run", "--plain")
    assert said.code == 3
    told = said.err.splitlines()
    named = next(
        number for number, line in enumerate(told) if "it changes tests/last.txt: its verdict will not" in line
    )
    assert named < next(number for number, line in enumerate(told) if "▸ code" in line)
    assert project.show().baselines[0]["changes"] == ["tests/last.txt"]
    (project.folder / "cart.txt").write_text(PRODUCT)
    project.write(
        {
            "sandbox": "off",
            "steps": {
                "code": {"phase": "code", "run": [*PYTHON, str(judge.with_name("coder.py"))]},
                "test": {
                    "tests": "code",
                    "run": [*PYTHON, str(judge), "{report}"],
                    "report": "junit",
                    "keeps": ["tests/last.txt"],
                },
            },
        }
    )
    result = project.run()
    assert (result.outcome, result.evidence["held"], result.baselines[0]["changes"]) == ("verified", "not needed", [])
    assert (project.folder / "tests/last.txt").read_text() == "onceagainagain"


def test_a_finding_that_was_red_before_is_marked(make: Make) -> None:
    project = shop(make, {"notes.txt": "x"}, {"cart.txt": FIX})
    said = project.backedge("run", "--plain")
    assert any("F-1" in line and "(failed before the run began)" in line for line in said.err.splitlines())
    assert "(failed before the run began): fixed" in project.backedge("show").out
    assert project.show().finding["failed_before"] is True


def test_a_changed_test_is_shown_with_its_difference_and_its_question(make: Make) -> None:
    project = shop(make, {"tests/test_cart.txt": WEAKER})
    said = project.backedge("run", "--plain")
    assert said.code == 3
    assert "  tests/test_cart.txt changed by code (+1 −1), in question" in said.out.splitlines()
    inbox = project.backedge("inbox").out
    shown = after(inbox, "P-1 tests/test_cart.txt changed by code (+1 −1)")
    assert shown[1] == f"{TOTAL} fails with this file as it was, and failed when the run began"
    assert [line for line in shown if line.startswith(("| -", "| +"))] == [
        "| --- a/tests/test_cart.txt",
        "| +++ b/tests/test_cart.txt",
        "| -total 6",
        "| +total 5",
    ]
    assert "approve: the changed files count as they are now" in shown
    assert any(line.startswith("reject: ") for line in shown)
    assert any(line.startswith("cancel: ") for line in shown)
    (packet,) = project.backedge("inbox", "--json").json
    (change,) = packet["changes"]
    assert (change["id"], change["file"], change["tests"]) == ("P-1", "tests/test_cart.txt", [TOTAL])
    assert "+total 5" in change["diff"]


def test_the_inbox_says_that_the_pass_of_a_reviewer_was_not_enough_and_why(make: Make) -> None:
    project = shop(make, {"tests/test_cart.txt": WEAKER})
    workflow = json.loads((project.folder / "backedge.yaml").read_text())
    workflow["steps"]["review"] = {"reviews": "code", "run": ["echo", '{"verdict": "pass"}']}
    (project.folder / "backedge.yaml").write_text(json.dumps(workflow))
    assert project.run().code == 3
    told = after(project.backedge("inbox").out, "P-1 tests/test_cart.txt changed by code")
    assert told[2] == (
        "the pass of review is not enough: the change hides a failure of the start of the run, so it needs your approval, "
        "or that of a reviewer who approves P-1 by its id"
    )
    (packet,) = project.backedge("inbox", "--json").json
    assert packet["changes"][0]["passed_by"] == ["review"]


def test_the_inbox_names_no_reviewer_as_an_answer_where_only_people_approve(make: Make) -> None:
    project = shop(make, {"tests/test_cart.txt": WEAKER})
    workflow = json.loads((project.folder / "backedge.yaml").read_text())
    workflow["on_protected"] = "ask"
    workflow["steps"]["review"] = {"reviews": "code", "run": ["echo", '{"verdict": "pass"}']}
    (project.folder / "backedge.yaml").write_text(json.dumps(workflow))
    assert project.run().code == 3
    (packet,) = project.backedge("inbox", "--json").json
    assert [(each["file"], each["passed_by"]) for each in packet["changes"]] == [("tests/test_cart.txt", [])]
    assert "by its id" not in project.backedge("inbox").out


def test_a_person_approves_and_the_result_says_so(make: Make) -> None:
    project = shop(make, {"tests/test_cart.txt": WEAKER})
    project.run()
    result = project.answer("E-1", "approve", "--note", "five is right", "--by", "ann")
    assert (result.code, result.outcome, result.protected[0]["approved"]) == (0, "verified", "ann")
    told = project.backedge("show").out
    assert "P-1 tests/test_cart.txt changed by code (+1 −1), approved by ann" in told
    assert "✓ ann approved the change of tests/test_cart.txt" in told


def test_a_person_rejects_and_the_coder_fixes_the_code(make: Make) -> None:
    project = shop(make, {"tests/test_cart.txt": WEAKER}, {"tests/test_cart.txt": TESTS, "cart.txt": FIX})
    project.run()
    result = project.answer("E-1", "reject", "--note", "six is right", "--by", "ann")
    assert (result.code, result.outcome, result.protected) == (0, "verified", [])
    told = project.backedge("show").out
    assert "✗ ann rejected the change of tests/test_cart.txt" in told
    assert "six is right" in told


def test_a_long_difference_is_cut_in_the_inbox_and_whole_in_show_diff(make: Make) -> None:
    many = "".join(f"new{number} 1\n" for number in range(100))
    project = shop(make, {"tests/test_cart.txt": WEAKER + many, "cart.txt": PRODUCT + many})
    project.run()
    inbox = project.backedge("inbox").out
    assert "more lines: backedge show " in inbox and "new99" not in inbox
    (change,) = project.backedge("inbox", "--json").json[0]["changes"]
    assert "+new99 1" in change["diff"]
    assert "+new99 1" in project.backedge("show", "--diff").out


@pytest.mark.parametrize(
    ("start", "edited"),
    [
        (f"{PRODUCT}-- a/tests/test_cart.txt\n", PRODUCT + "".join(f"new{number} 1\n" for number in range(100))),
        (PRODUCT, PRODUCT + "".join(f"new{number} 1\n" for number in range(40))),
    ],
    ids=["a line that looks like its head", "its first lines are shown"],
)
def test_show_diff_has_all_of_a_changed_test_whatever_else_is_shown(make: Make, start: str, edited: str) -> None:
    many = "".join(f"more{number} skip\n" for number in range(60))
    project = shop(make, {"tests/test_cart.txt": WEAKER + many, "cart.txt": edited})
    (project.folder / "cart.txt").write_text(start)
    project.run()
    told = lines(project.backedge("show", "--diff").out)
    assert "-total 6" in told and "+more59 skip" in told


def test_show_diff_has_a_short_difference_of_a_test_once(make: Make) -> None:
    project = shop(make, {"tests/test_cart.txt": WEAKER, "cart.txt": PRODUCT + "more 1\n"})
    project.run()
    assert lines(project.backedge("show", "--diff").out).count("-total 6") == 1


def test_show_diff_has_a_test_that_no_attempt_changed(make: Make) -> None:
    project = shop(make, {"cart.txt": PRODUCT + "more 1\n"})
    workflow = json.loads((project.folder / "backedge.yaml").read_text())
    workflow["steps"]["hold"] = {"phase": "code", "needs": ["code"], "agent": "human"}
    workflow["steps"]["test"]["needs"] = ["hold"]
    (project.folder / "backedge.yaml").write_text(json.dumps(workflow))
    project.run()
    (project.folder / "tests/test_cart.txt").write_text(WEAKER)
    result = project.answer("E-1", "resolve", "--option", "go on")
    assert [(each["file"], each["step"]) for each in result.protected] == [("tests/test_cart.txt", "")]
    told = after(project.backedge("show", "--diff").out, "changed by no attempt: by a person, or by another program")
    assert told[1] == "protected: tests/test_cart.txt, compared with the start of the run"
    assert "-total 6" in told and "+total 5" in told
    entry = project.backedge("show", "--diff", "--json").json[-1]
    assert (entry["step"], entry["attempt"]) == ("", 0)
    assert [each["file"] for each in entry["protected"]] == ["tests/test_cart.txt"]


def test_show_diff_has_first_versions_failed_attempts_and_what_was_undone(make: Make) -> None:
    project = shop(
        make,
        {"cart.txt": FIX, "tests/test_cart.txt": WEAKER},
        {"cart.txt": FIX + "more 1\n"},
        code={"writes": ["cart.txt"]},
    )
    assert project.run().outcome == "verified"
    told = project.backedge("show", "--diff").out
    assert lines(told)[0] == "code has no version, attempt 1"
    assert "undone, because the attempt gave no result:" in lines(told)
    assert "-total 6" in lines(told) and "+total 5" in lines(told)
    broken, first = project.backedge("show", "--diff", "--json").json
    assert (broken["new_version"], broken["files_diff"][-2:]) == (False, [" count 3", " empty 0"])
    assert "+total 6" in broken["files_diff"] and "+total 5" in broken["undone"]
    assert (first["version"], first["files_diff"][-1]) == (1, "+more 1")


def test_show_diff_has_what_an_agent_changed_before_it_broke(make: Make) -> None:
    project = shop(make, {"cart.txt": FIX, "": None}, {"notes.txt": "x"}, on_error="keep")
    assert project.run().outcome == "verified"
    told = lines(project.backedge("show", "--diff").out)
    assert told[0] == "code has no version, attempt 1" and told[1].startswith("broke: ")
    assert "+total 6" in told


def test_the_summary_counts_all_changed_files_not_only_those_whose_lines_are_known(make: Make) -> None:
    noise: dict[str, str | None] = {f"a{number}.txt": "x\n" for number in range(60)}
    project = shop(make, {**noise, "cart.txt": FIX})
    told = after(project.backedge("run", "--plain").out, "changed:")[0]
    assert told.startswith("changed: 61 files, +50 −0 in 50 of them: ")
    assert told.endswith(" … and 56 more")


def test_show_diff_names_the_files_without_git_and_without_writes(make: Make) -> None:
    project = shop(make, {"cart.txt": FIX, "tests/test_cart.txt": TESTS + "more 1\n"}, {"cart.txt": FIX + "more 1\n"})
    subprocess.run(["rm", "-r", ".git"], cwd=project.folder, check=True)
    assert project.run().code in (0, 3)
    told = lines(project.backedge("show", "--diff").out)
    assert "cart.txt" in told and "+more 1" in told


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "changed tests and configuration of judges: a reviewer answers for them, else a person"),
        ({"on_protected": "ask"}, "changed tests and configuration of judges: a person answers for them"),
        ({"protects": False}, "changed tests and configuration of judges: not protected"),
        ({"room": "off"}, "judges run in the workspace itself: test"),
        ({"room": "copy"}, "judges run in a room of their own (copy): test"),
        ({"baseline": False}, "baseline of the start: none"),
    ],
)
def test_check_says_what_would_be_in_force(make: Make, more: dict[str, Any], said: str) -> None:
    project = shop(make, {}, **more)
    told = lines(project.backedge("check").out)
    assert said in told
    assert "agents run without a sandbox: code" in told
    found = project.backedge("check", "--json").json["evidence"]
    assert found["sandbox"] == {"code": "none"}
    assert list(found["room"]) == ["test"]


def test_a_workflow_without_tools_says_that_nothing_was_measured(make: Make) -> None:
    run = [*PYTHON, "-c", """print('{"verdict": "pass"}')"""]
    project = make({"steps": {"code": {"phase": "code"}, "review": {"reviews": "code", "run": run}}, "sandbox": "off"})
    assert project.run().outcome == "verified"
    assert "In force" not in project.backedge("check").out
    assert "evidence: no tool judged; the verdicts are what agents or people said" in project.backedge("show").out


class TestHeldOut:
    def test_people_see_what_it_found_and_the_producer_does_not(self, make: Make) -> None:
        project = shop(make, {"notes.txt": "x"}, {"cart.txt": FIX}, test={"hidden": True})
        result = project.run()
        assert (result.outcome, result.finding["test"]) == ("verified", TOTAL)
        assert "cart::total" in project.backedge("show").out
        attempt = next((project.folder / ".backedge" / "attempts").glob("*/code-2/briefing.json"), None)
        told = attempt.read_text() if attempt else ""
        assert "a held-out check failed" in told and "cart::total" not in told

    def test_check_warns_where_agents_can_read_its_files(self, make: Make) -> None:
        project = shop(make, {}, test={"hidden": True, "run": ["sh", "tests/secret.sh"], "report": "exitcode"})
        (project.folder / "tests/secret.sh").write_text("exit 0\n")
        warnings = project.backedge("check", "--json").json["warnings"]
        assert any("agents can read tests/secret.sh: keep its files outside the workspace" in each for each in warnings)
        assert any("nothing keeps code from reading its files" in each for each in warnings)


class TestCanary:
    def judged(self, make: Make, command: str, **edits: str) -> Any:
        """A judge that runs what the coder wrote, in this way."""
        edit: dict[str, str | None] = {"product.sh": "true\n", **edits}
        judge = {"run": ["sh", "judge.sh"], "report": "exitcode", "canary": True}
        project = shop(make, *[edit] * 9, limits={"rounds_per_loop": 1}, test=judge)
        (project.folder / "judge.sh").write_text(f"sleep 0.05\n{command}\n")
        (project.folder / "product.sh").write_text("false\n")
        return project.run()

    def test_a_judge_that_notices_passes(self, make: Make) -> None:
        result = self.judged(make, "sh product.sh")
        assert (result.outcome, result.steps["test"]["notes"]) == ("verified", [])

    def test_a_judge_that_does_not_notice_is_blind(self, make: Make) -> None:
        result = self.judged(make, "sh product.sh || true")
        assert (result.code, result.finding["severity"]) == (3, "high")
        assert result.finding["description"] == "the judge does not notice a broken product.sh"

    def test_a_file_that_it_does_not_load_is_only_named(self, make: Make) -> None:
        result = self.judged(make, "sh product.sh", **{"other.py": "x = 1\n"})
        assert result.outcome == "verified"
        assert result.steps["test"]["notes"] == ["test does not load other.py: its pass says nothing about it"]

    def test_it_is_for_exit_codes_and_needs_a_room(self, make: Make) -> None:
        project = shop(make, {}, test={"canary": True})
        assert "is for judges with `report: exitcode`" in project.refused("check")
        other = shop(make, {}, test={"canary": True, "run": ["true"], "report": "exitcode", "room": "off"})
        assert "needs a room to break files in" in other.refused("check")


LEAVES = "(sleep 61 >/dev/null 2>&1 &) ; sleep 0.2; "


def test_the_journal_names_the_processes_that_an_attempt_left_and_that_were_ended(make: Make) -> None:
    """Of a step that ends well, of one that breaks, and of a tool."""
    broken = f"[ -e tried ] || {{ touch tried; {LEAVES} exit 1; }}; {LEAVES} echo '{{}}'"
    lint = {"reviews": "code", "run": ["sh", "-c", f"{LEAVES} true"], "report": "exitcode"}
    code = {"phase": "code", "run": ["sh", "-c", broken], "on_error": "keep"}
    project = make({"sandbox": "off", "steps": {"code": code, "lint": lint}})
    said = project.backedge("run")
    assert said.code == 0, said
    assert said.err.count("! code left a process, which was ended: sleep 61") == 2
    assert "! lint left a process, which was ended: sleep 61" in said.err
    seen = [event for event in project.events() if event["type"].startswith("evidence_recorded")]
    ended = [(event["step"], event["attempt"], event["evidence"].get("ended")) for event in seen]
    assert ended == [("code", 1, ["sleep 61"]), ("code", 2, ["sleep 61"]), ("lint", 1, ["sleep 61"])]
    assert "lint: left a process, which was ended: sleep 61" in project.backedge("show").out
    assert project.show().steps["code"]["ended"] == ["sleep 61"]


def test_a_process_that_could_not_be_ended_is_named_as_such() -> None:
    assert spawner.NOT_ENDED == NOT_ENDED
    event = EvidenceRecorded(0.0, "code", 1, Evidence(ended=("sleep 61", f"dd{NOT_ENDED}")))
    assert list(noticed(event, ())) == [
        "  ! code left a process, which was ended: sleep 61",
        "  ! code left a process that could not be ended: dd",
    ]


@pytest.mark.parametrize("where", ["run.log", "logs/run.log"])
def test_what_backedge_prints_to_a_file_of_the_workspace_is_nobodys_work(make: Make, where: str) -> None:
    """A reviewer must not take it back, and a coder that may not write there has not written it."""
    project = make(
        {
            "steps": {
                "code": {"phase": "code", "writes": ["src"]},
                "review": {"reviews": "code"},
                "manual": {"phase": "code", "writes": ["docs"]},
            }
        },
        code=[{"output": 1}],
        manual=[{"output": 1, "!wait": "../go"}],
        review=[{"verdict": "pass", "!sleep": 0.5}],
    )
    (project.folder / "logs").mkdir()
    # The line about the manual is printed while the reviewer looks.
    go = "until grep -q ' review' ../project.seen/executions; do sleep 0.01; done; sleep 0.1; touch ../go"
    done = in_shell(f"git init -q . && ({go}) & {COMMAND} run > {where} 2>&1", project.folder)
    said = (project.folder / where).read_text()
    assert (done.returncode, "verified: 3 attempts" in said, "undone" in said) == (0, True, False), said


@pytest.mark.parametrize(
    ("said", "code", "tool"),
    [
        ("sh: 1: jest: not found", 127, "jest"),
        ("check.sh: line 3: vitest: command not found", 127, "vitest"),
        ("make: pytest: No such file or directory", 2, "pytest"),
        ("/usr/bin/env: ‘mocha’: No such file or directory", 127, "mocha"),
        ("/usr/bin/python3: No module named flake8", 1, "flake8"),
        ("Error: Cannot find module '/shop/node_modules/jest/bin/jest.js'", 1, "jest"),
    ],
)
@pytest.mark.parametrize("report", ["exitcode", "jest"])
def test_a_run_stops_before_the_work_begins_if_a_tool_is_not_installed(
    make: Make, said: str, code: int, tool: str, report: str
) -> None:
    judge = {"run": ["sh", "-c", 'echo "$0" >&2; exit "$1"', said, str(code)], "report": report}
    project = shop(make, {"cart.txt": FIX}, test=judge)
    found = project.backedge("run")
    assert found.code == 2
    problem = (
        f"backedge: the judge 'test' cannot run: there is no {tool}: install it, or say `installs: true` at the step"
    )
    assert problem in found.err
    assert (project.folder / "cart.txt").read_text() == PRODUCT


def test_a_tool_may_be_missing_until_a_step_has_installed_it(make: Make) -> None:
    script = 'grep -q "total 6" cart.txt || { echo "sh: 1: jest: not found"; exit 127; }; echo "2 passed in 0.1s"'
    judge = {"run": ["sh", "-c", script], "report": "exitcode"}
    project = shop(make, {"cart.txt": FIX}, code={"installs": True}, test=judge)
    assert project.run().outcome == "verified"


@pytest.mark.parametrize(
    "said", ["sh: 1: shop: not found", "sh: 1: ./jest: not found", "1 passed in 0.1s\nsh: 1: jest: not found"]
)
def test_a_program_that_is_still_to_be_written_is_not_a_missing_tool(make: Make, said: str) -> None:
    script = 'grep -q "total 6" cart.txt || { echo "$0"; exit 127; }; echo "2 passed in 0.1s"'
    project = shop(make, {"cart.txt": FIX}, test={"run": ["sh", "-c", script, said], "report": "exitcode"})
    assert project.run().outcome == "verified"


def test_a_run_stops_before_the_work_begins_if_a_tool_refuses_its_arguments(make: Make) -> None:
    judge = {"run": [sys.executable, "-m", "pytest", "--no-such-option"], "report": "exitcode"}
    project = shop(make, {"cart.txt": FIX}, test=judge)
    found = project.backedge("run")
    assert found.code == 2
    assert "backedge: the judge 'test' cannot run: " in found.err
    assert "error: unrecognized arguments: --no-such-option" in found.err
    assert (project.folder / "cart.txt").read_text() == PRODUCT
