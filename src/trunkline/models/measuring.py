"""Measures how fast a language model of this machine answers: by short answers, without anybody's conversation.

It is the one way in which it is measured, for the console as for `trunkline models bench`, and both keep what came of
it in `speed`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from itertools import cycle, islice
from math import isfinite
from typing import Any

from trunkline.base.values import Value
from trunkline.core.faults import AgentBusy, ProviderError
from trunkline.models import speed
from trunkline.models.engines import cost
from trunkline.models.figures import MeasuredModel, MeasurePlan, Measuring, Runs
from trunkline.models.llama import Llama
from trunkline.models.local import LocalModel
from trunkline.models.providers import ModelSettings

#: What somebody waits for in front of a page: enough to see how fast it is, and over within seconds on most machines.
SHORT = MeasurePlan(prompt_tokens=64, tokens=64, repeat=1)
#: Any model reads this, and nothing of it is rare.
_STORY = (
    "The old king walked down to the river, where the miller and his three sons were mending the wheel of the mill, "
    "and asked them for bread and a place to sleep, because the road to the city was long and the night was cold."
)

_at_work: set[str] = set()


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """While a model is being measured: two would slow each other down.

    Raises:
        AgentBusy: another one is.
    """
    if _at_work:
        raise AgentBusy(f"The model `{_at_work.copy().pop()}` is being measured.", hint="Wait for it.")
    _at_work.add(name)
    try:
        yield
    finally:
        _at_work.discard(name)


async def measure(name: str, plan: MeasurePlan = SHORT, tell: Measuring | None = None) -> MeasuredModel:
    """Load a language model, have it answer, and let go of it. One at a time.

    Raises:
        AgentBusy: another one is being measured.
        ConfigError: there is no such language model here, or nothing that runs it.
        ProviderError: it does not work, or says too little.
    """
    with one_at_a_time(name):
        runs = Runs(name, "llm", tell)
        model = LocalModel(ModelSettings(LocalModel.provider, name))
        began = time.monotonic()
        try:
            llama = await model.engine()
            seconds = time.monotonic() - began
            # The first answer takes longer than all others; it tells, too, how many tokens a word has.
            first = await _asked(llama, 0, plan.prompt_tokens, plan.tokens)
            runs.loaded(seconds, llama.used)
            words = max(1, round(plan.prompt_tokens * plan.prompt_tokens / max(1, first.prompt_tokens)))
            for number in range(1, plan.repeat + 1):
                run = await _asked(llama, number, words, plan.tokens)
                runs.found = runs.found.replace(prompt_tokens=run.prompt_tokens)
                runs.add(
                    prompt_tokens_per_second=run.prompt_tokens_per_second,
                    tokens_per_second=run.tokens_per_second,
                    first_token_ms=run.first_token_ms,
                )
                speed.keep(model.name, runs.found.figures["tokens_per_second"].median, plan.tokens)
        finally:
            await model.close()
        return runs.found


class _Run(Value):
    """One answer."""

    prompt_tokens: int
    prompt_tokens_per_second: float
    tokens_per_second: float
    first_token_ms: float


async def _asked(llama: Llama, number: int, words: int, tokens: int) -> _Run:
    """Have it read so many words, and go on with so many tokens. What it read before is not read there again."""
    text = " ".join([f"{number}.", *islice(cycle(_STORY.split()), words)])
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": tokens,
        "temperature": 0.0,
        "ignore_eos": True,
        "cache_prompt": False,
    }
    began, first = time.monotonic(), 0.0
    timings: Mapping[str, Any] = {}
    async with aclosing(llama.chat(body)) as pieces:
        async for piece in pieces:
            timings = piece.get("timings") or timings
            if not first and any(_has_text(choice) for choice in piece.get("choices", ())):
                first = time.monotonic()
    read, wrote = _rate(timings.get("prompt_per_second")), _rate(timings.get("predicted_per_second"))
    if not (first and read and wrote):
        raise ProviderError(f"The model `{llama.name}` said too little to be measured.")
    return _Run(cost(timings.get("prompt_n")), read, wrote, (first - began) * 1000)


def _rate(told: Any) -> float:
    return float(told) if isinstance(told, int | float) and told > 0 and isfinite(told) else 0.0


def _has_text(choice: Any) -> bool:
    delta = choice.get("delta") or {}
    # Those that think first have their thoughts apart.
    return bool(delta.get("content") or delta.get("reasoning_content"))
