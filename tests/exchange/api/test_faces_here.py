"""Agents of an exchange for OpenAI's clients and MCP hosts: with the same tokens and roles as the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api_world import world

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.mark.parametrize("path", ["/v1/models", "/v1", "/v1/nothing", "/mcp", "/mcp/x", "/api/agents"])
async def test_who_has_no_token_or_comes_from_elsewhere_is_told_so_in_the_form_of_the_face(
    tmp_path: Path, path: str
) -> None:
    async with world(tmp_path) as net:
        unknown = await net.get(path, who=None)
        assert unknown.status_code == 401
        assert unknown.headers["www-authenticate"].startswith("Bearer")
        foreign = await net.get(path, headers={"origin": "https://evil.example"})
        elsewhere = await net.get(path, headers={"host": "evil.example"})
        assert (foreign.status_code, elsewhere.status_code) == (403, 403)
        for refused in (unknown, foreign, elsewhere):
            _check_form(path, refused.json())


def _check_form(path: str, body: dict[str, Any]) -> None:
    if path.startswith("/v1"):
        assert set(body["error"]) == {"message", "type", "param", "code"}
    elif path.startswith("/api"):
        assert set(body["error"]) == {"code", "message"}
    else:
        assert (body["jsonrpc"], body["error"]["code"]) == ("2.0", -32600)
    assert body["error"]["message"]


async def test_the_agents_are_models_for_openais_clients(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        listed = (await net.get("/v1/models", "observer")).json()
        assert {"fake", "echo"} <= {each["id"] for each in listed["data"]}
        body = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
        refused = await net.post("/v1/chat/completions", body, "observer")
        assert (refused.status_code, refused.json()["error"]["type"]) == (403, "invalid_request_error")
        said = await net.post("/v1/chat/completions", body, "talker", headers={"x-trunkline-session": "s"})
        assert said.json()["choices"][0]["message"]["content"] == "Hello"
        assert (await net.get("/api/sessions/s")).json()["by"] == "talker"
        passing = await net.post("/v1/chat/completions", body, "talker")
        assert passing.status_code == 200
        await net.app.state.faces.ended()
        assert [each["id"] for each in (await net.get("/api/sessions")).json()["sessions"]] == ["s"]


async def test_the_agents_are_tools_for_mcp_hosts_and_a_session_there_is_its_owners(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        found = await net.post("/mcp", hello, "talker", headers=ACCEPT)
        assert found.status_code == 200, found.text
        assert '"serverInfo"' in found.text
        mine = {**ACCEPT, "mcp-session-id": found.headers["mcp-session-id"]}
        tools = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        assert "ask_echo" in (await net.post("/mcp", tools, "talker", headers=mine)).text
        assert (await net.post("/mcp", tools, "approver", headers=mine)).status_code == 404
        await net.app.state.faces.ended()


async def test_an_exchange_whose_faces_nobody_asked_for_ends_all_the_same(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        await net.app.state.faces.ended()
