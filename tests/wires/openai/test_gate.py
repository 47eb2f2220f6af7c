"""Who is let in to a server without an exchange: programs with the token, and no web pages."""

from __future__ import annotations

import httpx
import pytest

from trunkline.base.asgi_answers import answer
from trunkline.base.hosts import Hosts
from trunkline.wires.openai.gate import TokenGate


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        ("", {}, 200),
        ("", {"origin": "https://evil.example"}, 403),
        ("", {"origin": "http://127.0.0.1"}, 403),
        ("", {"host": "evil.example"}, 403),
        ("secret", {}, 401),
        ("secret", {"authorization": "Bearer secret"}, 200),
        ("secret", {"authorization": "Bearer secret", "origin": "null"}, 403),
        ("secret", {"authorization": "Bearer secrets"}, 401),
        ("secret", {"authorization": "Basic secret"}, 401),
    ],
)
async def test_programs_with_the_token_are_let_in_and_pages_are_not(
    token: str, headers: dict[str, str], status: int
) -> None:
    transport = httpx.ASGITransport(TokenGate(answer({}), Hosts.of("127.0.0.1"), token))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/v1/models", headers=headers)).status_code == status


async def test_two_tokens_are_none() -> None:
    transport = httpx.ASGITransport(TokenGate(answer({}), Hosts.of("127.0.0.1"), "secret"))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        twice = [("authorization", "Bearer secret"), ("authorization", "Bearer other")]
        assert (await client.get("/v1/models", headers=twice)).status_code == 401
