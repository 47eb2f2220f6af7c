"""A model with several servers, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.models.model_servers import Gpu, json_reply
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import BREAK, HANG, Gate, Part, Reply, Request, StubProvider
from tests.support.provider_asking import PROXIES
from tests.support.provider_streams import openai_chunk, openai_sse, openai_text
from trunkline.core.faults import ProviderError
from trunkline.core.graph.models import SamplingParams
from trunkline.models import model_server, remote
from trunkline.models.embedding_openai import OpenAIEmbedding
from trunkline.models.engines import ChatMessage, Prompt
from trunkline.models.model_server import STRIKES
from trunkline.models.openai_language import OpenAILanguage
from trunkline.models.overflow import PromptTooLong
from trunkline.models.remote import Remote
from trunkline.models.server_choice import NoServerUp

KEY = "sk-secret"
HELLO = Prompt((ChatMessage("user", "hello"),))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in PROXIES:
        monkeypatch.delenv(variable, raising=False)


@asynccontextmanager
async def model(*names: str, limit: int = 64) -> AsyncIterator[tuple[OpenAILanguage, list[Gpu]]]:
    """A model on servers of these names."""
    async with AsyncExitStack() as stack:
        gpus = [await stack.enter_async_context(Gpu(name)) for name in names]
        far = Remote("far", [f"{gpu.url}/v1" for gpu in gpus], model="big", key=KEY, limit=limit)
        engine = OpenAILanguage(far, 4096)
        try:
            yield engine, gpus
        finally:
            await engine.close()
            assert all(server.in_flight == 0 and not server.users for server in model_server.servers())


async def said(engine: OpenAILanguage, prompt: Prompt = HELLO) -> str:
    return "".join([piece async for piece in engine.generate(prompt, SamplingParams(), stream=True)])


def half(text: str, *then: Part) -> Reply:
    """An answer that begins with a text, and goes on otherwise."""
    return Reply([openai_sse([openai_chunk({"content": text})], done=False), *then])


async def test_requests_go_to_the_servers_in_turn_each_with_the_key() -> None:
    async with model("a", "b", "c") as (engine, gpus):
        assert [await said(engine) for _ in range(6)] == ["a", "b", "c", "a", "b", "c"]
        for gpu in gpus:
            for request in gpu.asked_for:
                assert request.headers["authorization"] == f"Bearer {KEY}"
                assert (request.target, request.json["model"]) == ("/v1/chat/completions", "big")
            assert gpu.server.requests == 2
            assert gpu.probed == []


@pytest.mark.parametrize(
    "reply",
    [
        Reply([BREAK]),
        Reply([openai_sse([openai_chunk({"role": "assistant"})], done=False), BREAK]),
        json_reply({"error": {"message": "oops"}}, 500),
        json_reply({"error": {"message": "busy"}}, 429),
        json_reply({"error": {"message": "loading"}}, 503),
        json_reply({"error": {"message": "who are you"}}, 401),
        json_reply({"error": {"message": "no such model"}}, 404),
        Reply([b"<html><title>it works</title>"], headers={"content-type": "text/html"}),
        Reply([b'data: {"error": {"message": "the engine has died", "code": 500}}\n\n']),
    ],
)
async def test_a_request_that_failed_before_its_first_word_is_answered_by_another_server(reply: Reply) -> None:
    async with model("a", "b") as (engine, (a, b)):
        a.chat = lambda _: reply
        assert await said(engine) == "b"
        assert (len(a.asked_for), len(b.asked_for)) == (1, 1)
        assert (a.server.failures, b.server.failures) == (1, 0)


async def test_a_server_that_is_not_there_is_no_reason_to_fail() -> None:
    async with model("a", "b", "c") as (engine, (_, b, _)):
        await b.stop()
        assert sorted([await said(engine) for _ in range(6)]) == ["a", "a", "a", "c", "c", "c"]
        assert not b.server.up
        assert b.server.failures == 1


async def test_a_request_that_has_spoken_is_never_sent_again() -> None:
    async with model("a", "b") as (engine, (a, b)):
        a.chat = lambda _: half("hal", BREAK)
        answer = engine.generate(HELLO, SamplingParams(), stream=True)
        assert await anext(answer) == "hal"
        with pytest.raises(ProviderError, match=rf"The server `{a.url}/v1` of the model `far`: .*") as caught:
            await anext(answer)
        assert caught.value.retryable
        assert b.asked_for == []
        assert not a.server.up


async def test_a_request_is_sent_to_another_server_once_and_not_to_a_third() -> None:
    async with model("a", "b", "c") as (engine, (a, b, c)):
        for gpu in (a, b):
            gpu.refuses(500, "oops")
        with pytest.raises(ProviderError, match=rf"The server `{b.url}/v1` of the model `far`: API error 500: oops"):
            await said(engine)
        assert c.asked_for == []


async def test_where_both_of_two_servers_turn_out_to_be_gone_both_are_named() -> None:
    async with model("a", "b") as (engine, gpus):
        for gpu in gpus:
            await gpu.stop()
        with pytest.raises(NoServerUp) as caught:
            await said(engine)
        assert all(f"`{gpu.url}/v1`" in str(caught.value) for gpu in gpus)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_what_is_wrong_with_the_request_is_said_by_the_first_server(status: int) -> None:
    async with model("a", "b") as (engine, (a, _)):
        a.refuses(status, "no grammar")
        for _ in range(2 * STRIKES):
            with pytest.raises(ProviderError, match="no grammar"):
                await said(engine)
            assert await said(engine) == "b"
        assert a.server.up


async def test_a_prompt_that_is_too_long_is_not_sent_to_all_servers() -> None:
    async with model("a", "b") as (engine, (a, b)):
        a.refuses(400, "too long", code="context_length_exceeded", n_prompt_tokens=99)
        with pytest.raises(PromptTooLong) as caught:
            await said(engine)
        assert caught.value.tokens == 99
        assert b.asked_for == []


async def test_where_all_are_down_the_error_can_be_retried_and_names_them(caplog: pytest.LogCaptureFixture) -> None:
    async with model("a", "b", "c") as (engine, gpus):
        for gpu in gpus:
            await gpu.stop()
        # The first two are found out by this.
        with pytest.raises(ProviderError):
            await said(engine)
        with pytest.raises(NoServerUp) as caught:
            await said(engine)
        assert caught.value.retryable
        assert all(f"`{gpu.url}/v1`: Connection error: nothing listens" in str(caught.value) for gpu in gpus)
        assert "No server of the model `far` can be used" in str(caught.value)
        assert all(f"the model server {gpu.url}/v1 failed" in caplog.text for gpu in gpus)
        # Two are started again, and the next that asks need not wait for anybody's timer.
        async with gpus[1], gpus[2]:
            for gpu in gpus[1:]:
                gpu.server._not_before = 0.0
            assert await said(engine) in ("b", "c")


async def test_a_server_is_probed_by_its_health_and_comes_back_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(model_server, "LONGEST_SECONDS", 0.01)
    async with model("a", "b") as (engine, (a, _)):
        a.refuses(503)
        a.health = {"/health": 503}
        assert await said(engine) == "b"
        await until(lambda: len(a.probed) > 3)
        assert not a.server.up
        a.health = {"/health": 200}
        await until(lambda: a.server.up)
        a.chat = a._says_who_it_is
        assert {await said(engine), await said(engine)} == {"a", "b"}
        assert set(a.probed) == {"/health"}
        assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in a.requests)


@pytest.mark.parametrize(
    ("health", "problem"),
    [
        ({"/health": 200}, ""),
        ({"/health": 204}, ""),
        ({"/v1/models": 200}, ""),
        ({"/health": 401, "/v1/models": 200}, ""),
        ({}, ""),
        ({"/health": 503, "/v1/models": 200}, "API error 503"),
        ({"/v1/models": 500}, "API error 500"),
        ({"/v1/models": 401}, "API error 401"),
        ({"/v1/models": 403}, "API error 403"),
    ],
)
async def test_what_a_probe_makes_of_the_answers(health: dict[str, int], problem: str) -> None:
    async with Gpu("a") as gpu:
        gpu.health = health
        far = Remote("far", [f"{gpu.url}/v1"], key=KEY)
        (found,) = (await far.examine()).items()
        assert found[0] == f"{gpu.url}/v1"
        assert found[1].startswith(problem)
        assert bool(found[1]) == bool(problem)
        await far.close()


async def test_a_probe_that_nobody_answers_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with StubProvider() as stub:
        # It accepts the connection, and that is all.
        stub._serve = lambda reader, writer: asyncio.sleep(PATIENCE_SECONDS)  # type: ignore[method-assign]
        monkeypatch.setattr(remote, "PROBE_SECONDS", 0.05)
        far = Remote("far", [f"{stub.url}/v1"])
        assert "did not answer in time" in (await far.examine())[f"{stub.url}/v1"]
        await far.close()


async def test_a_cancelled_turn_closes_its_connection_and_the_server_sees_it() -> None:
    async with model("a", "b") as (engine, (a, b)):
        gate = Gate()
        a.chat = lambda _: half("hal", gate)
        answer = engine.generate(HELLO, SamplingParams(), stream=True)
        assert await anext(answer) == "hal"
        await gate.reached.wait()
        assert a.server.in_flight == 1
        await answer.aclose()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await a.asked_for[0].left.wait()
        assert (a.server.in_flight, a.server.up, b.asked_for) == (0, True, [])


async def test_a_turn_that_is_cancelled_before_its_first_word_is_not_sent_elsewhere() -> None:
    async with model("a", "b") as (engine, (a, b)):
        a.says(HANG)
        turn = asyncio.ensure_future(said(engine))
        await until(lambda: a.asked_for)
        turn.cancel()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await a.asked_for[0].left.wait()
        await asyncio.wait([turn])
        assert turn.cancelled()
        assert (a.server.failures, b.asked_for) == (0, [])


async def test_a_turn_that_is_cancelled_in_the_queue_asks_nobody() -> None:
    async with model("a", "b", limit=1) as (engine, gpus):
        for gpu in gpus:
            gpu.says(HANG)
        busy = [asyncio.ensure_future(said(engine)) for _ in range(2)]
        await until(lambda: all(gpu.asked_for for gpu in gpus))
        waiting = asyncio.ensure_future(said(engine))
        (user,) = gpus[0].server.users
        await until(lambda: user.waiting)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert user.waiting == 0
        for turn in busy:
            turn.cancel()
        await asyncio.wait(busy)
        assert [len(gpu.asked_for) for gpu in gpus] == [1, 1]


async def test_a_server_has_no_more_requests_than_it_may_and_all_are_answered() -> None:
    async with model("a", "b", limit=3) as (engine, gpus):
        most = 0

        def answer(request: Request) -> Reply:
            nonlocal most
            most = max(most, *(gpu.server.in_flight for gpu in gpus))
            return Reply([openai_sse(openai_text("yes"))])

        for gpu in gpus:
            gpu.chat = answer
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await asyncio.gather(*(said(engine) for _ in range(40))) == ["yes"] * 40
        assert most == 3


async def test_a_server_that_is_silent_and_does_not_work_is_left_for_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "SILENT_SECONDS", 0.01)
    async with model("a", "b") as (engine, (a, _)):
        # It has taken the request, and does not work any more.
        a.says(HANG)
        a.health = {"/health": 503}
        assert await said(engine) == "b"
        assert not a.server.up


async def test_a_server_that_thinks_for_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SILENT_SECONDS", 0.01)
    async with model("a", "b") as (engine, (a, b)):
        gate = Gate()
        a.says(gate, openai_sse(openai_text("thought about it")))
        turn = asyncio.ensure_future(said(engine))
        await until(lambda: len(a.probed) >= 3)
        gate.open()
        assert await turn == "thought about it"
        assert b.requests == []


async def test_one_server_alone_is_tried_again_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    from trunkline.models import backoff

    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.001)
    async with model("a") as (engine, (a,)):
        tries = 0

        def answer(request: Request) -> Reply:
            nonlocal tries
            tries += 1
            return json_reply({"error": {"message": "busy"}}, 503) if tries < 3 else a._says_who_it_is(request)

        a.chat = answer
        assert await said(engine) == "a"
        assert (tries, a.server.requests, a.server.failures) == (3, 1, 0)


async def test_one_server_alone_is_asked_although_it_failed_before() -> None:
    async with model("a") as (engine, (a,)):
        a.refuses(401, "who are you")
        for _ in range(2 * STRIKES):
            with pytest.raises(ProviderError, match=r"^The server of the model `far`: API error 401: who are you\."):
                await said(engine)
        a.chat = a._says_who_it_is
        assert await said(engine) == "a"
        assert a.server.up


async def test_vectors_are_made_by_all_servers_and_by_those_that_are_left() -> None:
    def vectors(request: Request) -> Reply:
        return json_reply({"data": [{"index": at, "embedding": [3, 4]} for at in range(len(request.json["input"]))]})

    async with model("a", "b", "c") as (_, gpus):
        for gpu in gpus:
            gpu.chat = vectors
        far = Remote("vectors", [f"{gpu.url}/v1" for gpu in gpus], model="small", key=KEY)
        engine = await OpenAIEmbedding.load(far)
        assert engine.dimensions == 2
        for _ in range(2):
            await engine.embed(["a", "b"])
        assert [len(gpu.asked_for) for gpu in gpus] == [1, 1, 1]
        await gpus[0].stop()
        for _ in range(4):
            assert [list(map(float, each)) for each in await engine.embed(["x"])] == [
                [pytest.approx(0.6), pytest.approx(0.8)]
            ]
        # With one server more or less it is the same model.
        fewer = await OpenAIEmbedding.load(Remote("vectors", far.urls[1:], model="small", key=KEY))
        assert fewer.fingerprint == engine.fingerprint
        await fewer.close()
        await engine.close()


async def test_probabilities_are_asked_for_elsewhere_too() -> None:
    top = [{"token": "B", "logprob": -0.1}, {"token": "A", "logprob": -3.0}]
    async with model("a", "b") as (engine, (a, b)):
        a.says(BREAK)
        b.chat = lambda _: json_reply({"choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}]})
        assert await engine.score(HELLO, ["A", "B"]) == [-3.0, -0.1]


async def test_a_key_is_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with model("a", "b") as (engine, gpus):
        for gpu in gpus:
            gpu.refuses(503, f"the key {KEY} is fine, but not now")
            gpu.health = {"/health": 503}
        errors = []
        for _ in range(2):
            with pytest.raises(ProviderError) as caught:
                await said(engine)
            errors.append(str(caught.value))
        assert "No server" in errors[1]
        assert KEY not in "".join(errors) + caplog.text


async def test_the_address_of_a_server_is_shown_without_its_password(caplog: pytest.LogCaptureFixture) -> None:
    far = Remote("far", ["http://me:hunter2@127.0.0.1:1/v1?token=hunter2", "http://me:hunter2@127.0.0.1:2/v1"])
    engine = OpenAILanguage(far, 4096)
    with pytest.raises(NoServerUp) as caught:
        await said(engine)
    assert "`http://127.0.0.1:1/v1`" in str(caught.value)
    assert "hunter2" not in str(caught.value) + caplog.text
    await engine.close()


async def test_a_model_is_used_again_after_it_was_closed() -> None:
    async with model("a", "b") as (engine, _):
        assert await said(engine) == "a"
        await engine.close()
        await engine.close()
        assert await said(engine) in ("a", "b")
