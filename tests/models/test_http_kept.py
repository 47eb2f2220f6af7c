"""Connections to a provider that outlive the conversations that made them."""

from __future__ import annotations

import pytest

from tests.support.provider import Reply, StubProvider
from tests.support.provider_asking import KEY, PROXIES, QUESTION
from tests.support.provider_streams import openai_sse, openai_text
from trunkline.base.posting_kept import keeping_posters
from trunkline.models.http_model import HttpModel
from trunkline.models.providers import ModelSettings, make


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


def model(stub: StubProvider, key: str = KEY) -> HttpModel:
    made = make(ModelSettings("openai", model="m", api_key=key, base_url=stub.url))
    assert isinstance(made, HttpModel)
    return made


async def ask(asking: HttpModel) -> None:
    assert [chunk async for chunk in asking.stream(QUESTION)]


async def test_a_server_asks_for_its_next_conversation_over_the_same_connection_with_that_ones_key() -> None:
    async with StubProvider() as stub:
        for _ in range(3):
            stub.play(Reply([openai_sse(openai_text("hello"))]))
        async with keeping_posters():
            for key in (KEY, "sk-another-0123456789", KEY):
                asking = model(stub, key)
                await ask(asking)
                await asking.close()
        assert [request.connection for request in stub.requests] == [1, 1, 1]
        keys = [request.headers["authorization"].removeprefix("Bearer ") for request in stub.requests]
        assert keys == [KEY, "sk-another-0123456789", KEY]


async def test_conversations_at_the_same_time_do_not_get_in_each_others_way() -> None:
    async with StubProvider() as stub, keeping_posters():
        for _ in range(4):
            stub.play(Reply([openai_sse(openai_text("hello"))]))
        first, second = model(stub), model(stub)
        await ask(first)
        await ask(second)
        await first.close()
        # What the first has given back is not the second's, which is closed with it.
        await second.close()
        third = model(stub)
        assert third.is_warm
        await ask(third)
        await third.close()
        await ask(third)
        assert [request.connection for request in stub.requests] == [1, 2, 1, 1]


async def test_where_nothing_is_kept_a_conversation_closes_its_connections() -> None:
    async with StubProvider() as stub:
        for _ in range(2):
            stub.play(Reply([openai_sse(openai_text("hello"))]))
        for _ in range(2):
            asking = model(stub)
            warm = [asking.is_warm]
            await ask(asking)
            assert [*warm, asking.is_warm] == [False, True]
            await asking.close()
        assert [request.connection for request in stub.requests] == [1, 2]
