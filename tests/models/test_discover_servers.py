"""Model servers on loopback: the real ones' answers, other programs', and silence."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.models.model_servers import EMBEDDER, GEMMA, NOBODY, QWEN, VECTORS, json_reply, llama_server, ollama
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import HANG, Reply, StubProvider
from trunkline.base import http
from trunkline.models import discover_servers
from trunkline.models.discover_servers import LocalServer, find_servers, ollama_url


async def test_an_ollama_is_found_with_its_newest_model() -> None:
    async with ollama(QWEN, GEMMA) as stub:
        assert await find_servers(stub.url, NOBODY) == [LocalServer("Ollama", stub.url, "qwen3:8b")]


async def test_a_model_that_can_use_tools_is_preferred_to_a_newer_one_that_cannot() -> None:
    async with ollama(GEMMA, QWEN, gemma2=["completion"], qwen3=["completion", "tools"]) as stub:
        assert await find_servers(stub.url, NOBODY) == [LocalServer("Ollama", stub.url, "qwen3:8b")]


async def test_models_that_only_make_vectors_are_not_chosen() -> None:
    async with ollama(EMBEDDER, VECTORS, GEMMA) as stub:
        assert await find_servers(stub.url, NOBODY) == [LocalServer("Ollama", stub.url, "gemma2:2b")]


@pytest.mark.parametrize("models", [[], [EMBEDDER], [7], [{"name": None}]])
async def test_an_ollama_without_a_model_to_talk_to_is_found_without_one(models: list[Any]) -> None:
    async with ollama(*models) as stub:
        assert await find_servers(stub.url, NOBODY) == [LocalServer("Ollama", stub.url, None)]


async def test_an_ollama_that_has_never_had_a_model_says_null() -> None:
    async with StubProvider(lambda _: json_reply({"models": None})) as stub:
        assert await find_servers(stub.url, NOBODY) == [LocalServer("Ollama", stub.url, None)]


async def test_a_llama_server_is_found_with_the_model_that_it_loaded() -> None:
    async with llama_server({"status": "ok"}, {"data": [{"id": "/models/some.gguf"}]}) as stub:
        assert await find_servers(NOBODY, stub.url) == [LocalServer("llama-server", stub.url, "/models/some.gguf")]


async def test_both_are_found_ollama_first() -> None:
    async with ollama(QWEN) as one, llama_server({"status": "ok"}, {"data": [{"id": "m"}]}) as other:
        assert [server.name for server in await find_servers(one.url, other.url)] == ["Ollama", "llama-server"]


@pytest.mark.parametrize(
    ("health", "models"),
    [
        ({"status": "loading model"}, {"data": [{"id": "m"}]}),
        ({"status": "ok"}, {"data": []}),
        ({"status": "ok"}, {"data": "m"}),
        ({"status": "ok"}, {"data": [{"id": 7}, 8]}),
        ({"status": "ok"}, None),
        (["ok"], {"data": [{"id": "m"}]}),
        (None, None),
    ],
)
async def test_what_answers_otherwise_than_a_llama_server_with_a_model_is_none(health: Any, models: Any) -> None:
    async with llama_server(health, models) as stub:
        assert await find_servers(NOBODY, stub.url) == []


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"{}", b'{"models": 7}', b"\xff", b" " * (2 << 20), b"NaN"])
async def test_another_program_on_the_port_is_no_ollama(body: bytes) -> None:
    async with StubProvider(lambda _: Reply([body])) as stub:
        assert await find_servers(stub.url, stub.url) == []


async def test_servers_that_never_answer_cost_one_limit_together_not_one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover_servers, "PROBE_SECONDS", 0.3)
    async with StubProvider(lambda _: Reply([b"{", HANG])) as stub:
        assert await find_servers(stub.url, stub.url) == []
    monkeypatch.setattr(discover_servers, "PROBE_SECONDS", 10 * PATIENCE_SECONDS)
    async with StubProvider(lambda _: Reply([b"{", HANG])) as one, StubProvider(lambda _: Reply([b"{", HANG])) as other:
        finding = asyncio.create_task(find_servers(one.url, other.url))
        # Nobody waits for one of them to ask the other.
        await until(lambda: one.requests and other.requests)
        finding.cancel()


async def test_nobody_there_is_nothing_found() -> None:
    assert await find_servers(NOBODY, NOBODY) == []


@pytest.mark.parametrize("url", ["http://[", "ftp://127.0.0.1:1", "http://"])
async def test_an_address_that_makes_no_sense_is_nobody_there(url: str) -> None:
    assert await find_servers(url, NOBODY) == []


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("127.0.0.1:4000", "http://127.0.0.1:4000"),
        (":4000", "http://127.0.0.1:4000"),
        ("box.lan", "http://box.lan:11434"),
        ("http://box.lan:4000/", "http://box.lan:4000"),
        ("http://box.lan", "http://box.lan:80"),
        ("https://box.lan/ollama/", "https://box.lan:443/ollama"),
        ("[::]:4000", "http://[::1]:4000"),
        ("box.lan:what", "http://box.lan:11434"),
    ],
)
def test_every_form_of_ollamas_address_is_understood(host: str, url: str) -> None:
    assert ollama_url(host) == url


async def test_a_server_does_not_pay_for_the_time_that_it_takes_to_load_our_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []

    def client(**options: Any) -> Any:
        steps.append("client")
        return make_client(**options)

    def timeout(seconds: float) -> asyncio.Timeout:
        steps.append("time")
        return start_time(seconds)

    make_client, start_time = http.client, asyncio.timeout
    monkeypatch.setattr(http, "client", client)
    monkeypatch.setattr(asyncio, "timeout", timeout)
    await find_servers(NOBODY, "")
    assert steps[:2] == ["client", "time"]
