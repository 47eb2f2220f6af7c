"""Which models there are to choose from."""

from __future__ import annotations

import json

import pytest

from tests.support.provider import HANG, Reply, Request, StubProvider
from trunkline.models import offered as module
from trunkline.models.offered import offered
from trunkline.models.providers import DEFAULT_MODELS, VARIABLES, ModelSettings

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


@pytest.mark.parametrize("provider", sorted(set(VARIABLES) - {"anthropic", "openai"}))
async def test_who_has_no_list_offers_what_is_known_here(provider: str) -> None:
    names = await offered(ModelSettings(provider))
    assert DEFAULT_MODELS[provider].removeprefix("anthropic.") in names
