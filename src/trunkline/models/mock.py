"""Models that need no weights, network or key: deterministic, quick, and the same everywhere.

`MockModel`, for whole conversations, says what it was told:

    hello there                     it says `hello there`, word by word
    tool: Read {"file_path": "x"}   it calls that tool, then says `Result: ` and the first line of what came back

`MockLanguage`, for the nodes of a graph, says `You said: ` and the last message of the user word for word, one token
per word. With tools it calls each one whose name occurs in that message, with the message's beginning for each text,
and says nothing else unless there is none. It chooses the intent that shares the most words with the message.

`MockEmbedding`: each word and each three letters in a row within a word have a direction of their own, in 384
dimensions; a text is the sum of its directions. So the same text has distance 0, alike texts are near, and texts that
share nothing are about 1 apart (the directions are pseudo-random, so it is never exactly 1).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import lru_cache
from typing import Any, cast

from trunkline.core.graph.description import ToolDefinition
from trunkline.core.graph.models import SamplingParams
from trunkline.core.usage import Usage
from trunkline.models.answers import tool_input
from trunkline.models.engines import Piece, Prompt, Slot, Vector
from trunkline.models.messages import Message, Text, ToolResult, ToolUse
from trunkline.models.model import Answer, Chunk, Request, TextChunk
from trunkline.models.providers import ModelSettings
from trunkline.models.sampling import DEFAULT_SAMPLING
from trunkline.models.tool_calls import MAX_ARGUMENT, Call, write_calls

_DIRECTIVE = "tool:"

#: A plausible one, so that conversations with it are compacted like others.
CONTEXT_WINDOW = 200_000

#: A model whose name begins like this takes its time.
SLOW = "mock-slow"
#: For each token.
SLOW_SECONDS = 0.02

#: Larger than any message that fits into a frame: what was said can be said back.
CONTEXT_SIZE = 1 << 20

#: Tokens after which others have their turn.
_SHARE = 256
#: Characters of an answer that is said at once, if nobody wants to hear its tokens.
_AT_ONCE = 1024

#: Characters of a message that all calls of an answer repeat together. A hundred tools with many texts each would make
#: a gigabyte of a long one.
MAX_REPEATED = 64 * 1024
#: Characters of a message in which one name is looked for before others have their turn.
_LONG_MESSAGE = 16 * 1024

#: As many as the embedding model of the built-in catalog has.
DIMENSIONS = 384
#: What is looked at of a text that is to be embedded. A longer one costs no more.
MAX_EMBEDDED_CHARS = 4096
#: Characters of a text after which others have their turn.
_LONG = 512
#: Directions that are kept, 1.5 KiB each.
_KEPT_DIRECTIONS = 8192

_TOKEN = re.compile(r"\s*\S+(?:\s+\Z)?|\s+")
_WORD = re.compile(r"\w+")


class MockModel:
    """The `Model` of provider `mock`."""

    provider = "mock"
    context_window = CONTEXT_WINDOW

    def __init__(self, settings: ModelSettings) -> None:
        self.name = settings.model or "mock"
        self.images = settings.compat.get("image_input") != "unsupported"

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Say it. `usage` counts words."""
        read = sum(_word_count(message) for message in request.messages)
        last = request.messages[-1] if request.messages else Message("user", ())
        call = _directed(last, len(request.messages))
        if call is not None:
            yield Answer((call,), "tool_use", Usage(read, 1))
            return
        text = _reply(last)
        pieces = text.split(" ")
        for number, piece in enumerate(pieces):
            yield TextChunk(piece if number == 0 else " " + piece)
        yield Answer((Text(text),), "end", Usage(read, len(pieces)))

    async def close(self) -> None:
        """There is nothing to let go of."""


class MockLanguage:
    """A `LanguageEngine` for any model name."""

    context_size = CONTEXT_SIZE
    tool_call_format = ""
    default_sampling: SamplingParams | None = None

    def __init__(self, name: str = "mock") -> None:
        self.name = name
        self._seconds = SLOW_SECONDS if name.startswith(SLOW) else 0.0

    async def generate(
        self,
        prompt: Prompt,
        sampling: SamplingParams,
        *,
        stream: bool,
        grammar: str | None = None,
        slot: Slot | None = None,
    ) -> AsyncGenerator[str, None]:
        """Say it: token by token, or at once if nobody wants to hear the tokens and they take no time."""
        text = (await _calls(prompt) if prompt.tools else "") or f"You said: {prompt.last_user_text}"
        if not stream and not self._seconds and len(text) <= _AT_ONCE and sampling is DEFAULT_SAMPLING:
            yield Piece(text, len(_TOKEN.findall(text)), _cost(prompt))
            return
        for number, token in enumerate(_tokens(text, sampling.max_tokens), 1):
            if self._seconds or not number % _SHARE:
                await asyncio.sleep(self._seconds)
            # The first one brings what the prompt has cost.
            yield token if number > 1 else Piece(token, 1, _cost(prompt))

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """One more for each word that the user's message shares with the line that describes the continuation."""
        if self._seconds:
            await asyncio.sleep(self._seconds)
        said = _words(prompt.last_user_text)
        lines = [line for message in prompt.messages if message.role == "system" for line in message.text.splitlines()]
        described = {choice: text for line in lines for choice, mark, text in [line.partition(") ")] if mark}
        # Steep enough that one shared word decides, whatever the thresholds.
        return [4.0 * len(said & _words(described.get(choice, ""))) for choice in continuations]

    def count(self, text: str) -> int:
        """Its words."""
        return len(text.split())

    def release(self, slot: Slot) -> None:
        """There is nothing to let go of."""


