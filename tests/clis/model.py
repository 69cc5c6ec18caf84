"""A stand-in for the model on loopback: what it says is scripted by the test, what it was asked is kept.

It speaks the Messages API (claude, opencode), the Responses API (codex) and generateContent (gemini), all as
server-sent events. One script is said turn by turn to whoever asks with tools at hand; other requests (titles, summaries) get a word that means nothing.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

IN, OUT = 1200, 30
"""Tokens that every turn reports."""


@dataclass(frozen=True)
class Call:
    """The model uses a tool."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True)
class Text:
    """The model says something."""

    text: str


@dataclass(frozen=True)
class Fail:
    """The API answers with an error: its body, unless given, is one that says nothing."""

    status: int
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Hang:
    """The API takes the request and never answers."""


Turn = Call | Text | Fail | Hang


@dataclass
class Model:
    """The script, and what was asked."""

    port: int
    turns: list[Turn] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the requests that the script answered."""
    over: threading.Event = field(default_factory=threading.Event)
    hanging: threading.Event = field(default_factory=threading.Event)
    """Set while a request is not being answered."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def says(self, *turns: Turn) -> None:
        """Go on with these turns."""
        with self._lock:
            self.turns += turns

    def asked_text(self, which: int = -1) -> str:
        """One request as text, to look for what the CLI told the model."""
        return json.dumps(self.asked[which], ensure_ascii=False)

    def next_turn(self, body: dict[str, Any]) -> Turn:
        with self._lock:
            if not body.get("tools"):
                return Text("ok")
            self.asked.append(body)
            return self.turns.pop(0) if self.turns else Text("The script is over.")

    def number(self) -> int:
        return next(self._numbers)


@contextmanager
def model(*turns: Turn) -> Iterator[Model]:
    """A server with a script, for the time of a test."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    script = Model(server.server_address[1], list(turns))
    server.script = script  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_HEAD(self) -> None:
        self._answer(200, b"", "text/plain")

    def do_GET(self) -> None:
        self._answer(200, b'{"data": [], "models": []}')

    def do_POST(self) -> None:
        script: Model = self.server.script  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            return self._answer(200, json.dumps({"input_tokens": 10}).encode())
        api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
        if api is None:
            return self._answer(404, b"{}")
        turn = script.next_turn(body)
        if isinstance(turn, Hang):
            script.hanging.set()
            script.over.wait(60)
            self.close_connection = True
            return None
        if isinstance(turn, Fail):
            error = {"type": "error", "error": {"type": "api_error", "message": f"scripted error {turn.status}"}}
            body_text = json.dumps(error if turn.body is None else turn.body)
            return self._answer(turn.status, body_text.encode(), headers=turn.headers)
        events = list(api(turn, script.number(), str(body.get("model"))))
        if path.endswith(":generateContent"):
            return self._answer(200, json.dumps(events[0]).encode())
        if not body.get("stream") and not path.endswith(":streamGenerateContent"):
            return self._answer(200, json.dumps(_whole_message(turn, str(body.get("model")))).encode())
        return self._answer(200, "".join(map(_sent, events)).encode(), "text/event-stream")

    def _answer(
        self, status: int, body: bytes, kind: str = "application/json", headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        try:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # who asked has gone


def _messages(turn: Call | Text, number: int, model: str) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": IN, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    if isinstance(turn, Text):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": turn.text}
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": turn.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.input)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = {"stop_reason": "end_turn" if isinstance(turn, Text) else "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": OUT}}
    yield {"type": "message_stop"}


def _whole_message(turn: Call | Text, model: str) -> dict[str, Any]:
    text = turn.text if isinstance(turn, Text) else "ok"
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "msg_0", "type": "message", "role": "assistant", "model": model, "usage": usage,
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None}  # fmt: skip


def _responses(turn: Call | Text, number: int, model: str) -> Iterator[dict[str, Any]]:
    id = f"resp_{number}"
    yield {"type": "response.created", "response": {"id": id, "status": "in_progress", "output": []}}
    item: dict[str, Any]
    if isinstance(turn, Text):
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        item = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    else:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": turn.tool,
                "arguments": json.dumps(turn.input), "status": "completed"}  # fmt: skip
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": IN, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": OUT,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": IN + OUT}  # fmt: skip
    yield {"type": "response.completed",
           "response": {"id": id, "model": model, "status": "completed", "output": [item], "usage": usage}}  # fmt: skip


def _generated(turn: Call | Text, number: int, model: str) -> Iterator[dict[str, Any]]:
    part = {"text": turn.text} if isinstance(turn, Text) else {"functionCall": {"name": turn.tool, "args": turn.input}}
    yield {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": IN, "candidatesTokenCount": OUT, "totalTokenCount": IN + OUT},
        "responseId": str(number),
        "modelVersion": model,
    }


def _sent(event: dict[str, Any]) -> str:
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {json.dumps(event)}\n\n"


_APIS = {
    "/messages": _messages,
    "/responses": _responses,
    ":generateContent": _generated,
    ":streamGenerateContent": _generated,
}
