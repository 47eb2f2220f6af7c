"""Models behind an OpenAI-compatible address, as the nodes of a graph use them: a server with better hardware than this
machine, or with many machines.

`models.openai` is for whole conversations. How both are sent, read, refused and tried again is the same: `models.http`
and `models.openai_decoder`.

What only some of those servers know (`top_k`, `min_p`, `repetition_penalty`, a `grammar`) is sent only where it says
anything, so that the others have nothing to refuse.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from trunkline.base import jsontext
from trunkline.core.faults import ProviderError, TooLong
from trunkline.core.graph.models import SamplingParams
from trunkline.core.usage import Usage
from trunkline.models.answers import AnswerReader, BodyReader, ResponseBody
from trunkline.models.encoding import to_bytes
from trunkline.models.endpoint import endpoint
from trunkline.models.engines import Piece, Prompt, Slot, cost
from trunkline.models.http import HttpCall, HttpService, ReplyReader
from trunkline.models.http_model import keyed_service
from trunkline.models.model import Answer, Chunk, TextChunk
from trunkline.models.openai import headers
from trunkline.models.openai_decoder import OpenAIDecoder
from trunkline.models.overflow import PromptTooLong
from trunkline.models.sampling import DEFAULT_SAMPLING

CHAT = "/chat/completions"
#: The longest answer of a language model that comes whole, and the longest event of one that is streamed: so much JSON
#: is read in some 20 ms, in which nobody else gets on.
MAX_WHOLE = 1024 * 1024
#: How many alternatives a server tells at most, by OpenAI's rules.
MAX_ALTERNATIVES = 20
#: How long a request that failed is made again: somebody waits for a character's next word, not for an agent's work.
GIVE_UP_SECONDS = 5.0


class Remote:
    """Where a model is, and how it is asked.

    Args:
        name: what its user calls it.
        url: the address in front of `/chat/completions`.
        model: what the server calls it.
        key_variable: where people find the key.
    """

    def __init__(self, name: str, url: str, *, model: str = "", key: str = "", key_variable: str = "") -> None:
        self.name = name
        self.model = model or name
        self.url = url
        self._key = key
        self._variable = key_variable or "api_key_env"
        self._service: HttpService | None = None

    async def close(self) -> None:
        """Close connections. Idempotent; a later request opens them again."""
        service, self._service = self._service, None
        if service is not None:
            await service.close()

    async def stream(
        self, path: str, body: Mapping[str, Any], reader: Callable[[], ReplyReader]
    ) -> AsyncGenerator[Chunk, None]:
        """Ask; `reader` makes what reads the answer.

        Raises:
            ProviderError: it did not work; the text names the model.
        """
        sent = to_bytes({**body, "model": self.model})
        call = HttpCall(endpoint(self.url, path, api_path=path), headers(self._key), sent)

        async def ready() -> HttpCall:
            return call

        if self._service is None:
            self._service = keyed_service(
                self.url,
                model=self.model,
                key=self._key,
                variable=self._variable,
                address="url",
                give_up=GIVE_UP_SECONDS,
            )
        try:
            async with aclosing(self._service.stream(ready, reader)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ProviderError as error:
            text = f"The server of the model `{self.name}`: {error.message}"
            if isinstance(error, TooLong):
                raise PromptTooLong(text, getattr(error, "tokens", 0)) from None
            raise ProviderError(text, retryable=error.retryable, hint=error.hint) from None

    async def whole(self, path: str, body: Mapping[str, Any], limit: int) -> bytes:
        """The bytes of an answer that is one text. Raises as `stream`."""
        async with aclosing(self.stream(path, body, lambda: BodyReader(limit))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, ResponseBody):
                    return chunk.data
        return b""


class OpenAILanguage:
    """A `LanguageEngine` at an address."""

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
    return body