class MockEmbedding:
    """An `EmbeddingEngine` for any model name."""

    dimensions = DIMENSIONS
    fingerprint = ""

    def __init__(self, name: str = "mock") -> None:
        self.name = name

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Add up the directions of what each text is made of."""
        vectors = []
        for text in texts:
            vectors.append(_embedded(text))
            if len(text) > _LONG:
                await asyncio.sleep(0)
        return vectors


def _said(message: Message) -> str:
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def _word_count(message: Message) -> int:
    return len(_said(message).split())


def _directed(message: Message, number: int) -> ToolUse | None:
    text = _said(message).strip()
    if message.role != "user" or not text.startswith(_DIRECTIVE) or "\n" in text:
        return None
    name, _, arguments = text.removeprefix(_DIRECTIVE).strip().partition(" ")
    given, raw = tool_input(arguments)
    return ToolUse(f"call_{number}", name, given, raw)


def _reply(message: Message) -> str:
    results = [block.text for block in message.content if isinstance(block, ToolResult)]
    if results:
        return f"Result: {(results[0].splitlines() or [''])[0]}"
    return _said(message) or "(nothing)"


async def _calls(prompt: Prompt) -> str:
    """The calls of all tools whose names occur in the message; "" without any."""
    said = prompt.last_user_text
    called = []
    for tool in prompt.tools:
        if tool.name in said:
            called.append(tool)
        if len(said) > _LONG_MESSAGE:
            await asyncio.sleep(0)
    texts = sum(len(tool.parameters) for tool in called)
    value = said[: min(MAX_ARGUMENT, MAX_REPEATED // max(texts, 1))]
    calls = [Call(tool.name, _arguments(tool, value)) for tool in called]
    return write_calls(calls, prompt.tool_format) if calls else ""


def _cost(prompt: Prompt) -> int:
    """The words of a prompt."""
    words = 0
    for message in prompt.messages:
        words += len(message.text.split())
    return words


def _arguments(tool: ToolDefinition, text: str) -> dict[str, Any]:
    """A value for each parameter that is of its type."""
    simple = {"integer": 1, "int": 1, "number": 1, "float": 1, "boolean": True, "bool": True}
    return {parameter.name: simple.get(parameter.type.lower(), text) for parameter in tool.parameters}


def _tokens(text: str, limit: int) -> Iterator[str]:
    """The words of a text, each with the blanks before it; joined they are the text.

    The built-in limit is there for models that do not come to an end. This one does, so only another limit holds.
    """
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number >= limit and limit != DEFAULT_SAMPLING.max_tokens:
            return
        yield match[0]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _features(text: str) -> Iterator[str]:
    words = _WORD.findall(text[:MAX_EMBEDDED_CHARS].casefold())
    for word in words:
        yield f"w{word}"
        for start in range(len(word) - 2):
            yield f"t{word[start : start + 3]}"
    if not words:
        # Only marks, or nothing: then the whole is the one thing to tell it by.
        yield f"x{text[:MAX_EMBEDDED_CHARS].strip()}"


@lru_cache(maxsize=_KEPT_DIRECTIONS)
def _direction(feature: str) -> Any:
    """Ones and minus ones, as the bits of the feature's hash are."""
    import hashlib

    import numpy as np

    bits = hashlib.shake_256(feature.encode("utf-8", "surrogatepass")).digest(DIMENSIONS // 8)
    return np.unpackbits(np.frombuffer(bits, np.uint8)).astype(np.float32) * 2 - 1


def _embedded(text: str) -> Vector:
    import numpy as np

    total = np.zeros(DIMENSIONS, np.float32)
    for feature in _features(text):
        total += _direction(feature)
    length = float(np.linalg.norm(total))
    return cast("Vector", total / length if length else total)
