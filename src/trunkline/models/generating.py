"""Has engines generate, for the nodes of graphs, as `models.asking` asks models: so that it can be followed."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from trunkline.core import tracing
from trunkline.core.graph.models import SamplingParams
from trunkline.core.tracing import ModelTrace
from trunkline.core.usage import Usage
from trunkline.models.asking import followed
from trunkline.models.engines import LanguageEngine, Piece, Prompt, Slot
from trunkline.models.stops import stopped

#: Whose an engine is that does not say: this process's own.
LOCAL = "local"


def generated(
    engine: LanguageEngine,
    name: str,
    prompt: Prompt,
    sampling: SamplingParams,
    *,
    stream: bool,
    grammar: str | None,
    slot: Slot | None,
) -> AsyncGenerator[str, None]:
    """Have an engine go on from a prompt, as far as a stop sequence. See `LanguageEngine.generate`; `name` is the
    model's."""
    pieces = engine.generate(prompt, sampling, stream=stream, grammar=grammar, slot=slot)
    if sampling.stop:
        pieces = stopped(pieces, sampling.stop)
    if tracing.tracer is None:
        return pieces
    return _counted(pieces, tracing.tracer.chat(getattr(engine, "provider", LOCAL), name))


async def _counted(stream: AsyncGenerator[str, None], trace: ModelTrace) -> AsyncGenerator[str, None]:
    pieces = followed(stream, trace)
    made = read = cached = 0
    try:
        async for piece in pieces:
            if isinstance(piece, Piece):
                made, read, cached = made + piece.tokens, read + piece.prompt_tokens, cached + piece.cached_tokens
            else:
                made += 1
            trace.answered(Usage(read or None, made, cached or None), "")
            yield piece
    finally:
        await pieces.aclose()
