"""`backedge serve` as people start it: its address, its errors, kill -9, and its end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.project import Project, failed, passed, until

WORKFLOW = {"steps": {"code": {"phase": "code"}, "test": {"tests": "code"}}, "limits": {"rounds_per_pair": 1}}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    found = Project(
        tmp_path / "p", WORKFLOW, code=[{"output": 1}, {"output": 2}], test=[failed("blank"), failed("blank"), passed()]
    )
    yield found
    found.end_all()


class Server:
    """A server in a process of its own."""

    def __init__(self, project: Project, *words: str) -> None:
        self.process = project.started("serve", "--port", "0", *words)
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode().strip()
        assert line, (self.process.stderr or open("/dev/null", "rb")).read()  # noqa: SIM115
        self.address, _, fragment = line.partition("/#")
        self.token = fragment.removeprefix("token=")
        self.port = int(self.address.rpartition(":")[2])

    def client(self, **headers: str) -> httpx.Client:
        given = {"Authorization": f"Bearer {self.token}", **headers}
        return httpx.Client(base_url=self.address, headers=given, timeout=30)


def events(client: httpx.Client, run: str, after: int, most: int) -> list[int]:
    """The numbers of the next events, from a stream."""
    found = []
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    with client.stream("GET", f"/api/v1/runs/{run}/events", headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("id: "):
                found.append(int(line[4:]))
                if len(found) == most:
                    break
    return found


def test_after_kill_9_readers_continue_where_they_were(project: Project) -> None:
    project.backedge("run", "--quiet", "--run", "r-1")
    server = Server(project)
    with server.client() as client:
        origin = {"Origin": server.address}
        signed = httpx.post(f"{server.address}/login", json={"token": server.token}, headers=origin, timeout=30)
        cookies = dict(signed.cookies)
        seen = events(client, "r-1", 0, 5)
    server.process.kill()
    server.process.communicate()
    # The same port again: that is where the browser looks.
    process = project.started("serve", "--port", str(server.port))
    assert process.stdout is not None
    address = process.stdout.readline().decode().partition("/#")[0]
    assert address == server.address
    with httpx.Client(base_url=address, cookies=cookies, timeout=30) as browser:
        seen += events(browser, "r-1", seen[-1], 4)
        assert seen == list(range(1, 10))
        decided = browser.post(
            "/api/v1/runs/r-1/escalations/E-1/decision", json={"choice": "accept", "note": "fine"}, headers=origin
        )
        assert decided.status_code == 200, decided.text
    assert project.show("r-1").report["outcome"] == "accepted"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once_also_with_open_streams(project: Project, how: signal.Signals) -> None:
    project.backedge("run", "--quiet", "--run", "r-1")
    server = Server(project)
    with server.client() as client, client.stream("GET", "/api/v1/inbox/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        server.process.send_signal(how)
        list(lines)  # the stream ends properly
    _, err = server.process.communicate(timeout=15)
    assert server.process.returncode == 0, err
    assert b"Traceback" not in err


def test_it_executes_runs_only_when_told_to(project: Project) -> None:
    project.backedge("run", "--quiet", "--run", "r-1")
    shows = Server(project)
    with shows.client() as client:
        answer = client.post("/api/v1/runs", json={"input": None})
        assert (answer.status_code, answer.json()["error"]) == (409, "NotExecuted")
    shows.process.terminate()
    shows.process.communicate(timeout=15)
    server = Server(project, "--execute")
    with server.client() as client:

        def outcome(run: str) -> Any:
            return client.get(f"/api/v1/runs/{run}").json().get("outcome")

        decided = client.post("/api/v1/runs/r-1/escalations/E-1/decision", json={"choice": "continue", "rounds": 1})
        assert decided.status_code == 200, decided.text
        until(lambda: outcome("r-1") == "verified", 60)  # nobody else executes it
        key = {"Idempotency-Key": "r-2"}
        first = client.post("/api/v1/runs", json={"input": {"task": 1}}, headers=key)
        assert (first.status_code, first.headers["location"]) == (201, "/api/v1/runs/r-2"), first.text
        again = client.post("/api/v1/runs", json={"input": {"task": 1}}, headers=key)
        assert (again.status_code, again.json()["run"]) == (200, "r-2")
        for task in (2, True):
            other = client.post("/api/v1/runs", json={"input": {"task": task}}, headers=key)
            assert (other.status_code, other.json()["error"]) == (422, "KeyUsed"), task
        until(lambda: outcome("r-2") == "waiting", 60)
        assert len(project.events("r-2")) == len({each["seq"] for each in project.events("r-2")})
    server.process.terminate()
    server.process.communicate(timeout=30)
    assert server.process.returncode == 0


def test_a_run_whose_process_was_killed_is_continued(project: Project) -> None:
    project.script(code=[{"output": 1, "!wait": "go"}], test=[passed()])
    running = project.started("run", "--quiet", "--run", "r-1", stdout=subprocess.DEVNULL)
    project.wait_for_execution("code")
    server = Server(project, "--execute")
    running.kill()
    running.communicate()
    (project.folder / "go").touch()
    with server.client() as client:
        until(lambda: client.get("/api/v1/runs/r-1").json()["outcome"] == "verified", 60)
        assert client.get("/api/v1/runs/r-1").json()["steps"]["code"]["attempts"] == 1


def test_run_serve_shows_the_run_while_it_runs_and_takes_its_answers(project: Project) -> None:
    process = project.started("run", "--serve", "--run", "r-1", "--plain")
    assert process.stderr is not None
    address = ""
    for line in process.stderr:
        if b"/#token=" in line:
            address = line.decode().split()[-1]
            break
    base, _, fragment = address.partition("/#")
    headers = {"Authorization": f"Bearer {fragment.removeprefix('token=')}"}
    with httpx.Client(base_url=base, headers=headers, timeout=30) as client:
        until(lambda: client.get("/api/v1/inbox").json()["items"], 60)
        decided = client.post("/api/v1/runs/r-1/escalations/E-1/decision", json={"choice": "accept", "note": "fine"})
        assert decided.status_code == 200, decided.text
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4, err


def test_its_errors_say_what_to_do(project: Project) -> None:
    assert "there is no journal" in project.refused("serve")
    project.backedge("run", "--quiet", "--run", "r-1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} is taken" in project.refused("serve", "--port", port)
    assert "--allow-host" in project.refused("serve", "--host", "0.0.0.0")
    assert "cannot listen at 203.0.113.7" in project.refused(
        "serve", "--host", "203.0.113.7", "--allow-host", "x", "--port", "0"
    )
    assert "--for limits a decider" in project.refused("serve", "token", "add", "ann", "--for", "security")


def test_an_attempt_of_the_run_may_not_serve_nor_make_tokens(project: Project) -> None:
    project.backedge("run", "--quiet", "--run", "r-1")
    (folder,) = (project.folder / ".backedge" / "attempts").glob("*/code-1")
    inside = {"BACKEDGE_BRIEFING": str(folder / "briefing.json")}
    for words in (("serve", "--port", "0"), ("serve", "token", "add", "me", "--role", "admin")):
        assert "decisions are for people" in project.refused(*words, env=inside)


def test_tokens_are_added_listed_and_removed(project: Project) -> None:
    project.backedge("run", "--quiet", "--run", "r-1")
    said = project.backedge("serve", "token", "add", "ann", "--role", "decider", "--for", "security")
    token = said.out.strip()
    server = Server(project)
    with httpx.Client(base_url=server.address, headers={"Authorization": f"Bearer {token}"}, timeout=30) as ann:
        assert ann.get("/api/v1/inbox").status_code == 200
        assert ann.post("/api/v1/runs/r-1/pause").status_code == 403
        listed = json.loads(project.backedge("serve", "token", "list", "--json").out)
        assert listed == [{"name": "ann", "role": "decider", "for": ["security"], "proxy": False}]
        assert token not in project.backedge("serve", "token", "list").out
        assert project.backedge("serve", "token", "remove", "ann").code == 0
        assert ann.get("/api/v1/inbox").status_code == 401
