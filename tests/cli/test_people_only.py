"""Decisions are for people: an agent that runs `backedge` on its own journal may look and raise feedback, no more."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Make
from tests.cli.project import COMMAND, Project, failed, passed

FORBIDDEN = {
    "decide": "decide E-1 accept",
    "cancel": "cancel {run}",
    "resume": "resume",
    "run": "run",
    "pause": "pause",
    "acknowledge": "feedback acknowledge L-1",
    "ack": "feedback ack L-1",
    "reclassify": "feedback reclassify F-1 --phase code",
    "unblock": "unblock first",
    "prune": "prune --keep 0d",
    "import": "import some.jsonl",
}
WAYS = {
    "as it is": "{call}",
    "without its environment": "env -i {call}",
    "without our variables": "env -u BACKEDGE_RUN -u BACKEDGE_STEP -u BACKEDGE_ATTEMPT -u BACKEDGE_BRIEFING {call}",
    "as a daemon": "(env -i setsid sh -c '{call}; touch called' &) & while ! [ -e called ]; do sleep 0.02; done",
    "through a link to the journal": "ln -s .backedge/journal.db other.db; env -i {call} --journal other.db",
    "through a hard link": "ln .backedge/journal.db other.db; env -i {call} --journal other.db",
    "without its records": "rm -f .backedge/attempts/*/*/process.json; env -i {call}",
}


def called(make: Make, line: str, step: str = "code") -> tuple[Project, str]:
    """Have an agent run a line of shell, and return what that printed on stderr."""
    script = f"{{ {line} ; }} 2> said; echo $? >> said; echo '{{}}'"
    project = make({"steps": {step: {"phase": "code", "run": ["sh", "-c", script]}}})
    project.run()
    return project, (project.folder / "said").read_text()


@pytest.mark.parametrize("command", FORBIDDEN.values(), ids=FORBIDDEN)
def test_commands_for_people_refuse_inside_an_attempt(make: Make, command: str) -> None:
    _, said = called(make, f"{COMMAND} {command}")
    assert "decisions are for people; this is attempt 1 of code" in said
    assert said.endswith("\n2\n")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_they_refuse_however_the_agent_hides(make: Make, way: str) -> None:
    _, said = called(make, way.format(call=f"{COMMAND} decide E-1 accept"))
    assert "decisions are for people; this is attempt 1 of code" in said


@pytest.mark.parametrize("room", ["auto", "copy", "off"])
def test_a_tool_judge_cannot_decide_either(make: Make, tmp_path: Path, room: str) -> None:
    journal = f"{tmp_path}/project/.backedge/journal.db"
    judge = {
        "tests": "code",
        "run": ["sh", "-c", f"{COMMAND} decide E-1 accept --journal {journal} 2> said"],
        "report": "exitcode",
        "keeps": ["said"],
        "room": room,
    }
    project = make({"steps": {"code": {"phase": "code"}, "test": judge}}, code=[{}])
    project.backedge("run", "--json")
    said = (project.folder / "said").read_text()
    assert "decisions are for people; this is attempt" in said or (room != "off" and "there is no journal" in said)


@pytest.mark.parametrize(
    "command", ["show", "runs", "inbox", "audit verify", "check", "run --dry-run", "feedback list"]
)
def test_looking_is_allowed(make: Make, command: str) -> None:
    _, said = called(make, f"{COMMAND} {command} > /dev/null")
    assert said.endswith("0\n") and "decisions are for people" not in said


def test_other_journals_are_not_affected(make: Make, tmp_path: Path) -> None:
    other = Project(tmp_path / "other", {"steps": {"a": {"phase": "code"}}}, a=[{"output": 1}])
    _, said = called(make, f"(cd {other.folder} && {COMMAND} run --quiet && {COMMAND} resume)")
    assert said.endswith("0\n") and "decisions are for people" not in said
    assert other.backedge("runs", "--json").json[0]["outcome"] == "done"


def test_a_person_who_looks_into_the_folder_of_an_attempt_is_still_a_person(make: Make) -> None:
    project = make({"limits": {"errors_in_a_row": 1}, "steps": {"code": {"phase": "code"}}}, code=[{"!exit": 1}])
    project.run()
    (folder,) = project.folder.glob(".backedge/attempts/*/*")
    os.chdir(folder)
    assert project.backedge("decide", "E-1", "cancel").code == 0


def test_feedback_of_an_attempt_speaks_as_its_step(make: Make) -> None:
    asks = f"{COMMAND} feedback raise --kind fix_request --to plan --message 'no units'"
    script = f"[ $BACKEDGE_ATTEMPT = 1 ] && {asks}; echo '{{}}'"
    steps = {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"], "run": ["sh", "-c", script]}}
    project = make({"steps": steps}, plan=[{"output": 1}, {"output": 2}])
    loop = project.run().loop
    assert (loop["source"], loop["targets"], loop["state"]) == ("code", ["plan"], "resolved")


@pytest.mark.parametrize("extra", ["--from human", "--from plan", "--run r-of-another"])
def test_feedback_of_an_attempt_cannot_speak_as_somebody_else(make: Make, extra: str) -> None:
    raised = f"{COMMAND} feedback raise --kind fix_request --to code --message no {extra}"
    project, said = called(make, f"BACKEDGE_STEP=human {raised}")
    assert "attempt 1 of code in run 'r-" in said and "cannot speak" in said and said.endswith("2\n")
    assert project.backedge("feedback", "list").out == ""


def test_the_kept_workflow_is_that_of_the_journal(make: Make) -> None:
    workflow = {"limits": {"rounds_per_loop": 1}, "steps": {"code": {"phase": "code"}, "review": {"reviews": "code"}}}
    project = make(workflow, code=[{"output": 1}], review=[failed("bad"), failed("bad"), failed("bad"), passed()])
    run = project.run().run
    kept = project.folder / ".backedge" / "runs" / run / "backedge.yaml"
    before = kept.read_bytes()
    said = json.dumps({"verdict": "pass"})
    kept.write_text(
        json.dumps(
            {
                "name": "w",
                "steps": {
                    "code": {"phase": "code", "run": ["echo", "{}"]},
                    "review": {"reviews": "code", "run": ["echo", said]},
                },
            }
        )
    )
    project.backedge("decide", "E-1", "continue", "--rounds", "1")
    result = project.resume()
    assert result.outcome == "waiting", "the reviewer is still the one that the run started with"
    assert "the copy of backedge.yaml that run" in result.err and "the journal's version is used" in result.err
    assert kept.read_bytes() == before
