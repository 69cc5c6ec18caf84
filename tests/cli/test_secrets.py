"""From the outside: secrets that the file names in `redact` are in nothing that is written or shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.cli.conftest import Make
from tests.cli.project import COMMAND, PYTHON, Project, environment, failed, killed, passed, until

TOKEN = 'tok-"1\\2/3"-é'
ENV = {"API_TOKEN": TOKEN, "UNSET": ""}
STEPS = {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"]}, "review": {"reviews": "code"}}
SPELT = [
    spelt.encode()
    for spelt in (
        TOKEN,
        json.dumps(TOKEN)[1:-1],
        json.dumps(TOKEN, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(TOKEN))[3:-3],
    )
]
MASK = "[redacted API_TOKEN]"


def written(project: Project) -> bytes:
    """Everything that backedge stores, byte by byte, including the database files."""
    return b"\n".join(path.read_bytes() for path in (project.folder / ".backedge").rglob("*") if path.is_file())


def leaks(text: bytes | str) -> list[bytes]:
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return [spelt for spelt in SPELT if spelt in data]


def test_a_secret_is_in_no_file_event_view_or_export(make: Make) -> None:
    large = {"text": "x" * 10_000 + TOKEN}
    project = make(
        {"steps": STEPS, "redact": ["API_TOKEN", "UNSET"]},
        plan=[{"output": large, "summary": f"with {TOKEN}", "!stderr": f"log {TOKEN}\n", "!file": True}],
        code=[{"output": {TOKEN: [TOKEN]}, "!stderr": f"{TOKEN}\n"}, {"output": 2}],
        review=[failed({"description": f"it prints {TOKEN}", "evidence": TOKEN}), passed()],
    )
    result = project.run("--input", f"token={TOKEN}", "--log", env=ENV)
    assert result.outcome == "verified"
    assert result.finding["description"] == f"it prints {MASK}"
    assert result.steps["plan"]["output"]["text"].endswith(MASK)
    assert project.briefings("plan")[0]["input"] == {"token": MASK}
    assert f"log {MASK}" in result.err
    assert MASK.encode() in written(project)
    assert leaks(written(project)) == []
    assert leaks(result.err + json.dumps(result.report)) == []
    for command in (["show"], ["show", "--diff"], ["audit", "export"], ["export"], ["export", "--format", "defects"]):
        said = project.backedge(*command, env=ENV)
        assert (said.code, leaks(said.out + said.err)) == (0, [])
    assert project.backedge("audit", "verify").code == 0


def test_secrets_are_removed_from_what_people_write(make: Make) -> None:
    project = make({"steps": STEPS, "redact": ["API_TOKEN"]}, review=[failed("no")])
    project.run(env=ENV)
    told = ["feedback", "raise", "--kind", "fix_request", "--to", "plan", "--message", f"use {TOKEN}"]
    assert project.backedge(*told, env=ENV).code == 0
    said = project.backedge("decide", "E-1", "continue", "--note", f"try {TOKEN}", env=ENV)
    assert said.code == 0, said
    run = project.show().run
    assert project.backedge("cancel", run, "--reason", TOKEN, env=ENV).code == 0
    assert leaks(written(project)) == []
    assert f"try {MASK}" in json.dumps(project.events(), ensure_ascii=False)


def test_the_error_of_an_agent_is_shown_without_the_secret(make: Make) -> None:
    project = make(
        {"steps": {"a": {"phase": "code"}}, "redact": ["API_TOKEN"], "limits": {"errors_in_a_row": 1}},
        a=[{"!stderr": f"401 for {TOKEN}", "!exit": 1}],
    )
    result = project.run(env=ENV)
    assert f"401 for {MASK}" in result.err
    assert leaks(result.err) == leaks(written(project)) == []


def test_a_secret_written_in_two_pieces_is_never_on_disk(make: Make) -> None:
    code = (
        "import os, sys, time\n"
        "secret = os.environ['API_TOKEN']\n"
        "for part in (secret[:4], secret[4:], ' said\\n'):\n"
        "    sys.stderr.write(part); sys.stderr.flush(); time.sleep(0.3)\n"
        "while not os.path.exists('go'): time.sleep(0.02)\n"
        "print('{}')\n"
    )
    project = make({"steps": {"a": {"phase": "code", "run": [*PYTHON, "-c", code]}}, "redact": ["API_TOKEN"]})
    process = subprocess.Popen(
        [COMMAND, "run"], cwd=project.folder, env=environment(ENV), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        until(lambda: (project.folder / ".backedge").exists() and f"{MASK} said".encode() in written(project))
        assert leaks(written(project)) == []
        (project.folder / "go").touch()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


def test_output_of_an_agent_after_a_kill_of_backedge_is_redacted(make: Make) -> None:
    project = make(
        {"steps": {"a": {"phase": "code"}}, "redact": ["API_TOKEN"]},
        a=[{"!wait": "go", "!stderr": f"late {TOKEN}\n", "output": TOKEN, "!file": True}],
    )
    process = subprocess.Popen(
        [COMMAND, "run", "-q"], cwd=project.folder, env=environment(ENV), stdout=subprocess.DEVNULL
    )
    project.wait_for_execution("a")
    process.send_signal(signal.SIGKILL)
    process.wait()
    (project.folder / "go").touch()
    result = project.resume(env=ENV)
    assert (result.outcome, result.attempts, result.steps["a"]["output"]) == ("done", {"a": 1}, MASK)
    assert leaks(written(project)) == []
    assert f"late {MASK}".encode() in written(project)


def test_a_secret_that_is_too_short_is_refused_before_anything_starts(make: Make) -> None:
    project = make({"steps": STEPS, "redact": ["PIN"]})
    sentence = project.refused("run", env={"PIN": "1234"})
    assert "the value of PIN has 4 characters, expected 6 or more" in sentence
    assert "1234" not in sentence
    assert project.executions() == []


def test_a_secret_in_the_file_itself_is_refused(make: Make) -> None:
    project = make()
    project.write("name: w\nredact: [KEY]\nsteps:\n  a:\n    run: [x]\n    env:\n      KEY: abcdefgh\n")
    sentence = project.refused("check")
    assert "backedge.yaml:7:7: steps.a.env.KEY: is listed in redact, but its value is in this file" in sentence
    assert "abcdefgh" not in sentence


def test_agents_still_get_the_secret(make: Make, tmp_path: Path) -> None:
    out = tmp_path / "seen"
    code = f"import os; open({str(out)!r}, 'w').write(os.environ['API_TOKEN']); print('{{}}')"
    project = make({"steps": {"a": {"phase": "code", "run": [*PYTHON, "-c", code]}}, "redact": ["API_TOKEN"]})
    assert project.run(env=ENV).outcome == "done"
    assert out.read_text() == TOKEN
    assert os.path.exists(project.folder / ".backedge" / "journal.db")


def test_a_secret_in_a_file_that_is_reworked_is_not_in_its_difference(make: Make) -> None:
    code = (
        "import json, os\n"
        "with open('config.txt', 'a') as file: file.write(os.environ['API_TOKEN'] + '\\nline\\n')\n"
        "print('{}')\n"
    )
    step = {"phase": "code", "run": [*PYTHON, "-c", code], "writes": ["*.txt"]}
    project = make(
        {"steps": {"code": step, "review": {"reviews": "code"}}, "redact": ["API_TOKEN"]},
        review=[failed("x"), passed()],
    )
    assert project.run(env=ENV).outcome == "verified"
    said = project.backedge("show", "--diff", env=ENV)
    assert (said.code, leaks(said.out), leaks(written(project))) == (0, [], [])
    assert MASK in said.out


def lingering(make: Make) -> tuple[Project, subprocess.Popen[bytes]]:
    """A project whose agent has written its outcome, with a secret in it, and goes on working."""
    reply = {"output": f"with {TOKEN}", "!file": True, "!linger": 60}
    project = make({"steps": {"a": {"phase": "code"}}, "redact": ["API_TOKEN"]}, a=[reply])
    process = project.started("run", "--json", env=ENV)
    until(lambda: any(leaks(path.read_bytes()) for path in project.folder.glob(".backedge/attempts/*/*/outcome*")))
    return project, process


def test_an_attempt_that_is_interrupted_leaves_no_secret(make: Make) -> None:
    project, process = lingering(make)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert leaks(written(project)) == []


def test_an_attempt_that_is_cancelled_leaves_no_secret(make: Make) -> None:
    project, process = lingering(make)
    assert project.backedge("cancel", project.show().run, env=ENV).code == 0
    process.communicate(timeout=30)
    assert leaks(written(project)) == []


def test_an_attempt_that_is_cancelled_after_a_crash_leaves_no_secret(make: Make) -> None:
    project, process = lingering(make)
    killed(process)
    assert project.backedge("cancel", project.show().run, env=ENV).code == 0
    assert leaks(written(project)) == []
