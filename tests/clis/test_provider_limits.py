"""Limits of providers, as the CLIs print them: recorded lines, the real CLIs, and a run that waits."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from backedge.adapters.agents.attempt_folder import Ended
from backedge.adapters.agents.clis.provider_limit import is_limit, seconds_until_reset
from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.agents.clis.report import outcome_of
from backedge.core.errors import AgentError, ProviderLimit
from backedge.core.model import Usage
from tests.cli.project import finished, until
from tests.clis.model import Fail, model
from tests.clis.parts import PATH, Bench
from tests.clis.test_run import backedge, command

NOW = datetime(2026, 11, 18, 14, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
HOUR = 3600.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (f"Claude AI usage limit reached|{int(NOW) + 7200}", 7200),
        ("You've hit your session limit · resets 5pm (Europe/Berlin)", 2.5 * HOUR),
        ("5-hour limit reached ∙ resets at 5:15 PM (Europe/Berlin)", 2.75 * HOUR),
        ("usage limit reached, resets at 17:00 (Europe/Berlin)", 2.5 * HOUR),
        ("limit reached · resets 2pm (Europe/Berlin)", 23.5 * HOUR),
        ("limit reached · resets 12am (Europe/Berlin)", 9.5 * HOUR),
        ("You've hit your weekly limit · resets Nov 20 at 2:30pm (Europe/Berlin)", 48 * HOUR),
        ("You've hit your weekly limit · resets Nov 20, 1:30pm (UTC)", 48 * HOUR),
        ("limit · resets Jan 2 at 2:30pm (Europe/Berlin)", 45 * 24 * HOUR),
        ("try again at Nov 19th, 2026 2:30 PM (Europe/Berlin).", 24 * HOUR),
        ("Rate limit reached for gpt-5 … Please try again in 20s. Visit", 20),
        ("Please try again in 1.5s", 1.5),
        ("Please try again in 250ms", 0.25),
        ("or try again in 3 days 4 hours 12 minutes.", 3 * 86_400 + 4 * HOUR + 720),
        ("Your quota will reset after 3h20m10s.", 3 * HOUR + 1210),
        ("Suggested retry after 7200s.", 7200),
        ("it resets in 1 hour and 5 minutes", HOUR + 300),
        ("limit resets at 2026-11-18T15:00:00Z", 1.5 * HOUR),
        ("limit resets at 2026-11-18 16:00:00+01:00", 1.5 * HOUR),
        ("overloaded", None),
        ("please retry in a moment", None),
        ("resets 99:99", None),
        ("resets Feb 31 at 5pm", None),
        ("resets 5", None),
    ],
)
def test_the_time_at_which_a_limit_resets_is_read(text: str, seconds: float | None) -> None:
    assert seconds_until_reset(text, NOW) == seconds


def test_a_time_without_a_zone_or_with_an_unknown_one_is_that_of_this_machine() -> None:
    here = datetime.fromtimestamp(NOW)
    wanted = here.replace(hour=(here.hour + 1) % 24, minute=0).strftime("%H:%M")
    for text in (f"resets {wanted}", f"resets {wanted} (Middle/Earth)"):
        assert seconds_until_reset(text, NOW) == HOUR - here.minute * 60


@pytest.mark.parametrize(
    "text",
    [
        "API Error: Request rejected (429) · This request would exceed your account's rate limit.",
        "API Error: 529 Overloaded. This is a server-side issue",
        "codex failed: exceeded retry limit, last status: 429 Too Many Requests",
        "codex failed: Selected model is at capacity. Please try a different model.",
        "codex failed: You’ve hit your usage limit. Upgrade to Pro, purchase more credits or try again at 10:01 AM.",
        "[API Error: You have exhausted your daily quota on this model.]",
        "You've hit your monthly spend limit · resets Dec 1 at 5pm",
    ],
)
def test_limits_are_recognised(text: str) -> None:
    assert is_limit(text)


@pytest.mark.parametrize(
    "text",
    [
        "Quota exceeded. Check your plan and billing details.",
        "Credit balance is too low",
        "You've hit your monthly spend limit.",
        "API Error: 401 Invalid API key",
        "the file has 429 lines",
        "claude stopped at max_turns",
    ],
)
def test_what_waiting_does_not_end_is_not_a_limit(text: str) -> None:
    assert not is_limit(text)


RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": True,
    "api_error_status": 429,
    "session_id": "0f5c",
    "usage": {},
    "permission_denials": [],
    "result": "API Error: Request rejected (429) · This request would exceed your account's rate limit.",
}
RETRY = {"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 577, "error_status": 529, "error": "overloaded"}  # fmt: skip
OPENCODE = {
    "type": "error",
    "sessionID": "ses_1",
    "error": {
        "name": "APIError",
        "data": {"message": "Overloaded", "statusCode": 529, "responseHeaders": {"content-type": "application/json"}},
    },
}
CODEX = {"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"}}
GEMINI = {"type": "result", "status": "error", "error": {"type": "unknown", "message": "[API Error: Too long.\nSuggested retry after 7200s.]\nPlease wait and try again later. To increase your limits, request a quota increase through AI Studio"}, "stats": {}}  # fmt: skip


def rejected(status: str = "rejected", **info: Any) -> dict[str, Any]:
    return {"type": "rate_limit_event", "rate_limit_info": {"status": status, **info}}


def limit(cli: str, *lines: dict[str, Any], stderr: str = "", ended: Ended | None = None) -> ProviderLimit:
    report = CLIS[cli].read(iter(lines), stderr, Usage())
    with pytest.raises(ProviderLimit) as caught:
        outcome_of(CLIS[cli], report, ended or Ended(code=1), stderr, None)
    return caught.value


def error(cli: str, *lines: dict[str, Any], ended: Ended | None = None) -> AgentError:
    report = CLIS[cli].read(iter(lines), "", Usage())
    with pytest.raises(AgentError) as caught:
        outcome_of(CLIS[cli], report, ended or Ended(code=1), "", None)
    return caught.value


def test_claude_says_that_its_provider_has_reached_a_limit() -> None:
    found = limit("claude", RESULT)
    assert str(found) == f"claude failed (API error 429): {RESULT['result']}"
    assert found.wait is None


def test_claude_reports_when_the_limit_of_a_subscription_resets() -> None:
    found = limit("claude", rejected(resetsAt=time.time() + 600, rateLimitType="five_hour"), RESULT)
    assert found.wait == pytest.approx(600, abs=5)
    assert limit("claude", rejected(status="allowed_warning", resetsAt=9e9), RESULT).wait is None
    assert limit("claude", rejected(resetsAt="soon"), RESULT).wait is None


def test_the_time_that_a_provider_asked_claude_to_wait_counts_its_own_delays_do_not() -> None:
    assert limit("claude", {**RETRY, "retry_delay_ms": 120_000}, RESULT).wait == 120
    assert limit("claude", RETRY, RESULT).wait is None


def test_another_error_of_claude_is_an_error() -> None:
    found = error("claude", {**RESULT, "api_error_status": 401, "result": "Invalid API key"})
    assert not isinstance(found, ProviderLimit)


@pytest.mark.parametrize(
    ("cli", "line", "wait"), [("codex", CODEX, None), ("gemini", GEMINI, 7200), ("opencode", OPENCODE, None)]
)
def test_the_other_clis_say_it_in_their_own_words(cli: str, line: dict[str, Any], wait: float | None) -> None:
    assert limit(cli, line).wait == wait


def test_opencode_passes_the_header_of_its_provider_on() -> None:
    data = {**OPENCODE["error"]["data"], "responseHeaders": {"retry-after": "90"}}  # type: ignore[index]
    assert limit("opencode", {**OPENCODE, "error": {"name": "APIError", "data": data}}).wait == 90


TIMED_OUT = Ended(because="timeout: no outcome after 60 s")
RETRYING = "Attempt 1 failed: Resource has been exhausted (e.g. check quota).\nSuggested retry after 41s.. Retrying after 41011ms...\n"  # fmt: skip


def test_a_timeout_while_the_cli_waits_for_its_provider_is_no_error_of_the_agent() -> None:
    begun = {"type": "thread.started", "thread_id": "t"}
    reconnecting = {"type": "error", "message": "Reconnecting... 1/5 (last status: 429 Too Many Requests)"}
    assert str(limit("claude", RETRY, ended=TIMED_OUT)) == (
        "timeout: no outcome after 60 s, while claude waited for a limit of its provider: API error 529 (overloaded)"
    )
    assert "429 Too Many" in str(limit("codex", begun, reconnecting, ended=TIMED_OUT))
    assert limit("gemini", stderr=RETRYING, ended=TIMED_OUT).wait == 41


LOGGED = (
    'timestamp=2026-11-18T14:31:10.936Z level=ERROR run=d message="stream error" providerID=anthropic small=false '
    """error.error="AI_APICallError: This request would exceed your account's rate limit. Please try again later."\n"""
)


def test_opencode_logs_what_it_waits_for_and_events_after_that_end_the_wait() -> None:
    refused_at = int(datetime.fromisoformat("2026-11-18T14:31:10.936Z").timestamp() * 1000)
    tool = {"type": "step_start", "timestamp": refused_at - 50, "sessionID": "ses_1", "part": {}}
    found = limit("opencode", tool, stderr=LOGGED, ended=TIMED_OUT)
    assert "while opencode waited for a limit of its provider: opencode waits: AI_APICallError: This" in str(found)
    answered = CLIS["opencode"].read(iter([tool, {**tool, "timestamp": refused_at + 50}]), LOGGED, Usage())
    assert answered.limit is None
    broken = LOGGED.replace("This request would exceed your account's rate limit.", "Invalid key.")
    assert CLIS["opencode"].read(iter([tool]), broken, Usage()).limit is None


def test_a_timeout_after_the_model_answered_is_an_error() -> None:
    answer = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "working"}]}}
    item = {"type": "item.completed", "item": {"type": "agent_message", "text": "working"}}
    reconnecting = {"type": "error", "message": "Reconnecting... 1/5 (last status: 429 Too Many Requests)"}
    assert str(error("claude", RETRY, answer, ended=TIMED_OUT)) == TIMED_OUT.because
    assert str(error("codex", reconnecting, item, ended=TIMED_OUT)) == TIMED_OUT.because
    assert str(error("gemini", ended=TIMED_OUT)) == TIMED_OUT.because


def test_a_cli_that_was_killed_while_it_waited_for_its_provider() -> None:
    assert "529" in str(limit("claude", RETRY, ended=Ended(signal=9)))


ANTHROPIC = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
OPENAI = {"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached"}}
DAILY = {"error": {"code": 429, "message": "Too long.", "status": "RESOURCE_EXHAUSTED", "details": [
    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7200s"}]}}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cli", "status", "body", "wait"),
    [("claude", 529, ANTHROPIC, None), ("codex", 429, OPENAI, 7200), ("gemini", 429, DAILY, 7200)],
)
def test_the_real_clis(tmp_path: Path, cli: str, status: int, body: Any, wait: float | None) -> None:
    options: dict[str, Any] = {}
    if cli == "gemini":
        from backedge.adapters.agents.clis.cli import Options

        options = {"options": Options(model="gemini-2.5-flash")}
    if cli == "codex":
        body = {"error": {**body["error"], "resets_at": int(time.time()) + 7200}}
    with model(*[Fail(status, body)] * 20) as script:
        found = Bench(cli, script, tmp_path).error(**options)
    assert isinstance(found, ProviderLimit), found
    assert found.wait is None if wait is None else found.wait == pytest.approx(wait, abs=600), found


LIMITED = """\
#!{python}
import json, os, sys, time
count = os.path.join({folder!r}, "calls")
with open(count, "a") as file:
    file.write("x")
