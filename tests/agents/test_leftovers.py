"""Nothing that an agent starts survives its attempt, and nothing that an agent writes counts as the end of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backedge.adapters.agents.attempt_folder import Ended
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.reports import ReportSpec
from backedge.core.errors import AgentError
from tests.agents.parts import (
    Hands,
    agent,
    files_of,
    is_gone,
    outcome_of,
    play,
    python,
    shell,
    told,
    until,
)

DAEMONS = {
    "in a session of its own": "setsid sh -c 'echo $$ > left; exec sleep 61' &",
    "without its environment": "env -i setsid sh -c 'echo $$ > left; exec sleep 61' &",
    "twice orphaned": "(env -i setsid sh -c 'echo $$ > left; sleep 61 & echo $! > child; exec sleep 61' &) &",
    "deaf to requests": "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > left; while :; do sleep 61; done' &",
    "stopped": "setsid sh -c 'echo $$ > left; kill -STOP $$; exec sleep 61' &",
}
UNTIL_LEFT = "while ! [ -s left ]; do sleep 0.01; done"


@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS)
def test_what_a_finished_command_left_is_ended_and_named_wherever_it_moved(daemon: str, tmp_path: Path) -> None:
    assert outcome_of(tmp_path, shell(f"{daemon} {UNTIL_LEFT}; echo {{}}")).output is None
    assert is_gone(int((tmp_path / "left").read_text()))
    if (tmp_path / "child").exists():
        assert is_gone(int((tmp_path / "child").read_text()))
    ended = files_of(tmp_path).ended
    assert ended is not None
    assert any("sleep 61" in name or "trap" in name or "kill -STOP" in name for name in ended.left), ended.left


def test_processes_that_start_others_without_end_are_ended_too(tmp_path: Path) -> None:
    breeding = "echo $$ >> born; sleep 0.02; [ $(wc -l < born) -gt 3000 ] || setsid sh ./breed & wait"
    (tmp_path / "breed").write_text(breeding)
    outcome_of(tmp_path, shell("setsid sh ./breed & sleep 0.3; echo {}"))
    assert [pid for pid in map(int, (tmp_path / "born").read_text().split()) if not is_gone(pid)] == []


def test_a_command_that_leaves_nothing_names_nothing(tmp_path: Path) -> None:
    outcome_of(tmp_path, shell("sleep 0.01 & echo {}; wait"))
    assert files_of(tmp_path).ended == Ended(code=0)


def test_names_of_what_was_left_hold_no_secret(tmp_path: Path) -> None:
    code = f"setsid sh -c 'echo $$ > left; : top-secret; sleep 61; :' & {UNTIL_LEFT}; echo {{}}"
    outcome_of(tmp_path, shell(code), secrets=Secrets({"TOKEN": "top-secret"}))
    ended = files_of(tmp_path).ended
    assert ended is not None and any("[redacted TOKEN]" in name for name in ended.left)
    texts = [path.read_bytes() for path in files_of(tmp_path).path.iterdir() if path.name not in ("process.json",)]
    assert not any(b"top-secret" in text for text in texts)


@pytest.mark.parametrize("record", ["ended.json", "exit.json"])
def test_an_end_that_the_agent_wrote_is_not_believed(record: str, tmp_path: Path) -> None:
    forged = (
        'folder=$(dirname "$BACKEDGE_OUTCOME"); echo \'{"output": "forged", "verdict": "pass"}\' > "$BACKEDGE_OUTCOME"; '
        f'echo \'{{"code": 0}}\' > "$folder/{record}"; exit 3'
    )
    with pytest.raises(AgentError, match=r"the command failed \(exit code 3\)"):
        outcome_of(tmp_path, shell(forged))
    assert files_of(tmp_path).ended == Ended(code=3)


@pytest.mark.parametrize("how", ["mkdir exit.json exit.json.new ended.json", 'rm -rf "$PWD"; mkdir "$OLDPWD/x"'])
def test_the_end_is_known_also_if_it_cannot_be_recorded(how: str, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"exit code 3"):
        outcome_of(tmp_path, shell(f'cd "$(dirname "$BACKEDGE_OUTCOME")"; {how}; exit 3'))


def test_an_outcome_in_a_file_that_somebody_guessed_does_not_count(tmp_path: Path) -> None:
    code = 'cd "$(dirname "$BACKEDGE_OUTCOME")"; echo \'{"output": "guessed"}\' > outcome.json; echo \'{"output": 1}\''
    assert outcome_of(tmp_path, shell(code)).output == 1
    first = files_of(tmp_path).outcome.name
    outcome_of(tmp_path, shell("echo {}"), told(2))
    assert files_of(tmp_path, told(2)).outcome.name != first


@pytest.mark.parametrize(
    ("filed", "printed", "fails"),
    [("pass", "fail", True), ("fail", "pass", True), ("PASS", "pass", False), ("pass", None, False)],
)
def test_two_outcomes_with_different_verdicts_are_an_error(
    filed: str, printed: str | None, fails: bool, tmp_path: Path
) -> None:
    said = json.dumps({"verdict": printed, "summary": "no"} if printed else {"progress": 5})
    code = f"echo '{said}'; echo '{json.dumps({'verdict': filed, 'summary': 'no'})}' > \"$BACKEDGE_OUTCOME\""
    if fails:
        with pytest.raises(AgentError, match=f"the outcome file says '{filed}', stdout says '{printed}'"):
            outcome_of(tmp_path, shell(code), judges=True)
    else:
        assert outcome_of(tmp_path, shell(code), judges=True).verdict == "pass"


KILLS = "kill -9 $PPID; "
"""The parent of a command is its supervisor."""


def test_a_finished_outcome_is_adopted_if_the_supervisor_was_killed_and_nothing_survives(tmp_path: Path) -> None:
    daemon = DAEMONS["twice orphaned"]
    code = f'{daemon} {UNTIL_LEFT}; echo \'{{"output": 7}}\' > "$BACKEDGE_OUTCOME"; {KILLS} sleep 61'
    assert outcome_of(tmp_path, shell(code)).output == 7
    left = int((tmp_path / "left").read_text())
    play(until(lambda: is_gone(left)))


def test_without_a_finished_outcome_it_is_in_doubt_if_the_supervisor_was_killed(tmp_path: Path) -> None:
    assert play(agent(tmp_path, shell(f"echo '{{}}'; {KILLS}")).work(told(), Hands())) is None
    exitcode = ReportSpec("exitcode")
    judge = agent(tmp_path, shell(f"{KILLS} exit 0"), report=exitcode, judges=True)
    assert play(judge.work(told(2), Hands())) is None


def test_a_supervisor_that_was_stopped_still_says_how_it_ended(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, shell("kill -STOP $PPID; echo '{\"output\": 1}'")).output == 1


def test_a_supervisor_shows_whose_it_is(tmp_path: Path) -> None:
    outcome_of(tmp_path, shell("sleep 0.2; readlink /proc/$PPID/cwd > whose; echo {}"))
    assert (tmp_path / "whose").read_text().strip() == str(files_of(tmp_path).path)


def test_a_tool_judge_gets_nothing_of_ours_no_secrets_and_an_empty_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKEDGE_STEP", "of somebody else")
    monkeypatch.setenv("TOKEN", "top-secret")
    monkeypatch.setenv("OTHER", "kept")
    code = "import os, sys, json; json.dump([dict(os.environ), sys.stdin.read(), sys.argv[1:]], open('seen', 'w'))"
    argv = [*python(code), "{run}", "{step}", "{attempt}"]
    secrets = Secrets({"TOKEN": "top-secret"})
    judge = {"report": ReportSpec("exitcode"), "judges": True}
    assert outcome_of(tmp_path, argv, None, **judge, secrets=secrets, env={"MINE": "too"}).verdict == "pass"
    env, stdin, words = json.loads((tmp_path / "seen").read_text())
    assert [name for name in env if name.startswith("BACKEDGE")] == []
    assert "TOKEN" not in env
    assert (env["OTHER"], env["MINE"]) == ("kept", "too")
    assert stdin == ""
    assert words == ["r-1", "code", "1"]


def test_every_attempt_has_a_mark_of_its_own_that_says_nothing(tmp_path: Path) -> None:
    marks = []
    for number in (1, 2):
        outcome_of(tmp_path, shell("tr '\\0' '\\n' < /proc/self/environ > env; echo {}"), told(number))
        marks.append(files_of(tmp_path, told(number)).mark)
        assert marks[-1].decode() in (tmp_path / "env").read_text().splitlines()
    assert marks[0] != marks[1]
    assert not any(b"BACKEDGE" in mark.upper() for mark in marks)
