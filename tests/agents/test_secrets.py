"""Secrets reach no file, value or error, however they are written and split."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.adapters.agents.process_tree import Identity, lives
from backedge.adapters.agents.redaction import redacted
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.agents.stream_filter import Stream, masks
from backedge.core.errors import AgentError
from backedge.core.model import Change
from backedge.engine.protocol import Feedback, Finding, Outcome
from backedge.ports import Result
from tests.agents.parts import Hands, agent, files_of, play, python, told

TOKEN = 'sk-"quoted"\\back/slash-é'
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END KEY-----"
SECRETS = Secrets({"TOKEN": TOKEN, "KEY": KEY})
SPELT = [
    TOKEN,
    json.dumps(TOKEN)[1:-1],
    json.dumps(TOKEN, ensure_ascii=False)[1:-1],
    json.dumps(json.dumps(TOKEN))[3:-3],
    json.dumps(TOKEN)[1:-1].replace("/", "\\/"),
    KEY,
    json.dumps(KEY)[1:-1],
    "kqhkiG9w0BAQ",
]


@pytest.mark.parametrize("spelt", SPELT)
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_secret_is_found_in_a_stream_however_it_is_cut(spelt: str, size: int) -> None:
    stream = Stream(masks(SECRETS.values))
    text = f"before {spelt} between {spelt}{spelt} sk- after".encode()
    out = b"".join([*(stream.fed(text[i : i + size]) for i in range(0, len(text), size)), stream.ended()]).decode()
    name = "TOKEN" if spelt.startswith("sk") else "KEY"
    mask = f"[redacted {name}]"
    assert out == f"before {mask} between {mask}{mask} sk- after"


@given(st.lists(st.sampled_from([b"abcabd", b"abcab", b"abc", b"ab", b"a", b"c", b"d", b"\n", b"x"])), st.data())
def test_a_stream_in_pieces_is_redacted_like_the_whole_text(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    found = {b"abcabd": b"[1]", b"abcab": b"[2]", b"bdab": b"[3]"}
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    stream, one = Stream(found), Stream(found)
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert b"".join([*map(stream.fed, pieces), stream.ended()]) == one.fed(whole) + one.ended()


def test_text_that_cannot_start_a_secret_is_passed_on_at_once() -> None:
    stream = Stream(masks({"A": b"secret"}))
    assert stream.fed(b"a line\n") == b"a line\n"
    assert (stream.fed(b"sec"), stream.fed(b"ond\n")) == (b"", b"second\n")


def test_values_keep_their_shape() -> None:
    secrets = Secrets({"A": "hunter22", "PIN": "123456"})
    value = {"hunter22": [1, True, None, 123456, 12345, ("x hunter22",)], "n": 0.5}
    shown = {"[redacted A]": [1, True, None, "[redacted PIN]", 12345, ("x [redacted A]",)], "n": 0.5}
    assert secrets.value(value) == shown
    assert json.loads(secrets.content(b'{"pin": 123456, "t": "hunt\\u0065r22"}')) == {
        "pin": "[redacted PIN]",
        "t": "[redacted A]",
    }
    assert secrets.content(b"{ half hunter22") == b"{ half [redacted A]"


SAYS = """\
import json, os, sys, time
secret = os.environ["TOKEN"]
for part in (secret[:5], secret[5:], "\\n"):
    print(part, end="", flush=True)
    print(part, end="", file=sys.stderr, flush=True)
    time.sleep(0.02)
