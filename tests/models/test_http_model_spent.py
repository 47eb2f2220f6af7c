"""What a try that gave no answer is known to have used, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import BREAK, HANG, Reply, StubProvider
from tests.support.provider_asking import PROXIES, QUESTION, Format, asked
from trunkline.core.faults import ProviderError
from trunkline.core.usage import Usage
from trunkline.models import backoff
from trunkline.models.http_model import HttpModel
from trunkline.models.model import Answer, Request, TextChunk

#: What Anthropic says of the stub's answer in its first event.
BEGUN = Usage(10, 1, 0, 0)


@pytest.fixture(autouse=True)
def _quick_and_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.002)
    for variable in PROXIES:
        monkeypatch.delenv(variable, raising=False)


@asynccontextmanager
async def asking(form: str) -> AsyncIterator[tuple[StubProvider, HttpModel, Format, Request, list[Usage]]]:
    told: list[Usage] = []
    kind = Format(form)
    async with asked(kind) as (stub, model):
        yield stub, model, kind, QUESTION.replace(on_spent=told.append), told


@pytest.mark.parametrize(("form", "known"), [("anthropic", True), ("openai", False)])
async def test_a_request_that_is_left_tells_what_was_said_at_its_beginning(form: str, known: bool) -> None:
    async with asking(form) as (stub, model, kind, question, told):
        stub.raw(kind.after_text(), HANG)
        stream = model.stream(question)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await anext(stream) == TextChunk("some")
            await stream.aclose()
        assert bool(told) is known
        assert all(usage.input_tokens == BEGUN.input_tokens for usage in told)


async def test_each_try_that_breaks_off_is_told_and_the_answer_is_not() -> None:
    async with asking("anthropic") as (stub, model, kind, question, told):
        start = kind.sse(kind.text("some words")[:1])
        stub.raw(start, BREAK)
        stub.play(Reply([kind.sse(kind.text("some words"))]))
        chunks = [chunk async for chunk in model.stream(question)]
        assert isinstance(chunks[-1], Answer)
        assert len(told) == 1


async def test_a_failure_in_the_middle_is_told_before_it_is_raised() -> None:
    async with asking("anthropic") as (stub, model, kind, question, told):
        stub.raw(kind.after_text(), BREAK)
        with pytest.raises(ProviderError):
            async for _ in model.stream(question):
                pass
        assert len(told) == 1


async def test_a_request_that_is_refused_has_used_nothing_that_anybody_knows() -> None:
    async with asking("anthropic") as (stub, model, _, question, told):
        stub.play(Reply([b"{}"], status=400))
        with pytest.raises(ProviderError):
            async for _ in model.stream(question):
                pass
        assert told == []
