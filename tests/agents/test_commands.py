"""The agent protocol, with real processes in shell, Python and JavaScript."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.agents.file_name import file_name
from backedge.core.briefing import BriefedFinding, EarlierRound, FeedbackForAttempt, LoopResult, Request
from backedge.core.errors import AgentError, WorkflowError
from backedge.core.model import Option, Severity, Usage
from backedge.engine.protocol import Finding, Outcome
from tests.agents.parts import agent, files_of, outcome_of, python, result_of, shell, told

LANGUAGES = {
    "shell": ["sh", "-c", 'cat "$BACKEDGE_BRIEFING" >&2; echo \'{"output": {"by": "me"}}\' > "$BACKEDGE_OUTCOME"'],
    "python": python(
        "import json, os, sys\n"
        "briefing = json.load(sys.stdin)\n"
        "print(json.dumps(briefing), file=sys.stderr)\n"
        "json.dump({'output': {'by': 'me'}}, open(os.environ['BACKEDGE_OUTCOME'], 'w'))"
    ),
}
if shutil.which("node"):
    LANGUAGES["javascript"] = [
        "node",
        "-e",
        "const fs = require('fs'); const briefing = fs.readFileSync(0, 'utf8'); console.error(briefing);"
        "console.log(JSON.stringify({output: {by: 'me'}}))",
    ]


@pytest.mark.parametrize("argv", LANGUAGES.values(), ids=LANGUAGES)
def test_a_command_in_any_language_reads_its_briefing_and_reports_its_outcome(argv: list[str], tmp_path: Path) -> None:
    result = result_of(tmp_path, argv, told(input={"story": "läuft"}))
    assert result.outcome == Outcome(output={"by": "me"})
    assert json.loads(result.log)["input"] == {"story": "läuft"}, "what it says on stderr is the log"


def test_the_briefing_has_every_key_even_if_it_is_empty(tmp_path: Path) -> None:
    briefing = outcome_of(tmp_path, python("import sys; print('{\"output\":', sys.stdin.read(), '}')")).output
    assert briefing == {
        "run": "r-1",
        "input": None,
        "step": "code",
        "phase": "code",
        "attempt": 1,
        "round": 0,
        "mode": "work",
        "inputs": {},
        "based_on": {},
        "feedback": {
            "findings": [],
            "requests": [],
            "resolutions": [],
            "advice": [],
            "verdicts": [],
            "answered": [],
            "unverified": [],
            "unverified_requests": [],
        },
        "verify": [],
        "changes": {"protected": [], "files": [], "tests": {}, "notes": []},
        "previous": None,
        "history": [],
        "rolled_back": [],
        "tried": [],
        "rules": {
            "targets": [],
            "phases": [],
            "passes_if": "",
            "kinds": [],
            "writes": None,
            "judged_by": [],
            "agreement": "",
            "findings": [],
            "confidence": False,
        },
        "steps": [],
        "limits_left": {},
        "last_error": "",
        "agent": "",
        "session": None,
        "scratchpad": None,
        "progress": None,
    }


def test_the_briefing_has_all_feedback_with_every_field_of_a_finding(tmp_path: Path) -> None:
    issue = BriefedFinding("F-1", "no login", Severity.CRITICAL, "review", persistent=True)
    share = FeedbackForAttempt(
        (issue,),
        (Request("L-1", "fix_request", "test", "mend it", Severity.HIGH, options=(Option("polling"),)),),
        (LoopResult("L-2", "context_request", "resolved", answers={"plan": {"a": [1]}}),),
        ("use a queue",),
    )
    given = told(
        2,
        mode="rework",
        round=1,
        feedback=share,
        verify=(issue,),
        history=(EarlierRound("L-1", 1, ("F-1",)),),
        left={"tokens": 5.0},
    )
    said = outcome_of(
        tmp_path,
        python("import os; print('{\"output\":', open(os.environ['BACKEDGE_BRIEFING']).read(), '}')"),
        given,
        views=lambda run: {"scratchpad": f"{run}.md", "progress": "progress.json"},
    ).output
    [finding] = said["feedback"]["findings"]
    assert finding["persistent"] is True
    assert finding["fix_authored"] is False, "a default is said, not left out"
    assert finding["file"] is None
    assert said["feedback"]["requests"][0]["options"] == [
        {"option": "polling", "effort": "", "impact": "", "rework": [], "accept": False}
    ]
    assert said["feedback"]["resolutions"][0]["answers"] == {"plan": {"a": [1]}}
    assert said["feedback"]["advice"] == ["use a queue"]
    assert said["verify"] == [finding]
    assert said["history"] == [{"loop": "L-1", "round": 1, "findings": ["F-1"], "message": ""}]
    assert said["limits_left"] == {"tokens": 5.0}
    assert (said["scratchpad"], said["progress"]) == ("r-1.md", "progress.json")


def test_a_command_knows_its_attempt_from_its_environment_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_PARENT", "kept")
    monkeypatch.setenv("BACKEDGE_STEP", "of somebody else")
    code = "import json, os; print(json.dumps({'output': dict(os.environ)}))"
    env = outcome_of(tmp_path, python(code), told(3), env={"MINE": "yes", "BACKEDGE_RUN": "forged"}).output
    assert (env["BACKEDGE_RUN"], env["BACKEDGE_STEP"], env["BACKEDGE_ATTEMPT"]) == ("r-1", "code", "3")
    assert (env["FROM_PARENT"], env["MINE"]) == ("kept", "yes")
    assert "BACKEDGE_REPORT" not in env
    assert os.path.dirname(env["BACKEDGE_BRIEFING"]) == os.path.dirname(env["BACKEDGE_OUTCOME"])


def test_it_runs_in_its_workspace(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    said = outcome_of(tmp_path / "inner", python("import json, os; print(json.dumps({'output': os.getcwd()}))"))
    assert said.output == str((tmp_path / "inner").resolve())


def test_placeholders_are_filled_in_once_and_other_braces_stay(tmp_path: Path) -> None:
    code = "import json, sys; print(json.dumps({'output': sys.argv[1:]}))"
    words = [
        "{run}",
        "{step}-{attempt}",
        "{unknown} {} {{run}} ${run}",
        "${HOME} $(id) `id`",
        "{briefing}",
        "{outcome}",
    ]
    said = outcome_of(tmp_path, [*python(code), *words], told(2, run="{step}")).output
    folder = files_of(tmp_path, told(2, run="{step}"))
    assert said == [
        "{step}",
        "code-2",
        "{unknown} {} {{run}} ${run}",
        "${HOME} $(id) `id`",
        str(folder.briefing),
        str(folder.outcome),
    ]


def test_the_outcome_file_takes_precedence_over_stdout(tmp_path: Path) -> None:
    code = 'echo \'{"output": "printed"}\'; echo \'{"output": "filed"}\' > "$BACKEDGE_OUTCOME"'
    assert outcome_of(tmp_path, shell(code)).output == "filed"


def test_an_empty_outcome_file_counts_as_missing(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, shell('echo \'{"output": 1}\'; echo > "$BACKEDGE_OUTCOME"')).output == 1


def test_an_empty_object_is_a_success_without_output(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, shell("echo {}")) == Outcome()


def test_every_field_of_an_outcome_is_read(tmp_path: Path) -> None:
    said: dict[str, Any] = {
        "output": {"a": [1, None]},
        "summary": "done",
        "verdict": "needs_improvement",
        "findings": [{"description": "x", "severity": "minor", "affected_phase": "planning", "line": 3}],
        "resolutions": [{"finding": "F-3", "status": "fixed"}],
        "usage": {"cost_usd": 0.5, "tokens_in": 7},
    }
    outcome = outcome_of(tmp_path, python(f"import json; print(json.dumps({said!r}))"), judges=True)
    assert outcome.output == {"a": [1, None]}
    assert outcome.verdict == "needs_improvement"
    assert outcome.findings == [Finding("x", "minor", affected_phase="planning", line=3)]
    assert outcome.usage == Usage(0.5, 7)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("true", r"no outcome: expected JSON in \$BACKEDGE_OUTCOME or as the last object on stdout; got nothing"),
        ("echo 'all went well'", "got 'all went well'"),
        ("printf '\\033[31mred\\000 \\033]0;title\\007'; seq 100", "got 'red 1 2 3"),
        ("echo '{\"output\": {}'", "ends inside the object that begins at byte 0"),
        ("printf '{\"output\": 1,' > $BACKEDGE_OUTCOME", r"the outcome file is not JSON: .*line 1 column 1[34]"),
        (
            "echo nonsense > $BACKEDGE_OUTCOME; echo '{}'",
            "the outcome file is not JSON: .*line 1 column 1 .*got 'nonsense'",
        ),
        ("echo '[]' > $BACKEDGE_OUTCOME", "not understood: Expected `object`, got `array`"),
        ('echo \'{"verdict": "APPROVED"}\'', "verdict"),
        ("echo '{\"outptu\": 1}'", "unknown field `outptu`"),
        ('echo \'{"findings": [{"description": 1}]}\'', r"findings\[0\]\.description|\$\.findings"),
        ("echo '{\"output\": NaN}'", "object that begins at byte 0 is not JSON: NaN is not a number"),
        ("mkfifo $BACKEDGE_OUTCOME", "the outcome file is not a regular file"),
        ("mkdir $BACKEDGE_OUTCOME", "the outcome file is not a regular file"),
        ("head -c 5000 /dev/zero > $BACKEDGE_OUTCOME", "the outcome file has 5,000 bytes, at most 2,000 are read"),
        ("echo oops >&2; exit 3", r"the command failed \(exit code 3\): oops"),
        ("echo '{}'; exit 1", r"the command failed \(exit code 1\): {}"),
        ("echo '{}'; kill -KILL $$", "the command was ended by SIGKILL"),
        ("echo '{}'; kill -SEGV $$", "the command was ended by SIGSEGV"),
    ],
)
def test_an_invalid_outcome_is_an_error_that_quotes_it(code: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=problem) as caught:
        outcome_of(tmp_path, shell(code), max_output=2_000)
    assert "\x1b" not in str(caught.value)


def test_the_error_of_a_failed_command_shows_the_end_of_its_log_without_control_characters(tmp_path: Path) -> None:
    with pytest.raises(AgentError) as caught:
        outcome_of(
            tmp_path,
            python("import sys; [print(f'\\x1b[1mline {n}', file=sys.stderr) for n in range(50)]; sys.exit(2)"),
        )
    assert str(caught.value).endswith("line 48\nline 49")
    assert "line 10" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert caught.value.log.count(b"\n") == 50, "the whole is kept as the log"


@pytest.mark.parametrize(
    ("said", "then"),
    [
        ('{"usage": {"cost_usd": 2.5}}', "exit 1"),
        ('{"usage": {"cost_usd": 2.5}, "outputs": 1}', "exit 1"),
        ('{"usage": {"cost_usd": 2.5}, "outputs": 1}', "exit 0"),
        ('{"usage": {"cost_usd": 2.5}, "output": {"units": 5}}', "exit 0"),
    ],
    ids=["failed", "failed and not understood", "not understood", "misfit"],
)
def test_the_usage_of_a_failed_attempt_counts(tmp_path: Path, said: str, then: str) -> None:
    with pytest.raises(AgentError) as caught:
        outcome_of(tmp_path, shell(f"echo '{said}'; {then}"), schema=SHAPE)
    assert caught.value.usage == Usage(2.5)


@pytest.mark.parametrize("said", ['{"usage": {"cost_usd": -1}}', '{"usage": 5}'])
def test_an_invalid_usage_is_an_error_and_counts_nothing(tmp_path: Path, said: str) -> None:
    with pytest.raises(AgentError, match="usage") as caught:
        outcome_of(tmp_path, shell(f"echo '{said}'"))
    assert caught.value.usage is None


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (None, "there is no such program; install it, or correct `run`"),
        ("#!/bin/sh\necho {}\n", "not executable; run chmod"),
        ("#!/no/such/interpreter\n", "the interpreter in its #! line does not exist"),
        ("\0\1\2", "not a program and has no #! line"),
    ],
)
def test_a_command_that_cannot_be_started_says_why(make: str | None, problem: str, tmp_path: Path) -> None:
    if make is not None:
        (tmp_path / "tool").write_text(make)
        if "not executable" not in problem:
            (tmp_path / "tool").chmod(0o755)
    with pytest.raises(AgentError, match=problem):
        outcome_of(tmp_path, ["./tool"])


def test_a_missing_program_or_workspace_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="no-such-program-at-all"):
        outcome_of(tmp_path, ["no-such-program-at-all"])
    with pytest.raises(AgentError, match="is not a folder"):
        outcome_of(tmp_path / "gone", ["true"], state=tmp_path / ".backedge")
    with pytest.raises(AgentError, match="cannot start 'echo'"):
        outcome_of(tmp_path, ["echo", "a\0b"], told(2))


def test_a_command_is_checked_when_it_is_declared(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="empty"):
        agent(tmp_path, [])
    with pytest.raises(ValueError, match="no report file"):
        agent(tmp_path, ["pytest", "--junitxml={report}"])
    with pytest.raises(ValueError, match="leaves the workspace"):
        agent(tmp_path, ["true"], writes=["../x"])


SHAPE = {
    "type": "object",
    "required": ["units"],
    "properties": {"units": {"type": "array", "items": {"type": "string"}}},
}


def test_inputs_are_checked_against_accepts(tmp_path: Path) -> None:
    checked = agent(tmp_path, ["true"], accepts={"plan": SHAPE})
    assert checked.input_errors({"plan": {"units": ["a"]}, "other": 1}) == []
    assert checked.input_errors({}) == [], "a producer that was passed over has no output"
    assert checked.input_errors({"plan": {"units": ["a", 2]}}) == [("plan", "/units/1", "2 is not of type 'string'")]
    [(producer, pointer, problem)] = checked.input_errors({"plan": {}})
    assert (producer, pointer, problem) == ("plan", "", "'units' is a required property")


def test_an_output_that_violates_the_schema_is_an_error_of_the_agent(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="does not match the step's schema: /units: 5 is not of type 'array'"):
        outcome_of(tmp_path, shell('echo \'{"output": {"units": 5}}\''), schema=SHAPE)
    answer = outcome_of(tmp_path, shell("echo '{\"answer\": 5}'"), told(2, mode="answer"), schema=SHAPE)
    assert answer.answer == 5, "an answer is no output"


def test_an_invalid_schema_is_a_workflow_error_and_nothing_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match="/type"):
        agent(tmp_path, ["true"], accepts={"plan": {"type": "objekt"}}).input_errors({"plan": 1})
    remote = agent(tmp_path, ["true"], accepts={"plan": {"$ref": "http://127.0.0.1:9/schema.json"}})
    with pytest.raises(WorkflowError, match=r"127\.0\.0\.1"):
        remote.input_errors({"plan": 1})


def test_file_names_of_runs_and_steps_are_safe_and_never_the_same() -> None:
    names = ["a", "A", "a/b", "a_b", "..", ".", "", "a\0b", "a b", "ä", "x" * 300, "x" * 301, "-rf", "~", "a~b", "COM1"]
    made = [file_name(name) for name in names]
    assert len({name.lower() for name in made}) == len(names)
    assert file_name("r-20261115.a_b") == "r-20261115.a_b", "usual names stay as they are"
    for name in made:
        assert 0 < len(name) <= 80
        assert not set(name) & set("/\\\0 ")
        assert not name.startswith(".")


def test_two_processes_can_write_the_same_file_at_once(tmp_path: Path) -> None:
    """The processes must not take each other's drafts."""
    writer = (
        "import sys; from pathlib import Path; from backedge.adapters.agents.attempt_folder import write_whole\n"
        "for _ in range(400): write_whole(Path(sys.argv[1]), b'x' * 2000)"
    )
    both = [subprocess.Popen([sys.executable, "-c", writer, str(tmp_path / "origin")]) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert (tmp_path / "origin").read_bytes() == b"x" * 2000


@pytest.mark.parametrize(
    "between", ["", "\0", "\x1b[2K\r", '\n{"a": b}\n', '\n{"findings": [{"description": "x"}]}\n'], ids=ascii
)
def test_a_pass_after_a_fail_on_stdout_is_an_error(tmp_path: Path, between: str) -> None:
    said = f'{{"verdict": "fail", "summary": "no"}}{between}{{"verdict": "pass"}}\n'
    with pytest.raises(AgentError, match="stdout says 'fail' first and 'pass' at the end"):
        outcome_of(tmp_path, [sys.executable, "-c", f"import sys; sys.stdout.write({said!r})"], judges=True)


@pytest.mark.parametrize(
    "said",
    [
        '{"verdict": "pass"}\n{"verdict": "fail", "summary": "no"}',
        '{"history": [{"verdict": "fail", "round": 1}]}\n{"verdict": "pass"}',
        'say {"verdict": "fail", "summary": "why"} if it is wrong\n{"verdict": "pass"}',
        '{"verdict": "fail"}\nis what I would say without a reason\n{"verdict": "pass"}',
    ],
)
def test_the_last_outcome_on_stdout_counts_whatever_else_is_printed(tmp_path: Path, said: str) -> None:
    outcome = outcome_of(tmp_path, [sys.executable, "-c", f"print({said!r})"], judges=True)
    assert outcome.verdict == ("pass" if said.endswith('"pass"}') else "fail")
