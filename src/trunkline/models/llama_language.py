"""A `LanguageEngine` in this process: llama.cpp and a GGUF file, shared by all nodes that use it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import lru_cache
from math import log
from types import MappingProxyType
from typing import Any

from trunkline.base import jsontext
from trunkline.base.document import listed
from trunkline.base.vocabulary import LEAST_WINDOW
from trunkline.core.faults import ProviderError
from trunkline.core.graph.models import SamplingParams
from trunkline.models.engines import Piece, Prompt, Slot, cost, high_water
from trunkline.models.grammar import value as grammar_of_value
from trunkline.models.llama import Llama
from trunkline.models.load_options import NOTHING, LoadOptions
from trunkline.models.sampling import DEFAULT_SAMPLING

#: Conversations at once: each costs memory for a whole window, and on few cores all of them get slower.
MIN_PLACES, MAX_PLACES = 2, 4
#: Far above what any model would add to a word by itself: only what is asked for is left to choose from.
_BIAS = 100.0
#: What counts as impossible.
_LEAST = 1e-30

#: What the engine calls as we do.
_NUMBERS = tuple(field for field, default in DEFAULT_SAMPLING.__defaults__.items() if isinstance(default, int | float))

_PARTS = re.compile(r"[A-Za-z]+|[^\x00-\x7f]+|[^ A-Za-z]| (?=\d)| {2,}")


class LlamaLanguage:
    """A `LanguageEngine`. `load` makes one."""

    def __init__(
        self,
        llama: Llama,
        tool_call_format: str = "",
        default_sampling: SamplingParams | None = None,
        lora: Sequence[str] = (),
    ) -> None:
        """`lora`: the names of the adapters that are loaded with it, in their order."""
        self.name = llama.name
        self.context_size = llama.window
        self.tool_call_format = tool_call_format
        self.default_sampling = default_sampling
        self.used = llama.used
        self._llama = llama
        self._lora = tuple(lora)

    @classmethod
    async def load(
        cls,
        name: str,
        path: str,
        *,
        window: int,
        tool_call_format: str = "",
        default_sampling: SamplingParams | None = None,
        places: int | None = None,
        threads: int | None = None,
        lora: Mapping[str, str] = MappingProxyType({}),
        options: LoadOptions = NOTHING,
    ) -> LlamaLanguage:
        """Load a model. `window`: tokens of each conversation, unless the options say it; `lora`: files of adapters by
        name.

        Raises:
            ProviderError: it cannot be loaded.
        """
        places = places or max(MIN_PLACES, min(os.cpu_count() or 1, MAX_PLACES))
        window = max(options.context or window, LEAST_WINDOW)
        reserve = window - high_water(window)
        adapters = tuple(lora.values())
        llama = await Llama.load(
            name,
            path,
            window=window,
            places=places,
            threads=threads,
            reserve=reserve,
            lora=adapters,
            options=options,
        )
        return cls(llama, tool_call_format, default_sampling, tuple(lora))

    @property
    def idle(self) -> int:
        """How many more could be answered at once."""
        return self._llama.idle

    @property
    def waiting(self) -> int:
        """How many wait to be answered."""
        return self._llama.waiting

    def refusal(self, sampling: SamplingParams) -> str | None:
        """It lacks adapters that it was not loaded with."""
        for each in sampling.lora:
            if each.name not in self._lora:
                known = f"has {listed(self._lora)}" if self._lora else "has none"
                return f"The model `{self.name}` has no adapter `{each.name}`: it {known}."
        return None

    async def generate(
        self,
        prompt: Prompt,
        sampling: SamplingParams,
        *,
        stream: bool,
        grammar: str | None = None,
        slot: Slot | None = None,
    ) -> AsyncGenerator[str, None]:
        """Go on from the prompt. Leaving the iterator stops the model within one token."""
        body = {"messages": prompt.said, **_sampling(sampling), **self._adapted(sampling)}
        if grammar or sampling.json_schema:
            # A long schema takes some 50 ms; one that was seen before, nothing.
            body["grammar"] = grammar or await asyncio.to_thread(_grammar_of, sampling.json_schema or "")
        whole: list[str] = []
        sent = 0
        usage: dict[str, Any] = {}
        async with aclosing(self._llama.chat(body, slot)) as pieces:
            async for piece in pieces:
                usage = piece.get("usage") or usage
                for choice in piece.get("choices", ()):
                    if not (text := choice.get("delta", {}).get("content")):
                        continue
                    if stream:
                        sent += 1
                        yield Piece(text)
                    else:
                        whole.append(text)
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        rest = max(0, cost(usage.get("completion_tokens")) - sent)
        yield Piece("".join(whole), rest, cost(usage.get("prompt_tokens")), cost(cached))

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """How likely each continuation is, by the first token of it: all the others are put out of the question."""
        count = len(continuations)
        body = {
            "messages": prompt.said,
            "max_tokens": 1,
            "temperature": 1.0,
            "samplers": ["temperature"],
            "logit_bias": [[each, _BIAS] for each in continuations],
            "logprobs": True,
            "top_logprobs": count,
            "n_probs": count,
            "post_sampling_probs": True,
            **self._adapted(self.default_sampling or DEFAULT_SAMPLING),
        }
        chances: dict[str, float] = {}
        async with aclosing(self._llama.chat(body, slot)) as pieces:
            async for piece in pieces:
                for choice in piece.get("choices", ()):
                    for token in (choice.get("logprobs") or {}).get("content") or ():
                        chances |= {each["token"]: each["prob"] for each in token.get("top_probs", ())}
        if not chances:
            raise ProviderError("The model gave no probabilities.")
        return [log(max(_LEAST, _chance(chances, each))) for each in continuations]

    def _adapted(self, sampling: SamplingParams) -> dict[str, Any]:
        """How much of each adapter is to be felt: of those that are not named, nothing."""
        scales = {each.name: each.scale for each in sampling.lora}
        adapters = [{"id": place, "scale": scales.get(name, 0.0)} for place, name in enumerate(self._lora)]
        return {"lora": adapters} if adapters else {}

    def count(self, text: str) -> int:
        """An estimate that is rather too high: the engine itself would take a millisecond each time."""
        tokens = 0
        for part in _PARTS.findall(text):
            if part[0] > "\x7f":
                # Vocabularies differ most in what they know of other scripts; none needs more than its bytes.
                tokens += (2 * len(part.encode("utf-8", "replace")) + 2) // 3
            else:
                tokens += (len(part) + 4) // 5 if part[0].isalpha() else 1
        return tokens

    def release(self, slot: Slot) -> None:
        """The slot's place is free for others."""
        self._llama.release(slot)

    async def close(self) -> None:
        """Stop everything, and free the memory. Idempotent."""
        await self._llama.close()


def _sampling(sampling: SamplingParams) -> dict[str, Any]:
    # 0 means another one each time, for which the engine has its own number.
    given = {field: getattr(sampling, field) for field in _NUMBERS} | {"seed": sampling.seed or 0xFFFFFFFF}
    if sampling.stop:
        given["stop"] = list(sampling.stop)
    if sampling.logit_bias:
        # A word is mostly another token where a blank is in front of it.
        given["logit_bias"] = [
            [text, each.bias] for each in sampling.logit_bias for text in dict.fromkeys((each.token, f" {each.token}"))
        ]
    return given


@lru_cache(maxsize=64)
def _grammar_of(schema: str) -> str:
    return grammar_of_value(jsontext.loads(schema.encode("utf-8", "replace")))


def _chance(chances: dict[str, float], continuation: str) -> float:
    """The chance of the longest token that a continuation begins with."""
    begins = [token for token in chances if token and continuation.startswith(token)]
    return chances[max(begins, key=len)] if begins else 0.0
