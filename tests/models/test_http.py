"""Both formats over real sockets: what comes through, what is tried again, and what is not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import BREAK, HANG, Gate, Part, Reply, StubProvider
from tests.support.provider_asking import CALLS, KEY, PROXIES, QUESTION, Format, answer, asked, failure, texts
from tests.support.provider_streams import openai_chunk, openai_sse, openai_text
from trunkline.core.faults import TooLong
from trunkline.models import backoff, http
from trunkline.models.http_model import HttpModel
from trunkline.models.messages import Message, Text, ToolUse
from trunkline.models.model import Answer, Chunk, Request, Retrying, TextChunk, ThinkingChunk
from trunkline.models.providers import ModelSettings, make


@pytest.fixture(params=["anthropic", "openai"])
def form(request: pytest.FixtureRequest) -> Format:
    return Format(request.param)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.002)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in PROXIES:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("cut", [0, 1, 7])
async def test_text_and_thinking_come_through_however_the_bytes_are_cut(form: Format, cut: int) -> None:
    async with asked(form) as (stub, model):
        stub.play(Reply([form.sse(form.text("Grüße 👋 all", thinking="hm"))], cut=cut))
        *chunks, last = await answer(model)
        assert chunks == [ThinkingChunk("hm"), TextChunk("Grüße"), TextChunk(" 👋"), TextChunk(" all")]
        assert isinstance(last, Answer)
        assert last.stop == "end"
        assert last.usage is not None
        assert (last.usage.input_tokens, last.usage.output_tokens) == (10, 5)


async def test_tool_calls_come_through(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.play(Reply([form.sse(form.calls())], cut=5))
        (last,) = await answer(model)
        assert isinstance(last, Answer)
        uses = [block for block in last.content if isinstance(block, ToolUse)]
        assert [(use.name, use.input) for use in uses] == CALLS
        assert last.stop == "tool_use"


async def test_the_request_has_the_key_and_says_who_asks(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.play(Reply([form.sse(form.text("x"))]))
        await answer(model)
        (request,) = stub.requests
        assert (request.method, request.json["model"], request.json["stream"]) == ("POST", "m", True)
        assert request.headers["user-agent"].startswith("trunkline/")
        if form.is_anthropic:
            assert request.target == "/v1/messages"
            assert request.headers["x-api-key"] == KEY
            assert request.headers["anthropic-version"] == "2023-06-01"
        else:
            assert request.target == "/v1/chat/completions"
            assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_a_service_on_this_machine_needs_no_key(form: Format) -> None:
    async with asked(form, api_key=None) as (stub, model):
        stub.play(Reply([form.sse(form.text("x"))]))
        await answer(model)
        assert not {"authorization", "x-api-key"} & stub.requests[0].headers.keys()


@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_what_may_pass_is_announced_and_tried_again(form: Format, status: int) -> None:
    async with asked(form) as (stub, model):
        stub.error(status, {"error": {"message": "busy"}})
        stub.play(Reply([form.sse(form.text("x"))]))
        first, *rest = await answer(model)
        assert isinstance(first, Retrying)
        assert first.reason == f"API error {status}: busy"
        assert texts(rest) == "x"
        assert stub.requests[0].body == stub.requests[1].body


async def test_the_wait_that_a_provider_asks_for_is_kept(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.error(429, retry_after_ms="20")
        stub.play(Reply([form.sse(form.text("x"))]))
        started = asyncio.get_running_loop().time()
        first, *_ = await answer(model)
        assert first == Retrying("API error 429: stub", 0.02)
        assert asyncio.get_running_loop().time() - started >= 0.02


async def test_a_provider_that_asks_for_too_much_is_given_up_at_once(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.error(429, retry_after="3600")
        error = await failure(model)
        assert "wait for 3600 s" in str(error)
        assert error.retryable is True
        assert len(stub.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_what_will_not_pass_is_not_tried_again(form: Format, status: int) -> None:
    async with asked(form) as (stub, model):
        stub.error(status, {"error": {"message": "no"}})
        shown: list[Chunk] = []
        error = await failure(model, shown)
        assert error.message.removesuffix(".") == f"API error {status}: no"
        assert error.retryable is False
        assert (shown, len(stub.requests)) == ([], 1)


async def test_an_error_whose_body_does_not_come_is_an_error_all_the_same(
    form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "ERROR_BODY_SECONDS", 0.05)
    async with asked(form) as (stub, model):
        stub.raw(b'{"error": ', HANG, status=400)
        assert (await failure(model)).message == 'API error 400: {"error":'


async def test_of_an_endless_error_only_the_beginning_is_read(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.raw(*[b"x" * 1024] * (http.MAX_ERROR_BODY // 1024), HANG, status=400)
        assert len((await failure(model)).message) < 1000


async def test_a_refused_key_is_named_by_its_variable_and_never_shown(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.error(401, {"error": {"message": f"the key {KEY} is wrong"}})
        error = await failure(model)
        assert form.variable in str(error)
        assert KEY not in str(error) + repr(error) + error.message


async def test_a_key_that_was_not_sent_is_not_said_to_be_wrong() -> None:
    async with StubProvider(lambda request: Reply([b"{}"], status=401)) as stub:
        model = make(ModelSettings("openai", "m", None, stub.url))
        assert isinstance(model, HttpModel)
        error = await failure(model)
        await model.close()
        assert "Set `OPENAI_API_KEY`" in str(error)
        assert "does not accept it" not in str(error)


async def test_trying_again_has_an_end(form: Format) -> None:
    async with StubProvider(lambda request: Reply([b"{}"], status=500)) as stub:
        model = make(ModelSettings(form.provider, "m", KEY, stub.url))
        assert isinstance(model, HttpModel)
        error = await failure(model)
        await model.close()
        assert error.retryable is True
        assert len(stub.requests) == backoff.MAX_TRIES


async def test_a_server_of_this_machine_that_is_not_running_is_told_at_once_with_its_port(form: Format) -> None:
    async with asked(form) as (stub, model):
        place = stub.url.removeprefix("http://")
        await stub.stop()
        shown: list[Chunk] = []
        error = await failure(model, shown)
        assert error.message == f"Connection error: nothing listens at `{place}`."
        assert error.retryable is True
        assert shown == []


async def test_a_stream_that_breaks_before_anything_was_shown_is_asked_for_again(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.raw(BREAK)
        stub.raw(form.before_text(), BREAK)
        stub.raw(form.sse(form.calls()[:-2], done=False), BREAK)
        stub.raw(form.before_text())
        stub.play(Reply([form.sse(form.text("x"))]))
        chunks = await answer(model)
        assert [type(chunk) for chunk in chunks] == [Retrying] * 4 + [TextChunk, Answer]


async def test_a_stream_that_breaks_after_text_was_shown_is_not_asked_for_again(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.raw(form.after_text(), BREAK)
        shown: list[Chunk] = []
        error = await failure(model, shown)
        assert texts(shown) == "some words"
        assert error.message.startswith("Connection error:")
        assert error.retryable is True
        assert len(stub.requests) == 1


async def test_a_stream_that_just_ends_after_text_is_an_error(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.raw(form.after_text())
        shown: list[Chunk] = []
        error = await failure(model, shown)
        assert "without a terminal event" in str(error)
        assert (texts(shown), len(stub.requests)) == ("some words", 1)


@pytest.mark.parametrize(("kind", "tries"), [("overloaded_error", 2), ("invalid_request_error", 1)])
async def test_an_error_inside_of_a_stream_is_tried_again_if_it_may_pass(form: Format, kind: str, tries: int) -> None:
    async with asked(form) as (stub, model):
        stub.raw(form.before_text(), form.error(kind))
        stub.error(400)
        error = await failure(model)
        assert len(stub.requests) == tries
        assert error.retryable is False


async def test_an_error_with_status_200_is_an_error(form: Format) -> None:
    async with asked(form) as (stub, model):
        body = json.dumps({"error": {"message": "no such model", "code": 404}}).encode()
        stub.raw(body, content_type="application/json")
        error = await failure(model)
        assert error.message == "API error: no such model"
        assert len(stub.requests) == 1


async def test_the_end_need_not_be_marked() -> None:
    async with asked(Format("openai")) as (stub, model):
        stub.openai(openai_text("x"), done=False)
        assert texts(await answer(model)) == "x"


async def _answer_of(form: Format, *parts: Part) -> list[Chunk]:
    """What comes out of an answer with a reason for its end, which both formats give in the last event but one."""
    async with asked(form) as (stub, model):
        stub.raw(form.sse(form.text("some words")[:-1], done=False), *parts)
        chunks = await answer(model)
        assert len(stub.requests) == 1
    return chunks


async def test_a_connection_that_is_lost_after_the_reason_for_the_end_does_no_harm(form: Format) -> None:
    last = form.sse(form.text("some words")[-1:], done=False)
    for cut in (0, len(last) // 2, len(last) - 1):
        chunks = await _answer_of(form, last[:cut], BREAK)
        assert texts(chunks) == "some words"
        assert isinstance(chunks[-1], Answer)
        assert chunks[-1].stop == "end"


async def test_calls_before_a_lost_connection_are_made_if_the_reason_for_the_end_has_come(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.raw(form.sse(form.calls()[:-1], done=False), BREAK)
        (last,) = await answer(model)
        assert isinstance(last, Answer)
        assert [block.name for block in last.content if isinstance(block, ToolUse)] == ["Read", "Bash"]


@pytest.mark.parametrize("noise", [b"", b": still here\n\n"])
async def test_a_connection_that_stays_silent_after_the_reason_for_the_end_is_left(
    form: Format, noise: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LAST_WORDS_SECONDS", 0.05)
    async with asked(form) as (stub, model):
        stub.raw(form.sse(form.text("x")[:-1], done=False), noise, HANG)
        assert isinstance((await answer(model))[-1], Answer)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stub.requests[0].left.wait()


async def test_what_was_used_is_waited_for_after_the_reason_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LAST_WORDS_SECONDS", PATIENCE_SECONDS)
    async with asked(Format("openai")) as (stub, model):
        events, gate = openai_text("x"), Gate()
        stub.raw(openai_sse(events[:-1], done=False), gate, openai_sse(events[-1:], done=False))
        asking = asyncio.ensure_future(answer(model))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await gate.reached.wait()
        gate.open()
        last = (await asking)[-1]
        assert isinstance(last, Answer)
        assert last.usage is not None
        assert last.usage.output_tokens == 5


async def test_only_what_is_shown_puts_off_the_time_after_which_nothing_more_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float | None] = []
    more = http._Arriving.more

    async def noted(arriving: http._Arriving, until: float | None) -> bytes | None:
        waits.append(until)
        return await more(arriving, until)

    monkeypatch.setattr(http._Arriving, "more", noted)
    monkeypatch.setattr(http, "LAST_WORDS_SECONDS", PATIENCE_SECONDS)
    async with asked(Format("openai")) as (stub, model):
        # Some servers give a reason with every piece. What follows is read apart from it.
        piece = openai_sse([openai_chunk({"content": "x"}, finish="stop")], done=False)
        gates = [Gate() for _ in range(3)]
        stub.raw(piece, gates[0], piece, gates[1], b": still here\n\n", gates[2])
        asking = asyncio.ensure_future(answer(model))
        for number, gate in enumerate(gates):
            # It waits for more than what it has.
            await until(lambda number=number: len(waits) >= number + 2)  # type: ignore[misc]
            gate.open()
        assert texts(await asking) == "xx"
    none, first, second, *others = waits
    assert none is None
    assert first is not None
    assert second is not None
    assert first < second
    assert set(others) == {second}


async def test_an_answer_is_complete_although_the_server_does_not_hang_up(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.raw(form.sse(form.text("x")), HANG)
        assert isinstance((await answer(model))[-1], Answer)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stub.requests[0].left.wait()


async def test_a_connection_is_used_again(form: Format) -> None:
    async with asked(form) as (stub, model):
        for _ in range(3):
            stub.play(Reply([form.sse(form.text("x"))]))
            await answer(model)
        assert {request.connection for request in stub.requests} == {1}


async def test_words_are_given_before_the_answer_is_complete(form: Format) -> None:
    async with asked(form) as (stub, model):
        gate = Gate()
        whole = form.sse(form.text("some words"))
        stub.raw(form.after_text(), gate, whole[len(form.after_text()) :])
        stream = model.stream(QUESTION)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert [await anext(stream), await anext(stream)] == [TextChunk("some"), TextChunk(" words")]
            gate.open()
            assert isinstance(await anext(stream), Answer)


async def test_leaving_closes_the_connection_at_once(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.raw(form.after_text(), HANG)
        stream = model.stream(QUESTION)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await anext(stream) == TextChunk("some")
            await stream.aclose()
            await stub.requests[0].left.wait()


@pytest.mark.parametrize("before", [True, False])
async def test_cancelling_closes_the_connection_at_once(form: Format, before: bool) -> None:
    async with asked(form) as (stub, model):
        gate = Gate()
        stub.raw(*([] if before else [form.after_text()]), gate)
        task = asyncio.ensure_future(answer(model))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await gate.reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await stub.requests[0].left.wait()
        stub.play(Reply([form.sse(form.text("x"))]))
        assert texts(await answer(model)) == "x"


async def test_cancelling_ends_the_wait_before_the_next_try(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.error(429, retry_after="60")
        stream = model.stream(QUESTION)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await anext(stream) == Retrying("API error 429: stub", 60.0)
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert len(stub.requests) == 1


async def test_several_questions_at_once_do_not_disturb_each_other(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.default = lambda request: Reply([form.sse(form.text(_asked_text(request.json)))])
        questions = [Request([Message("user", (Text(f"number {n}"),))]) for n in range(10)]
        answers = await asyncio.gather(*(answer(model, question) for question in questions))
        assert [texts(chunks) for chunks in answers] == [f"number {n}" for n in range(10)]


def _asked_text(body: Any) -> str:
    content = body["messages"][-1]["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


async def test_a_profile_can_limit_the_size_of_a_request(form: Format) -> None:
    async with asked(form, compat={"max_request_body_bytes": 20}) as (stub, model):
        error = await failure(model)
        assert isinstance(error, TooLong)
        assert "max_request_body_bytes" in str(error)
        assert stub.requests == []


async def test_a_profile_can_say_what_is_asked(form: Format) -> None:
    async with asked(form, compat={"api_path": "/v4/ask"}) as (stub, model):
        stub.play(Reply([form.sse(form.text("x"))]))
        await answer(model)
        assert stub.requests[0].target == "/v4/ask"


async def test_closing_twice_is_closing(form: Format) -> None:
    async with asked(form) as (stub, model):
        stub.play(Reply([form.sse(form.text("x"))]))
        await answer(model)
        await model.close()
        await model.close()


async def test_reasoning_alone_is_an_answer() -> None:
    async with asked(Format("openai")) as (stub, model):
        stub.openai([openai_chunk({"reasoning": "hm"}), openai_chunk(finish="stop")])
        chunks = await answer(model)
        assert [type(chunk) for chunk in chunks] == [ThinkingChunk, Answer]
