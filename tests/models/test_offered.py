"""Which models there are to choose from."""

from __future__ import annotations

import json

import pytest

from tests.support.provider import HANG, Reply, Request, StubProvider
from trunkline.models import offered as module
from trunkline.models.offered import offered
from trunkline.models.providers import PROVIDERS, ModelSettings

LISTED = {"data": [{"id": "big"}, {"id": "small"}, {"name": "not one"}, 7]}


def answering(body: bytes, status: int = 200) -> StubProvider:
    return StubProvider(lambda request: Reply([body], status=status))


@pytest.mark.parametrize(
    ("provider", "path", "header"),
    [
        ("openai", "/v1/models", ("authorization", "Bearer k")),
        ("anthropic", "/v1/models?limit=1000", ("x-api-key", "k")),
    ],
)
async def test_a_provider_is_asked_for_its_own_list(provider: str, path: str, header: tuple[str, str]) -> None:
    async with answering(json.dumps(LISTED).encode()) as stub:
        assert await offered(ModelSettings(provider, "m", "k", stub.url)) == ["big", "small"]
        (asked,) = stub.requests
        assert (asked.method, asked.target) == ("GET", path)
        assert asked.headers[header[0]] == header[1]


async def test_what_nobody_could_type_is_no_name_of_a_model() -> None:
    longest = "x" * module.LONGEST_NAME
    names = [longest, f"{longest}x", "", "a\nb", "\x1b[2J", "\u202ea", "fine/model:8b"]
    async with answering(json.dumps({"data": [{"id": name} for name in names]}).encode()) as stub:
        assert await offered(ModelSettings("openai", "m", "k", stub.url)) == [longest, "fine/model:8b"]


async def test_a_list_that_is_too_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(LISTED).encode()
    async with answering(body) as stub:
        settings = ModelSettings("openai", "m", "k", stub.url)
        monkeypatch.setattr(module, "MAX_LIST_BYTES", len(body))
        assert await offered(settings) == ["big", "small"]
        monkeypatch.setattr(module, "MAX_LIST_BYTES", len(body) - 1)
        assert await offered(settings) == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"data": null}', b'{"data": {}}'])
async def test_a_server_that_lists_nothing_has_no_models_that_we_know(body: bytes) -> None:
    async with answering(body) as stub:
        assert await offered(ModelSettings("openai", "m", "k", stub.url)) == []


async def test_a_server_that_refuses_or_has_gone_has_none_either() -> None:
    async with answering(json.dumps(LISTED).encode(), 401) as stub:
        settings = ModelSettings("openai", "m", "k", stub.url)
        assert await offered(settings) == []
    assert await offered(settings) == []


async def test_nobody_waits_for_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OFFERED_SECONDS", 0.05)

    def silent(request: Request) -> Reply:
        return Reply([HANG])

    async with StubProvider(silent) as stub:
        assert await offered(ModelSettings("openai", "m", "k", stub.url)) == []


@pytest.mark.parametrize("provider", sorted(set(PROVIDERS) - {"anthropic", "openai"}))
async def test_who_has_no_list_offers_what_is_known_here(provider: str) -> None:
    names = await offered(ModelSettings(provider))
    assert PROVIDERS[provider].model.removeprefix("anthropic.") in names
