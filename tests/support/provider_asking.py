"""Questions over real sockets: a stub provider, a model that asks it, and what comes back, in both formats alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import StubProvider
from tests.support.provider_streams import (
    Event,
    anthropic_error,
    anthropic_sse,
    anthropic_text,
    anthropic_tool_calls,
    openai_sse,
    openai_text,
    openai_tool_calls,
)
from trunkline.core.faults import ProviderError
from trunkline.models.http_model import HttpModel
from trunkline.models.messages import Message, Text
from trunkline.models.model import Chunk, Request, TextChunk
from trunkline.models.providers import ModelSettings, make

KEY = "sk-test-0123456789"
QUESTION = Request([Message("user", (Text("hi"),))], system="be brief")
CALLS = [("Read", {"path": "Grüße 👋"}), ("Bash", {"command": "ls"})]

#: What would lead a request elsewhere.
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


class Format:
    """What a test needs to know about a format."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.is_anthropic = provider == "anthropic"
        self.variable = f"{provider.upper()}_API_KEY"

    def text(self, text: str, thinking: str | None = None) -> list[Event]:
        return anthropic_text(text, thinking=thinking) if self.is_anthropic else openai_text(text, reasoning=thinking)

    def calls(self) -> list[Event]:
        return anthropic_tool_calls(CALLS) if self.is_anthropic else openai_tool_calls(CALLS, interleaved=True)

    def sse(self, events: Sequence[Event], *, done: bool = True) -> bytes:
        return anthropic_sse(events) if self.is_anthropic else openai_sse(events, done=done)

    def before_text(self) -> bytes:
        """The beginning of an answer, up to the first word."""
        return self.sse(self.text("x")[: 3 if self.is_anthropic else 1], done=False)

    def after_text(self) -> bytes:
        """The beginning of an answer, with two words in it."""
        return self.sse(self.text("some words")[: 5 if self.is_anthropic else 3], done=False)

    def error(self, kind: str) -> bytes:
        if self.is_anthropic:
            return anthropic_sse([anthropic_error(kind, "boom")])
        return openai_sse([{"error": {"message": "boom", "type": kind}}], done=False)


@asynccontextmanager
async def asked(form: Format, **settings: Any) -> AsyncIterator[tuple[StubProvider, HttpModel]]:
    """A stub and a model that asks it."""
    async with StubProvider() as stub:
        model = make(ModelSettings(form.provider, **{"model": "m", "api_key": KEY, "base_url": stub.url, **settings}))
        assert isinstance(model, HttpModel)
        try:
            yield stub, model
        finally:
            await model.close()


async def answer(model: HttpModel, request: Request = QUESTION) -> list[Chunk]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [chunk async for chunk in model.stream(request)]


async def failure(model: HttpModel, shown: list[Chunk] | None = None) -> ProviderError:
    """The error that a question ends with; what was shown before goes into `shown`."""
    with pytest.raises(ProviderError) as caught:
        await _collect(model, [] if shown is None else shown)
    return caught.value


async def _collect(model: HttpModel, shown: list[Chunk]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for chunk in model.stream(QUESTION):
            shown.append(chunk)


def texts(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
