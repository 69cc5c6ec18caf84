"""Web hooks, commands and apprise against real receivers and programs."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.notifications.address import NotSent, name_of
from backedge.adapters.notifications.command import call, filled
from backedge.adapters.notifications.sending import in_thread, send
from backedge.adapters.notifications.web_hook import headers_of, post
from backedge.analytics.message import Message, harmless
from backedge.core.workflow.notify import Channel
from tests.notifications.receiver import SECRET, Receiver

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:apprise", "ignore::DeprecationWarning:ast")
TOLD = Message("r.3", "opened", "r", "shop", "E-1", "shop asks you: pay?", "shop asks you: pay?\nAnswer it.", "pay?")


async def sent(channel: Channel, folder: Path | str = ".", **environment: str) -> None:
    await send(channel, TOLD, 1_700_000_000.5, environment, Path(folder))


async def test_a_web_hook_gets_a_signed_message(receiver: Receiver) -> None:
    await sent(Channel("${URL}", secret="KEY"), URL=receiver.url, KEY=SECRET)
    (got,) = receiver.taken
    assert got.signed
    assert (got.id, got.headers["webhook-timestamp"], got.headers["content-type"]) == (
        "r.3",
        "1700000000",
        "application/json",
    )
    assert got.body["title"] == TOLD.title


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of the Standard Webhooks libraries."""
    body = b'{"test": 2432232314}'
    headers = headers_of("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, SECRET)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_without_a_secret_a_message_is_not_signed(receiver: Receiver) -> None:
    await sent(Channel(receiver.url))
    assert "webhook-signature" not in receiver.taken[0].headers and receiver.taken[0].id == "r.3"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (500, "the receiver answered 500"),
        (410, "the receiver answered 410"),
        (302, "the receiver answered 302, which sends elsewhere: give the final address"),
    ],
)
async def test_an_answer_that_is_no_success_says_so(receiver: Receiver, status: int, why: str) -> None:
    receiver.answer = lambda _: status
    with pytest.raises(NotSent) as error:
        await sent(Channel(f"{receiver.url}/token-in-path"))
    assert str(error.value) == why
    assert [each.path for each in receiver.received] == ["/token-in-path"], "it goes nowhere else"


def test_a_receiver_that_does_not_answer_is_left(receiver: Receiver) -> None:
    def late(_: object) -> int:
        time.sleep(3)
        return 200

    receiver.answer = late
    with pytest.raises(NotSent, match=r"did not answer within 0.3 s|no answer in time"):
        post(receiver.url, b"{}", {}, timeout=0.3)


async def test_a_call_that_hangs_is_left_behind() -> None:
    begun = time.monotonic()
    with pytest.raises(NotSent, match=r"not sent within 0.2 s"):
        await in_thread(lambda: time.sleep(2), timeout=0.2)
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    ("channel", "environment", "why"),
    [
        (Channel("${URL}"), {}, "URL is not set"),
        (Channel("http://127.0.0.1:1", secret="KEY"), {}, "KEY is not set"),
        (Channel("http://127.0.0.1:1", secret="KEY"), {"KEY": "not base64!"}, "KEY is not base64: make a secret"),
        (Channel("http://"), {}, "cannot be reached|not one of a web hook"),
        (Channel("nowhere://x"), {}, "apprise does not understand this address"),
    ],
)
async def test_what_cannot_be_sent_says_why(channel: Channel, environment: dict[str, str], why: str) -> None:
    with pytest.raises(NotSent, match=why) as error:
        await send(channel, TOLD, 0.0, environment, Path())
    assert all(value not in str(error.value) for value in environment.values())


def test_a_channel_is_named_without_its_secrets() -> None:
    names = {
        "https://user:pass@hooks.example.com/services/T0/XYZ?token=1": "https://hooks.example.com/…",
        "slack://TokenA/TokenB/TokenC": "slack://…",
        "${SLACK_URL}": "${SLACK_URL}",
        "${SLACK_URL}?token=1": "${SLACK_URL}",
        "xoxb-1234": "an address without a scheme",
        "https://[broken/": "https:///…",
    }
    assert {each: name_of(Channel(each)) for each in names} == names
    assert name_of(Channel(command=("notify-send", "--token", "XYZ"))) == "notify-send"


# Commands


def test_placeholders_are_arguments() -> None:
    values = {"title": "a; rm -rf $(x) {run}", "run": "r-1", "note": "--config=/etc/passwd"}
    made = filled(["say", "{title}", "--run={run}", "{note}", "{other}"], values)
    assert made == ["say", "a; rm -rf $(x) {run}", "--run=r-1", "config=/etc/passwd", "{other}"]


async def test_a_command_gets_the_message_on_stdin(tmp_path: Path) -> None:
    write = "import sys; open('told', 'w').write(sys.argv[1] + chr(10) + sys.stdin.read())"
    await sent(Channel(command=(sys.executable, "-c", write, "{title}")), tmp_path)
    title, _, body = (tmp_path / "told").read_text().partition("\n")
    assert title == TOLD.title and json.loads(body)["id"] == "r.3"


async def test_a_command_that_fails_says_how(tmp_path: Path) -> None:
    with pytest.raises(NotSent, match=r"^sh ended with exit code 3: cannot reach …$"):
        await sent(Channel(command=("sh", "-c", "echo cannot reach https://token@example.com >&2; exit 3")), tmp_path)
    with pytest.raises(NotSent, match=r"^no-such-program cannot be started: No such file or directory$"):
        await sent(Channel(command=("no-such-program",)), tmp_path)


async def test_a_command_that_hangs_is_killed_with_all_it_started(tmp_path: Path) -> None:
    with pytest.raises(NotSent, match=r"sh did not end within 0.5 s"):
        await call(["sh", "-c", "sleep 60 & echo $! > pid; wait"], b"{}", tmp_path, timeout=0.5)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not _lives(pid):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("its child still runs")


def _lives(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(") ")[2][0] not in "ZX"


# Apprise


async def test_apprise_sends_to_via_apprise(receiver: Receiver) -> None:
    pytest.importorskip("apprise")
    await sent(Channel("${JSON_URL}"), JSON_URL=receiver.url.replace("http://", "json://"))
    (got,) = receiver.taken
    assert (got.body["title"], got.body["message"]) == (TOLD.title, TOLD.text)


async def test_a_service_that_refuses_says_so(receiver: Receiver, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("apprise")
    receiver.answer = lambda _: 500
    with pytest.raises(NotSent, match="the service did not take the message"):
        await sent(Channel(receiver.url.replace("http://", "json://") + "/hidden-token"))
    assert "hidden-token" not in "".join(capfd.readouterr())


async def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(NotSent, match=r"pip install 'backedge\[notify\]'"):
        await sent(Channel("slack://a/b/c"))


def test_text_of_others_is_harmless() -> None:
    cases: dict[str, Any] = {
        "<!channel> and @here": "<\u200b!channel> and @\u200bhere",
        "\x1b[31mred\x00\x07": "red",
        "a < b": "a <\u200b b",
    }
    assert {each: harmless(each) for each in cases} == cases
    assert len(harmless("x" * 10_000)) == 500
