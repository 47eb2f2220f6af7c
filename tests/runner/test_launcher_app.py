"""The launcher's API: who is let in, in which order, and what is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.faults import kinds
from tests.support.launched import HANGS, FakePerformer, Runners, config, keys
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import Fault
from trunkline.runner import engine, fleet, launcher_app
from trunkline.runner.cycle import IN_FLIGHT, CycleReport
from trunkline.runner.fleet import Fleet, FleetHome
from trunkline.runner.launcher_app import LauncherApp

SECRET = "the-secret-of-the-launcher"
ORIGIN = "http://127.0.0.1:4317"
OWN = "127.0.0.1:4318"


class World:
    """A launcher's application with fake runners, and a client that knows its secret."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.runners = Runners()
        self.fleet = Fleet(FleetHome(str(home), self.runners), keys())
        app = LauncherApp(self.fleet, secret=SECRET, origin=ORIGIN + "/", host="127.0.0.1")
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{OWN}")
        self.http.headers["x-runner-secret"] = SECRET

    async def get(self, path: str, **headers: str) -> Any:
        return await self.http.get(path, headers=headers)

    async def post(self, path: str, body: Any) -> Any:
        return await self.http.post(f"/runner/{path}", json=body)


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    # A start waits for its first cycle and its keyring, on a busy machine as well.
    monkeypatch.setattr(fleet, "FIRST_CYCLE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(fleet, "KEYRING_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(engine, "STOP_SECONDS", 0.2)
    made = World(tmp_path)
    yield made
    await made.fleet.close()
    await made.http.aclose()


FOREIGN = {"origin": "https://evil.example"}
NO_SECRET = {"x-runner-secret": ""}
WRONG = {"x-runner-secret": "wrong"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "error"),
    [
        ("GET", "/health", NO_SECRET, 200, None),
        ("GET", "/health", NO_SECRET | {"origin": ORIGIN}, 200, None),
        ("GET", "/health", FOREIGN, 403, "Origin not allowed"),
        ("GET", "/health", {"origin": "null"}, 403, "Origin not allowed"),
        ("GET", "/health", {"origin": ORIGIN + "0"}, 403, "Origin not allowed"),
        ("GET", "/health", {"host": "evil.example"}, 403, "Host not allowed"),
        ("GET", "/health", {"host": "evil.example:4318"}, 403, "Host not allowed"),
        ("GET", "/health", {"host": "127.0.0.1.evil.example:4318"}, 403, "Host not allowed"),
        ("GET", "/health", {"host": "192.168.1.1:4318"}, 403, "Host not allowed"),
        ("GET", "/health", {"host": "Localhost:4318"}, 200, None),
        ("GET", "/health", {"host": "[::1]:4318"}, 200, None),
        ("GET", "/health", {"host": "127.0.0.1"}, 200, None),
        # the origin before the secret
        ("GET", "/runner/status", FOREIGN | NO_SECRET, 403, "Origin not allowed"),
        ("POST", "/runner/start", FOREIGN, 403, "Origin not allowed"),
        # the secret before the route, and before the body
        ("GET", "/runner/status", NO_SECRET, 401, "Unauthorized"),
        ("GET", "/runner/status", WRONG, 401, "Unauthorized"),
        ("GET", "/runner/nothing", NO_SECRET, 401, "Unauthorized"),
        ("POST", "/runner/start", WRONG, 401, "Unauthorized"),
        # the route before the body
        ("GET", "/runner/nothing", {}, 404, "Not found"),
        ("POST", "/runner/status", {}, 404, "Not found"),
        ("GET", "/", NO_SECRET, 404, "Not found"),
        ("GET", "/runner/status", {}, 200, None),
        ("POST", "/runner/start", {}, 400, "Invalid JSON body: "),
    ],
)
async def test_a_request_passes_host_origin_secret_route_and_body_in_this_order(
    world: World, method: str, path: str, headers: dict[str, str], status: int, error: str | None
) -> None:
    response = await world.http.request(method, path, headers=headers, content=b"{" if method == "POST" else None)
    assert response.status_code == status
    if error is None:
        assert response.json()["ok"] is True
    else:
        assert response.json()["error"].startswith(error)
    assert response.headers.get("access-control-allow-origin") == (ORIGIN if "origin" in headers else None)


