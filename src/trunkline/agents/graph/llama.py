"""A language model in this process, shared by all agents: llama.cpp and a GGUF file.

The weights are there once. As many agents as there are places write at the same time, others wait for their turn. Each
node has a place of its own as long as there are enough; what was read there is not read again in the next turn. Where
there are more nodes than places, what they read is kept aside, within limits.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import log
from typing import Any

from trunkline.agents.graph.catalog import DEFAULT_CONTEXT, ModelEntry
from trunkline.agents.graph.dialog import high_water
from trunkline.agents.graph.engines import EngineError, Piece, Prompt, PromptTooLong, Slot, cost
from trunkline.agents.graph.llama_server import LlamaServer
from trunkline.agents.graph.llama_slots import Places
from trunkline.models.local_engine import LEAST_WINDOW
from trunkline.wires.tryll.messages import SamplingParams

#: Conversations at once: each costs memory for a whole window, and on few cores all of them get slower.
MIN_PLACES, MAX_PLACES = 2, 4
#: Far above what any model would add to a word by itself: only what is asked for is left to choose from.
_BIAS = 100.0
#: What counts as impossible.
_LEAST = 1e-30

_PARTS = re.compile(r"[A-Za-z]+|[^\x00-\x7f]+|[^ A-Za-z]| (?=\d)| {2,}")


class LlamaLanguage:
    """A `LanguageEngine`. `load` makes one."""

    def __init__(self, entry: ModelEntry, server: LlamaServer, window: int, places: int) -> None:
        self.name = entry.name
        self.context_size = window
        self.tool_call_format = entry.tool_call_format
        self.default_sampling = entry.default_sampling
        self._server: LlamaServer | None = server
        self._places = Places(places)
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="trunkline-llama")
        self._runs: set[_Run] = set()

    @classmethod
    async def load(
        cls, entry: ModelEntry, path: str, *, places: int | None = None, threads: int | None = None
    ) -> LlamaLanguage:
        """Load a model.

        Raises:
            EngineError: it cannot be loaded.
        """
        places = places or max(MIN_PLACES, min(os.cpu_count() or 1, MAX_PLACES))
        window = max(entry.context_size or DEFAULT_CONTEXT, LEAST_WINDOW)
        server = await asyncio.to_thread(LlamaServer, path, window, places, threads=threads)
        return cls(entry, server, window, places)

    @property
    def idle(self) -> int:
        """How many more could be answered at once."""
        return self._places.idle

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
        body = _body(prompt) | _sampling(sampling)
        if grammar:
            body["grammar"] = grammar
        run = await self._begin(body, slot)
        whole: list[str] = []
        sent = 0
        usage: dict[str, Any] = {}
        try:
            while (piece := await run.next()) is not None:
                if "prompt_progress" in piece:
                    self._see_to_room(piece["prompt_progress"])
                usage = piece.get("usage") or usage
                for choice in piece.get("choices", ()):
                    if not (text := choice.get("delta", {}).get("content")):
                        continue
                    if stream:
                        sent += 1
                        yield Piece(text)
                    else:
                        whole.append(text)
        finally:
            run.give_up()
        if not usage:
            raise EngineError("The model was unloaded in the middle of its answer.")
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        rest = max(0, cost(usage.get("completion_tokens")) - sent)
        yield Piece("".join(whole), rest, cost(usage.get("prompt_tokens")), cost(cached))

    def _see_to_room(self, progress: Any) -> None:
        """A prompt that fits, and leaves no room to answer, is too long as well. The engine knows before it answers."""
        tokens, most = cost(progress.get("total")), high_water(self.context_size)
        if tokens > most:
            raise _too_long(tokens, most)

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """How likely each continuation is, by the first token of it: all the others are put out of the question."""
        count = len(continuations)
        body = _body(prompt) | {
            "max_tokens": 1,
            "temperature": 1.0,
            "samplers": ["temperature"],
            "logit_bias": [[each, _BIAS] for each in continuations],
            "logprobs": True,
            "top_logprobs": count,
            "n_probs": count,
            "post_sampling_probs": True,
        }
        run = await self._begin(body, slot)
        chances: dict[str, float] = {}
        try:
            while (piece := await run.next()) is not None:
                for choice in piece.get("choices", ()):
                    for token in (choice.get("logprobs") or {}).get("content") or ():
                        chances |= {each["token"]: each["prob"] for each in token.get("top_probs", ())}
        finally:
            run.give_up()
        if not chances:
            raise EngineError("The model gave no probabilities.")
        return [log(max(_LEAST, _chance(chances, each))) for each in continuations]

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
        self._places.forget(slot)

    async def close(self) -> None:
        """Stop everything, and free the memory. Idempotent."""
        server, self._server = self._server, None
        if server is None:
            return
        for run in self._runs:
            run.give_up()
        # When the last of them is over, nobody else holds the server. To take it down takes a while.
        await asyncio.to_thread(self._threads.shutdown)
        holder = [server]
        del server
        await asyncio.to_thread(holder.clear)

    async def _begin(self, body: dict[str, Any], slot: Slot | None) -> _Run:
        """Wait for a place, and have it answered there."""
        place = await self._places.take(slot)
        if self._server is None:
            self._places.give(place)
            raise EngineError(f"The model `{self.name}` was unloaded.")
        run = _Run(asyncio.get_running_loop())
        self._runs.add(run)
        job = self._threads.submit(run.work, self._server, body | {"id_slot": place})
        job.add_done_callback(lambda done: run.over(done, lambda: self._free(run, place)))
        return run

    def _free(self, run: _Run, place: int) -> None:
        self._runs.discard(run)
        self._places.give(place)


class _Run:
    """One request on its way through a thread of the engine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pieces: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._given_up = False
        self._loop = loop

    async def next(self) -> dict[str, Any] | None:
        """The next piece; None after the last.

        Raises:
            EngineError: the engine says that it does not work.
        """
        piece = await self._pieces.get()
        if piece is not None and (error := piece.get("error")):
            raise _failure(error)
        return piece

    def give_up(self) -> None:
        """Nobody wants any more."""
        self._given_up = True

    # In the engine's thread.

    def work(self, server: LlamaServer, body: dict[str, Any]) -> None:
        try:
            if not self._given_up:
                server.chat(body, self._take)
        except Exception as error:
            self._tell({"error": {"message": f"it failed ({type(error).__name__})"}})

    def over(self, done: Future[None], free: Any) -> None:
        # In this order: whoever reads to the end and comes back at once finds its place free.
        try:
            self._loop.call_soon_threadsafe(free)
        except RuntimeError:  # the loop is closed: nobody waits for a place
            pass
        self._tell(None)

    def _take(self, piece: dict[str, Any]) -> bool:
        if not self._given_up:
            self._tell(piece)
        return self._given_up

    def _tell(self, piece: dict[str, Any] | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)
        except RuntimeError:  # the loop is closed: nobody listens any more
            self._given_up = True


