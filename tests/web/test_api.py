"""The HTTP API: what it answers about runs, and what it changes."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from backedge import Engine
from backedge.cli.common import print_json
from backedge.core.model import HUMAN
from tests.web.serving import HOSTILE, Site, on_site, passes, without_network

DECISION = "/api/v1/runs/r-asks/escalations/E-1/decision"


def test_a_run_has_the_shape_of_show_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client:
            answer = await client.get("/api/v1/runs/r-asks")
        desk = site.app.state.desk  # type: ignore[attr-defined]
        print_json(await desk.report(await desk.known("r-asks")))
        assert answer.json() == json.loads(capsys.readouterr().out)
        assert answer.json()["findings"][0]["description"] == HOSTILE

    without_network(tmp_path, test)


def test_what_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("decider") as client:
            first = await client.get("/api/v1/runs/r-asks")
            mark = first.headers["etag"]
            assert mark.startswith('"r-asks:')
            for given in (mark, f"W/{mark}", f'"other", {mark}', "*"):
                again = await client.get("/api/v1/runs/r-asks", headers={"If-None-Match": given})
                assert (again.status_code, again.content) == (304, b""), given
            assert (await client.get("/api/v1/runs/r-asks", headers={"If-None-Match": '"x"'})).status_code == 200
            await client.post(DECISION, json={"choice": "accept", "note": "fine"})
            assert (await client.get("/api/v1/runs/r-asks", headers={"If-None-Match": mark})).status_code == 200

    without_network(tmp_path, test)


def test_a_part_of_a_page_that_looks_the_same_is_not_sent_again(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("decider") as client:
            parts = ("head", "graph", "loops", "evidence")
            marks = {part: (await client.get(f"/runs/r-asks/part/{part}")).headers["etag"] for part in parts}
            await client.post("/api/v1/runs/r-asks/findings/F-1/phase", json={"phase": "code"})
            changed = set()
            for part, mark in marks.items():
                again = await client.get(f"/runs/r-asks/part/{part}", headers={"If-None-Match": mark})
                assert (again.status_code == 304) is (again.content == b"")
                changed |= {part} if again.status_code == 200 else set()
            assert changed == {"head"}, "the number of events"
            viewer = site.client("viewer")
            assert (await viewer.get("/runs/r-asks")).text != (await client.get("/runs/r-asks")).text

    without_network(tmp_path, test)


def test_many_addresses_of_a_page_take_no_memory(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client:
            for number in range(200):
                await client.get(f"/runs/r-asks/part/head?x={number}")
            kept = site.app.state.run_pages  # type: ignore[attr-defined]
            assert sum(len(each.rendered) for each in kept.values()) <= 24

    without_network(tmp_path, test)


def test_a_run_is_shown_as_it_was_at_any_event(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client:
            newest = int((await client.get("/api/v1/runs/r-asks")).headers["etag"].strip('"').partition(":")[2])
            for at in range(1, newest + 1):
                then = await client.get(f"/api/v1/runs/r-asks?at={at}")
                assert then.headers["etag"] == f'"r-asks:{at}"'
                events = await site.app.state.desk.known("r-asks", at)  # type: ignore[attr-defined]
                assert len(events.events) == at
            assert (await client.get("/api/v1/runs/r-asks?at=1")).json()["findings"] == []
            late = await client.get(f"/api/v1/runs/r-asks?at={newest + 1}")
            assert (late.status_code, f"{newest} events" in late.json()["detail"]) == (400, True)

    without_network(tmp_path, test)


@pytest.mark.parametrize(
    ("path", "status", "nearest"),
    [
        ("/api/v1/runs/r-aks", 404, "r-asks"),
        ("/api/v1/rnus", 404, "/api/v1/runs"),
        ("/api/v1/runs?outcom=done", 400, "outcome"),
        ("/api/v1/runs?outcome=dne", 400, "done"),
        ("/api/v1/runs?limit=0", 400, None),
        ("/api/v1/runs?limit=1000", 400, None),
        ("/api/v1/runs?limit=ten", 400, None),
        ("/api/v1/runs?limit=1&limit=2", 400, None),
        ("/api/v1/runs/r-asks?at=0", 400, None),
        ("/api/v1/runs/r-asks/steps/cod/attempts/1/log", 404, "code"),
        ("/api/v1/runs/r-asks/steps/code/attempts/99/log", 404, None),
        ("/api/v1/runs/r-asks/steps/code/attempts/-1/log", 404, None),
        ("/api/v1/runs/r-asks/steps/..%2f..%2f/attempts/1/prompt", 404, None),
        ("/api/v1/runs/r-asks/loops/L-9/what-if", 404, None),
        ("/api/v1/board", 404, None),
        ("/api/v1/stats?workflow=pya", 404, "pay"),
    ],
)
def test_a_mistake_names_the_nearest_valid_word(tmp_path: Path, path: str, status: int, nearest: str | None) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client:
            answer = await client.get(path)
        problem = answer.json()
        assert (answer.status_code, problem.get("nearest")) == (status, nearest), problem
        assert answer.headers["content-type"] == "application/problem+json"
        assert problem["status"] == status
        assert problem["error"]
        assert problem["detail"]

    without_network(tmp_path, test)


def test_runs_are_listed_page_by_page_and_filtered(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        for number in range(7):
            await (await site.engine.start(passes(), run=f"r-{number}")).result()
        async with site.client("viewer") as client:

            async def listed(**query: Any) -> list[str]:
                found, cursor = [], None
                while True:
                    given = {**query, **({"cursor": cursor} if cursor else {})}
                    page = (await client.get("/api/v1/runs", params=given)).json()
                    found += [each["run"] for each in page["items"]]
                    cursor = page["next"]
                    if cursor is None:
                        return found

            everything = ["r-6", "r-5", "r-4", "r-3", "r-2", "r-1", "r-0", "r-done", "r-asks"]
            for limit in (1, 2, 3, 9, 200):
                assert await listed(limit=limit) == everything
            assert await listed(outcome="waiting") == ["r-asks"]
            assert await listed(workflow="pay", limit=1) == ["r-asks"]
            assert await listed(q="ASKS") == ["r-asks"]
            assert await listed(q="nothing like it") == []
            first = (await client.get("/api/v1/runs?outcome=waiting")).json()["items"][0]
            assert (first["asks"], first["next"]) == (["E-1"], "backedge decide E-1 --run r-asks")

    without_network(tmp_path, test)


def test_events_come_page_by_page(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client:
            found, after = [], 0
            while True:
                page = (await client.get(f"/api/v1/runs/r-asks/events?after={after}&limit=4")).json()
                found += [each["seq"] for each in page["items"]]
                if page["next"] is None:
                    break
                after = page["next"]
        assert found == list(range(1, len(found) + 1))
        assert len(found) == len(await (await site.engine.find("r-asks")).events())

    without_network(tmp_path, test)


# Decisions


def test_a_decision_is_recorded_under_the_name_of_the_token(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("decider") as client:
            (asked,) = (await client.get("/api/v1/inbox")).json()["items"]
            assert (asked["run"], asked["id"]) == ("r-asks", "E-1")
            forged = await client.post(DECISION, json={"choice": "accept", "note": "x", "by": "the boss"})
            assert forged.status_code == 422
            done = (await client.post(DECISION, json={"choice": "accept", "note": "fine"})).json()
            assert (done["choice"], done["by"]) == ("accept", "decider")
            assert (await client.get("/api/v1/inbox")).json()["items"] == []
            late = await client.post(DECISION, json={"choice": "cancel", "note": "no"})
            assert late.status_code == 409
            first = late.json()["decision"]
            assert (first["choice"], first["by"], first["note"]) == ("accept", "decider", "fine")
        state = await (await site.engine.find("r-asks")).state()
        assert state.ended is not None and state.ended.outcome == "accepted"

    without_network(tmp_path, test)


def test_a_decision_about_what_is_no_longer_so_is_refused(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("decider") as client:
            mark = (await client.get("/api/v1/runs/r-asks")).headers["etag"]
            await (await site.engine.find("r-asks")).pause("somebody")
            stale = await client.post(DECISION, json={"choice": "accept", "note": "x"}, headers={"If-Match": mark})
            assert stale.status_code == 412
            assert stale.json()["etag"] != mark
            new = {"If-Match": stale.json()["etag"]}
            assert (await client.post(DECISION, json={"choice": "accept", "note": "x"}, headers=new)).status_code == 200

    without_network(tmp_path, test)


def test_two_clients_deciding_at_once_make_one_decision(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("decider") as one, site.client("admin") as other:
            clients = [one, other] * 5
            answers = await asyncio.gather(
                *(
                    client.post(DECISION, json={"choice": "accept", "note": f"n{place}"})
                    for place, client in enumerate(clients)
                )
            )
        assert sorted(answer.status_code for answer in answers) == [200, *[409] * 9]
        (first,) = [answer.json() for answer in answers if answer.status_code == 200]
        told = {json.dumps(answer.json()["decision"]) for answer in answers if answer.status_code == 409}
        assert len(told) == 1
        assert json.loads(told.pop())["by"] == first["by"]

    on_site(tmp_path, test)


def test_two_servers_on_one_journal_make_one_decision(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with Engine(site.project.journal) as other:
            found = await other.find("r-asks")
            async with site.client("decider") as client:
                answers = await asyncio.gather(
                    client.post(DECISION, json={"choice": "accept", "note": "here"}),
                    found.decide("E-1", "cancel", by="there", note="there"),
                    return_exceptions=True,
                )
                report = (await client.get("/api/v1/runs/r-asks")).json()
        (decided,) = [each for each in report["escalations"] if each["id"] == "E-1"]
        here = not isinstance(answers[0], BaseException) and answers[0].status_code == 200
        assert decided["by"] == ("decider" if here else "there")
        assert here == isinstance(answers[1], BaseException)

    on_site(tmp_path, test)


def test_a_decider_for_a_role_cannot_decide_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(site: Site) -> None:
        site.tokens["sam"] = site.store.add("sam", "decider", ("security",))  # type: ignore[attr-defined]
        from backedge.core.state.run import RunState

        class ForLegal:
            id, for_roles = "E-1", ("legal",)

        monkeypatch.setattr(RunState, "escalation", lambda *_: ForLegal())
        async with site.client("sam") as client:
            answer = await client.post(DECISION, json={"choice": "accept", "note": "x"})
            assert answer.status_code == 403
            assert "for legal" in answer.json()["detail"]

    without_network(tmp_path, test)


# Feedback and runs


def test_feedback_of_a_person_is_raised_and_mistakes_are_not_recorded(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("decider") as client:
            before = (await client.get("/api/v1/runs/r-done")).headers["etag"]
            wrong = await client.post(
                "/api/v1/runs/r-done/feedback", json={"kind": "fix_reqest", "message": "x", "to": ["code"]}
            )
            assert wrong.status_code == 422
            assert (await client.get("/api/v1/runs/r-done")).headers["etag"] == before
            raised = await client.post(
                "/api/v1/runs/r-done/feedback", json={"kind": "fix_request", "message": "blank", "to": ["code"]}
            )
            assert raised.status_code == 201, raised.text
            report = (await client.get("/api/v1/runs/r-done")).json()
        (loop,) = [each for each in report["loops"] if each["id"] == raised.json()["loop"]]
        assert (loop["source"], loop["targets"], loop["message"]) == (HUMAN, ["code"], "blank")

    without_network(tmp_path, test)


def test_a_finding_is_reclassified_by_the_caller(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("decider") as client:
            changed = await client.post("/api/v1/runs/r-asks/findings/F-1/phase", json={"phase": "planning"})
            assert changed.json()["phases"] == ["planning"], changed.text
            unknown = await client.post("/api/v1/runs/r-asks/findings/F-9/phase", json={"phase": "planning"})
            assert unknown.status_code == 404
        last = (await (await site.engine.find("r-asks")).events())[-1]
        assert getattr(last, "by", None) == "decider"

    without_network(tmp_path, test)


def test_an_admin_pauses_resumes_and_cancels(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("admin") as client:
            paused = (await client.post("/api/v1/runs/r-asks/pause")).json()
            assert paused["paused"] is True
            assert (await client.post("/api/v1/runs/r-asks/resume")).json()["paused"] is False
            ended = (await client.post("/api/v1/runs/r-asks/cancel", json={"reason": "no longer wanted"})).json()
            assert ended["outcome"] == "cancelled"
            again = await client.post("/api/v1/runs/r-asks/cancel", json={})
            assert again.status_code in (409, 422)
            start = await client.post("/api/v1/runs", json={"input": 1})
            assert (start.status_code, start.json()["error"]) == (409, "NotExecuted")

    without_network(tmp_path, test)


def test_the_graph_is_one_picture_that_runs_nothing(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client:
            answer = await client.get("/api/v1/runs/r-asks/graph.svg")
            assert answer.headers["content-type"].startswith("image/svg+xml")
            root = ElementTree.fromstring(answer.text)
            drawn = {each.get("class", "") for each in root.iter()}
            assert {"node box done", "node pill failing", "loop asks"} <= drawn
            style = next(each.text or "" for each in root.iter() if each.tag.endswith("style"))
            digest = b64encode(sha256(style.encode()).digest()).decode()
            policy = f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"
            assert answer.headers["content-security-policy"] == policy
            earlier = ElementTree.fromstring((await client.get("/api/v1/runs/r-asks/graph.svg?at=1")).text)
            assert "node box waiting" in {each.get("class") for each in earlier.iter()}
            mark = {"If-None-Match": answer.headers["etag"]}
            assert (await client.get("/api/v1/runs/r-asks/graph.svg", headers=mark)).status_code == 304

    without_network(tmp_path, test)


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client() as client:
            body, kind = '{"choice": "accept", "choice": "cancel"}', {"Content-Type": "application/json"}
            answer = await client.post(DECISION, content=body, headers=kind)
            assert (answer.status_code, "'choice' twice" in answer.json()["detail"]) == (400, True)
            assert len((await client.get("/api/v1/inbox")).json()["items"]) == 1

    without_network(tmp_path, test)


def test_what_if_stats_report_and_metrics_answer(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client:
            blast = (await client.get("/api/v1/runs/r-asks/loops/L-1/what-if")).json()
            assert blast["reworks"] == ["code"]
            assert (await client.get("/api/v1/stats")).json()["runs"] == 2
            told = (await client.get("/api/v1/report")).json()
            assert (told["runs"], told["open_escalations"]) == ({"waiting": 1, "verified": 1}, 1)
            text = (await client.get("/metrics")).text
            assert (await client.get("/api/v1/metrics")).text.partition("age_seconds ")[0] == text.partition(
                "age_seconds "
            )[0]
            assert (await client.get("/api/v1/healthz")).text == "ok\n"
            assert 'backedge_runs{outcome="waiting"} 1' in text
            assert "backedge_inbox_open 1" in text
            assert "r-asks" not in text
            assert (await client.get("/api/v1/openapi.json")).json()["openapi"] == "3.1.0"

    without_network(tmp_path, test)
