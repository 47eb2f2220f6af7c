"""Measures how fast a language model of this machine answers: by a short answer, without anybody's conversation."""

from __future__ import annotations

import time
from contextlib import aclosing

from trunkline.base.values import Value
from trunkline.core.faults import AgentBusy, ProviderError
from trunkline.models import speed
from trunkline.models.local import LocalModel
from trunkline.models.messages import Message, Text
from trunkline.models.model import Request, TextChunk
from trunkline.models.providers import ModelSettings

#: Any model has something to say to this, and none is done at once.
PROMPT = "Write the numbers from one to forty as words, separated by commas."
#: The longest answer: enough to see how fast it is, and over within seconds on most machines.
MOST_TOKENS = 64

_at_work: set[str] = set()


class MeasuredModel(Value):
    """What came of it."""

    tokens_per_second: float
    first_token_ms: int
    """From the question to the first word, of a model that is loaded."""


async def measure(name: str) -> MeasuredModel:
    """Load a model, have it answer, and let go of it. One at a time: two would slow each other down.

    Raises:
        AgentBusy: another one is being measured.
        ConfigError: there is no such language model here, or nothing that runs it.
        ProviderError: it does not work, or says too little.
    """
    if _at_work:
        raise AgentBusy(f"The model `{_at_work.copy().pop()}` is being measured.", hint="Wait for it.")
    model = LocalModel(ModelSettings(LocalModel.provider, name, max_tokens=MOST_TOKENS))
    _at_work.add(name)
    try:
        await model.load()
        began, first = time.monotonic(), None
        async with aclosing(model.stream(Request([Message("user", (Text(PROMPT),))]))) as chunks:
            async for chunk in chunks:
                if first is None and isinstance(chunk, TextChunk):
                    first = time.monotonic()
    finally:
        _at_work.discard(name)
        await model.close()
    found = speed.last(model.name)
    if found is None or first is None:
        raise ProviderError(f"The model `{name}` said too little to be measured.")
    return MeasuredModel(found.tokens_per_second, round((first - began) * 1000))