def _body(prompt: Prompt) -> dict[str, Any]:
    return {
        "messages": [{"role": message.role, "content": message.text} for message in prompt.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_prompt": True,
        # A piece for each batch of the prompt, in answer to which the request can be given up.
        "return_progress": True,
    }


def _sampling(sampling: SamplingParams) -> dict[str, Any]:
    return {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repeat_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "max_tokens": sampling.max_tokens,
        # 0 means another one each time, for which the engine has its own number.
        "seed": sampling.seed or 0xFFFFFFFF,
    }


def _chance(chances: dict[str, float], continuation: str) -> float:
    """The chance of the longest token that a continuation begins with."""
    begins = [token for token in chances if token and continuation.startswith(token)]
    return chances[max(begins, key=len)] if begins else 0.0


def _too_long(tokens: int, most: int) -> PromptTooLong:
    return PromptTooLong(f"The prompt has {tokens} tokens, and {most} fit into the model beside an answer.", tokens)


def _failure(error: Any) -> EngineError:
    if not isinstance(error, dict):
        return EngineError("The model failed.")
    if error.get("type") == "exceed_context_size_error":
        return _too_long(cost(error.get("n_prompt_tokens")), high_water(cost(error.get("n_ctx"))))
    return EngineError(f"The model failed: {error.get('message', 'it gives no reason')}.")
