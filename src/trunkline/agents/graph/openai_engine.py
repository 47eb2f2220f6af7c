"""Models behind an OpenAI-compatible address: a server with better hardware than this machine, or with many machines.

What only some of those servers know (`top_k`, `min_p`, `repetition_penalty`, a `grammar`) is sent only where it says
anything, so that the others have nothing to refuse.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from trunkline.agents.graph.catalog import DEFAULT_CONTEXT, ModelEntry
from trunkline.agents.graph.engines import (
    DEFAULT_SAMPLING,
    EngineError,
    Piece,
    Prompt,
    PromptTooLong,
    Slot,
    Vector,
    cost,
)
from trunkline.base import http, jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.models.overflow import is_too_long
from trunkline.models.sse import SseDecoder
from trunkline.wires.tryll.messages import SamplingParams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

#: The longest answer of an embedding model: the vectors of a group of texts.
MAX_BODY = 64 * 1024 * 1024
#: The longest answer of a language model that comes whole, and the longest event of one that is streamed: so much JSON
#: is read in some 20 ms, in which nobody else gets on.
MAX_WHOLE = 1024 * 1024
#: Texts that are embedded by one request.
BATCH = 64
#: How many alternatives a server tells at most, by OpenAI's rules.
MAX_ALTERNATIVES = 20
#: Numbers of a vector by which a model is known again; see `OpenAiEmbedding.fingerprint`.
MARKS = 8
#: How much of what a server says of an error is shown.
MAX_SHOWN = 500


_FINE = 200
#: Numbers of a vector, as far as 32 bits can hold them.
_LARGEST = 1e38


class _Remote:
    """What both kinds have in common."""

    def __init__(self, entry: ModelEntry) -> None:
        self.name = entry.name
        self._model = entry.remote_model or entry.name
        self._url = entry.url
        key = os.environ.get(entry.key_variable, "") if entry.key_variable else ""
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close connections. Idempotent; a later request opens them again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _post(self, path: str, body: dict[str, Any]) -> AsyncIterator[httpx.Response]:
        http.load()
        import httpx

        try:
            if self._client is None:
                self._client = http.client(secure=self._url.startswith("https:"))
            request = self._client.stream(
                "POST", f"{self._url}{path}", content=jsontext.dumps(body | {"model": self._model}),
                headers={"content-type": "application/json", **self._headers},
            )  # fmt: skip
            async with request as response:
                if response.status_code != _FINE:
                    raise self._refused(response.status_code, await http.whole(response.aiter_raw(), MAX_SHOWN * 8))
                yield response
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise EngineError(f"The server of the model `{self.name}` does not answer: {reason}.") from None

    def _refused(self, status: int, said: bytes) -> EngineError:
        try:
            error = jsontext.loads(said)["error"]
            told = error if isinstance(error, dict) else {"message": error}
        except (ValueError, KeyError, TypeError):
            told = {}
        message = str(told.get("message") or "")
        reason = f": {cut_between_words(message, MAX_SHOWN)}" if message else ""
        text = f"The server of the model `{self.name}` refused with HTTP status {status}{reason}."
        names = frozenset(str(told[key]) for key in ("code", "type") if told.get(key))
        if is_too_long(message, names, status if status != _FINE else None):
            return PromptTooLong(text, cost(told.get("n_prompt_tokens")))
        return EngineError(text)


class OpenAiLanguage(_Remote):
    """A `LanguageEngine` at an address."""

    def __init__(self, entry: ModelEntry) -> None:
        super().__init__(entry)
        self.context_size = entry.context_size or DEFAULT_CONTEXT
        self.tool_call_format = entry.tool_call_format
        self.default_sampling = entry.default_sampling

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
        body = _body(prompt) | _sampling(sampling) | {"stream": True, "stream_options": {"include_usage": True}}
        if grammar:
            # The names that llama.cpp's and vLLM's servers have for it.
            body |= {"grammar": grammar, "structured_outputs": {"grammar": grammar}}
        sent = 0
        usage: dict[str, Any] = {}
        try:
            async with aclosing(self._events(body)) as events:
                async for event in events:
                    usage = _object(event.get("usage")) or usage
                    if text := _said(event):
                        sent += 1
                        yield text
        except PromptTooLong as error:
            # In the middle of an answer it is not the prompt that is to blame, and another try would say it twice.
            raise error if not sent else EngineError(str(error)) from None
        tokens = cost(usage.get("completion_tokens")) or sent
        cached = cost(_object(usage.get("prompt_tokens_details")).get("cached_tokens"))
        yield Piece("", max(0, tokens - sent), cost(usage.get("prompt_tokens")), cached)

    async def _events(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The events of an answer. One that says neither `[DONE]` nor why it ended is none, whatever its status."""
        finished = False
        async with self._post("/chat/completions", body) as response:
            chunks = response.aiter_raw()
            first = await anext(chunks, b"")
            # No stream begins like this: then the server sends the answer whole.
            is_whole = first.lstrip().startswith(b"{")
            events = _whole(chunks, first) if is_whole else _streamed(chunks, first)
            async for event in events:
                if event == b"[DONE]":
                    return
                parsed = self._parsed(event, response.status_code)
                finished = finished or any(each.get("finish_reason") or is_whole for each in _choices(parsed))
                yield parsed
        if not finished:
            raise EngineError(f"The server of the model `{self.name}` gave no answer, or not all of it.")

    def _parsed(self, data: bytes, status: int) -> dict[str, Any]:
        try:
            parsed = jsontext.loads(data)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise ValueError("it says what is no JSON object")
        if parsed.get("error") is not None:
            raise self._refused(status, data)
        return parsed

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """How likely each continuation is, by the alternatives that the server tells for the first token."""
        body = _body(prompt) | {
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": MAX_ALTERNATIVES,
        }
        async with self._post("/chat/completions", body) as response:
            answer = jsontext.loads(await http.whole(response.aiter_raw(), MAX_WHOLE))
        try:
            told = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            chances = {str(each["token"]).strip(): float(each["logprob"]) for each in reversed(told)}
        except (KeyError, IndexError, TypeError, ValueError):
            raise EngineError(f"The server of the model `{self.name}` tells no probabilities.") from None
        # What is not among the likeliest is less likely than all of them.
        least = min(chances.values(), default=0.0) - 1.0
        return [chances.get(each.strip(), least) for each in continuations]

    def count(self, text: str) -> int:
        """An estimate: nobody knows the model's vocabulary here."""
        return (len(text.encode("utf-8", "replace")) + 2) // 3

    def release(self, slot: Slot) -> None:
        """There is nothing to let go of: the server keeps what it likes."""