first = os.path.getsize(count) == 1
sys.stdin.read()
result = {{"type": "result", "subtype": "success", "session_id": "0f5c", "usage": {{}}, "permission_denials": []}}
if first:
    limit = f"Claude AI usage limit reached|{{int(time.time()) + {wait}}}"
    print(json.dumps({{**result, "is_error": True, "api_error_status": 429, "result": limit}}))
    sys.exit(1)
print(json.dumps({{**result, "is_error": False, "result": "", "structured_output": {{"output": "made", "summary": "ok"}}}}))
"""


def limited_project(folder: Path, wait: int) -> dict[str, str]:
    """A project whose claude has reached its usage limit in its first call, as an older version prints it."""
    folder.mkdir()
    (folder / "backedge.yaml").write_text("name: night\nsteps:\n  code: {agent: claude, writes: []}\n")
    program = folder / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(LIMITED.format(python=sys.executable, folder=str(folder), wait=wait))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{program.parent}{os.pathsep}{PATH}", "HOME": str(folder), "TZ": "UTC"}


def test_a_run_waits_until_the_limit_resets_survives_a_kill_and_says_so(tmp_path: Path) -> None:
    env = limited_project(tmp_path / "p", 4)
    folder = tmp_path / "p"
    process = subprocess.Popen(command("run", "--json"), cwd=folder, env=env, stdout=-1, stderr=-1)

    def waiting() -> Any:
        listed = backedge(folder, env, "runs", "--json")
        return (
            [each for each in json.loads(listed.stdout or "[]") if each["waits_until"]] if not listed.returncode else []
        )

    (run,) = until(waiting)
    process.send_signal(signal.SIGKILL)
    finished(process)
    assert run["outcome"] == "running"
    shown = json.loads(backedge(folder, env, "show", "--json").stdout)
    assert shown["waits_until"] == run["waits_until"]
    assert shown["steps"]["code"]["waits"]["message"].startswith(
        "claude failed (API error 429): Claude AI usage limit reached|"
    )
    assert shown["steps"]["code"]["last_error"] is None
    assert "waits for a provider until " in backedge(folder, env, "runs").stdout
    assert "code waits until " in backedge(folder, env, "show").stdout
    assert json.loads(backedge(folder, env, "inbox", "--json").stdout) == []
    done = backedge(folder, env, "resume", "--json")
    assert done.returncode == 0, done.stderr
    assert time.time() >= run["waits_until"]
    assert json.loads(done.stdout)["outcome"] == "done"
    assert (folder / "calls").read_text() == "xx"


def test_a_run_that_would_wait_too_long_asks_a_person(tmp_path: Path) -> None:
    env = limited_project(tmp_path / "p", 400_000)
    folder = tmp_path / "p"
    asked = backedge(folder, env, "run")
    assert asked.returncode == 3, asked.stderr
    assert "⏳ code waits until " in asked.stderr
    assert "has reached a limit for 4 d 15 h, and provider_wait allows 1 d in a row" in asked.stdout
    assert json.loads(backedge(folder, env, "show", "--json").stdout)["waits_until"] is None
    assert backedge(folder, env, "decide", "E-1", "continue").returncode == 0
    assert backedge(folder, env, "resume").returncode == 0


def test_a_run_that_waits_can_be_cancelled(tmp_path: Path) -> None:
    env = limited_project(tmp_path / "p", 4000)
    folder = tmp_path / "p"
    process = subprocess.Popen(command("run", "--run", "r-1"), cwd=folder, env=env, stdout=-1, stderr=-1)
    until(lambda: "⏳" in backedge(folder, env, "show").stdout)
    assert backedge(folder, env, "cancel", "r-1").returncode == 0
    assert finished(process).code == 1
    assert json.loads(backedge(folder, env, "show", "--json").stdout)["outcome"] == "cancelled"
