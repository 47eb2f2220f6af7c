"""Models behind OpenAI-compatible addresses, as the nodes of a graph use them: servers with better hardware than this
machine, or many of them (`models.remote`).

`models.openai` is for whole conversations. How both are sent, read, refused and tried again is the same: `models.http`
and `models.openai_decoder`.

What only some of those servers know (`top_k`, `min_p`, `repetition_penalty`, a `grammar`) is sent only where it says
anything, so that the others have nothing to refuse.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from trunkline.base import jsontext
from trunkline.core.faults import ProviderError
from trunkline.core.graph.models import SamplingParams
from trunkline.core.usage import Usage
from trunkline.models.answers import AnswerReader
from trunkline.models.engines import Piece, Prompt, Slot, cost
from trunkline.models.http import ReplyReader
from trunkline.models.model import Answer, TextChunk
from trunkline.models.openai import response_format
from trunkline.models.openai_decoder import OpenAIDecoder
from trunkline.models.overflow import PromptTooLong
from trunkline.models.remote import Remote
from trunkline.models.sampling import DEFAULT_SAMPLING

CHAT = "/chat/completions"
#: The longest answer of a language model that comes whole, and the longest event of one that is streamed: so much JSON
#: is read in some 20 ms, in which nobody else gets on.
MAX_WHOLE = 1024 * 1024
#: How many alternatives a server tells at most, by OpenAI's rules.
MAX_ALTERNATIVES = 20
#: And how many texts that end an answer it takes at most.
MAX_STOPS = 4


class OpenAILanguage:
    """A `LanguageEngine` at one address or several."""

    provider = "openai"

    def __init__(
        self,
        remote: Remote,
        context_size: int,
        tool_call_format: str = "",
        default_sampling: SamplingParams | None = None,
    ) -> None:
        self.name = remote.name
        self.context_size = context_size
        self.tool_call_format = tool_call_format
        self.default_sampling = default_sampling
        self._remote = remote

    def refusal(self, sampling: SamplingParams) -> str | None:
        """These servers take tokens by their numbers, which nobody knows here, and have adapters under names of their
        own."""
        if sampling.logit_bias:
            return "Model servers take `logit_bias` by the numbers of tokens, and not by their texts."
        if sampling.lora:
            return "Model servers have adapters as models of their own: list it under the name that the server has."
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
        """Go on from the prompt. Leaving the iterator closes the connection, on which servers stop.

        Pieces are given as they come, whether anybody is to hear them or not: a server may never end, and only who asks
        knows how much is enough.
        """
        body = {"messages": prompt.said, **_sampling(sampling)}
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        if sampling.json_schema and not grammar:
            body["response_format"] = response_format(jsontext.loads(sampling.json_schema.encode()))
        if grammar:
            # The names that llama.cpp's and vLLM's servers have for it.
            body |= {"grammar": grammar, "structured_outputs": {"grammar": grammar}}
        sent = 0
        try:
            async with aclosing(self._remote.stream(CHAT, body, _answer_reader)) as chunks:
                async for chunk in chunks:
                    match chunk:
                        case TextChunk(text):
                            sent += 1
                            yield text
                        case Answer(usage=usage):
                            yield _bill(usage, sent)
        except PromptTooLong as error:
            # In the middle of an answer it is not the prompt that is to blame, and another try would say it twice.
            raise error if not sent else ProviderError(error.message) from None

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """How likely each continuation is, by the alternatives that the server tells for the first token."""
        body = {
            "messages": prompt.said,
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": MAX_ALTERNATIVES,
        }
        answer = await self._remote.whole(CHAT, body, MAX_WHOLE)
        try:
            told = jsontext.loads(answer)["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            chances = {str(each["token"]).strip(): float(each["logprob"]) for each in reversed(told)}
        except (KeyError, IndexError, TypeError, ValueError):
            raise ProviderError(f"The server of the model `{self.name}` does not report probabilities.") from None
        # What is not among the likeliest is less likely than all of them.
        least = min(chances.values(), default=0.0) - 1.0
        return [chances.get(each.strip(), least) for each in continuations]

    def count(self, text: str) -> int:
        """An estimate: nobody knows the model's vocabulary here."""
        return (len(text.encode("utf-8", "replace")) + 2) // 3

    def release(self, slot: Slot) -> None:
        """There is nothing to let go of: the server keeps what it likes."""

    async def close(self) -> None:
        """Close connections. Idempotent; a later request opens them again."""
        await self._remote.close()


def _answer_reader() -> ReplyReader:
    return AnswerReader(OpenAIDecoder(), MAX_WHOLE)


def _bill(usage: Usage | None, sent: int) -> Piece:
    """What an answer cost beyond the pieces that were sent, each of which counts as a token."""
    usage = usage or Usage()
    tokens = cost(usage.output_tokens) or sent
    return Piece("", max(0, tokens - sent), cost(usage.input_tokens), cost(usage.cache_read_tokens))


def _sampling(sampling: SamplingParams) -> dict[str, Any]:
    body: dict[str, Any] = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
    usual = {"top_p": "top_p", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty",
             "seed": "seed", "top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"}  # fmt: skip
    for field, name in usual.items():
        if (value := getattr(sampling, field)) != getattr(DEFAULT_SAMPLING, field):
            body[name] = value
    if sampling.stop:
        # OpenAI's own takes no more; the rest is looked for here.
        body["stop"] = list(sampling.stop[:MAX_STOPS])
    return body