async def test_a_preflight_is_answered_for_one_origin_only(world: World) -> None:
    response = await world.http.options("/runner/start", headers={"origin": ORIGIN, "x-runner-secret": ""})
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert response.headers["access-control-allow-methods"] == "GET,POST,OPTIONS"
    assert response.headers["access-control-allow-headers"] == "content-type,authorization,x-runner-secret"
    assert response.headers["access-control-allow-private-network"] == "true"
    assert (await world.http.options("/runner/start", headers=FOREIGN)).status_code == 403


async def test_health_says_who_answers(world: World) -> None:
    assert (await world.get("/health")).json() == {"ok": True, "service": "runner-launcher"}


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (b"[1]", 400, "The body must be a JSON object"),
        (b'{"config": NaN}', 400, "Invalid JSON body"),
        (b"[" * 20_000, 400, "Invalid JSON body"),
        (b"\xff", 400, "Invalid JSON body"),
        (b"", 400, "Runner config is required"),
        (b'{"config": 7}', 400, "Runner config is required"),
        (b'{"config": {"agentId": "a"}}', 400, "runnerToken is required"),
        (b'{"config": {"runnerToken": "rnr_1"}}', 400, "agentId is required"),
        (b'{"config": {"runnerToken": "rnr_1", "agentId": "a"}}', 400, "securitySensitive.llmApiKey is required"),
        (b'{"runnerToken": "rnr_1", "agentId": "a", "encodedInput": "%"}', 400, "encodedInput is invalid"),
        (b'"' + b"x" * launcher_app.MAX_BODY, 413, "The body must have 4194304 bytes or fewer"),
    ],
)
async def test_a_start_that_cannot_be_is_refused_with_its_reason(
    world: World, body: bytes, status: int, error: str
) -> None:
    response = await world.http.post("/runner/start", content=body)
    assert (response.status_code, response.json()["error"][: len(error)]) == (status, error)
    assert world.runners.made == []


async def test_a_body_that_does_not_come_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher_app, "BODY_SECONDS", 0.05)

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    response = await world.http.post("/runner/stop", content=slow())
    assert response.status_code == 408


async def test_start_answers_200_also_when_the_first_cycle_failed_and_a_second_start_409(world: World) -> None:
    world.runners.reports[:] = [CycleReport(error="No community assigned for this runner")]
    response = await world.post("start", {"config": config()})
    answer = response.json()
    assert (response.status_code, answer["ok"], answer["message"]) == (200, True, "Runner started")
    assert (answer["status"]["running"], answer["status"]["selectedAgentId"]) == (True, "a1")
    assert answer["status"]["lastError"] == "No community assigned for this runner"
    assert answer["status"]["config"]["auth"] == {"hasRunnerToken": True, "hasAgentId": True}
    again = await world.post("start", config())
    assert (again.status_code, again.json()["error"]) == (409, "Runner is already running for agent a1")


