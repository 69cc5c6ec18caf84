"""How each CLI is called, what is refused before the call, and how misbehaving programs are handled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.agents.clis.agent import CliAgent, Workplace
from backedge.adapters.agents.clis.cli import Call, Options
from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.agents.prompts import LONGEST
from backedge.adapters.agents.secrets import Secrets
from backedge.core.errors import AgentError, WorkflowError
from backedge.engine.protocol import Outcome
from tests.agents.parts import Hands, play, told, until_there

ALL = Options("large", ("Read", "Bash(git *)"), "acceptEdits", 7, 0.5)


def words(cli: str, options: Options | None = None, judges: bool = False, resume: str | None = None) -> list[str]:
    return CLIS[cli].arguments(Call(options or Options(), judges, resume, {"type": "object"}, Path("schema.json")))


def test_claude_streams_and_has_a_flag_for_everything() -> None:
    assert words("claude", ALL, resume="0f5c") == [
        *("-p", "--output-format", "stream-json", "--verbose", "--json-schema", '{"type": "object"}'),
        *("--model", "large", "--permission-mode", "acceptEdits", "--max-turns", "7", "--max-budget-usd", "0.5"),
        *("--resume", "0f5c", "--allowedTools", "Read", "Bash(git *)"),
    ]
    assert "acceptEdits" in words("claude")
    assert "--permission-mode" not in words("claude", judges=True)


def test_codex_reads_its_prompt_from_stdin_and_gets_its_sandbox_on_every_call() -> None:
    usual = [
        "--json",
        "--skip-git-repo-check",
        "-c",
        'sandbox_mode="workspace-write"',
        "--output-schema",
        "schema.json",
    ]
    assert words("codex") == ["exec", *usual, "-"]
    assert words("codex", Options(model="m"), resume="0199") == ["exec", "resume", *usual, "-m", "m", "0199", "-"]
    assert 'sandbox_mode="read-only"' in words("codex", judges=True)


def test_gemini_trusts_the_folder_and_approves_edits_of_producers_only() -> None:
    usual = ["--output-format", "stream-json", "--skip-trust", "--approval-mode"]
    assert words("gemini") == [*usual, "auto_edit"]
    assert words("gemini", judges=True) == [*usual, "default"]
    options = Options("m", ("a", "b"), "yolo")
    more = ["-m", "m", "--allowed-tools", "a", "--allowed-tools", "b", "--resume", "9dcf"]
    assert words("gemini", options, resume="9dcf") == [*usual, "yolo", *more]


def test_opencode_has_agents_for_modes() -> None:
    assert words("opencode") == ["run", "--format", "json", "--print-logs", "--log-level", "ERROR"]
    assert words("opencode", Options("m", None, "auto"), resume="ses_1")[6:] == [
        "-m",
        "m",
        "--auto",
        "--session",
        "ses_1",
    ]
    assert words("opencode", Options(permission_mode="plan"))[6:] == ["--agent", "plan"]
    assert words("opencode", judges=True)[6:] == ["--agent", "plan"], "a judge changes nothing"
    assert words("opencode", Options(permission_mode="build"), judges=True)[6:] == ["--agent", "build"]


def program(folder: Path, cli: str, code: str) -> Path:
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    (place / cli).write_text(f"#!/bin/sh\n{code}\n")
    (place / cli).chmod(0o755)
    return place


def agent(folder: Path, cli: str = "claude", code: str = "true", **more: Any) -> CliAgent:
    env = {"PATH": f"{program(folder, cli, code)}:/usr/bin:/bin"}
    return CliAgent(cli, Workplace(folder, folder / ".backedge", ("*.txt",)), **{"env": env, "grace": 0.5, **more})


@pytest.mark.parametrize("cli", CLIS)
def test_no_secret_is_in_a_prompt_however_it_is_written_there(cli: str, tmp_path: Path) -> None:
    secret = "p@ssword-1"
    cut = "x" * (LONGEST - 5)
    work = agent(
        tmp_path,
        cli,
        'cat > "$BACKEDGE_OUTCOME.seen"; exit 1',
        template=f"Log in with {secret}.\n{{{{task}}}}",
        secrets=Secrets({"TOKEN": secret}),
    )
    briefing = told(input={"login": secret, secret: 1}, inputs={"plan": cut + secret})
    with pytest.raises(AgentError):
        play(work.work(briefing, Hands()))
    (seen,) = (tmp_path / ".backedge").rglob("*.seen")
    prompt = seen.read_text().replace("\\@", "@")
    assert "Log in with [redacted TOKEN]." in prompt
    assert '"login": "[redacted TOKEN]"' in prompt and '"[redacted TOKEN]": 1' in prompt
    assert secret not in prompt and secret[:5] not in prompt


@pytest.mark.parametrize(
    ("cli", "options", "said"),
    [
        ("codex", Options(max_turns=3), "codex has no flag for max_turns"),
        ("codex", Options(allowed_tools=("a",)), "codex has no flag for allowed_tools"),
        ("codex", Options(max_budget_usd=1.0), "codex has no flag for max_budget_usd"),
        ("gemini", Options(max_budget_usd=1.0), "gemini has no flag for max_budget_usd"),
        ("opencode", Options(max_turns=3), "opencode has no flag for max_turns"),
        (
            "claude",
            Options(permission_mode="acceptEdit"),
            "no permission_mode 'acceptEdit': did you mean 'acceptEdits'?",
        ),
        ("claude", Options(model="--dangerously-skip-permissions"), "would be read as a flag"),
        ("claude", Options(allowed_tools=("-p",)), "would be read as a flag"),
    ],
)
def test_options_that_a_cli_does_not_support_are_refused_before_it_starts(
    cli: str, options: Options, said: str, tmp_path: Path
) -> None:
    with pytest.raises(WorkflowError) as refused:
        agent(tmp_path, cli, options=options)
    assert said in str(refused.value)


@pytest.mark.parametrize("cli", CLIS)
def test_a_cli_that_is_not_installed_is_named_with_its_package(cli: str, tmp_path: Path) -> None:
    with pytest.raises(WorkflowError, match=f"{cli} is not installed: run `npm install -g {CLIS[cli].package}`"):
        CliAgent(cli, Workplace(tmp_path, tmp_path), env={"PATH": str(tmp_path)})


def test_an_unusable_prompt_is_refused_with_all_its_problems(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError) as refused:
        agent(tmp_path, template="Do {{tsak}}.\nUse {{inptus}}.")
    assert refused.value.problems == (
        "the prompt cannot be used: {{tsak}} in line 1 is not a placeholder: did you mean 'task'?",
        "the prompt cannot be used: {{inptus}} in line 2 is not a placeholder: did you mean 'inputs'?",
    )


def test_a_placeholder_has_no_parts_and_other_braces_stay(tmp_path: Path) -> None:
    with pytest.raises(WorkflowError) as refused:
        agent(
            tmp_path,
            template="{{ inputs.plan }}\n{{task | upper}} {{task2}}\n${{ inputs.name }} {{ user.name }} {{task}}",
        )
    assert refused.value.problems == (
        "the prompt cannot be used: {{inputs.plan}} in line 1 is not a placeholder: write {{inputs}}, which has no parts and no filters",
        "the prompt cannot be used: {{task | upper}} in line 2 is not a placeholder: write {{task}}, which has no parts and no filters",
        "the prompt cannot be used: {{task2}} in line 2 is not a placeholder: did you mean 'task'?",
    )


def test_a_cli_that_an_interrupt_ended_says_nothing_and_that_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"claude ended without a report \(exit code 0\): it printed nothing"):
        play(agent(tmp_path).work(told(), Hands()))


def test_a_cli_inherits_our_environment_with_file_paths_and_without_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "a")
    code = (
        'cat > told.txt; printf \'{"type":"result","subtype":"success","structured_output":{"output":"%s %s %s %s"}}\' '
        '"$OURS" "$DISABLE_AUTOUPDATER" "$BACKEDGE_STEP" "$(test -f "$BACKEDGE_BRIEFING" && echo there)"'
    )
    result = play(agent(tmp_path, code=code).work(told(input="a `quoted` task"), Hands()))
    assert result is not None
    assert result.outcome == Outcome(output="a 1 code there")
    assert "a `quoted` task" in (tmp_path / "told.txt").read_text()
    assert [change.where for change in result.files] == ["told.txt"]


def test_an_output_that_violates_the_schema_is_an_error_with_its_cost(tmp_path: Path) -> None:
    code = 'echo \'{"type":"result","subtype":"success","session_id":"s","total_cost_usd":0.5,"structured_output":{"output":1}}\''
    with pytest.raises(AgentError, match="does not match the step's schema") as caught:
        play(agent(tmp_path, code=code, schema={"type": "string"}).work(told(), Hands()))
    assert caught.value.usage.cost_usd == 0.5  # type: ignore[attr-defined]
    assert caught.value.session == "claude:s"


def test_invalid_inputs_are_reported_by_producer(tmp_path: Path) -> None:
    fussy = agent(tmp_path, accepts={"plan": {"type": "string"}})
    assert fussy.input_errors({"plan": 1}) == [("plan", "", "1 is not of type 'string'")]
    assert fussy.input_errors({"other": 1}) == []


def test_an_unknown_conversation_is_restarted_only_once(tmp_path: Path) -> None:
    code = "echo . >> runs; echo 'No conversation found with session ID' >&2; exit 1"
    with pytest.raises(AgentError, match="ended without a report") as caught:
        play(agent(tmp_path, code=code).work(told(session="claude:gone"), Hands()))
    assert (tmp_path / "runs").read_text() == ".\n.\n"
    assert b"a fresh conversation was begun" in caught.value.log
    assert caught.value.session is None


def test_a_step_that_writes_nothing_has_no_files(tmp_path: Path) -> None:
    code = 'echo x > made.txt; echo \'{"type":"result","subtype":"success","structured_output":{}}\''
    env = {"PATH": f"{program(tmp_path, 'claude', code)}:/usr/bin:/bin"}
    results = [
        play(
            CliAgent("claude", Workplace(tmp_path, tmp_path / ".backedge", writes), env=env).work(told(number), Hands())
        )
        for number, writes in enumerate(((), (), None, None), start=1)
    ]
    versions = [result.workspace for result in results if result is not None]
    assert versions[0] == versions[1]
    assert versions[2] != versions[3], "nothing tells which files count: each counts as changed"


def test_after_a_crash_a_running_cli_is_awaited_and_adopted(tmp_path: Path) -> None:
    code = 'echo . >> runs; sleep 0.5; echo \'{"type":"result","subtype":"success","structured_output":{"output":1}}\''

    async def scenario() -> None:
        work = asyncio.create_task(agent(tmp_path, code=code).work(told(), Hands()))
        await until_there(tmp_path / "runs")
        again = await agent(tmp_path, code=code).recover(told(), Hands())
        assert again is not None
        assert again.outcome == Outcome(output=1)
        await work

    play(scenario())
    assert (tmp_path / "runs").read_text() == ".\n"


def test_an_answer_with_a_key_twice_is_an_error(tmp_path: Path) -> None:
    code = 'echo \'{"type":"result","subtype":"success","structured_output":{"verdict":"fail","verdict":"pass"}}\''
    with pytest.raises(AgentError, match="the answer of claude has the key 'verdict' twice"):
        play(agent(tmp_path, code=code, judges=True).work(told(), Hands()))
