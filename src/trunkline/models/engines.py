"""Models as the nodes of a graph use them: language engines and embedding engines.

`models.model` is for those who have a whole conversation with a model, with tools and pictures. An engine goes on from
a prompt, and tells how likely a continuation is. It is one model, ready to be used by any number of agents at once. Who
loads it, shares its weights and queues for it is its owner's business.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from math import isfinite
from typing import Literal, Protocol, Self

from trunkline.base.values import Value
from trunkline.core.graph.description import ToolDefinition
from trunkline.core.graph.models import SamplingParams

Role = Literal["system", "user", "assistant"]

#: One embedded text, of length 1. Rows of a numpy array are fine.
Vector = Sequence[float]


class ChatMessage(Value, hot=True):
    """One message of a prompt."""

    role: Role
    text: str


class Prompt(Value, hot=True):
    """What a model is to go on from.

    `fresh` is the place in `messages` where the current turn begins: everything before it is system prompt and
    history, which an engine that remembers conversations by itself has seen already.
    """

    messages: tuple[ChatMessage, ...]
    fresh: int = 0
    tools: tuple[ToolDefinition, ...] = ()
    """The tools that the system message describes, for engines that have their own way with tools."""
    tool_format: str = ""
    """How a call is to be written: `chatml`, `llama3`, `mistral` or `generic`. Empty where there are no tools."""

    @property
    def said(self) -> list[dict[str, str]]:
        """The messages as OpenAI's Chat Completions have them."""
        return [{"role": message.role, "content": message.text} for message in self.messages]

    @property
    def last_user_text(self) -> str:
        """The last message of the user."""
        for message in reversed(self.messages):
            if message.role == "user":
                return message.text
        return ""


class Slot:
    """The place of one node of one agent in an engine: what was read there last stays warm for the next turn."""

    __slots__ = ("__weakref__", "name")

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<Slot {self.name}>"


#: Tokens that are left for the answer; of a small context, no more than a quarter.
RESERVE = 512
#: The largest number of tokens that anybody can tell.
MOST_TOKENS = 2**31 - 1


def cost(told: object) -> int:
    """A number of tokens that somebody else tells: whole, and from 0 to `MOST_TOKENS`. What is no number is 0."""
    if type(told) is int:
        return told if 0 <= told <= MOST_TOKENS else 0 if told < 0 else MOST_TOKENS
    return cost(int(told)) if type(told) is float and isfinite(told) else 0


class Piece(str):
    """A piece of generated text that knows its cost. A plain `str` counts as one token."""

    __slots__ = ("cached_tokens", "prompt_tokens", "tokens")

    tokens: int
    prompt_tokens: int
    cached_tokens: int

    def __new__(cls, text: str, tokens: int = 1, prompt_tokens: int = 0, cached_tokens: int = 0) -> Self:
        piece = super().__new__(cls, text)
        piece.tokens = tokens
        piece.prompt_tokens = prompt_tokens
        piece.cached_tokens = cached_tokens
        return piece


def fingerprint(*paths: str) -> str:
    """What changes when one of a model's files does. They are too large to be read for it: when, and how long."""
    states = [os.stat(path) for path in paths]
    return " ".join(f"{each.st_size}-{each.st_mtime_ns}" for each in states)


def high_water(context_size: int) -> int:
    """The tokens that a prompt may have, so that there is room for an answer."""
    return context_size - min(RESERVE, context_size // 4)


class LanguageEngine(Protocol):
    """One language model."""

    @property
    def context_size(self) -> int:
        """Tokens that prompt and answer may have together."""

    @property
    def tool_call_format(self) -> str:
        """The format of its tool calls that the catalog knows; "" if none."""

    @property
    def default_sampling(self) -> SamplingParams | None:
        """What the catalog says; None if nothing."""

    def refusal(self, sampling: SamplingParams) -> str | None:
        """Why it cannot answer like that, in a sentence; None if it can. What it cannot do is not passed over: whoever
        makes an agent asks first. That an answer stops is not its business alone (`models.stops`)."""

    def generate(
        self,
        prompt: Prompt,
        sampling: SamplingParams,
        *,
        stream: bool,
        grammar: str | None = None,
        slot: Slot | None = None,
    ) -> AsyncGenerator[str, None]:
        """Go on from the prompt. Leaving the iterator stops the model within one token.

        With `stream` each item should be one token; without, the whole text may come at once. `Piece` tells what an
        item costs. With a `grammar` (GBNF) the text follows it, whatever `sampling.json_schema` says; an engine that
        knows no grammars ignores it.

        Raises:
            PromptTooLong: less may fit. Always before the first piece.
            ProviderError: it did not work.
        """

    async def score(self, prompt: Prompt, continuations: Sequence[str], *, slot: Slot | None = None) -> list[float]:
        """How likely each continuation is to come next: its logit, or anything that differs from it by a constant.

        Raises:
            PromptTooLong: less may fit. Always before the first piece.
            ProviderError: it did not work.
        """

    def count(self, text: str) -> int:
        """The tokens of a text, or a fair estimate. Quick."""

    def release(self, slot: Slot) -> None:
        """The slot will not be used again. Idempotent."""


class EmbeddingEngine(Protocol):
    """One embedding model."""

    @property
    def name(self) -> str:
        """What the catalog calls it."""

    @property
    def fingerprint(self) -> str:
        """What changes when another model gets the name: vectors that were kept are used for the same one only."""

    @property
    def dimensions(self) -> int:
        """The length of its vectors."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of length 1 per text, in order.

        Raises:
            ProviderError: it did not work.
        """
