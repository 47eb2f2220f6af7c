"""Models behind an OpenAI-compatible address: a server with better hardware than this machine, or with many machines.

What only some of those servers know (`top_k`, `min_p`, `repetition_penalty`, a `grammar`) is sent only where it says
anything, so that the others have nothing to refuse.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from trunkline.agents.graph.catalog import DEFAULT_CONTEXT, ModelEntry
from trunkline.agents.graph.engines import DEFAULT_SAMPLING, EngineError, Piece, Prompt, Slot, Vector
from trunkline.base import http, jsontext
from trunkline.models.sse import SseDecoder
from trunkline.wires.tryll.messages import SamplingParams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

#: The longest answer that is no stream: the vectors of a group of texts.
MAX_BODY = 64 * 1024 * 1024
#: Texts that are embedded by one request.
BATCH = 64
#: How many alternatives a server tells at most, by OpenAI's rules.
MAX_ALTERNATIVES = 20
#: How much of what a server says of an error is shown.
MAX_SHOWN = 500


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
                if response.status_code != 200:
                    raise self._refused(response.status_code, await _read(response, MAX_SHOWN * 8))
                yield response
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise EngineError(f"The server of the model `{self.name}` does not answer: {reason}.") from None

    def _refused(self, status: int, said: bytes) -> EngineError:
        try:
            told = jsontext.loads(said)
            message = told["error"]["message"] if isinstance(told["error"], dict) else told["error"]
        except (ValueError, KeyError, TypeError):
            message = ""
        reason = f": {str(message)[:MAX_SHOWN]}" if message else ""
        return EngineError(f"The server of the model `{self.name}` refused with HTTP status {status}{reason}.")


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
        """Go on from the prompt. Leaving the iterator closes the connection, on which servers stop."""
        body = _body(prompt) | _sampling(sampling) | {"stream": True, "stream_options": {"include_usage": True}}
        if grammar:
            # The names that llama.cpp's and vLLM's servers have for it.
            body |= {"grammar": grammar, "structured_outputs": {"grammar": grammar}}
        whole: list[str] = []
        sent = 0
        usage: dict[str, Any] = {}
        async for event in self._events(body):
            usage = event.get("usage") or usage
            for choice in event.get("choices") or ():
                if not (text := (choice.get("delta") or {}).get("content")):
                    continue
                sent += 1
                if stream:
                    yield Piece(text)
                else:
                    whole.append(text)
        tokens = usage.get("completion_tokens") or sent
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        rest = max(0, tokens - sent) if stream else tokens
        yield Piece("".join(whole), rest, usage.get("prompt_tokens") or 0, cached)

    async def _events(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        decoder = SseDecoder()
        async with self._post("/chat/completions", body) as response:
            async for data in response.aiter_raw():
                for _, event in decoder.feed(data):
                    if event == b"[DONE]":
                        return
                    parsed = jsontext.loads(event)
                    if not isinstance(parsed, dict):
                        raise ValueError("an event of its stream is no object")
                    if "error" in parsed:
                        raise self._refused(response.status_code, event)
                    yield parsed

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """How likely each continuation is, by the alternatives that the server tells for the first token."""
        body = _body(prompt) | {
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": MAX_ALTERNATIVES,
        }
        async with self._post("/chat/completions", body) as response:
            answer = jsontext.loads(await _read(response, MAX_BODY))
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
        return engine

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of length 1 per text."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            group = list(texts[start : start + BATCH])
            async with self._post("/embeddings", {"input": group, "encoding_format": "float"}) as response:
                answer = await _read(response, MAX_BODY)
            vectors += await asyncio.to_thread(self._vectors, answer, len(group))
        return vectors

    def _vectors(self, answer: bytes, count: int) -> list[Vector]:
        import numpy as np

        try:
            told = sorted(jsontext.loads(answer)["data"], key=lambda each: each["index"])
            rows = np.array([each["embedding"] for each in told], np.float32)
            if rows.ndim != 2 or len(rows) != count or (self.dimensions and rows.shape[1] != self.dimensions):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise EngineError(f"The server of the model `{self.name}` gave no vectors that can be used.") from None
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return list(rows / np.where(lengths == 0, 1, lengths))


async def _read(response: httpx.Response, limit: int) -> bytes:
    body = bytearray()
    async for data in response.aiter_raw():
        body += data
        if len(body) > limit:
            raise ValueError(f"its answer has more than {limit} bytes")
    return bytes(body)


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