async def test_every_fault_has_its_status(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, raised in kinds().items():

        async def start(_: Any, raised: type[Fault] = raised) -> str:
            raise raised("told")

        monkeypatch.setattr(world.fleet, "start", start)
        refused = await world.post("start", {"config": config()})
        assert (refused.status_code, refused.json()) == (TABLE[kind].http, {"error": "told"})


async def test_of_two_starts_at_once_one_is_409(world: World) -> None:
    responses = await asyncio.gather(*(world.post("start", config()) for _ in range(2)))
    assert sorted(each.status_code for each in responses) == [200, 409]


async def test_stop_ends_one_or_all_also_those_that_hang(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "FIRST_CYCLE_SECONDS", 0.05)
    world.runners.reports[:] = [HANGS]
    for agent_id in ("a1", "a2", "a3"):
        assert (await world.post("start", config(agent_id))).status_code == 200
    one = (await world.post("stop", {"agentId": "a1"})).json()
    assert (one["message"], one["status"]["running"]) == ("Runner stopped", False)
    assert (await world.post("stop", {"agentId": "nobody"})).status_code == 200
    status = (await world.get("/runner/status?agentId=a1")).json()["status"]
    assert (status["runningAgentIds"], status["selectedAgentRunning"]) == (["a2", "a3"], False)
    every = (await world.http.post("/runner/stop")).json()
    assert (every["message"], every["status"]["runningAny"]) == ("All runners stopped", False)
    assert all(runner.closed for runner in world.runners.made)


async def test_run_once_runs_a_cycle_or_says_that_one_is_under_way(world: World) -> None:
    world.runners.reports[:] = [CycleReport(), CycleReport(error="no"), HANGS]
    for path in ("run-once", "config"):
        assert (await world.post(path, {"config": {}})).status_code == 400
    assert (await world.post("run-once", {})).json() == {"error": "agentId is required"}
    assert (await world.post("run-once", {"agentId": "a1"})).status_code == 404
    await world.post("start", config())
    failed = (await world.post("run-once", {"agentId": "a1"})).json()
    assert (failed["ok"], failed["result"]["ok"], failed["result"]["error"]) == (True, False, "no")
    under_way = asyncio.create_task(world.post("run-once", {}))
    await until(lambda: world.runners.made[0].begun == 3)
    second = (await world.post("run-once", {"agentId": "a1"})).json()
    assert (second["ok"], second["result"]) == (True, {"skipped": True, "reason": IN_FLIGHT})
    await world.post("stop", {})
    assert (await under_way).json()["result"]["ok"] is False
    world.runners.reports[:] = [CycleReport()]
    other = (await world.post("run-once", config("a2"))).json()
    assert (other["result"]["ok"], other["status"]["selectedAgentId"]) == (True, "a2")


async def test_a_configuration_is_changed_in_parts(world: World) -> None:
    await world.post("start", config())
    answer = (await world.post("config", {"agentId": "a1", "config": {"runtime": {"intervalSec": 5}}})).json()
    assert answer["message"] == "Runner configured"
    assert answer["status"]["config"]["runtime"]["intervalSec"] == 5
    assert (await world.post("config", {"agentId": "a2", "config": {}})).status_code == 404
    refused = await world.post("config", {"config": {"timeoutSec": "never"}})
    assert (refused.status_code, "timeoutSec" in refused.json()["error"]) == (400, True)


async def test_the_log_is_shown_from_its_end_also_of_an_agent_that_was_stopped(world: World) -> None:
    path = world.home / "log.jsonl"
    await world.post("start", config(log=str(path)))
    path.write_text("".join(json.dumps({"id": str(n)}) + "\n" for n in range(70)) + "half a li")
    for _ in range(2):
        answer = (await world.get("/runner/log?agentId=a1&limit=3")).json()
        assert [entry["id"] for entry in answer["entries"]][-1] == "69"
        assert len((await world.get("/runner/log")).json()["entries"]) >= 49
        await world.post("stop", {})
    assert (await world.get("/runner/log?agentId=a2")).status_code == 404
    for wrong in ("-1", "x", "1.5", ""):
        assert (await world.get(f"/runner/log?agentId=a1&limit={wrong}")).status_code == 400


async def test_transactions_that_wait_are_listed_and_decided(world: World) -> None:
    performer = FakePerformer("11155111-1", "11155111-2")
    world.runners.prepare = lambda runner: setattr(runner, "performer", performer)
    await world.post("start", config())
    waiting, second = (await world.get("/runner/approvals")).json()["approvals"]
    assert (waiting["id"], waiting["agentId"], waiting["value"]) == ("a1/11155111-1", "a1", "7")
    assert (await world.get("/runner/status")).json()["status"]["waitingApprovals"] == 2
    for wrong in ({}, {"id": waiting["id"]}, {"id": waiting["id"], "approve": "yes"}, {"id": 1, "approve": True}):
        assert (await world.post("approve", wrong)).status_code == 400
    assert (await world.post("approve", {"id": "a1/x", "approve": True})).status_code == 404
    assert (await world.post("approve", {"id": waiting["id"], "approve": True})).status_code == 200
    for agent_id, status in (("a2", 404), ("a1", 200)):
        body = {"agentId": agent_id, "id": "11155111-2", "approve": False}
        assert (await world.post("approve", body)).status_code == status
    assert performer.decided == [("11155111-1", True), (second["id"].removeprefix("a1/"), False)]


async def test_an_error_shows_no_secret_and_a_disk_that_fails_is_503(world: World) -> None:
    secret = "sk-not-for-errors-1"
    wrong = config(securitySensitive={"llmApiKey": secret}, prompts={"system": f"/nowhere/{secret}.md"})
    response = await world.post("start", wrong)
    assert (response.status_code, secret in response.text, "[redacted]" in response.text) == (400, False, True)
    (world.home / "runner").write_text("not a directory")
    assert (await world.post("start", config())).status_code == 503


async def test_a_defect_is_answered_with_json_and_without_its_text(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(world.fleet, "start", fail)
    response = await world.post("start", config())
    assert (response.status_code, response.json()) == (500, {"error": "The launcher could not answer: RuntimeError"})


async def test_a_start_during_which_all_is_stopped_is_503(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.fleet.close()
    response = await world.post("start", config())
    assert (response.status_code, response.json()) == (503, {"error": fleet.ENDING})