outcome = {"output": {"key": secret, secret: [secret]}, "summary": f"used {secret}"}
text = json.dumps(outcome)
"""
TO_FILE = SAYS + "open(os.environ['BACKEDGE_OUTCOME'], 'w').write(text)"
TO_STDOUT = SAYS + "print(text)"


def all_files(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("code", [TO_FILE, TO_STDOUT])
def test_no_output_of_a_command_contains_a_secret(tmp_path: Path, code: str) -> None:
    secrets = Secrets({"TOKEN": TOKEN})
    made = redacted(agent(tmp_path, python(code), env={"TOKEN": TOKEN}, secrets=secrets, writes=[]), secrets)
    result: Any = play(made.work(told(input={"token": TOKEN}), Hands()))
    assert result.outcome.output == {"key": "[redacted TOKEN]", "[redacted TOKEN]": ["[redacted TOKEN]"]}
    assert result.outcome.summary == "used [redacted TOKEN]"
    assert result.log == b"[redacted TOKEN]\n"
    assert files_of(tmp_path).stdout.read_bytes().startswith(b"[redacted TOKEN]\n")
    kept = all_files(tmp_path / ".backedge")
    assert b"[redacted TOKEN]" in kept
    for spelt in (TOKEN, json.dumps(TOKEN)[1:-1], json.dumps(TOKEN, ensure_ascii=False)[1:-1]):
        assert spelt.encode() not in kept


def test_an_error_of_a_command_contains_no_secret(tmp_path: Path) -> None:
    secrets = Secrets({"TOKEN": TOKEN})
    code = "import os, sys; sys.exit('bad token ' + os.environ['TOKEN'])"
    made = redacted(agent(tmp_path, python(code), env={"TOKEN": TOKEN}, secrets=secrets), secrets)
    with pytest.raises(AgentError, match=r"bad token \[redacted TOKEN\]") as failed:
        play(made.work(told(), Hands()))
    assert failed.value.log == b"bad token [redacted TOKEN]\n"
    assert failed.value.__cause__ is None


def test_all_output_of_a_verbose_command_is_stored_when_it_ends(tmp_path: Path) -> None:
    code = "import sys; [print('x' * 99) for _ in range(50_000)]; print('{\"output\": 1}')"
    made = agent(tmp_path, python(code), secrets=Secrets({"TOKEN": TOKEN}), writes=[])
    result = play(made.work(told(), Hands()))
    assert result is not None
    assert isinstance(result.outcome, Outcome) and result.outcome.output == 1
    assert files_of(tmp_path).stdout.stat().st_size == 50_000 * 100 + len('{"output": 1}\n')


def test_a_command_that_is_cancelled_leaves_no_filter_behind(tmp_path: Path) -> None:
    made = agent(tmp_path, python("import time; print('up', flush=True); time.sleep(60)"), secrets=SECRETS)

    async def scenario() -> None:
        working = asyncio.create_task(made.work(told(), Hands()))
        while not all_files(tmp_path).count(b"up"):  # noqa: ASYNC110 - a file says nothing by itself
            await asyncio.sleep(0.02)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    play(scenario())
    running = files_of(tmp_path).running
    assert running is not None and running.filter is not None
    assert not lives(Identity(*running.filter))


class Talker:
    """An agent in this process."""

    def __init__(self, said: object) -> None:
        self._said = said

    async def work(self, briefing: object, attempt: Any) -> object:
        if isinstance(self._said, Exception):
            raise self._said
        if isinstance(self._said, Feedback):
            await attempt.raise_feedback(self._said)
            return Outcome()
        return self._said

    def input_errors(self, inputs: object) -> list[tuple[str, str, str]]:
        return []


class Listener(Hands):
    def __init__(self) -> None:
        self.heard: list[object] = []

    async def raise_feedback(self, feedback: object) -> str:
        self.heard.append(feedback)
        return "L-1"


def test_reports_errors_and_feedback_of_a_function_contain_no_secret() -> None:
    secrets = Secrets({"A": "hunter22"})
    finding = Finding("uses hunter22", evidence="hunter22", line=3)
    said = Result(Outcome(findings=[finding], answer="hunter22"), files=(Change("hunter22.txt"),), log=b"hunter22")
    shown: Any = play(redacted(Talker(said), secrets).work(told(), Hands()))
    assert "hunter22" not in repr(shown)
    assert shown.outcome.findings[0].line == 3
    with pytest.raises(AgentError, match=r"^ValueError: \[redacted A\]$"):
        play(redacted(Talker(ValueError("hunter22")), secrets).work(told(), Hands()))
    with pytest.raises(ValueError, match=r"^other$"):
        play(redacted(Talker(ValueError("other")), secrets).work(told(), Hands()))
    hands = Listener()
    play(redacted(Talker(Feedback("fix_request", "plan", "hunter22")), secrets).work(told(), hands))
    assert hands.heard == [Feedback("fix_request", "plan", "[redacted A]")]


def test_without_secrets_an_agent_is_not_wrapped() -> None:
    talker = Talker(Outcome())
    assert redacted(talker, Secrets()) is talker
    assert (Secrets().text("x"), Secrets().content(b"{")) == ("x", b"{")
