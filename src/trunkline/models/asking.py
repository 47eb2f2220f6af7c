"""Asks models, for all who do: so that each question can be followed (`core.tracing`), where somebody wants to."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TypeVar

from trunkline.core import tracing
from trunkline.core.tracing import ModelTrace
from trunkline.models.model import Answer, Chunk, Model, Request

T = TypeVar("T")


def asked(model: Model, request: Request) -> AsyncGenerator[Chunk, None]:
    """Ask a model. See `Model.stream`."""
    stream = model.stream(request)
    if tracing.tracer is None:
        return stream
    return _listened(stream, tracing.tracer.chat(model.provider, model.name))


async def _listened(stream: AsyncGenerator[Chunk, None], trace: ModelTrace) -> AsyncGenerator[Chunk, None]:
    chunks = followed(stream, trace)
    try:
        async for chunk in chunks:
            if isinstance(chunk, Answer):
                trace.answered(chunk.usage, chunk.stop)
            yield chunk
    finally:
        await chunks.aclose()


async def followed(stream: AsyncGenerator[T, None], trace: ModelTrace) -> AsyncGenerator[T, None]:
    """What a model says, while somebody follows it."""
    failed: BaseException | None = None
    try:
        while True:
            # Step by step: what runs between two of them is not the question's.
            with trace.here():
                piece = await anext(stream, None)
            if piece is None:
                return
            trace.heard()
            yield piece
    except BaseException as error:
        failed = error
        raise
    finally:
        trace.ended(failed)
        await stream.aclose()
