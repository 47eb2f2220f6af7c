"""Who gets in, and how far."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.exchange.api_world import token, world
from tests.support.loop import until
from trunkline.exchange.api.app import all_endpoints
from trunkline.exchange.api.auth import MAX_TOKEN
from trunkline.exchange.settings import ROLES


async def test_everything_but_the_probe_needs_a_token(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/livez", who=None)).json() == {"ok": True}
        for path in ("/readyz", "/metrics", "/api/agents", "/api/openapi.json", "/api/nothing", "/", "/livez/"):
            refused = await net.get(path, who=None)
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
            assert refused.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {token('admin')}",
        token("admin"),
        f"Bearer {'x' * MAX_TOKEN * 2}",
    ],
)
async def test_what_is_not_somebodys_token_is_refused(tmp_path: Path, header: str) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/agents", who=None, headers={"authorization": header})).status_code == 401


async def test_a_token_in_the_address_is_none(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/agents", who=None, params={"token": token("admin")})).status_code == 401


async def test_bytes_that_are_no_text_are_nobodys_token(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        refused = await net._client.get("/api/agents", headers={b"authorization": b"Bearer \xff\xfe"})
        assert refused.status_code == 401


async def test_the_scheme_of_a_token_may_be_written_in_any_case(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        headers = {"authorization": f"bEARER  {token('observer')}"}
        assert (await net.get("/api/agents", who=None, headers=headers)).status_code == 200


async def test_figures_need_no_token_if_that_is_configured(tmp_path: Path) -> None:
    async with world(tmp_path, metrics_without_token=True) as net:
        assert (await net.get("/metrics", who=None)).status_code == 200
        assert (await net.get("/api/agents", who=None)).status_code == 401


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_may_do_what_its_own_routes_do_and_no_more(tmp_path: Path, role: str) -> None:
    async with world(tmp_path) as net:
        for endpoint in all_endpoints():
            path = re.sub(r"\{\w+\}", "nobody-knows", endpoint.path)
            # A stream has no end, and its head says enough.
            is_stream = endpoint.answer.get("contentMediaType") == "text/event-stream"
            method = "HEAD" if is_stream else endpoint.method
            status = (await net.ask(method, path, {}, who=role)).status_code
            may = ROLES.index(endpoint.least) <= [*ROLES].index(role)  # type: ignore[arg-type]  # it is one of them
            assert (status != 403) == may, (endpoint.method, path, status)
            assert status != 401


def test_talkers_talk_approvers_decide_and_the_rest_is_the_admins() -> None:
    least = {(endpoint.method, endpoint.path): endpoint.least for endpoint in all_endpoints()}
    assert {path for (method, path), role in least.items() if method == "GET" and role != "observer"} == {
        "/api/settings"
    }
    assert least["POST", "/api/sessions"] == least["POST", "/api/sessions/{id}/messages"] == "talker"
    assert least["POST", "/api/sessions/{id}/stop"] == "talker"
    assert least["POST", "/api/approvals/{id}"] == "approver"
    for key in (("POST", "/api/sessions/{id}/mode"), ("DELETE", "/api/sessions/{id}"), ("POST", "/api/reload")):
        assert least[key] == "admin"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, "foreign_host"),
        ({"host": "evil.example:4400"}, "foreign_host"),
        ({"host": "127.0.0.1.evil.example"}, "foreign_host"),
        ({"origin": "http://evil.example"}, "foreign_origin"),
        ({"origin": "null"}, "foreign_origin"),
        ({"origin": "http://127.0.0.1:9999"}, "foreign_origin"),
    ],
)
async def test_pages_and_names_from_elsewhere_are_refused_with_a_good_token_and_without(
    tmp_path: Path, headers: dict[str, str], code: str
) -> None:
    async with world(tmp_path) as net:
        for path, who in (("/api/agents", "admin"), ("/livez", None)):
            refused = await net.get(path, who=who, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, code)


@pytest.mark.parametrize(
    ("name", "values", "status"),
    [
        ("origin", ("http://127.0.0.1:4400", "http://evil.example"), 403),
        ("authorization", (f"Bearer {token('admin')}", f"Bearer {token('observer')}"), 401),
    ],
)
async def test_who_says_two_things_at_once_is_not_believed_the_first(
    tmp_path: Path, name: str, values: tuple[str, str], status: int
) -> None:
    async with world(tmp_path) as net:
        more = [] if name == "authorization" else [("authorization", f"Bearer {token('admin')}")]
        headers = [*more, *((name, value) for value in values)]
        assert (await net.get("/api/agents", who=None, headers=headers)).status_code == status


@pytest.mark.parametrize("headers", [{"host": "localhost:4400"}, {"origin": "http://127.0.0.1:4400"}])
async def test_its_own_names_and_pages_are_welcome(tmp_path: Path, headers: dict[str, str]) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/agents", headers=headers)).status_code == 200


async def test_a_name_that_is_added_to_the_configuration_counts_from_then_on(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        headers = {"host": "box.example:4400", "origin": "http://box.example:4400"}
        assert (await net.get("/api/agents", headers=headers)).status_code == 403
        await net.exchange.take_up(net.exchange.settings.replace(hosts=("box.example",)))
        assert (await net.get("/api/agents", headers=headers)).status_code == 200


async def test_on_the_local_socket_everybody_is_the_one_who_runs_it(tmp_path: Path) -> None:
    async with world(tmp_path, local=True) as net:
        assert (await net.get("/api/agents", who=None, headers={"host": "anything"})).status_code == 200
        made = await net.post("/api/sessions", {"agent": "echo"}, who=None)
        assert (await net.get(f"/api/sessions/{made.json()['id']}", who=None)).json()["by"] == "local"
        assert (await net.ask("DELETE", f"/api/sessions/{made.json()['id']}", who=None)).status_code == 200


async def test_who_loses_the_token_sees_no_more(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        id = await net.session("echo")
        kept, lost = net.read(id), net.read(id, who="observer")
        await until(lambda: kept.chunks and lost.chunks)
        people = {"admin": net.exchange.settings.people["admin"]}
        await net.exchange.take_up(net.exchange.settings.replace(people=people))
        assert (await net.get("/api/agents", who="observer")).status_code == 401
        await net.say(id, "A secret")
        await until(lambda: "turn_ended" in kept.kinds)
        await until(lambda: lost.ended)
        assert "secret" not in lost.text
