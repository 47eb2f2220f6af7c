"""A language model in this process, without any service: `xllamacpp`, and a GGUF file.

The model is a name of the catalog or of a hub, pulled before, or the path of a `.gguf` file. It is loaded with the
first request. One request is answered at a time; others wait for it. Tool calls are held to their schemas by a grammar.
The engine itself, which graphs use as well, is in `models.llama`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from trunkline.base.vocabulary import LEAST_WINDOW, MOST_THREADS, MOST_WINDOW
from trunkline.core.faults import ConfigError, Fault
from trunkline.models import catalog, grammar, local_gguf, local_prompt, naming
from trunkline.models.catalog_entry import LLAMA, LLM, USUAL_WINDOW, CatalogEntry, ModelFile
from trunkline.models.installed import lacking_engines
from trunkline.models.llama import Llama
from trunkline.models.llama_server import default_threads
from trunkline.models.load_configured import options_for
from trunkline.models.messages import ThinkingBlock, ToolUse
from trunkline.models.model import Answer, AnswerOptions, Chunk, Request, TextChunk, ToolSpec
from trunkline.models.openai_decoder import OpenAIDecoder
from trunkline.models.overflow import HINT, PromptTooLong
from trunkline.models.providers import PROVIDERS, ModelSettings

#: The longest answer, unless somebody says so. A small model that repeats itself would go on to the end of its window.
DEFAULT_MAX_TOKENS = 1024
#: Small models wander at the temperatures that large ones are used with.
TEMPERATURE = 0.2
TOP_P = 0.9
#: Tokens that are this much less likely than the likeliest are never taken.
MIN_P = 0.05
#: Models in smaller files, in bytes, fall into loops. A little dislike of their last words keeps them from some; with
#: more of it they misspell the names that they were told. Larger ones do well without.
SMALL_MODEL_BYTES = 600_000_000
SMALL_REPEAT_PENALTY = 1.03
REPEAT_WINDOW_TOKENS = 64

#: The settings under `compat` that have an effect. `force_tool`: each answer is a tool call.
COMPAT_KEYS = frozenset({"force_tool", "n_ctx", "repeat_penalty", "temperature", "threads"})


class LocalModel:
    """A `Model` in this process."""

    provider = "local"
    images = False
    #: A hint to agents: each token of the prompt takes milliseconds, so leave out what can be left out.
    compact_prompt = True

    def __init__(self, settings: ModelSettings) -> None:
        """Costs little: nothing is loaded yet.

        Raises:
            ConfigError: the engine is not installed, or the model is not there. The text says how to get it.
        """
        self.name = settings.model or PROVIDERS[self.provider].model
        self._path, entry = _usable(self.name)
        compat = settings.compat
        # What is said of this very model goes before what is said of all local ones.
        self._options = options_for(self.name, self._path, entry.name, entry.origin).over(entry.options)
        asked = self._options.context or _count(compat, "n_ctx", LEAST_WINDOW, MOST_WINDOW)
        self.context_window = asked or max(LEAST_WINDOW, min(entry.context or USUAL_WINDOW, USUAL_WINDOW))
        self._threads = _count(compat, "threads", 1, MOST_THREADS) or default_threads()
        self._temperature = compat.get("temperature", TEMPERATURE)
        small = os.path.getsize(self._path) < SMALL_MODEL_BYTES
        self._repeat_penalty = compat.get("repeat_penalty", SMALL_REPEAT_PENALTY if small else 1.0)
        self._max_tokens = settings.max_tokens or DEFAULT_MAX_TOKENS
        self._force_tool = bool(compat.get("force_tool"))
        self._loading: asyncio.Task[Llama] | None = None
        self._grammar: tuple[object, str] | None = None

    async def load(self) -> None:
        """Load the model now, rather than with the first request.

        Raises:
            ProviderError: it cannot be loaded.
        """
        await self.engine()

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Ask. Leaving the iterator gives the request up: at once for us, after some tokens more for the engine."""
        llama = await self.engine()
        answer = _Answer(request.tools)
        try:
            async with aclosing(llama.chat(self._body(request))) as pieces:
                async for piece in pieces:
                    for chunk in answer.feed(piece):
                        yield chunk
        except PromptTooLong as fault:
            fault.say(hint=HINT)
            raise
        for chunk in answer.finish():
            yield chunk

    async def close(self) -> None:
        """Give up all requests and free the memory. Idempotent; a later request loads the model again."""
        loading, self._loading = self._loading, None
        if loading is None:
            return
        await asyncio.wait([loading])
        if not loading.cancelled() and loading.exception() is None:
            await loading.result().close()

    async def engine(self) -> Llama:
        """What answers, loaded. Whoever leaves while it is being loaded leaves it to the others.

        Raises:
            ProviderError: it cannot be loaded.
        """
        if self._loading is None:
            loading = Llama.load(
                self.name, self._path, window=self.context_window, threads=self._threads, options=self._options
            )
            self._loading = asyncio.create_task(loading)
        mine = self._loading
        try:
            return await asyncio.shield(mine)
        except Fault:
            # The next request tries again.
            if self._loading is mine:
                self._loading = None
            raise

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": local_prompt.messages(request),
            "max_tokens": request.max_tokens or self._max_tokens,
            "temperature": self._temperature,
            "top_p": TOP_P,
            "min_p": MIN_P,
            "repeat_penalty": self._repeat_penalty,
            "repeat_last_n": REPEAT_WINDOW_TOKENS,
        }
        options = request.options or AnswerOptions()
        if options.schema is not None and not request.tools:
            body["grammar"] = grammar.value(options.schema)
        elif request.options is not None and request.tools:
            must_call = options.must_call or self._force_tool
            body["grammar"] = grammar.answer(request.tools, must_call=must_call, schema=options.schema)
        elif request.tools:
            body["grammar"] = self._grammar_of(request)
        for name in ("temperature", "top_p", "seed"):
            if (value := getattr(options, name)) is not None:
                body[name] = value
        if options.stop:
            body["stop"] = list(options.stop)
        return body

    def _grammar_of(self, request: Request) -> str:
        """The grammar of a request's tools; mostly that of the request before."""
        if self._grammar is None or self._grammar[0] is not request.tools:
            self._grammar = request.tools, grammar.answer(request.tools, must_call=self._force_tool)
        return self._grammar[1]


