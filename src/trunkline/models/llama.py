"""llama.cpp and a GGUF file in this process, for the event loop: `models.local` and the engines of graphs stand on it.

    llama = await Llama.load("mine", "mine.gguf", window=8192, places=2)
    async for piece in llama.chat({"messages": [...]}, slot):
        ...
    await llama.close()

The weights are there once. As many conversations as there are places go on at the same time, others wait for their
turn. Each slot has a place of its own as long as there are enough; what was read there is not read again the next time.
Where there are more slots than places, what they read is kept aside, within limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakSet

from trunkline.core.faults import ProviderError
from trunkline.models import speed
from trunkline.models.engines import Slot, cost
from trunkline.models.llama_server import LlamaServer
from trunkline.models.llama_slots import SlotPool
from trunkline.models.load_options import NOTHING, LoadOptions
from trunkline.models.overflow import PromptTooLong, is_too_long, too_long

#: What every request asks for. A piece for each batch of the prompt: in answer to it the request can be given up.
_ALWAYS = {
    "stream": True,
    "stream_options": {"include_usage": True},
    "return_progress": True,
}
#: What a request asks for that says nothing else: what was read before is not read again.
_USUALLY = {"cache_prompt": True}

#: Those of this process that are loaded.
_loaded: WeakSet[Llama] = WeakSet()


def loaded() -> frozenset[str]:
    """The names of the models that are loaded in this process."""
    return frozenset(llama.name for llama in _loaded)


class Llama:
    """A language model that is loaded. `load` makes one; for one event loop.

    Args:
        name: what its user calls it.
        window: tokens of each conversation.
        reserve: tokens of the window that are kept for the answer: a prompt that leaves no room for it is too long.
    """

    def __init__(self, name: str, server: LlamaServer, *, window: int, places: int = 1, reserve: int = 0) -> None:
        self.name = name
        self.window = window
        self.used = server.used
        """How it was loaded."""
        self._reserve = reserve
        self._server: LlamaServer | None = server
        self._places = SlotPool(places)
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="trunkline-llama")
        self._runs: set[_Run] = set()
        _loaded.add(self)

    @classmethod
    async def load(
        cls,
        name: str,
        path: str,
        *,
        window: int,
        places: int = 1,
        threads: int | None = None,
        reserve: int = 0,
        lora: Sequence[str] = (),
        options: LoadOptions = NOTHING,
    ) -> Llama:
        """Load a model, and the files of its adapters.

        Raises:
            ProviderError: it cannot be loaded.
        """
        server = await asyncio.to_thread(LlamaServer, path, window, places, threads=threads, lora=lora, options=options)
        return cls(name, server, window=window, places=places, reserve=reserve)

    @property
    def idle(self) -> int:
        """How many more could be answered at once."""
        return self._places.idle

    @property
    def waiting(self) -> int:
        """How many wait to be answered."""
        return self._places.waiting

    async def chat(self, body: Mapping[str, Any], slot: Slot | None = None) -> AsyncGenerator[dict[str, Any], None]:
        """Answer a request as OpenAI's Chat Completions have it, piece by piece. Leaving the iterator stops the model
        within one token, or one batch of the prompt.

        Raises:
            PromptTooLong: less may fit. Always before the first piece with text.
            ProviderError: it did not work, or was unloaded.
        """
        run = await self._begin({**_USUALLY, **body, **_ALWAYS}, slot)
        finished = False
        try:
            while (piece := await run.pieces.get()) is not None:
                if "error" in piece:
                    raise self._failed(piece["error"])
                if "prompt_progress" in piece:
                    self._see_to_room(cost(piece["prompt_progress"].get("total")))
                speed.heard(self.name, piece.get("timings"))
                finished = finished or any(choice.get("finish_reason") for choice in piece.get("choices", ()))
                yield piece
        finally:
            run.give_up()
        if not finished:
            raise ProviderError(f"The model `{self.name}` was unloaded in the middle of its answer.", retryable=True)

    def release(self, slot: Slot) -> None:
        """The slot's place is free for others."""
        self._places.forget(slot)

    async def close(self) -> None:
        """Stop everything, and free the memory. Idempotent."""
        server, self._server = self._server, None
        if server is None:
            return
        _loaded.discard(self)
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
            raise ProviderError(f"The model `{self.name}` was unloaded.", retryable=True)
        run = _Run(asyncio.get_running_loop())
        self._runs.add(run)
        job = self._threads.submit(run.work, self._server, body | {"id_slot": place})
        job.add_done_callback(lambda _: run.over(lambda: self._free(run, place)))
        return run

    def _free(self, run: _Run, place: int) -> None:
        self._runs.discard(run)
        self._places.give(place)

    def _see_to_room(self, tokens: int) -> None:
        """A prompt that fits, and leaves no room to answer, is too long as well. The engine knows before it answers."""
        if self._reserve and tokens > self.window - self._reserve:
            raise self._too_long(tokens)

    def _too_long(self, tokens: int) -> PromptTooLong:
        beside = " together with an answer" if self._reserve else ""
        room = self.window - self._reserve
        return PromptTooLong(f"The prompt has {tokens} tokens, and {room} fit into the model{beside}.", tokens)

    def _failed(self, error: Any) -> ProviderError:
        """What the engine says is wrong."""
        told = error if isinstance(error, dict) else {"message": error}
        if told.get("type") == "exceed_context_size_error":
            return self._too_long(cost(told.get("n_prompt_tokens")))
        words = f"The local model failed: {told.get('message') or 'it gives no reason'}"
        return too_long(words) if is_too_long(words) else ProviderError(words, retryable=told.get("code") == 503)


class _Run:
    """One request on its way through a thread of the engine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pieces: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        """What came; None is the end."""
        self._given_up = False
        self._loop = loop

    def give_up(self) -> None:
        """Nobody wants any more."""
        self._given_up = True

    # In the engine's thread.

    def work(self, server: LlamaServer, body: dict[str, Any]) -> None:
        try:
            if not self._given_up:
                server.chat(body, self._take)
        except Exception as error:
            self._tell({"error": {"message": f"{type(error).__name__}: {error}"}})

    def over(self, free: Callable[[], None]) -> None:
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
            self._loop.call_soon_threadsafe(self.pieces.put_nowait, piece)
        except RuntimeError:  # the loop is closed: nobody listens any more
            self._given_up = True