class OpenAiEmbedding(_Remote):
    """An `EmbeddingEngine` at an address. `load` makes one."""

    dimensions = 0
    fingerprint = ""

    @classmethod
    async def load(cls, entry: ModelEntry) -> OpenAiEmbedding:
        """Ask how long the vectors are.

        Raises:
            EngineError: nobody answers, or not with vectors.
        """
        engine = cls(entry)
        try:
            (vector,) = await engine.embed(["a"])
        except BaseException:
            await engine.close()
            raise
        engine.dimensions = len(vector)
        engine.fingerprint = engine._marked(vector)
        return engine

    def _marked(self, vector: Vector) -> str:
        """What tells this model from another one at the same address, under the same name.

        Which numbers of a vector are its largest, and their signs: that is the same for one model although servers
        calculate a little differently each time, and hardly for two.
        """
        largest = sorted(range(len(vector)), key=lambda at: -abs(vector[at]))[:MARKS]
        marks = [at if vector[at] >= 0 else ~at for at in sorted(largest)]
        return hashlib.sha256(repr((self._url, self._model, marks)).encode()).hexdigest()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of length 1 per text."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            group = list(texts[start : start + BATCH])
            async with self._post("/embeddings", {"input": group, "encoding_format": "float"}) as response:
                answer = await http.whole(response.aiter_raw(), MAX_BODY)
            vectors += await asyncio.to_thread(self._vectors, answer, len(group))
        return vectors

    def _vectors(self, answer: bytes, count: int) -> list[Vector]:
        import numpy as np

        try:
            told = sorted(jsontext.loads(answer)["data"], key=lambda each: each["index"])
            rows = np.array([each["embedding"] for each in told], np.float64)
            if rows.ndim != 2 or len(rows) != count or (self.dimensions and rows.shape[1] != self.dimensions):
                raise ValueError
            # What is no number, and what is too large to have a length.
            if not np.abs(rows).max() < _LARGEST:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            raise EngineError(f"The server of the model `{self.name}` gave no vectors that can be used.") from None
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return list((rows / np.where(lengths == 0, 1, lengths)).astype(np.float32))


async def _whole(chunks: AsyncIterator[bytes], first: bytes) -> AsyncGenerator[bytes, None]:
    yield await http.whole(chunks, MAX_WHOLE, first)


async def _streamed(chunks: AsyncIterator[bytes], first: bytes) -> AsyncGenerator[bytes, None]:
    decoder = SseDecoder(MAX_WHOLE)
    for _, event in decoder.feed(first):
        yield event
    async for data in chunks:
        for _, event in decoder.feed(data):
            yield event
    for _, event in decoder.finish():
        yield event


def _object(told: Any) -> dict[str, Any]:
    """What should be an object, if it is one."""
    return told if isinstance(told, dict) else {}


def _choices(event: dict[str, Any]) -> list[dict[str, Any]]:
    told = event.get("choices")
    return [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []


def _said(event: dict[str, Any]) -> str:
    """The text of an event: of a piece, or of a whole answer. Some servers tell it in parts."""
    texts = []
    for choice in _choices(event):
        content = _object(choice.get("delta") or choice.get("message")).get("content")
        parts = content if isinstance(content, list) else [content]
        texts += [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _body(prompt: Prompt) -> dict[str, Any]:
    return {"messages": [{"role": message.role, "content": message.text} for message in prompt.messages]}


def _sampling(sampling: SamplingParams) -> dict[str, Any]:
    body: dict[str, Any] = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
    usual = {"top_p": "top_p", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty",
             "seed": "seed", "top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"}  # fmt: skip
    for field, name in usual.items():
        if (value := getattr(sampling, field)) != getattr(DEFAULT_SAMPLING, field):
            body[name] = value
    return body
