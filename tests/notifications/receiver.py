"""A web hook on loopback: it records what it gets, checks signatures, and answers as a test says."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.data)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def signed(self) -> bool:
        """Whether it is signed with SECRET, as Standard Webhooks says."""
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        content = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.data
        expected = base64.b64encode(hmac.new(key, content, sha256).digest()).decode()
        return f"v1,{expected}" in self.headers.get("webhook-signature", "").split()


@dataclass
class Receiver:
    """What was received, and how to answer: with a status, after some seconds."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], int] = lambda _: 204
    taken: list[Received] = field(default_factory=list)
    """Those that were answered with a success."""

    def events(self) -> list[str]:
        return [each.body["event"] for each in self.taken]

    def wait_for(self, count: int, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while len(self.taken) < count and time.monotonic() < end:
            time.sleep(0.02)
        assert len(self.taken) >= count, [each.id for each in self.received]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            got = Received(self.path, {key.lower(): value for key, value in self.headers.items()}, data)
            receiver.received.append(got)
            status = receiver.answer(got)
            if status < 300:
                receiver.taken.append(got)
            try:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", f"{receiver.url}/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                pass  # the sender did not wait

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