class _Answer:
    """The engine's pieces on their way to chunks. Sans-IO."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._text = local_prompt.AnswerParser(tools)
        self._decoder = OpenAIDecoder()

    def feed(self, piece: Mapping[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for chunk in self._decoder.feed(piece):
            if not isinstance(chunk, TextChunk):
                chunks.append(chunk)
            elif text := self._text.feed(chunk.text):
                chunks.append(TextChunk(text))
        return chunks

    def finish(self) -> list[Chunk]:
        told = self._decoder.finish()
        rest, blocks = self._text.finish()
        thoughts = tuple(block for block in told.content if isinstance(block, ThinkingBlock))
        stop = told.stop
        if stop != "max_tokens":
            stop = "tool_use" if blocks and isinstance(blocks[-1], ToolUse) else "end"
        answer = Answer((*thoughts, *blocks), stop, told.usage)
        return [TextChunk(rest), answer] if rest else [answer]


def _usable(name: str) -> tuple[str, CatalogEntry]:
    """The same, if there is what runs it. Who lacks both is told of both, in the order in which they are needed."""
    lacks = lacking_engines((LLAMA,))
    try:
        found = _find(name)
    except ConfigError as error:
        if lacks is not None:
            error.say(message=f"{lacks} {error.message}")
        raise
    if lacks is not None:
        raise ConfigError(lacks)
    return found


def _find(name: str) -> tuple[str, CatalogEntry]:
    """The file of a model, and what is known of it."""
    if (name.endswith(".gguf") or os.sep in name) and (naming.split(name) is None or os.path.exists(name)):
        path = os.path.expanduser(name)
        try:
            return path, CatalogEntry(name, files=(ModelFile(path),), context=local_gguf.context_length(path))
        except OSError as error:
            raise ConfigError(f"The model `{path}` cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise ConfigError(f"The model `{path}` cannot be used: {error}.") from None
    entry = catalog.find(name)
    if entry.kind != LLM:
        raise ConfigError(f"`{name}` is not a language model.", hint="`trunkline models list` shows those there are.")
    installed = catalog.path(entry)
    if installed is None:
        raise ConfigError(f"The model `{name}` is not here yet.", hint=f"Get it with `trunkline models pull {name}`.")
    return installed, entry


def _count(compat: Mapping[str, Any], key: str, least: int, most: int) -> int | None:
    value = compat.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"`{key}` must be a whole number from {least} to {most}, not `{value}`.")
    return value
